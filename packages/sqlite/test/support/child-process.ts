/** Real processes with stores, for tests that stop and kill them. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Claim } from "@statewright/core/store";

export type Ask = { readonly no: number } & (
  | { readonly do: "claim"; readonly thread: string }
  | { readonly do: "run"; readonly thread: string; readonly epoch: number }
  | { readonly do: "step"; readonly thread: string; readonly epoch: number; readonly id: number }
  | { readonly do: "forever"; readonly thread: string; readonly epoch: number }
  | { readonly do: "close" }
);

type Without<Whole, Key extends string> = Whole extends unknown ? Omit<Whole, Key> : never;

export interface Child {
  readonly pid: number;
  /** Rejects with the code of the child's error. */
  ask(ask: Without<Ask, "no">): Promise<unknown>;
  claim(thread: string): Promise<Claim>;
  /** Numbers of the steps reported as saved to the child. */
  onObserved(listen: (step: number | string) => void): void;
  signal(signal: "SIGSTOP" | "SIGCONT"): void;
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<void>;
}

interface Message {
  readonly ready?: true;
  readonly observed?: number | string;
  readonly id?: number;
  readonly value?: unknown;
  readonly failure?: string;
}

/** Starts a process with a store on `file`. */
export async function startChild(file: string): Promise<Child> {
  const child = fork(fileURLToPath(new URL("./processes/child-process.ts", import.meta.url)), [file], {
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let listener: (step: number | string) => void = () => undefined;
  let asked = 0;
  await new Promise<void>((resolve, reject) => {
    child.once("exit", () => reject(new Error("the child ended before it was ready")));
    child.on("message", (message: Message) => {
      if (message.ready === true) resolve();
      if (message.observed !== undefined) listener(message.observed);
      const waiter = waiting.get(message.id ?? -1);
      if (message.failure === undefined) waiter?.resolve(message.value);
      else waiter?.reject(new Error(message.failure));
    });
  });
  const ask: Child["ask"] = (what) =>
    new Promise((resolve, reject) => {
      const no = ++asked;
      waiting.set(no, { resolve, reject });
      child.send({ ...what, no });
    });
  return {
    pid: child.pid as number,
    ask,
    claim: (thread) => ask({ do: "claim", thread }) as Promise<Claim>,
    onObserved: (listen) => {
      listener = listen;
    },
    signal: (signal) => {
      child.kill(signal);
    },
    kill: () => ended(child),
  };
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", () => resolve());
    child.kill("SIGKILL");
  });
}
