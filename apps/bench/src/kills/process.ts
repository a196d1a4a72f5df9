/** A child process of the harness, seen from outside: started, told to work, killed by SIGKILL. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Order, Said } from "./child.ts";
import type { ContenderId, Stop } from "./program.ts";

const script = fileURLToPath(new URL("./child.ts", import.meta.url));

/** A process that takes longer is stuck. */
const patienceMs = 20_000;

export interface ChildOptions {
  readonly contender: ContenderId;
  /** Where its database and its log lie. */
  readonly folder: string;
  /** The module of the peer. */
  readonly entry: string;
  /** Compiled code is shared by all processes: it halves what a start costs. */
  readonly compiled: string;
}

/** How a life ended. */
export type Life =
  | { readonly kind: "stopped"; readonly stop: Stop; readonly points: number; readonly tookMs: number }
  | { readonly kind: "killed" }
  | { readonly kind: "failed"; readonly why: string };

/** One life: to its next stop, or to its death at a point (by its number) or so long after it began. */
export async function liveOnce(
  options: ChildOptions,
  { point = 0, afterMs }: { readonly point?: number; readonly afterMs?: number | undefined },
): Promise<Life> {
  const child = startChild(options, point);
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  let stopped: Life | undefined;
  let began = 0;
  let stuck = false;
  const timers = [
    setTimeout(() => {
      stuck = child.kill("SIGKILL");
    }, patienceMs),
  ];
  child.on("message", (said: Said) => {
    if (said.kind === "ready") {
      began = performance.now();
      child.send("live" satisfies Order);
      if (afterMs !== undefined) timers.push(setTimeout(() => child.kill("SIGKILL"), afterMs));
    }
    if (said.kind === "stopped") stopped = { ...said, tookMs: performance.now() - began };
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      for (const timer of timers) clearTimeout(timer);
      if (stuck) resolve({ kind: "failed", why: `it came to no stop within ${patienceMs} ms` });
      else if (stopped !== undefined) resolve(stopped);
      else if (signal === "SIGKILL") resolve({ kind: "killed" });
      else resolve({ kind: "failed", why: `it ended with ${code}: ${stderr}` });
    });
  });
}

/** A process that goes on with threads when it is told to. */
export interface Racer {
  goOn(...threads: readonly string[]): Promise<readonly string[]>;
  end(): void;
}

export function startRacer(options: ChildOptions): Promise<Racer> {
  const child = startChild(options, 0);
  const racer: Racer = {
    goOn: (...threads) =>
      new Promise((resolve, reject) => {
        child.once("message", (said: Said) => {
          if (said.kind === "went on") resolve(said.outcomes);
        });
        child.send({ goOn: threads } satisfies Order, (error) => {
          if (error !== null) reject(error);
        });
      }),
    end: () => {
      child.kill("SIGKILL");
    },
  };
  return new Promise((resolve, reject) => {
    child.once("message", () => resolve(racer));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`a process of ${options.contender} ended with ${code}`)));
  });
}

function startChild({ contender, folder, entry, compiled }: ChildOptions, point: number): ChildProcess {
  return fork(script, [contender, folder, entry, String(point)], {
    execArgv: ["--no-warnings"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { ...process.env, NODE_COMPILE_CACHE: compiled },
  });
}
