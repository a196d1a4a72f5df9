/** `schedule`: stores a schedule, whose slots any engine of the store turns into runs. */
import { checkId } from "../../base/ids.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { isSameData, type JsonObject } from "../../base/json.ts";
import { checkChoice, checkCount, checkDate, checkOptions, listOptionNames, toTimeText } from "../../base/options.ts";
import type { World } from "../../base/world.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import type { MissedSlots, ScheduleRow } from "../../checkpoint/schedule.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Graph } from "../../compile/graph.ts";
import { getPlan } from "../../compile/plan.ts";
import { checkGraphOption } from "../../define/check-graph-option.ts";
import type { GraphTypes } from "../../define/graph.ts";
import { digestArgs } from "../../run/journal/args-digest.ts";
import { checkStartOptions, createQueueWrite, getRunLabels, parseInput } from "../../run/run.ts";
import { checkRunOptions, checkStoreOption } from "../../run/session/options/check-run-options.ts";
import type { OnBusy } from "../../run/session/options/options.ts";
import { checkThreadAccepts, toRunCaller } from "../../run/submit.ts";
import { getCodec, getWorld } from "../../run/task/open-session.ts";
import type { Codec } from "../../state/codec.ts";
import { copyChannels } from "../../state/copy-input.ts";
import { checkOwnership } from "../serving.ts";
import { checkPatternFields, createCalendar } from "./calendar.ts";
import { type RunSchedule, toRunSchedule } from "./run-schedule.ts";

/** Slots of a schedule. */
export type ScheduleCalendar =
  | {
      /** Cron pattern of five fields, or six with seconds first. */
      readonly cron: string;
      /** IANA time zone of the pattern. Default `UTC`. */
      readonly timeZone?: string;
      readonly everyMs?: never;
    }
  | {
      /** Distance of the slots in milliseconds, at least 1,000; the first slot comes after this time. */
      readonly everyMs: number;
      readonly cron?: never;
      readonly timeZone?: never;
    };

/** Thread of the runs of a schedule. */
export type ScheduleThread =
  | {
      /** Thread of all runs; a missing thread is created by the first run. */
      readonly thread: string;
      readonly threadPerFire?: false;
    }
  | {
      /** Each run has a new thread: the id of the schedule, a colon and the time of the slot. */
      readonly threadPerFire: true;
      readonly thread?: never;
    };

/** Options of `schedule`. Input is required when the graph requires it. */
export type ScheduleOptions<Types extends GraphTypes> = ScheduleSettings<Types> &
  ScheduleCalendar &
  ScheduleThread &
  (Record<never, never> extends Types["input"]
    ? { readonly input?: Types["input"] }
    : { readonly input: Types["input"] });

interface ScheduleSettings<Types extends GraphTypes> {
  /** Id of the schedule, unique in the store, at most 100 characters. */
  readonly id: string;
  readonly graph: Graph<Types>;
  /** Tenant of the runs. Default: the tenant of `thread`. */
  readonly tenant?: string;
  /** Owner of the runs. */
  readonly owner?: string;
  /** Plain data for filters of lists, saved with each run. */
  readonly metadata?: JsonObject;
  /**
   * Handling of a busy thread, as of `run`. Default `enqueue`: a run waits for the runs before it. `reject` skips the
   * slot.
   */
  readonly onBusy?: OnBusy;
  /**
   * Slots that no engine fired in time, because none ran or the clock was moved: a slot is missed when it is 60 s late
   * or a later slot is due. `last` (default) runs the newest one, `skip` none, `all` each, but at most the newest 100.
   */
  readonly missed?: MissedSlots;
  /** Time of the last possible slot, as a date or in milliseconds since the epoch. Default: none. */
  readonly until?: Date | number;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec;
}

const optionNames = listOptionNames<ScheduleOptions<GraphTypes>>({
  id: true,
  graph: true,
  cron: true,
  timeZone: true,
  everyMs: true,
  thread: true,
  threadPerFire: true,
  input: true,
  tenant: true,
  owner: true,
  metadata: true,
  onBusy: true,
  missed: true,
  until: true,
  world: true,
  codec: true,
});

