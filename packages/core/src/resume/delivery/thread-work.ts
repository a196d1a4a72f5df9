/** Work that a delivery finds on its thread: a run to continue, a due timer, or the next run of the queue. */
import { isStatewrightError } from "../../base/errors.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import { getClaimableKind } from "../../checkpoint/claimable.ts";
import { inQueue } from "../../checkpoint/delayed-run.ts";
import type { ClaimMode } from "../../checkpoint/previous-owner.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import { getBranchName } from "../../checkpoint/rules.ts";
import type { GraphTypes } from "../../define/graph.ts";
import { findStartable, launchQueued } from "../../run/queue.ts";
import type { ResumeOptions, RunHandle } from "../../run/session/options/options.ts";
import { isThreadActive } from "../../run/session/thread-registry.ts";
import { isHalt } from "../halted-runs.ts";
import { isResting } from "../notified-runs.ts";
import { resumeRun } from "../resume.ts";
import { continueRun } from "../serving.ts";
import { type DeliveryContext, isThrown } from "./delivery-context.ts";

/** Work of a thread, not yet begun. */
export interface ThreadWork {
  readonly row: RunRow;
  readonly start: () => RunHandle<unknown>;
}

/**
 * Works on the thread until the run of the delivery is at rest; a delivery about the thread runs a single run. Each run
 * is started at most once. Throws the errors of the store.
 */
export async function runThreadWork(context: DeliveryContext): Promise<void> {
  const { stop, tried } = context;
  while (!stop.isStopped()) {
    if (await isOwnRunAtRest(context)) return;
    const work = await findThreadWork(context);
    if (work === undefined || tried.has(work.row.id)) return;
    await runWork(context, work);
    if (context.run === undefined || context.failure !== undefined) return;
  }
}

/** Runs a single run until it ends or is at rest. Throws the errors of the store; another error is that of the run. */
export async function runWork(context: DeliveryContext, { row, start }: ThreadWork): Promise<void> {
  context.tried.add(row.id);
  try {
    await context.stop.watch(start());
  } catch (error) {
    if (isThrown(error)) throw error;
    // The row of a failed run has its error.
    if (isStatewrightError(error)) context.failure = await findUnsavedFailure(context, row, error);
  }
}

/** Returns the error of work that has left the row of its run unchanged; undefined for the error of a failed run. */
async function findUnsavedFailure(
  { store }: DeliveryContext,
  { id, status, attempt }: RunRow,
  error: NonNullable<DeliveryContext["failure"]>,
): Promise<DeliveryContext["failure"]> {
  const row = await store.run(id);
  const hasFailed = row?.status === "failed" || row?.status === "parked";
  return hasFailed && (row.status !== status || row.attempt !== attempt) ? undefined : error;
}

async function isOwnRunAtRest({ store, run, delivery, tried }: DeliveryContext): Promise<boolean> {
  const row = run === undefined ? undefined : await store.run(run);
  if (row === undefined || row.thread !== delivery.thread || row.status === "queued") return false;
  return !isContinuable(row, delivery.claim) || (row.status === "parked" && tried.has(row.id));
}

/** Finds the first work of a thread: an interrupted run, then a due timer, then the queue. */
export async function findThreadWork(context: DeliveryContext): Promise<ThreadWork | undefined> {
  const interrupted = await findInterrupted(context);
  if (interrupted !== undefined) return interrupted;
  const due = "timers" in context.delivery || "resume" in context.delivery ? await findDue(context) : undefined;
  return due ?? (await findQueued(context));
}

/** Finds a run whose process died or stopped, unless a queued run pre-empts it. */
async function findInterrupted({
  store,
  serving,
  delivery: { thread, claim },
  tried,
  getCaller,
}: DeliveryContext): Promise<ThreadWork | undefined> {
  const rows = await store.runs({ thread, status: ["running", "crashed", "paused", "parked"] });
  const row = rows.find((each) => isContinuable(each, claim) && !tried.has(each.id));
  if (row === undefined || isThreadActive(store, thread)) return undefined;
  const queued = await store.runs({ thread, branch: row.branch, ...inQueue });
  if (row.status !== "running" && queued.some(({ stops }) => stops?.run === row.id)) return undefined;
  const caller = getCaller(row);
  return { row, start: () => continueRun(caller, row, { parkAfter: serving.parkAfter }) };
}

/** Returns true for a run that a delivery continues by itself. A forced claim continues a run of a live owner. */
export function isContinuable(row: RunRow, claim?: ClaimMode): boolean {
  if (row.status === "running") return claim === "force";
  if (row.status === "queued") return false;
  return getClaimableKind(row) !== undefined || (row.status === "paused" && isHalt(row.error));
}

/** Finds a run at rest with a due timer. */
async function findDue({
  store,
  world,
  delivery: { thread },
  tried,
  getCaller,
}: DeliveryContext): Promise<ThreadWork | undefined> {
  const dueBy = await readStoreTime(store, world);
  const timers = await store.timers({ thread, dueBy, kinds: ["after", "expiry", "wake"] });
  if (timers.length === 0) return undefined;
  const branches = new Set(timers.map(({ branch }) => getBranchName(branch)));
  const wakes = new Set(timers.flatMap(({ kind, about }) => (kind === "wake" ? [about] : [])));
  const rows = await store.runs({ thread, status: ["waiting", "paused"] });
  const row = rows.find(
    (each) => !tried.has(each.id) && (wakes.has(each.id) || (branches.has(each.branch) && isResting(each))),
  );
  if (row === undefined) return undefined;
  const caller = getCaller(row);
  const { branch } = row;
  return { row, start: () => resumeRun({ ...caller, options: { ...caller.options, thread, branch } }) };
}

/** Finds the first queued run that can start. */
async function findQueued({ store, delivery, getCaller }: DeliveryContext): Promise<ThreadWork | undefined> {
  const row = await findStartable(store, delivery.thread);
  if (row === undefined) return undefined;
  const caller = getCaller(row);
  return { row, start: () => launchQueued(caller, row) };
}

/** Creates the work of a run that a caller continues: with answers, or after a failure or a pause. */
export function toResumeWork(
  { delivery: { thread }, getCaller }: DeliveryContext,
  row: RunRow,
  given: Pick<ResumeOptions<GraphTypes>, "answers" | "by" | "key">,
): ThreadWork {
  const caller = getCaller(row);
  const options = { ...caller.options, ...given, thread, branch: row.branch };
  return { row, start: () => resumeRun({ ...caller, options }) };
}
