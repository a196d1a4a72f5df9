/** Real worker processes whose model says what a test tells it. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Order of a test to a worker process. */
export type WorkerOrder =
  | { readonly do: "ask"; readonly thread: string }
  | { readonly do: "say"; readonly word: string }
  | { readonly do: "finish" }
  | { readonly do: "stop" };

type Report = "ready" | "requested" | "ended";

export interface TalkingWorker {
  readonly order: (order: WorkerOrder) => void;
  /** Resolves with the next report of this kind that no earlier call has received. */
  readonly waitFor: (report: Report) => Promise<void>;
  /** Sends SIGKILL and waits for the exit. */
  readonly kill: () => Promise<void>;
  /** Ends the process and waits for its exit. */
  readonly stop: () => Promise<void>;
}

/** Starts a worker on a database file. Its engine continues what a dead worker left. */
export async function startTalkingWorker(file: string): Promise<TalkingWorker> {
  const child = fork(fileURLToPath(new URL("./processes/talking-process.ts", import.meta.url)), [file], {
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const received: Report[] = [];
  const waiting: { readonly report: Report; readonly resolve: () => void }[] = [];
  const exited = waitForExit(child);
  child.on("message", (message: Readonly<Record<Report, boolean | undefined>>) => {
    for (const report of ["ready", "requested", "ended"] as const) {
      if (message[report] !== true) continue;
      const waiter = waiting.findIndex((each) => each.report === report);
      if (waiter < 0) received.push(report);
      else waiting.splice(waiter, 1)[0]?.resolve();
    }
  });
  const waitFor = (report: Report): Promise<void> => {
    const known = received.indexOf(report);
    if (known >= 0) {
      received.splice(known, 1);
      return Promise.resolve();
    }
    const reported = new Promise<void>((resolve) => waiting.push({ report, resolve }));
    const ended = exited.then(() => Promise.reject(new Error(`the worker ended before it reported "${report}"`)));
    return Promise.race([reported, ended]);
  };
  const worker: TalkingWorker = {
    order: (order) => void child.send(order),
    waitFor,
    kill: async () => {
      child.kill("SIGKILL");
      await exited;
    },
    stop: async () => {
      child.send({ do: "stop" } satisfies WorkerOrder);
      await exited;
    },
  };
  await worker.waitFor("ready");
  return worker;
}

function waitForExit(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => child.once("exit", () => resolve()));
}
