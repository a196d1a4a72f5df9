/** Processes of the gate of LangGraph clients: a server on a SQLite file, and programs with an unmodified client. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import * as z from "zod";

/** Token of the server. */
export const token = "a-token-of-the-gate-0123456789";

/** The answer of the model to "long". */
export const words: string = Array.from({ length: 60 }, (_, index) => `w${index + 1} `).join("");

const told = z.object({ name: z.string(), value: z.unknown() });

type Told = z.infer<typeof told>;

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
}

/** Server process. */
export interface Server {
  readonly url: string;
  /** Lets the model say this many words more of its answer to "long". */
  readonly say: (count: number) => void;
  /** Kills the process by SIGKILL; a process that stands ready takes its place on the same port. */
  readonly replace: () => Promise<void>;
}

interface ServerProcess {
  readonly child: ChildProcess;
  readonly write: (line: string) => void;
  readonly listening: Promise<string>;
}

function startProcess(file: string, port: number): ServerProcess {
  const program = fileURLToPath(new URL("langgraph-server.ts", import.meta.url));
  const child = spawn(process.execPath, [program, file, token, String(port)], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => kill(child));
  const listening = new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  return { child, write: (line) => child.stdin.write(`${line}\n`), listening };
}

/** Path of a new file, which is removed after the test. */
function createFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "langgraph-gate-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "threads.db");
}

/** Starts a server on a new file, and a process that stands ready for its death. */
export async function startServer(): Promise<Server> {
  const file = createFile();
  let current = startProcess(file, 0);
  current.write("go");
  const url = await current.listening;
  let next = startProcess(file, Number(new URL(url).port));
  return {
    url,
    say: (count) => current.write(String(count)),
    replace: async () => {
      await kill(current.child);
      current = next;
      current.write("go");
      await current.listening;
      next = startProcess(file, Number(new URL(url).port));
    },
  };
}

/** Starts two servers on a new file. `say` allows words to the models of both. */
export async function startServers(): Promise<{
  readonly urls: readonly [string, string];
  readonly say: Server["say"];
}> {
  const file = createFile();
  const [first, second] = [startProcess(file, 0), startProcess(file, 0)];
  const urls: string[] = [];
  for (const { write, listening } of [first, second]) {
    write("go");
    urls.push(await listening);
  }
  const say = (count: number): void => {
    for (const { write } of [first, second]) write(String(count));
  };
  return { urls: [urls[0] ?? "", urls[1] ?? ""], say };
}

/** Runs a program of a client, calls `onTold` for each line, and returns the last value of each name. */
export async function runClient(
  program: string,
  args: readonly string[],
  onTold: (line: Told) => void | Promise<void> = () => {},
): Promise<Readonly<Record<string, unknown>>> {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(() => kill(child));
  const values: Record<string, unknown> = {};
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const { name, value } = told.parse(JSON.parse(line));
    values[name] = value;
    await onTold({ name, value });
  }
  expect(stderr).toBe("");
  return values;
}
