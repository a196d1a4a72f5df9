/**
 * Golden files of the LangGraph mappers. The unmodified clients of both protocols play each conversation over TCP, against
 * a server in another process on a SQLite file. What they received is compared with the golden files, and with
 * STATEWRIGHT_GOLDEN=write the golden files are written.
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
  { port = 0, streams = 0 } = {},
): Promise<Recorder> {
  const program = fileURLToPath(new URL("tape-server.ts", support));
  const args = [program, graph, ...place, token, String(port), String(streams)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => endProcess(child));
  const url = await new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  return { url, kill: () => endProcess(child) };
}

/** Protocol of LangGraph, its program with the unmodified client, and its words for the end of a run. */
interface GoldenProtocol {
  readonly name: "legacy" | "v2";
  readonly program: string;
  readonly done: string;
  readonly failed: string;
  /** Streams that the client opens again after a crash. */
  readonly streams: number;
}

const legacy: GoldenProtocol = {
  name: "legacy",
  program: "langgraph-client.mjs",
  done: "success",
  failed: "node_failed",
  streams: 1,
};

const v2: GoldenProtocol = {
  name: "v2",
  program: "langgraph-v2-client.mjs",
  done: "completed",
  failed: "node_failed: A node of the graph failed.",
  streams: 2,
};

/** The last message and the status that the client must have seen, by the name of the tape. */
function listOutcomes({ done, failed }: GoldenProtocol): Readonly<Record<string, readonly [string, string]>> {
  return {
    text: ["Hello there, friend.", done],
    tool: ["Tea is found.", done],
    "parallel-tools": ["Both are found.", done],
    "sub-agent": ["Done.", done],
    retraction: ["The right answer.", done],
    waiting: ["Paid one of two.", done],
    fork: ["Second answer.", done],
    crash: ["The whole answer.", done],
    cancel: ["Hello", "interrupted"],
    failure: ["n", failed],
  };
}

const outcome = z.object({ text: z.string(), status: z.string(), frames: z.array(z.unknown()) });

/** Plays the conversation of a tape, and keeps the frames of the client beside the events of the server. */
async function record(
  name: string,
  folder: string,
  { program, streams }: GoldenProtocol,
): Promise<readonly [string, string]> {
  const server = await startRecorder(name, [folder, name]);
  const args = [await installSdk(), server.url, token, "tape", name];
  const seen = await runClient(program, args, async (line) => {
    if (line.name !== "kill") return;
    await server.kill();
    await startRecorder("crash-again", [folder, name], { port: Number(new URL(server.url).port), streams });
  });
  const { text, status, frames } = outcome.parse(seen["outcome"]);
  writeFileSync(join(folder, `${name}.frames.jsonl`), frames.map((frame) => `${JSON.stringify(frame)}\n`).join(""));
  await server.kill();
  return [text, status];
}

function installSdk(): Promise<string> {
  const dependencies = { "@langchain/langgraph-sdk": "1.15.0", "@langchain/core": "1.3.2" };
  return installClients({ name: "langgraph-golden", dependencies });
}

/** Compares the recordings of a folder with the golden files, or writes them. Returns the errors of the program. */
async function compareGolden(folder: string, { name }: GoldenProtocol): Promise<string> {
  const program = fileURLToPath(new URL("compare-golden-tapes.ts", support));
  const mode = process.env["STATEWRIGHT_GOLDEN"] === "write" ? ["--write"] : [];
  const child = spawn(process.execPath, [program, folder, name, ...mode], { stdio: ["ignore", "inherit", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  return code === 0 ? stderr : `exit code ${code}: ${stderr}`;
}

/** Plays all conversations with a client that must be satisfied with each; only then compares or writes golden files. */
async function playConversations(protocol: GoldenProtocol): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "langgraph-golden-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const outcomes = listOutcomes(protocol);
  for (const [name, expected] of Object.entries(outcomes))
    expect([name, await record(name, folder, protocol)]).toEqual([name, expected]);
  expect(await compareGolden(folder, protocol)).toBe("");
}

test("the client receives the wire events of the golden files, in each conversation of the tapes [V55, V143, V146]", async () => {
  await playConversations(legacy);
});

test("ThreadStream receives the frames of the golden files of v2, in each conversation of the tapes [V55, V143, V146]", async () => {
  await playConversations(v2);
});
