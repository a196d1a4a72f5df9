/** Parent side of a child process of the harness: start, commands, kill by SIGKILL. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ChildCommand, ChildMessage } from "./child.ts";
import type { ContenderId, Stop } from "./program.ts";

const script = fileURLToPath(new URL("./child.ts", import.meta.url));

/** Maximum duration of a process. A slower process counts as stuck. */
const timeoutMs = 20_000;

export interface ChildOptions {
  readonly contender: ContenderId;
  /** Folder of the database and the log. */
  readonly folder: string;
  /** URL of the peer's module. */
  readonly entry: string;
  /** Folder of the compile cache, shared by all processes: halves the cost of a start. */
  readonly compileCache: string;
}

/** Result of a child process. */
export type ProcessResult =
  | { readonly kind: "stopped"; readonly stop: Stop; readonly points: number; readonly durationMs: number }
  | { readonly kind: "killed" }
  | { readonly kind: "failed"; readonly reason: string };

/** Runs a child process to its next stop, or kills the process at a kill point (by number) or after `afterMs`. */
export async function runProcess(
  options: ChildOptions,
  { point = 0, afterMs }: { readonly point?: number; readonly afterMs?: number | undefined },
): Promise<ProcessResult> {
  const child = startChild(options, point);
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  let stopped: ProcessResult | undefined;
  let startedAt = 0;
  let stuck = false;
  const timers = [
    setTimeout(() => {
      stuck = child.kill("SIGKILL");
    }, timeoutMs),
  ];
  child.on("message", (message: ChildMessage) => {
    if (message.kind === "ready") {
      startedAt = performance.now();
      child.send("run" satisfies ChildCommand);
      if (afterMs !== undefined) timers.push(setTimeout(() => child.kill("SIGKILL"), afterMs));
    }
    if (message.kind === "stopped") stopped = { ...message, durationMs: performance.now() - startedAt };
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      for (const timer of timers) clearTimeout(timer);
      if (stuck) resolve({ kind: "failed", reason: `the process did not stop within ${timeoutMs} ms` });
      else if (stopped !== undefined) resolve(stopped);
      else if (signal === "SIGKILL") resolve({ kind: "killed" });
      else resolve({ kind: "failed", reason: `the process exited with code ${code}: ${stderr}` });
    });
  });
}

/** Child process that resumes threads on request. */
export interface Racer {
  resume(...threads: readonly string[]): Promise<readonly string[]>;
  kill(): void;
}

export function startRacer(options: ChildOptions): Promise<Racer> {
  const child = startChild(options, 0);
  const racer: Racer = {
    resume: (...threads) =>
      new Promise((resolve, reject) => {
        child.once("message", (message: ChildMessage) => {
          if (message.kind === "resumed") resolve(message.outcomes);
        });
        child.send({ resume: threads } satisfies ChildCommand, (error) => {
          if (error !== null) reject(error);
        });
      }),
    kill: () => {
      child.kill("SIGKILL");
    },
  };
  return new Promise((resolve, reject) => {
    child.once("message", () => resolve(racer));
    child.once("error", reject);
    child.once("exit", (code) =>
      reject(new Error(`${options.contender}: expected a message, but the process exited with code ${code}`)),
    );
  });
}

function startChild({ contender, folder, entry, compileCache }: ChildOptions, point: number): ChildProcess {
  return fork(script, [contender, folder, entry, String(point)], {
    execArgv: ["--no-warnings"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
  });
}
