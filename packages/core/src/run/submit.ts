/** `submit`: puts a run into the queue of a thread. An engine, in this process or another, runs it. */
import { StatewrightError } from "../base/errors.ts";
import { createId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkCount } from "../base/options.ts";
import { checkThread } from "../checkpoint/check-writer.ts";
import type { RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkTenant } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { getPlan, type Plan } from "../compile/plan.ts";
import type { GraphTypes } from "../define/graph.ts";
import { copyChannels } from "../state/copy-input.ts";
import { findFirstQueued, stopPreempted } from "./queue.ts";
import { checkStartOptions, createQueueWrite, getRunLabels, parseInput, type RunCaller } from "./run.ts";
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
}

/**
 * Validates an input and puts a run into the queue of its thread, without running it: an engine with the graph starts
 * the run. A missing thread is created in the same write. Needs no context and no secrets: the engine has them. A
 * repeated call with the same `key` returns the existing run. Rejects with `invalid_input`, `graph_changed`,
 * `key_reused` for a used key with another graph, input or metadata, `thread_busy` with `onBusy: "reject"`,
 * `unencodable_value`, `invalid_option`, `invalid_id`, and errors of the store.
 *
 * @example
 * ```ts
 * const { thread, run } = await submit(orders, { store, thread: "order-7", input: { order: "7" }, key: "webhook-17" });
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
  const world = getWorld(options);
  const thread = resolveThreadId(world, options.thread);
  const input = copyChannels(graph.state, getCodec(options), options.input);
  const caller = toRunCaller(graph, { ...options, ...(input === undefined ? {} : { input }) });
  checkStartOptions(caller, thread);
  const writes = parseInput(caller, input)();
  const plan = getPlan(caller.graph);
  const isComplete = await checkThreadAccepts({ plan, store, thread, tenant: options.tenant }, writes);
  const run = createId("run_", world.random);
  const { run: queued, ...write } = createQueueWrite(caller, thread, { id: run, ...getRunLabels(caller.options) });
  const { name, version } = caller.graph;
  const keySalt = createId("", world.random).slice(-12);
  const at = world.clock.now();
  const creates = { graph: name, version, shape: plan.shape, outline: plan.outline, at, keySalt };
  const row = await store.enqueue({
    ...write,
    run: priority === 0 ? queued : { ...queued, priority },
    ...(isComplete ? { creates } : {}),
    mustBeIdle: options.onBusy === "reject",
  });
  if (row.id === run) {
    stopPreempted(store, row);
    return { thread, run, status: row.status };
  }
  checkSameBody(row, queued);
  const [current = row] = await store.runs({ thread, ...(key === undefined ? {} : { key }), limit: 1 });
  return { thread, run: row.id, status: current.status };
}

function toRunCaller(
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
async function checkThreadAccepts(
  target: { readonly plan: Plan; readonly store: Store; readonly thread: string; readonly tenant: string | undefined },
  writes: readonly Write[] | undefined,
): Promise<boolean> {
  const { plan, store, thread, tenant } = target;
  const row = await store.thread(thread);
  if (row !== undefined) {
    checkThread(row, plan.graph);
    checkTenant("submit", row, tenant);
  }
  const missing = writes === undefined ? [] : listUnsetChannels(plan, writes);
  if (missing.length === 0) return true;
  const hasState =
    row !== undefined &&
    ((await store.head(thread)) !== undefined || (await findFirstQueued(store, thread)) !== undefined);
  if (!hasState) throw createMissingInputError(plan, missing);
  return false;
}

/** Throws `key_reused` if the existing run of a key has another body. A run that started without a queue has no hash. */
function checkSameBody({ thread, id, key, bodyHash }: RunRow, queued: Pick<RunRow, "bodyHash">): void {
  if (bodyHash === undefined || bodyHash === queued.bodyHash) return;
  throw new StatewrightError("key_reused", {
    what: `submit: expected the graph, the input and the metadata of the run with the key "${key}", got others`,
    next: "Use another key for other work, or pass the same input and metadata to repeat a call",
    place: { thread },
    details: { run: id },
  });
}