/**
 * Stores a schedule with a validated input. Any engine of the store that has the graph turns each slot into one queued
 * run, also after a crash. Repeated calls are harmless: an id with equal content changes nothing, and one with other
 * content updates the schedule. The next slot of an updated schedule is counted from now when its calendar changed, and
 * stays otherwise; a paused schedule stays paused. Rejects with `invalid_input`, `graph_changed`, `invalid_option` also
 * for a schedule of another tenant and for a calendar without a next slot, `invalid_id`, `store_mixed` for a store
 * whose threads an orchestrator owns, and errors of the store.
 *
 * @example
 * ```ts
 * await schedule(store, {
 *   id: "morning-report",
 *   graph: report,
 *   cron: "0 9 * * 1-5",
 *   timeZone: "Europe/Berlin",
 *   threadPerFire: true,
 *   input: { topic: "sales" },
 * });
 * ```
 */
export async function schedule<Types extends GraphTypes>(
  store: Store,
  options: ScheduleOptions<Types>,
): Promise<RunSchedule> {
  checkScheduleOptions(store, options);
  const world = getWorld(options);
  const codec = getCodec(options);
  const content = await toContent(store, options as ScheduleOptions<GraphTypes>);
  for (;;) {
    const now = await readStoreTime(store, world);
    const known = await store.schedules.get(options.id);
    if (known !== undefined) checkScheduleTenant(known, content.tenant);
    if (known !== undefined && isSameContent(codec, known, content)) return toRunSchedule(known);
    const row = known === undefined ? createRow(content, now) : updateRow(known, content, now);
    const written = await store.schedules.put({ row, revision: known?.revision ?? 0 });
    if (written !== undefined) return toRunSchedule(written.row);
  }
}

/** Fields of a schedule that its caller sets. */
type ScheduleContent = Omit<
  ScheduleRow,
  "anchorAt" | "createdAt" | "updatedAt" | "pausedAt" | "dueAt" | "last" | "revision"
>;

function checkScheduleOptions(store: Store, options: ScheduleOptions<GraphTypes>): void {
  const where = "schedule";
  checkStoreOption(where, store ?? null);
  checkOptions(where, options, optionNames);
  checkOwnership(where, store);
  checkGraphOption(where, options.graph);
  const { id, graph, cron, timeZone, everyMs, thread, threadPerFire, missed, until, ...queued } = options;
  checkId("schedule", id);
  if (id.length > maxIdLength)
    throw invalidOption({ where, option: "id", expected: `at most ${maxIdLength} characters`, got: id });
  checkRunOptions("submit", graph, { ...queued, store, ...(thread === undefined ? {} : { thread }) });
  if ((cron === undefined) === (everyMs === undefined))
    throw invalidOption({
      ...{ where, expected: "one of `cron` and `everyMs`", found: cron === undefined ? "neither" : "both" },
      fix: cron === undefined ? "Pass one of the two" : "Remove one of the two",
    });
  if ((thread === undefined) === (threadPerFire !== true))
    throw invalidOption({
      ...{ where, expected: "one of `thread` and `threadPerFire: true`" },
      found: thread === undefined ? "neither" : "both",
      fix: "Pass the thread of all runs, or threadPerFire: true for a new thread each time",
    });
  if (timeZone !== undefined && cron === undefined)
    throw invalidOption({
      ...{ where, option: "timeZone", expected: "the time zone of a `cron` pattern", got: timeZone },
      fix: "Remove it, or use `cron` in place of `everyMs`: a distance knows no time zone",
    });
  if (cron !== undefined) checkPatternFields(cron);
  checkCount(where, { everyMs }, 1_000, Number.MAX_SAFE_INTEGER);
  if (missed !== undefined) checkChoice(where, { missed }, ["skip", "last", "all"]);
  checkDate(where, { until });
}

/** A run key is the id of the schedule, a colon and a time. */
const maxIdLength = 100;

