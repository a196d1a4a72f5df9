/** Schedules of a tenant: calendars whose slots become runs. */
import {
  type FiredSlot,
  type Json,
  type JsonObject,
  type MissedSlots,
  type OnBusy,
  type RunSchedule,
  StatewrightError,
  schedule as saveRunSchedule,
  schedules,
} from "@statewright/core";
import { createId, listScheduleSlots, toRunSchedule } from "@statewright/core/adapter";
import type { ScheduleRow } from "@statewright/core/store";
import type { AskedAccess, CallerScope } from "../caller-scope.ts";
import type { Page, PageOptions } from "../caller-service.ts";
import type { Cursors } from "../cursors.ts";
import { keepUserMessages } from "../new-messages.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { loadPage } from "../pages.ts";
import { createInvalidRequestProblem } from "../service-problems.ts";
import { createKnownScheduleProblem, createTooManySchedulesProblem } from "./native-problems.ts";
import { checkInterval, getScheduleLimits } from "./schedule-limits.ts";

/** Calendar: a cron pattern, or a distance. */
export interface CalendarRequest {
  readonly cron?: string | undefined;
  /** IANA time zone of the pattern. Default `UTC`. */
  readonly timeZone?: string | undefined;
  /** Distance in milliseconds. */
  readonly everyMs?: number | undefined;
  /** Time of the last possible slot, in milliseconds since the epoch. */
  readonly until?: number | undefined;
}

/** Schedule to save. */
export interface ScheduleRequest extends CalendarRequest {
  readonly graph: string;
  /** Thread of all runs. Default: a new thread for each run. */
  readonly thread?: string | undefined;
  readonly input?: Json | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly onBusy?: OnBusy | undefined;
  readonly missed?: MissedSlots | undefined;
}

/** Schedule as its caller sees it. */
export interface ScheduleView extends CalendarRequest {
  readonly id: string;
  readonly status: "active" | "paused" | "ended";
  readonly graph: string;
  readonly thread?: string | undefined;
  readonly missed: MissedSlots;
  readonly onBusy: OnBusy;
  readonly metadata: JsonObject;
  /** Caller who made the schedule. */
  readonly owner?: string | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly pausedAt?: number | undefined;
  readonly nextAt?: number | undefined;
  readonly last?: FiredSlot | undefined;
}

/** Acts on the schedules of the tenant. */
export interface ScheduleActs {
  /** Schedules by id. */
  listSchedules(query: PageOptions & { readonly graph?: string | undefined }): Promise<Page<ScheduleView>>;
  /** Throws `unknown_schedule`. */
  getSchedule(schedule: string): Promise<ScheduleView>;
  /**
   * Saves a schedule under an id: a new one, or the new content of a known one, whose owner then is this caller. The
   * runs of a schedule have the rights of its owner. Throws `schedule_exists` (409) with `mustBeNew`, `invalid_option`
   * for a calendar with a distance below the minimum, and `too_many_schedules` (422).
   */
  saveSchedule(
    request: ScheduleRequest & { readonly id?: string | undefined; readonly mustBeNew: boolean },
  ): Promise<{ readonly schedule: ScheduleView; readonly isNew: boolean }>;
  /** Throws `unknown_schedule`. Runs that it has queued stay. */
  deleteSchedule(schedule: string): Promise<void>;
  pauseSchedule(schedule: string): Promise<ScheduleView>;
  /** Continues with the first slot after now. */
  resumeSchedule(schedule: string): Promise<ScheduleView>;
  /** Queues a run now, outside of the calendar; one run for each key. */
  runSchedule(schedule: string, key?: string): Promise<{ readonly thread: string; readonly run: string }>;
  /** Next slots of a schedule, or of a calendar that is not saved. */
  listSlots(calendar: { readonly schedule: string } | CalendarRequest, count: number): Promise<readonly number[]>;
}

/** Creates the acts on the schedules of a caller's tenant. */
export function createScheduleActs(scope: CallerScope, cursors: Cursors): ScheduleActs {
  const { store, world } = scope;
  const write = { action: "schedule.write", changes: true } as const;
  return {
    listSchedules: async ({ graph, ...page }) => {
      await scope.ask({ action: "schedule.read", graph });
      return await loadPage({ scope, cursors }, page, {
        name: `schedules ${graph ?? ""}`,
        load: ({ before, limit }) =>
          schedules.list(store, { ...scope.columns, limit, ...omitUndefined({ graph, after: before }) }),
        getCursor: ({ id }) => id,
        isShown: (row) => scope.isVisible(row),
        toItem: (row) => toScheduleView(scope, row),
      });
    },
    getSchedule: async (schedule) => {
      const row = await requireSchedule(scope, schedule, { action: "schedule.read" });
      return toScheduleView(scope, toRunSchedule(row));
    },
    saveSchedule: (request) => saveSchedule(scope, request),
    deleteSchedule: async (schedule) => {
      const { id } = await requireSchedule(scope, schedule, write);
      await schedules.remove(store, id);
    },
    pauseSchedule: async (schedule) => {
      const { id } = await requireSchedule(scope, schedule, write);
      return toScheduleView(scope, await schedules.pause(store, id, { world }));
    },
    resumeSchedule: async (schedule) => {
      const { id } = await requireSchedule(scope, schedule, write);
      return toScheduleView(scope, await schedules.resume(store, id, { world }));
    },
    runSchedule: async (schedule, key) => {
      const { id, graph, thread } = await requireSchedule(scope, schedule, write);
      await scope.ask({ action: "run.start", graph, thread: thread && scope.toWireId(thread), changes: true });
      const stored = key === undefined || thread !== undefined ? key : scope.toStoredId(key);
      const queued = await schedules.runNow(store, id, {
        world,
        key: stored ?? `${id}:${createId("now_", world.random)}`,
      });
      return { thread: scope.toWireId(queued.thread), run: queued.run };
    },
    listSlots: async (calendar, count) => {
      const after = world.clock.now();
      if (!("schedule" in calendar)) {
        await scope.ask({ action: "schedule.read" });
        return listScheduleSlots({ ...omitUndefined(calendar), after, count });
      }
      const row = await requireSchedule(scope, calendar.schedule, { action: "schedule.read" });
      const { cron, timeZone, everyMs, anchorAt, until } = row;
      return listScheduleSlots({ ...omitUndefined({ cron, timeZone, everyMs, until }), anchorAt, after, count });
    },
  };
}

