/**
 * One process of the demo: it runs or resumes the audit, and tells its parent by messages what happens. It may be killed
 * at any moment; what it has told as completed is in the database.
 */
import {
  loadModel,
  type Model,
  type RunEvent,
  type RunHandle,
  type RunResult,
  resume,
  run,
  sqliteStore,
} from "statewright";
import { auditGraph } from "./audit-graph.ts";
import type { AuditState } from "./audit-state.ts";
import { rehearsedModel } from "./rehearsed-model.ts";
import { stopReason } from "./view.ts";

/** What a process is asked to do. */
export interface Job {
  readonly database: string;
  readonly thread: string;
  /** The branch to go on with; the thread's own when absent. */
  readonly branch?: string;
  /** Begin a new run, or go on with what is there. */
  readonly begin: boolean;
  readonly context: {
    readonly root: string;
    readonly report: string;
    readonly log: string;
    readonly hold?: boolean;
    readonly hiccup?: boolean;
  };
  readonly model: string | undefined;
  readonly answer?: { readonly ok: boolean; readonly note?: string };
  readonly maxDbKb: number | undefined;
}

/** How a process ended. */
export type Outcome =
  | { readonly status: RunResult<AuditState>["status"]; readonly result: RunResult<AuditState> }
  | { readonly status: "failed"; readonly message: string };

/** What a process tells. */
export type Message =
  | { readonly type: "event"; readonly event: RunEvent }
  | { readonly type: "outcome"; readonly outcome: Outcome };

/** What it may be told: stop, and keep what is done. */
export type Order = { readonly type: "stop" };

async function work(job: Job): Promise<Outcome> {
  const { database, thread, branch, begin, context, answer, maxDbKb } = job;
  const model = await modelOf(job);
  const store = sqliteStore(database, maxDbKb === undefined ? {} : { maxBytes: maxDbKb * 1024 });
  try {
    const graph = auditGraph(model);
    const common = { store, thread, context, maxConcurrency: 4, ...(branch === undefined ? {} : { branch }) };
    const handle = begin
      ? run(graph, { ...common, input: { messages: [question] } })
      : resume(graph, { ...common, ...(answer === undefined ? {} : { answers: { write_report: answer } }) });
    return await follow(handle);
  } finally {
    store.close();
  }
}

const question = {
  role: "user",
  id: "question",
  content: [{ type: "text", text: "Audit the source tree that your tools see." }],
} as const;

/** The provider's package is loaded here, and only for a model that was asked for by name. */
async function modelOf({ model }: Job): Promise<Model> {
  return model === undefined ? rehearsedModel() : loadModel(model);
}

/** Tell every event, obey an order to stop, and give the outcome. */
async function follow(handle: RunHandle<AuditState>): Promise<Outcome> {
  handle.on((event) => {
    // A message is shown when it is complete: its pieces need not travel.
    if (event.type !== "message.delta" && event.type !== "message.call_delta") tell({ type: "event", event });
  });
  const obey = (order: Order): void => {
    if (order.type === "stop") handle.cancel(stopReason);
  };
  process.on("message", obey);
  try {
    const result = await handle.result;
    return { status: result.status, result };
  } finally {
    process.off("message", obey);
  }
}

function tell(message: Message): void {
  // The callback takes the error of a parent that is gone; `disconnect` below ends this process then.
  process.send?.(message, undefined, undefined, () => undefined);
}

/** Do the job that came with the command line. */
async function main(): Promise<void> {
  const orphaned = (): never => process.exit(1);
  process.once("disconnect", orphaned);
  // Ctrl-C at a terminal reaches every process of its group. The parent decides, and gives an order.
  process.on("SIGINT", () => undefined);
  const job = JSON.parse(process.argv[2] ?? "{}") as Job;
  const outcome = await work(job).catch(
    (error: unknown): Outcome => ({
      status: "failed",
      message: error instanceof Error ? error.message : String(error),
    }),
  );
  process.send?.({ type: "outcome", outcome } satisfies Message, undefined, undefined, () => {
    process.off("disconnect", orphaned);
    process.disconnect();
  });
}

await main();