/** Validates the input, like a submission. */
async function toContent(store: Store, options: ScheduleOptions<GraphTypes>): Promise<ScheduleContent> {
  const { id, graph, cron, timeZone, everyMs, thread, missed = "last", until, onBusy, ...rest } = options;
  const { threadPerFire: _, input: given, ...settings } = rest;
  const input = copyChannels(graph.state, getCodec(options), given);
  const caller = toRunCaller(graph as Graph, {
    ...settings,
    ...{ store, ...(onBusy === undefined ? {} : { onBusy }), ...(input === undefined ? {} : { input }) },
  });
  checkStartOptions(caller, thread ?? id);
  const writes = parseInput(caller, input)();
  const plan = getPlan(caller.graph);
  const target = { where: "schedule", plan, store, thread, tenant: options.tenant };
  const isComplete = await checkThreadAccepts(target, writes);
  const { run } = createQueueWrite(caller, thread ?? id, { id, ...getRunLabels(caller) });
  const { metadata, tenant, owner } = options;
  return {
    ...{ id, graph: graph.name, version: graph.version, shape: plan.shape, outline: plan.outline },
    ...{ input: run.input ?? "", missed },
    ...(thread === undefined ? {} : { thread }),
    ...(isComplete ? {} : { needsThread: true }),
    ...(cron === undefined ? { everyMs } : { cron, timeZone: timeZone ?? "UTC" }),
    ...(until === undefined ? {} : { until: Number(until) }),
    ...(onBusy === undefined || onBusy === "enqueue" ? {} : { onBusy }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(owner === undefined ? {} : { owner }),
  };
}

function checkScheduleTenant({ id, tenant }: ScheduleRow, given: string | undefined): void {
  if (tenant === given) return;
  throw invalidOption({
    ...{ where: "schedule", option: "tenant", expected: `the tenant of the schedule "${id}"`, got: given },
    fix: "Use another id, or remove that schedule first",
  });
}

/** Fields that engines and calls about a schedule change, beside its content. */
const changingFields: ReadonlySet<string> = new Set([
  "anchorAt",
  "createdAt",
  "updatedAt",
  "pausedAt",
  "dueAt",
  "last",
  "revision",
]);

/** Compares the content as saved: without undefined fields, and inputs without the order of their keys. */
function isSameContent(codec: Codec, row: ScheduleRow, content: ScheduleContent): boolean {
  return isSameData(toComparable(codec, row), toComparable(codec, content));
}

function toComparable(codec: Codec, { input, ...fields }: ScheduleContent): Readonly<Record<string, unknown>> {
  const saved = Object.entries(fields).filter(([field, value]) => value !== undefined && !changingFields.has(field));
  return { ...Object.fromEntries(saved), input: digestArgs(codec, codec.decode(input)) };
}

function createRow(content: ScheduleContent, now: number): Omit<ScheduleRow, "revision"> {
  return { ...content, anchorAt: now, createdAt: now, updatedAt: now, dueAt: findFirstSlot(content, now) };
}

/** A changed calendar is counted from now; an unchanged one keeps its next slot, also a missed one. */
function updateRow(known: ScheduleRow, content: ScheduleContent, now: number): Omit<ScheduleRow, "revision"> {
  const { createdAt, anchorAt, pausedAt, dueAt, last } = known;
  const isSameCalendar = (["cron", "timeZone", "everyMs", "until"] as const).every(
    (field) => known[field] === content[field],
  );
  const next = isSameCalendar ? { anchorAt, dueAt } : { anchorAt: now, dueAt: findFirstSlot(content, now) };
  return {
    ...content,
    ...{ createdAt, updatedAt: now, anchorAt: next.anchorAt },
    ...(pausedAt === undefined ? {} : { pausedAt }),
    ...(pausedAt !== undefined || next.dueAt === undefined ? {} : { dueAt: next.dueAt }),
    ...(last === undefined ? {} : { last }),
  };
}

/** Throws `invalid_option` for a calendar without a slot after `now`. */
function findFirstSlot(content: ScheduleContent, now: number): number {
  const slot = createCalendar({ ...content, anchorAt: now }).findNext(now);
  if (slot !== undefined) return slot;
  const { until, cron } = content;
  if (until === undefined)
    throw invalidOption({
      ...{ where: "schedule", option: "cron", expected: "a pattern with a slot after now", got: cron },
      fix: "Use a date that exists: no year has this one",
    });
  throw invalidOption({
    ...{ where: "schedule", option: "until", expected: "a time at or after the first slot" },
    found: toTimeText(until),
    fix: "Use a later time, in milliseconds since the epoch, or remove the schedule with schedules.remove",
  });
}
