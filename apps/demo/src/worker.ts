/**
 * Worker process of the demo: runs or resumes the audit and sends its events to the parent. The process may be killed
 * at any moment; work reported as completed is already in the database.
 */
import { type Model, type RunEvent, type RunHandle, type RunResult, resume, run, sqliteStore } from "statewright";
import { loadModel } from "statewright/adapter";
import { createAuditGraph } from "./audit-graph.ts";
import { createAuditModel } from "./audit-model.ts";
import type { AuditState } from "./audit-state.ts";
import { stopReason } from "./view.ts";

/** Job of a process. */
export interface Job {
  readonly database: string;
  readonly thread: string;
  /** Branch to resume; the thread's own branch if absent. */
  readonly branch?: string;
  /** True to start a new run, false to resume. */
  readonly start: boolean;
  readonly context: {
    readonly root: string;
    readonly report: string;
    readonly log: string;
    readonly hold?: boolean;
    readonly failFirstAttempt?: boolean;
  };
  readonly model: string | undefined;
  readonly answer?: { readonly ok: boolean; readonly note?: string };
  /** Source of the answer, saved with it. */
  readonly by?: string;
  readonly maxDbKb: number | undefined;
}

/** Outcome of a job. */
export type Outcome =
  | { readonly status: RunResult<AuditState>["status"]; readonly result: RunResult<AuditState> }
  | { readonly status: "failed"; readonly message: string };

/** Message to the parent. */
export type WorkerMessage =
  | { readonly type: "event"; readonly event: RunEvent }
  | { readonly type: "outcome"; readonly outcome: Outcome };

/** Command from the parent: stop and keep finished work. */
export type WorkerCommand = { readonly type: "stop" };

async function runJob(job: Job): Promise<Outcome> {
  const { database, thread, branch, start, context, answer, by = "unknown", maxDbKb } = job;
  const model = await resolveModel(job);
  const store = sqliteStore(database, maxDbKb === undefined ? {} : { maxBytes: maxDbKb * 1024 });
  try {
    const graph = createAuditGraph(model);
    const common = { store, thread, context, maxConcurrency: 4, ...(branch === undefined ? {} : { branch }) };
    const handle = start
      ? run(graph, { ...common, input: { messages: [auditRequest] } })
      : resume(graph, { ...common, ...(answer === undefined ? {} : { answers: { write_report: answer }, by }) });
    return await forwardEvents(handle);
  } finally {
    await store.close();
  }
}

const auditRequest = {
  role: "user",
  id: "question",
  content: [{ type: "text", text: "Audit the source tree that your tools see." }],
} as const;

/** Loads the provider package here, and only for a model given by name. */
async function resolveModel({ model }: Job): Promise<Model> {
  return model === undefined ? createAuditModel() : loadModel(model);
}

/** Forwards the events of the run, handles a stop command, and returns the outcome. */
async function forwardEvents(handle: RunHandle<AuditState>): Promise<Outcome> {
  handle.on((event) => {
    // Deltas stay in this process: the parent shows a message when it is complete.
    if (event.type !== "message.delta" && event.type !== "message.call_delta") sendMessage({ type: "event", event });
  });
  const handleCommand = (order: WorkerCommand): void => {
    if (order.type === "stop") handle.cancel(stopReason);
  };
  process.on("message", handleCommand);
  try {
    const result = await handle.result;
    return { status: result.status, result };
  } finally {
    process.off("message", handleCommand);
  }
}

function sendMessage(message: WorkerMessage): void {
  // The callback ignores the send error of an exited parent; the `disconnect` handler below then ends this process.
  process.send?.(message, undefined, undefined, () => undefined);
}

/** Runs the job of the command line. */
async function main(): Promise<void> {
  const exitOrphan = (): never => process.exit(1);
  process.once("disconnect", exitOrphan);
  // Ctrl-C at a terminal sends SIGINT to the whole process group: ignore the signal, the parent sends the stop
  // command.
  process.on("SIGINT", () => undefined);
  const job = JSON.parse(process.argv[2] ?? "{}") as Job;
  const outcome = await runJob(job).catch(
    (error: unknown): Outcome => ({
      status: "failed",
      message: error instanceof Error ? error.message : String(error),
    }),
  );
  process.send?.({ type: "outcome", outcome } satisfies WorkerMessage, undefined, undefined, () => {
    process.off("disconnect", exitOrphan);
    process.disconnect();
  });
}

await main();
