/** `submit`: puts a run into the queue of a thread. An engine, in this process or another, runs it. */
import { checkId, createId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkCount, checkDate, checkNumber, checkOptions, latestTime } from "../base/options.ts";
import type { RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkTenant, checkThread } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { getPlan, type Plan } from "../compile/plan.ts";
import type { GraphTypes } from "../define/graph.ts";
import { copyChannels } from "../state/copy-input.ts";
import { findFirstQueued, stopPreempted } from "./queue.ts";
import { checkSameBody, checkStartOptions, createQueueWrite, getRunLabels, parseInput, type RunCaller } from "./run.ts";
import { checkRunOptions, checkStoreOption } from "./session/options/check-run-options.ts";
import type { GraphCallOptions, SubmitOptions } from "./session/options/options.ts";
import type { Write } from "./session/returns.ts";
import { createMissingInputError, listUnsetChannels } from "./superstep/input.ts";
import { getCodec, getWorld, resolveThreadId } from "./task/open-session.ts";

/** Run that `submit` put into the queue, or the existing run of its key. */
export interface SubmittedRun {
  readonly thread: string;
  /** Id of the run. */
  readonly run: string;
  /** `queued`; for a known key the current status of its run. */
  readonly status: RunStatus;
  /** Earliest start of a delayed run, in milliseconds since the epoch. */
  readonly startAt?: number;
}

/**
 * Validates an input and puts a run into the queue of its thread, without running it: an engine with the graph starts
 * the run. A missing thread is created in the same write. Needs no context and no secrets: the engine has them. A
 * repeated call with the same `key` returns the existing run. With `at` or `debounce` the run is queued for a later
 * time, and `cancelRun` cancels it like any queued run. Rejects with `invalid_input`, `graph_changed`,
 * `key_reused` for a used key with another graph, input or metadata, `thread_busy` with `onBusy: "reject"`,
 * `unencodable_value`, `invalid_option`, `invalid_id`, and errors of the store.
 *
 * @example
 * ```ts
 * const { thread, run } = await submit(orders, { store, thread: "order-7", input: { order: "7" }, key: "webhook-17" });
 * await submit(reminders, { store, input: { order: "7" }, at: new Date("2030-01-01T09:00:00Z") });
 * ```
 */
export async function submit<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: GraphCallOptions<Types>["submit"],
): Promise<SubmittedRun> {
  checkRunOptions("submit", graph, options);
  return await queueRun(graph as Graph, options);
}

