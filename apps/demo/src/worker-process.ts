/** Worker processes of the demo, from the parent's side: start with a job, stop, kill and wait. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { getCompileCacheDir } from "node:module";
import type { RunEvent } from "statewright";
import type { Job, Outcome, WorkerCommand, WorkerMessage } from "./worker.ts";

/** End of a process: the outcome of its job, or a kill without outcome. */
export type Ending = Outcome | { readonly status: "killed"; readonly signal: string };

/** Running process. */
export interface Worker {
  readonly pid: number;
  /** Resolves after the exit of the process. */
  readonly ending: Promise<Ending>;
  /** Requests an immediate stop; finished work stays saved. */
  stop(): void;
  /** Kills the process by SIGKILL, like a power cut. */
  kill(): void;
}

/** Starts a process with a job. `onEvent` receives the events of its run. */
export function startWorker(job: Job, onEvent: (event: RunEvent) => void): Worker {
  const child = fork(new URL("./worker.ts", import.meta.url), [JSON.stringify(job)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { ...process.env, NODE_COMPILE_CACHE: getCompileCacheDir() },
  });
  let outcome: Outcome | undefined;
  child.on("message", (message: WorkerMessage) => {
    if (message.type === "event") onEvent(message.event);
    else outcome = message.outcome;
  });
  return {
    pid: child.pid ?? 0,
    ending: waitForEnding(child, () => outcome),
    stop: () => {
      if (child.connected) child.send({ type: "stop" } satisfies WorkerCommand, () => undefined);
    },
    kill: () => child.kill("SIGKILL"),
  };
}

async function waitForEnding(child: ChildProcess, getOutcome: () => Outcome | undefined): Promise<Ending> {
  try {
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    return getOutcome() ?? { status: "killed", signal: signal ?? `exit code ${code}` };
  } catch (error) {
    return { status: "failed", message: `could not start the process: ${String(error)}` };
  }
}
