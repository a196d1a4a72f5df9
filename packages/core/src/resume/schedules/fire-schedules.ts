/** Due schedules in an engine: each slot becomes a single queued run, in the write that stores the next slot. */
import { isStatewrightError, type StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { createId } from "../../base/ids.ts";
import type { World } from "../../base/world.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import type { FiredSlot, ScheduleRow } from "../../checkpoint/schedule.ts";
import type { QueueWrite, Store } from "../../checkpoint/store.ts";
import type { Graph } from "../../compile/graph.ts";
import { stopPreempted } from "../../run/queue.ts";
import { lateStartMs } from "../delayed-runs.ts";
import { isUnreadable } from "../read-unless-damaged.ts";
import { createCalendar } from "./calendar.ts";
import { findRefusal, type ScheduleGuards } from "./schedule-guard.ts";

/** Schedules per scan. */
const pageSize = 100;

/** Number of missed slots that a schedule with `missed: "all"` runs. */
const backlogLimit = 100;

const noGuards: ScheduleGuards = new Set();

/** Options of `fireDueSchedules`. */
interface FireOptions {
  readonly store: Store;
  readonly world: World;
  /** Served graphs: a schedule of another graph, or of a newer version, is left to other engines. */
  readonly graphs: readonly Graph[];
  /** Default: none. */
  readonly guards?: ScheduleGuards;
  readonly now: number;
}

/**
 * Queues the runs of the slots that are due at `now`. Reads nothing but an index when none is due; returns true when
 * more schedules may be due. Logs the error of one schedule and rejects with an error of the whole store; the slots stay
 * due then.
 */
export async function fireDueSchedules(options: FireOptions): Promise<boolean> {
  const { store, graphs, now } = options;
  const names = [...new Set(graphs.map(({ name }) => name))];
  const due = await store.schedules.list({ dueBy: now, graphs: names, limit: pageSize });
  const served = due.filter((row) => graphs.some(({ name, version }) => name === row.graph && version >= row.version));
  // The writes of a page share transactions.
  const outcomes = await Promise.allSettled(served.map((row) => fireSlots(options, row)));
  let firedCount = 0;
  for (const [nth, outcome] of outcomes.entries())
    if (outcome.status === "fulfilled") firedCount += 1;
    else if (isStoreDown(outcome.reason)) throw outcome.reason;
    else logUnfired(options.world, served[nth], outcome.reason);
  return due.length === pageSize && firedCount > 0;
}

/** Returns true for an error of the whole store; a damaged thread or an unreadable calendar is that of one schedule. */
function isStoreDown(error: unknown): boolean {
  return isStatewrightError(error) && error.kind === "store" && !isUnreadable(error);
}

/** Logs a schedule that keeps its due slots: the next scan tries again, and the other schedules fire. */
function logUnfired({ log }: World, row: ScheduleRow | undefined, error: unknown): void {
  const fields = { schedule: row?.id, thread: row?.thread, error: toErrorRecord(error) };
  log("error", "the slots of a schedule could not become runs", fields);
}

/** Fires the due slots of a schedule. Another process may fire some of them meanwhile: this one stops then. */
async function fireSlots({ store, world, guards = noGuards, now }: FireOptions, row: ScheduleRow): Promise<void> {
  const listed = listDueSlots(row, now);
  const { newest, next } = listed;
  const refusal = listed.slots.length === 0 ? undefined : await findRefusal(guards, row);
  const due = refusal === undefined ? listed : { ...listed, slots: [] };
  const { slots } = due;
  let current = row;
  for (const [nth, slot] of slots.entries()) {
    const fired = await fireSlot({ store, world, now }, current, { slot, next: slots[nth + 1] ?? next });
    if (fired === undefined) return;
    if (nth === 0) logMissed(world, row, due);
    current = fired;
  }
  if (slots.length > 0) return;
  const skipped = { slot: newest, at: now, skipped: refusal ?? "the slot was missed" };
  const written = await store.schedules.put({ row: toNextRow(row, next, skipped), revision: row.revision });
  if (written === undefined) return;
  if (refusal === undefined) logMissed(world, row, due);
  else
    world.log("warn", "a slot of a schedule is skipped: a guard refused it", {
      schedule: row.id,
      slot: newest,
      reason: refusal,
    });
}

interface DueSlots {
  /** Slots that get a run, oldest first. */
  readonly slots: readonly number[];
  /** Newest due slot. */
  readonly newest: number;
  readonly next: number | undefined;
}

function listDueSlots(row: ScheduleRow, now: number): DueSlots {
  const { dueAt = now, missed } = row;
  const calendar = createCalendar(row);
  const due = calendar.listNewest({ from: dueAt, to: now, limit: missed === "all" ? backlogLimit : 1 });
  // The slot of the row is due, also when another version of the calendar data computes other slots.
  const newest = due.at(-1) ?? dueAt;
  const slots = due.length === 0 ? [dueAt] : due;
  const isSkipped = missed === "skip" && now - newest >= lateStartMs;
  return { slots: isSkipped ? [] : slots, newest, next: calendar.findNext(now) };
}

/** Logs the due slots that get no run. */
function logMissed({ log }: World, row: ScheduleRow, { slots, newest }: Pick<DueSlots, "slots" | "newest">): void {
  const { id: schedule, missed, dueAt = newest } = row;
  const [first] = slots;
  if (first === dueAt) return;
  const fields = { schedule, missed, from: dueAt, to: newest, runs: slots.length };
  log("warn", "a schedule has missed slots without a run", fields);
}

/** Queues the run of a slot and stores the next slot; returns the new row, undefined when another process was first. */
async function fireSlot(
  { store, world, now }: Omit<FireOptions, "graphs" | "guards">,
  row: ScheduleRow,
  { slot, next }: { readonly slot: number; readonly next: number | undefined },
): Promise<ScheduleRow | undefined> {
  const { revision, id: schedule } = row;
  const run = createSlotRun(row, world, { at: now, key: toSlotKey(row, slot) });
  const fired: FiredSlot = { slot, at: now, thread: run.thread, run: run.run.id };
  try {
    const written = await store.schedules.put({ row: toNextRow(row, next, fired), revision, run });
    if (written === undefined) return undefined;
    if (written.run !== undefined) stopPreempted(store, written.run);
    const fields = { schedule, slot, lateMs: now - slot, thread: run.thread, run: run.run.id };
    if (now - slot >= lateStartMs) world.log("warn", "a slot of a schedule runs late", fields);
    return written.row;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    world.log("warn", "a slot of a schedule is skipped: its run was refused", {
      ...{ schedule, slot, thread: run.thread, error: toErrorRecord(error) },
    });
    const skipped: FiredSlot = { slot, at: now, thread: run.thread, skipped: error.message };
    return (await store.schedules.put({ row: toNextRow(row, next, skipped), revision }))?.row;
  }
}

/** Returns true for an error of the run, such as a busy thread; the next scan repeats a slot after another error. */
function isRefusal(error: unknown): error is StatewrightError {
  return isStatewrightError(error) && error.kind !== "store";
}

function toNextRow(row: ScheduleRow, next: number | undefined, last: FiredSlot): Omit<ScheduleRow, "revision"> {
  const { dueAt: _, revision: __, ...rest } = row;
  return { ...rest, last, ...(next === undefined ? {} : { dueAt: next }) };
}

/** Returns the run key of a slot, also the id of its thread when each slot has its own. */
function toSlotKey({ id }: ScheduleRow, slot: number): string {
  return `${id}:${new Date(slot).toISOString()}`;
}

/** Creates the run of a schedule; `key` is also the id of its thread when the schedule has none. */
export function createSlotRun(
  row: ScheduleRow,
  { random }: World,
  { at, key }: { readonly at: number; readonly key: string },
): QueueWrite {
  const { graph, version, shape, outline, thread = key, input, metadata, tenant, owner, onBusy, needsThread } = row;
  const run: QueueWrite["run"] = {
    ...{ id: createId("run_", random), graph, version, status: "queued", attempt: 1 },
    ...{ startedAt: at, queuedAt: at, key, input },
    ...(metadata === undefined ? {} : { metadata }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(owner === undefined ? {} : { owner }),
  } satisfies Omit<RunRow, "thread" | "branch">;
  const creates = { graph, version, shape, outline, at, keySalt: createId("", random).slice(-12) };
  return {
    ...{ thread, run, mustBeIdle: onBusy === "reject" },
    ...(needsThread === true ? {} : { creates }),
    ...(onBusy === "cancel" || onBusy === "rollback" ? { stops: onBusy } : {}),
  };
}