/** {@link submit} with options already checked, on any branch of the thread. */
export async function queueRun(
  graph: Graph,
  options: SubmitOptions<GraphTypes> & { readonly branch?: string },
): Promise<SubmittedRun> {
  const { store, key, priority = 0 } = options;
  checkStoreOption("submit", store ?? null);
  checkCount("submit", { priority }, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  checkKeyHasThread(options);
  checkDelay(options);
  const world = getWorld(options);
  const thread = resolveThreadId(world, options.thread);
  const input = copyChannels(graph.state, getCodec(options), options.input);
  const caller = toRunCaller(graph, { ...options, ...(input === undefined ? {} : { input }) });
  checkStartOptions(caller, thread);
  const writes = parseInput(caller, input)();
  const plan = getPlan(caller.graph);
  const target = { where: "submit", plan, store, thread, tenant: options.tenant };
  const isComplete = await checkThreadAccepts(target, writes);
  const run = createId("run_", world.random);
  const { run: queued, ...write } = createQueueWrite(caller, thread, { id: run, ...getRunLabels(caller) });
  const { name, version } = caller.graph;
  const keySalt = createId("", world.random).slice(-12);
  const at = world.clock.now();
  const creates = { graph: name, version, shape: plan.shape, outline: plan.outline, at, keySalt };
  const isDelayed = options.at !== undefined || options.debounce !== undefined;
  const delay = isDelayed ? toDelay(options, await readStoreTime(store, world), name) : undefined;
  const row = await store.enqueue({
    ...write,
    ...(delay === undefined ? {} : { debounce: delay.debounce }),
    run: { ...queued, ...(priority === 0 ? {} : { priority }), ...delay?.run },
    ...(isComplete ? { creates } : {}),
    mustBeIdle: options.onBusy === "reject",
  });
  if (row.id === run) stopPreempted(store, row);
  else checkSameBody("submit", row, queued.bodyHash);
  const [current = row] =
    row.id === run || key === undefined ? [] : await store.runs({ thread: row.thread, key, limit: 1 });
  const { startAt } = current;
  return {
    ...{ thread: row.thread, run: row.id, status: current.status },
    ...(startAt === undefined ? {} : { startAt }),
  };
}

/** Throws `invalid_option` for an invalid start time. */
function checkDelay({ at, debounce }: SubmitOptions<GraphTypes>): void {
  checkDate("submit", { at });
  if (debounce === undefined) return;
  checkOptions("the debounce of submit", debounce, ["key", "ms"]);
  checkId("debounce key", debounce.key);
  checkNumber("the debounce of submit", { ms: debounce.ms ?? null }, 0, latestTime);
  if (at !== undefined)
    throw invalidOption({
      ...{ where: "submit", expected: "one of `at` and `debounce`", found: "both" },
      fix: "Remove one of the two: the calls of a debounce key set the start",
    });
}

/** Returns the delay of a run and its debounce name; undefined for a run that may start now. */
function toDelay(
  { at, debounce, thread = "", tenant = "", onBusy = "enqueue" }: SubmitOptions<GraphTypes>,
  now: number,
  graph: string,
): { readonly run: Partial<RunRow>; readonly debounce?: string } | undefined {
  const busy = onBusy === "enqueue" ? {} : { onBusy };
  if (debounce !== undefined) {
    const { key, ms } = debounce;
    const startAt = Math.min(Math.ceil(now + ms), latestTime);
    return { run: { startAt, debounceKey: key, ...busy }, debounce: JSON.stringify([graph, tenant, thread, key]) };
  }
  const startAt = at === undefined ? now : Math.ceil(Number(at));
  return startAt <= now ? undefined : { run: { startAt, ...busy } };
}

/** Returns the caller of a queued run: its runs wait by default. */
export function toRunCaller(
  graph: Graph,
  { onBusy = "enqueue", priority: _, ...options }: SubmitOptions<GraphTypes>,
): RunCaller {
  return { graph, options: { ...options, onBusy } };
}

/** Throws `invalid_option` for a key without a thread: every call would create another thread. */
function checkKeyHasThread({ key, thread }: { readonly key?: string; readonly thread?: string }): void {
  if (key === undefined || thread !== undefined) return;
  throw invalidOption({
    where: "submit",
    option: "thread",
    expected: "the id of a thread beside the option `key`",
    got: undefined,
    fix: "Pass the thread: a key is unique in its thread, and a new thread has no run yet",
  });
}

/**
 * Throws `graph_changed`, `invalid_option` for another tenant, or `invalid_input` for an input without values that the
 * state of the thread lacks. Returns true if the input can start a new thread.
 */
export async function checkThreadAccepts(
  target: {
    /** Call that an error names. */
    readonly where: string;
    readonly plan: Plan;
    readonly store: Store;
    /** Undefined for a thread without an id yet. */
    readonly thread: string | undefined;
    readonly tenant: string | undefined;
  },
  writes: readonly Write[] | undefined,
): Promise<boolean> {
  const { where, plan, store, thread, tenant } = target;
  const row = thread === undefined ? undefined : await store.thread(thread);
  if (row !== undefined) {
    checkThread(row, plan.graph);
    checkTenant(where, row, tenant);
  }
  const missing = writes === undefined ? [] : listUnsetChannels(plan, writes);
  if (missing.length === 0) return true;
  const hasState =
    row !== undefined &&
    ((await store.head(row.id)) !== undefined || (await findFirstQueued(store, row.id)) !== undefined);
  if (!hasState) throw createMissingInputError(plan, missing);
  return false;
}
