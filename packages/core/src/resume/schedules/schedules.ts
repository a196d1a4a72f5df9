/** Lists, pauses, resumes, removes and runs schedules of a store without a graph: the public namespace `schedules`. */
import { StatewrightError } from "../../base/errors.ts";
import { checkId, createId } from "../../base/ids.ts";
import { checkOptions, listOptionNames } from "../../base/options.ts";
import { systemWorld, type World } from "../../base/world.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import type { ScheduleFilter, ScheduleRow } from "../../checkpoint/schedule.ts";
import type { Store } from "../../checkpoint/store.ts";
import { stopPreempted } from "../../run/queue.ts";
import { checkStoreOption, checkWorldOption } from "../../run/session/options/check-run-options.ts";
import type { SubmittedRun } from "../../run/submit.ts";
import { createCalendar } from "./calendar.ts";
import { createSlotRun } from "./fire-schedules.ts";
import { type RunSchedule, toRunSchedule } from "./run-schedule.ts";

/** Filter of `schedules.list`. */
export interface ListSchedulesOptions extends Pick<ScheduleFilter, "tenant" | "owner" | "after" | "limit"> {
  /** Name of the graph. */
  readonly graph?: string | undefined;
}

/** Options of the calls that change a schedule. */
export interface ScheduleCallOptions {
  /** Clock and random source. Default: the system world. */
  readonly world?: World;
}

const filterNames = listOptionNames<ListSchedulesOptions>({
  tenant: true,
  owner: true,
  after: true,
  limit: true,
  graph: true,
});

/**
 * Returns schedules of a store by id, page by page: pass the id of the last row of a page as `after`. Throws
 * `invalid_option` for an unknown filter.
 *
 * @example
 * ```ts
 * for (const { id, status, nextAt } of await schedules.list(store, { tenant: "acme" })) console.log(id, status, nextAt);
 * ```
 */
export async function list(store: Store, filter: ListSchedulesOptions = {}): Promise<readonly RunSchedule[]> {
  checkStoreOption("schedules.list", store ?? null);
  checkOptions("schedules.list", filter, filterNames);
  const { graph, ...page } = filter;
  const rows = await store.schedules.list({ ...page, ...(graph === undefined ? {} : { graphs: [graph] }) });
  return rows.map(toRunSchedule);
}

/** Pauses a schedule: no slot fires until `schedules.resume`. Runs that are queued stay. Throws `unknown_schedule`. */
export async function pause(store: Store, id: string, options: ScheduleCallOptions = {}): Promise<RunSchedule> {
  return await changeSchedule("schedules.pause", { store, id, options }, ({ dueAt: _, ...row }, now) =>
    row.pausedAt === undefined ? { ...row, updatedAt: now, pausedAt: now } : undefined,
  );
}

/**
 * Resumes a paused schedule with the first slot after now: the slots of the pause do not run. Throws
 * `unknown_schedule`.
 */
export async function resume(store: Store, id: string, options: ScheduleCallOptions = {}): Promise<RunSchedule> {
  return await changeSchedule("schedules.resume", { store, id, options }, ({ pausedAt, ...row }, now) => {
    if (pausedAt === undefined) return undefined;
    const dueAt = createCalendar(row).findNext(now);
    return { ...row, updatedAt: now, ...(dueAt === undefined ? {} : { dueAt }) };
  });
}

/** Removes a schedule; false for an unknown id. Runs that it queued stay. */
export async function remove(store: Store, id: string): Promise<boolean> {
  checkStoreOption("schedules.remove", store ?? null);
  return await store.schedules.delete(checkId("schedule", id));
}

/**
 * Queues a run of a schedule now, outside of its calendar, also of a paused and of an ended schedule; the schedule stays
 * unchanged. A repeated call with the same `key` returns the existing run; without a key each call queues a run. Throws
 * `unknown_schedule`, and `thread_busy` with `onBusy: "reject"`.
 */
export async function runNow(
  store: Store,
  id: string,
  options: ScheduleCallOptions & {
    /** Idempotency key of the run, unique in its thread. A schedule with a thread for each run names the thread by it. */
    readonly key?: string;
  } = {},
): Promise<SubmittedRun> {
  const { key, ...rest } = options;
  const world = checkCall("schedules.runNow", { store, id, options: rest });
  if (key !== undefined) checkId("idempotency key", key);
  const row = await getSchedule("schedules.runNow", store, id);
  const at = await readStoreTime(store, world);
  const queued = await store.enqueue(createSlotRun(row, world, { at, key: key ?? createId("now_", world.random) }));
  stopPreempted(store, queued);
  return { thread: queued.thread, run: queued.id, status: queued.status };
}

/** Call on a single schedule. */
interface ScheduleCall {
  readonly store: Store;
  readonly id: string;
  readonly options: ScheduleCallOptions;
}

/** Writes a change of the newest row; `change` returns undefined for a row that stays. */
async function changeSchedule(
  where: string,
  call: ScheduleCall,
  change: (row: ScheduleRow, now: number) => Omit<ScheduleRow, "revision"> | undefined,
): Promise<RunSchedule> {
  const world = checkCall(where, call);
  const { store, id } = call;
  for (;;) {
    const known = await getSchedule(where, store, id);
    const row = change(known, await readStoreTime(store, world));
    if (row === undefined) return toRunSchedule(known);
    const written = await store.schedules.put({ row, revision: known.revision });
    if (written !== undefined) return toRunSchedule(written.row);
  }
}

function checkCall(where: string, { store, id, options }: ScheduleCall): World {
  checkStoreOption(where, store ?? null);
  checkId("schedule", id);
  checkOptions(where, options, ["world"]);
  checkWorldOption(where, options.world);
  return options.world ?? systemWorld();
}

async function getSchedule(where: string, store: Store, id: string): Promise<ScheduleRow> {
  const row = await store.schedules.get(id);
  if (row !== undefined) return row;
  throw new StatewrightError("unknown_schedule", {
    what: `${where}: expected a schedule of the store, got the id "${id}"`,
    next: "Use schedules.list to find the ids, or create the schedule with schedule",
  });
}
