/** Result of a delivery, read from the store. */
import { type ErrorRecord, type StatewrightError, toErrorRecord } from "../../base/errors.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import type { Graph } from "../../compile/graph.ts";
import { getPlan } from "../../compile/plan.ts";
import { loadRunOutcome } from "../../run/outcome.ts";
import { findStartable } from "../../run/queue.ts";
import { getCodec } from "../../run/task/open-session.ts";
import type { DeliveryResult } from "./delivery.ts";
import { type DeliveryContext, findBranch, getServedGraph } from "./delivery-context.ts";
import { isContinuable } from "./thread-work.ts";

/** Creates the result of a refused delivery. */
export function createRefusal(error: unknown): DeliveryResult {
  return { status: "refused", refused: omitStack(toErrorRecord(error)), interrupts: [], hasMore: false };
}

/** Returns an error without its stacks: results are stored by orchestrators. */
function omitStack({ stack: _, cause, errors, ...error }: ErrorRecord): ErrorRecord {
  return {
    ...error,
    ...(cause === undefined ? {} : { cause: omitStack(cause) }),
    ...(errors === undefined ? {} : { errors: errors.map(omitStack) }),
  };
}

/** Returns true for work that another process can do: the owner of the thread, or one with newer code. */
function isForAnother({ code }: StatewrightError): boolean {
  return code === "thread_busy" || code === "needs_migration";
}

/** Reads the result of a delivery. Throws the errors of the store. */
export async function getDeliveryResult(context: DeliveryContext): Promise<DeliveryResult> {
  const { failure } = context;
  if (failure !== undefined && !isForAnother(failure)) return createRefusal(failure);
  const row = await findRun(context);
  const next = await findNextDue(context);
  const base = {
    ...(row === undefined ? {} : { run: row.id }),
    ...(next === undefined ? {} : { next }),
    hasMore: failure !== undefined || (await hasMoreWork(context, row, next)),
  };
  if (row === undefined) return { status: "idle", interrupts: [], ...base };
  const error = row.error === undefined ? {} : { error: omitStack(row.error) };
  if (row.status !== "done" && row.status !== "waiting")
    return { status: row.status, interrupts: [], ...error, ...base };
  const graph = getServedGraph(context, row.graph);
  // Code that is older than the run cannot read its output: another process gives it.
  if (graph.version < row.version) return { status: row.status, interrupts: [], ...base, hasMore: true };
  return { status: row.status, ...(await loadOutcome(context, graph, row)), ...error, ...base };
}

/** Finds the run of the delivery, or the newest run of its branch. */
async function findRun(context: DeliveryContext): Promise<RunRow | undefined> {
  const { store, delivery, run } = context;
  const { thread } = delivery;
  const own = run === undefined ? undefined : await store.run(run);
  if (own?.thread === thread) return own;
  const branch = await findBranch(context, delivery);
  if (branch === undefined) return undefined;
  const rows = await store.runs({ thread, branch, ...(run === undefined ? { limit: 1 } : {}) });
  return rows.find(({ id }) => run === undefined || id === run);
}

/** Loads the output of a run that is done, or the open interrupts of a waiting one. */
async function loadOutcome(
  { store, serving }: DeliveryContext,
  graph: Graph,
  row: RunRow,
): Promise<Pick<DeliveryResult, "interrupts" | "output">> {
  const outcome = await loadRunOutcome({ plan: getPlan(graph), store, codec: getCodec(serving) }, row);
  if (outcome.status === "waiting") return { interrupts: outcome.interrupts };
  return { interrupts: [], ...("output" in outcome ? { output: outcome.output } : {}) };
}

async function findNextDue({ store, delivery: { thread } }: DeliveryContext): Promise<DeliveryResult["next"]> {
  const [timer] = await store.timers({ thread, limit: 1 });
  return timer === undefined ? undefined : { at: timer.dueAt };
}

/** Returns true when the thread has work that a further delivery does. */
async function hasMoreWork(
  context: DeliveryContext,
  row: RunRow | undefined,
  next: DeliveryResult["next"],
): Promise<boolean> {
  const { store, world, delivery, tried } = context;
  const { thread } = delivery;
  // A run at work elsewhere takes messages and cancels by itself; any other delivery is not done.
  if (row?.status === "running" && !("message" in delivery || "cancel" in delivery)) return true;
  if (next !== undefined && next.at <= (await readStoreTime(store, world))) return true;
  const unfinished = await store.runs({ thread, status: ["running", "crashed", "paused", "parked"] });
  if (
    row?.status === "queued" &&
    unfinished.some(({ status, branch }) => status === "running" && branch === row.branch)
  )
    return true;
  if (unfinished.some((each) => isContinuable(each) && (each.status !== "parked" || !tried.has(each.id)))) return true;
  return (await findStartable(store, thread)) !== undefined;
}
