/** The processes of the demo, as their parent sees them: started with a job, told to stop, killed, waited for. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { getCompileCacheDir } from "node:module";
import type { RunEvent } from "statewright";
import type { Job, Message, Order, Outcome } from "./worker.ts";

/** How a process ended: as its job did, or without a word. */
export type Ending = Outcome | { readonly status: "killed"; readonly signal: string };

/** A process at work. */
export interface Worker {
  readonly pid: number;
  /** How it ends. It is gone by then. */
  readonly ending: Promise<Ending>;
  /** Ask it to stop at once and to keep what is done. */
  stop(): void;
  /** End it as a power cut would. */
  kill(): void;
}

/** Start a process with a job; `onEvent` hears what it tells. */
export function startWorker(job: Job, onEvent: (event: RunEvent) => void): Worker {
  const child = fork(new URL("./worker.ts", import.meta.url), [JSON.stringify(job)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { ...process.env, NODE_COMPILE_CACHE: getCompileCacheDir() },
  });
  let outcome: Outcome | undefined;
  child.on("message", (message: Message) => {
    if (message.type === "event") onEvent(message.event);
    else outcome = message.outcome;
  });
  return {
    pid: child.pid ?? 0,
    ending: endingOf(child, () => outcome),
    stop: () => {
      if (child.connected) child.send({ type: "stop" } satisfies Order, () => undefined);
    },
    kill: () => child.kill("SIGKILL"),
  };
}

async function endingOf(child: ChildProcess, outcome: () => Outcome | undefined): Promise<Ending> {
  try {
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    return outcome() ?? { status: "killed", signal: signal ?? `exit code ${code}` };
  } catch (error) {
    return { status: "failed", message: `the process could not be started: ${String(error)}` };
  }
}
