/**
 * Golden files of the LangGraph mappers. The unmodified client plays each conversation over TCP, against a server in
 * another process on a SQLite file; then the golden files are checked, and with STATEWRIGHT_GOLDEN=write written.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { installClients } from "../../../src/clients/install-clients.ts";
import { runClient, token } from "./langgraph-processes.ts";

const support = new URL("../../../../../packages/server/test/support/", import.meta.url);

interface Recorder {
  readonly url: string;
  readonly kill: () => Promise<void>;
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
}

async function startRecorder(
  graph: string,
  place: readonly [folder: string, name: string],
  port = 0,
): Promise<Recorder> {
  const program = fileURLToPath(new URL("tape-server.ts", support));
  const args = [program, graph, ...place, token, String(port)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => endProcess(child));
  const url = await new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  return { url, kill: () => endProcess(child) };
}

/** The last message and the status that the client must have seen, by the name of the tape. */
const outcomes: Readonly<Record<string, readonly [text: string, status: string]>> = {
  text: ["Hello there, friend.", "success"],
  tool: ["Tea is found.", "success"],
  "parallel-tools": ["Both are found.", "success"],
  "sub-agent": ["Done.", "success"],
  retraction: ["The right answer.", "success"],
  waiting: ["Paid one of two.", "success"],
  fork: ["Second answer.", "success"],
  crash: ["The whole answer.", "success"],
  cancel: ["Hello", "interrupted"],
  failure: ["n", "node_failed"],
};

const outcome = z.object({ text: z.string(), status: z.string(), frames: z.array(z.unknown()) });

/** Plays the conversation of a tape, and keeps the frames of the client beside the events of the server. */
async function record(name: string, folder: string, clients: string): Promise<void> {
  const server = await startRecorder(name, [folder, name]);
  const args = [clients, server.url, token, "tape", name];
  const seen = await runClient("langgraph-client.mjs", args, async (line) => {
    if (line.name !== "kill") return;
    await server.kill();
    await startRecorder("crash-again", [folder, name], Number(new URL(server.url).port));
  });
  const { text, status, frames } = outcome.parse(seen["outcome"]);
  expect([text, status], name).toEqual(outcomes[name]);
  writeFileSync(join(folder, `${name}.frames.jsonl`), frames.map((frame) => `${JSON.stringify(frame)}\n`).join(""));
  await server.kill();
}

test("the client receives the wire events of the golden files, in each conversation of the tapes [V55, V143, V146]", async () => {
  const folder = mkdtempSync(join(tmpdir(), "langgraph-golden-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const dependencies = { "@langchain/langgraph-sdk": "1.15.0", "@langchain/core": "1.3.2" };
  const clients = await installClients({ name: "langgraph-golden", dependencies });
  for (const name of Object.keys(outcomes)) await record(name, folder, clients);
  const program = fileURLToPath(new URL("write-golden-tapes.ts", support));
  const mode = process.env["STATEWRIGHT_GOLDEN"] === "write" ? ["--write"] : [];
  const child = spawn(process.execPath, [program, folder, ...mode], { stdio: ["ignore", "inherit", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect(stderr).toBe("");
  expect(code).toBe(0);
});