/** Returns the row of a schedule of this caller after asking for the right. Throws `unknown_schedule`. */
async function requireSchedule(scope: CallerScope, schedule: string, access: AskedAccess): Promise<ScheduleRow> {
  const row = await findSchedule(scope, schedule);
  await scope.ask({ graph: row?.graph, ...access });
  if (row !== undefined) return row;
  throw new StatewrightError("unknown_schedule", {
    what: `there is no schedule "${schedule}"`,
    next: "Check the id, or list the schedules",
  });
}

async function findSchedule(scope: CallerScope, schedule: string): Promise<ScheduleRow | undefined> {
  const row = await scope.store.schedules.get(scope.toStoredId(schedule));
  return row !== undefined && scope.isVisible(row) ? row : undefined;
}

type SaveRequest = Parameters<ScheduleActs["saveSchedule"]>[0];

async function saveSchedule(scope: CallerScope, { id: asked, mustBeNew, ...request }: SaveRequest) {
  const { store, world, codec, caller } = scope;
  const wire = asked ?? createId("schedule_", world.random);
  const { graph: name, thread, input, until, ...rest } = request;
  await scope.ask({ action: "schedule.write", graph: name, changes: true });
  await scope.ask({ action: "run.start", graph: name, thread, changes: true });
  const graph = scope.requireGraph(name);
  const known = await findSchedule(scope, wire);
  if (known !== undefined && mustBeNew) throw createKnownScheduleProblem(wire);
  const limits = getScheduleLimits(scope.options.schedules);
  const { cron, timeZone, everyMs } = rest;
  checkInterval({ ...omitUndefined({ cron, timeZone, everyMs, until }), after: world.clock.now(), count: 1 }, limits);
  if (known === undefined) await checkNumber(scope, limits.maxPerTenant);
  if (thread !== undefined) await checkThread(scope, thread);
  if (input !== undefined && (typeof input !== "object" || input === null || Array.isArray(input)))
    throw createInvalidRequestProblem("input: expected an object with the channels of the graph.");
  const saved = await saveRunSchedule(store, {
    ...toCalendar({ cron, timeZone, everyMs }),
    ...(thread === undefined ? { threadPerFire: true } : { thread: scope.toStoredId(thread) }),
    ...(input === undefined ? {} : { input: keepUserMessages(graph, input) }),
    ...omitUndefined({ until, metadata: rest.metadata, onBusy: rest.onBusy, missed: rest.missed }),
    ...{ id: scope.toStoredId(wire), graph, tenant: caller.tenant, owner: caller.id, world, codec },
  });
  return { schedule: toScheduleView(scope, saved), isNew: known === undefined };
}

function toCalendar({ cron, timeZone, everyMs = 0 }: CalendarRequest) {
  return cron === undefined ? { everyMs } : { cron, ...omitUndefined({ timeZone }) };
}

/** Throws `unknown_thread` for a thread of the store that is not one of this caller. */
async function checkThread(scope: CallerScope, thread: string): Promise<void> {
  const known = await scope.store.thread(scope.toStoredId(thread));
  if (known !== undefined) await scope.requireThread(thread, { action: "thread.read" });
}

async function checkNumber({ store, columns }: CallerScope, limit: number): Promise<void> {
  const rows = await schedules.list(store, { tenant: columns.tenant, limit });
  if (rows.length >= limit) throw createTooManySchedulesProblem(limit);
}

function toScheduleView(scope: CallerScope, row: RunSchedule): ScheduleView {
  const { id, status, graph, thread, missed, onBusy, metadata = {}, owner, createdAt, updatedAt, pausedAt } = row;
  const { cron, timeZone, everyMs, until, nextAt, last } = row;
  return {
    ...{ id: scope.toWireId(id), status, graph, missed, onBusy, metadata, createdAt, updatedAt },
    ...omitUndefined({ cron, timeZone, everyMs, until, owner, pausedAt, nextAt }),
    ...(thread === undefined ? {} : { thread: scope.toWireId(thread) }),
    ...(last === undefined ? {} : { last: toFiredView(scope, last) }),
  };
}

function toFiredView(scope: CallerScope, { slot, at, thread, run, skipped }: FiredSlot): FiredSlot {
  return {
    slot,
    at,
    ...omitUndefined({ run }),
    ...(thread === undefined ? {} : { thread: scope.toWireId(thread) }),
    ...(skipped === undefined ? {} : { skipped: scope.removePrefix(skipped) }),
  };
}
