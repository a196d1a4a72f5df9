/** `run`: starts a graph on a thread. */

import { addErrorPlace, isStatewrightError, StatewrightError } from "../base/errors.ts";
import { createId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";
import { type World, warnCaller } from "../base/world.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { QueueWrite } from "../checkpoint/store.ts";
import { checkTenant } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { getPlan } from "../compile/plan.ts";
import type { GraphTypes } from "../define/graph.ts";
import { encodeWrapper } from "../state/codec.ts";
import { copyChannels } from "../state/copy-input.ts";
import { beginRun, getProgram, programs } from "./begin.ts";
import type { EventStream } from "./events/events.ts";
import { digestArgs } from "./journal/args-digest.ts";
import { launch, type RunControls } from "./launch.ts";
import {
  announceClaim,
  type Caller,
  type CallerWithStore,
  findFirstQueued,
  getCurrentOutcome,
  isBranchBusy,
  joinQueue,
  runAsActive,
  waitInQueue,
} from "./queue.ts";
import { recoverRun } from "./recover-run.ts";
import { checkRunOptions, parseBreakpoints, toSavedBreakpoints } from "./session/options/check-run-options.ts";
import type { GraphCallOptions, RunHandle, RunOf, RunOptions, RunResult } from "./session/options/options.ts";
import type { Journal } from "./session/parts/journal.ts";
import type { Persistence } from "./session/parts/persistence.ts";
import type { Position } from "./session/parts/position.ts";
import { getErrorPlace } from "./session/parts/position.ts";
import type { State, Write } from "./session/returns.ts";
import type { Session } from "./session/session.ts";
import { findActiveRun, getThreadRegistry, type KeyedHandle, toKeyedName } from "./session/thread-registry.ts";
import { checkNoRemovals } from "./superstep/drain-inbox.ts";
import { createMissingInputError, listUnsetChannels } from "./superstep/input.ts";
import {
  getCodec,
  getWorld,
  isUnfinished,
  openSession,
  type RunLabels,
  readContext,
  release,
  resolveThreadId,
} from "./task/open-session.ts";

/**
 * Runs a graph. Without a store all features except interrupts, resume and history work in memory. `result` rejects
 * with `invalid_input`, `invalid_context`, `thread_busy`, or the error that failed the run. A second call with the
 * same `key` starts no other run: it returns the handle of the active run in this process, or a handle with the
 * outcome of the stored run.
 */
export function run<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: GraphCallOptions<Types>["run"],
): RunOf<Types> {
  checkRunOptions("run", graph, options);
  return startRun({ graph: graph as Graph, options }) as RunOf<Types>;
}

/** Graph and options of a run to start. */
export type RunCaller = Caller & { readonly options: RunOptions<GraphTypes> };

/** Like {@link run}, for callers that have validated the options. */
export function startRun(caller: RunCaller): RunHandle<unknown> {
  const { options } = caller;
  const { store, key, tenant } = options;
  const world = getWorld(options);
  const thread = resolveThreadId(world, options.thread);
  const runId = createId("run_", world.random);
  checkStartOptions(caller, thread);
  if (store === undefined && options.thread !== undefined) warnAboutStore(caller, thread);
  const keyedRun = key === undefined ? undefined : { thread, key, tenant };
  const keyed = store === undefined ? undefined : getThreadRegistry(store).keyed;
  // Before the caller continues: a later change of its objects changes no run.
  const input = copyChannels(caller.graph.state, getCodec(options), options.input);
  const given = input === undefined ? caller : { ...caller, options: { ...options, input } };
  const merged = options.removeMessages === undefined ? given : addRemovals(given, options.removeMessages);
  const atWork = store === undefined || keyedRun === undefined ? undefined : findActiveRun(store, keyedRun);
  const bodyHash = keyedRun === undefined ? undefined : hashBody(merged);
  if (atWork !== undefined) return repeatStart(merged, atWork, bodyHash);
  const readInput = parseInput(merged, input);
  const handle = launch<unknown, unknown>(options, thread, runId, async (events, stops) => {
    try {
      return await startWithRetry({ caller: merged, thread, runId, events, stops, input: readInput() });
    } finally {
      if (keyedRun !== undefined) keyed?.delete(toKeyedName(keyedRun));
    }
  });
  if (keyedRun !== undefined) keyed?.set(toKeyedName(keyedRun), { handle, bodyHash });
  return handle;
}

/** Returns the handle of the active run of a key; for a refused body a handle that rejects with `key_reused`. */
function repeatStart(
  { options }: RunCaller,
  { handle, bodyHash: known }: KeyedHandle,
  bodyHash: string | undefined,
): RunHandle<unknown> {
  if (options.onKeyReused !== "refuse" || known === undefined || bodyHash === undefined || known === bodyHash)
    return handle;
  const { thread, id } = handle;
  const error = createReusedKeyError("run", { thread, id, key: options.key });
  return launch<unknown, unknown>(options, thread, id, () => Promise.reject(error));
}

/** Adds the removals of the option `removeMessages` to the input, before its new messages. */
function addRemovals(caller: RunCaller, ids: readonly string[]): RunCaller {
  const { graph, options } = caller;
  const { input } = options;
  if (graph.state.channels["messages"]?.kind !== "messages")
    throw invalidOption({
      where: "run",
      option: "removeMessages",
      expected: "a graph with the channel `messages`",
      found: `the graph "${graph.name}"`,
      fix: "Add the channel, or remove the option",
    });
  if (input !== undefined && !isPlainObject(input)) return caller;
  const added: unknown = input?.["messages"] ?? [];
  const messages = [...ids.map((id) => ({ remove: id })), ...(Array.isArray(added) ? added : [added])];
  return { ...caller, options: { ...options, input: { ...input, messages } } };
}

/**
 * Parses the input, so that an invalid input is rejected before any store access. `given` is the input without the
 * removals of the option. A user-written machine parses its input itself. The returned function throws the error of an invalid input, which rejects the run.
 */
export function parseInput({ graph, options }: RunCaller, given: unknown): () => readonly Write[] | undefined {
  const plan = getPlan(graph);
  try {
    checkNoRemovals(plan, given);
    const writes = getProgram(plan).parseInput(plan, getCodec(options), options.input);
    return () => writes;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

const warnedGraphs: WeakSet<Graph> = new WeakSet();

/** Warns once for each graph: without a store, the next run of the thread starts without its state. */
function warnAboutStore({ graph, options }: RunCaller, thread: string): void {
  if (warnedGraphs.has(graph)) return;
  warnedGraphs.add(graph);
  warnCaller(
    getWorld(options),
    "a run has a thread and no store: the next run of the thread starts without its state; pass a store, or remove the thread",
    { graph: graph.name, thread },
  );
}

export function checkStartOptions({ graph, options: { store, key, onBusy } }: RunCaller, thread: string): void {
  if (key !== undefined && store === undefined)
    throw new StatewrightError("missing_store", {
      what: `a run with the idempotency key "${key}" has no store`,
      next: "Pass the store that holds its thread",
      place: { graph: graph.name, thread },
    });
  if (getProgram(getPlan(graph)).isPreemptible || (onBusy !== "cancel" && onBusy !== "rollback")) return;
  throw invalidOption({
    where: `the machine "${graph.name}"`,
    option: "onBusy",
    expected: '"reject" or "enqueue"',
    got: onBusy,
    fix: 'Send an event with resume, cancel the run, or use onBusy: "enqueue"',
    place: { graph: graph.name, thread },
  });
}

/** Arguments of a run start. */
interface StartParams {
  readonly caller: RunCaller;
  readonly thread: string;
  readonly runId: string;
  readonly events: EventStream;
  readonly stops: RunControls;
  readonly input: readonly Write[] | undefined;
}

async function startWithRetry(params: StartParams): Promise<RunResult<State>> {
  try {
    return await startOnThread(params, { claimsOnCommit: true });
  } catch (error) {
    if (!(error instanceof ClaimRaceError)) throw error;
    return startOnThread(params, { claimsOnCommit: false });
  }
}

/** Another run claimed the thread before the first commit of this run. The first commit was to claim the thread. */
class ClaimRaceError extends Error {}

/** Starts a run on its thread. `claimsOnCommit`: the first commit claims the thread, with no claim before it. */
async function startOnThread(
  { caller, thread, runId, events, stops, input }: StartParams,
  { claimsOnCommit }: { readonly claimsOnCommit: boolean },
): Promise<RunResult<State>> {
  const { graph, options } = caller;
  // An input without values for required channels is valid on a thread whose state has them.
  const missing = input === undefined ? [] : listUnsetChannels(getPlan(graph), input);
  const labels = getRunLabels(caller);
  const existing = await findRunByKey(caller, thread);
  if (existing !== undefined) return joinExistingRun(caller, existing, events, stops);
  const claimMode = { mustExist: missing.length > 0, claimsOnCommit: claimsOnCommit && input !== undefined };
  const opening = { programs, graph, options, thread, runId, events, ...stops, labels, ...claimMode };
  const { store } = options;
  if (store !== undefined && !rejectsWhenBusy(caller) && (await isBranchBusy(store, thread, options.branch))) {
    readContext(getPlan(graph), options.context);
    return enqueueAndWait(caller, createQueueWrite(caller, thread, { id: runId, ...labels }), events, {
      stops,
      claimsOnCommit,
    });
  }
  let session: Session;
  let result: Promise<RunResult<State>>;
  const endClaim = store === undefined ? undefined : announceClaim(caller, store, thread);
  try {
    session = await openSession(opening);
    const { saved } = session.journal;
    if (
      saved !== undefined &&
      (hasUnfinishedRun(saved) || (await hasQueue(session.position, session.env.world, saved)))
    ) {
      await release(saved.store, thread, saved.claim, { world: session.env.world });
      if (!rejectsWhenBusy(caller))
        return enqueueAndWait(caller, createQueueWrite(caller, thread, { id: runId, ...labels }), events, {
          stops,
          claimsOnCommit,
        });
      throw createBusyError(session.position, saved);
    }
    result = runAsActive(session, caller, () => beginRun(session, options.input, input));
  } catch (error) {
    if (
      claimMode.claimsOnCommit &&
      (isStatewrightError(error, "unknown_checkpoint") || isStatewrightError(error, "fenced"))
    )
      throw new ClaimRaceError();
    const isNew = isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "unknown_branch");
    if (missing.length > 0 && isNew) throw addErrorPlace(createMissingInputError(getPlan(graph), missing), { thread });
    if (!isStatewrightError(error, "thread_busy") || rejectsWhenBusy(caller)) throw error;
    return enqueueAndWait(caller, createQueueWrite(caller, thread, { id: runId, ...labels }), events, {
      stops,
      claimsOnCommit,
    });
  } finally {
    endClaim?.();
  }
  try {
    return await result;
  } catch (error) {
    if (
      claimMode.claimsOnCommit &&
      isStatewrightError(error, "fenced") &&
      !hasStarted(session.position, session.journal)
    )
      throw new ClaimRaceError();
    const first = isStatewrightError(error, "run_exists") ? await findRunByKey(caller, thread) : undefined;
    if (first === undefined) throw error;
    // Another process has started or queued the same run under this key.
    return joinExistingRun(caller, first, events, stops);
  }
}

export function getRunLabels(caller: RunCaller): RunLabels {
  const { key, metadata, tenant, owner } = caller.options;
  const bodyHash = key === undefined ? undefined : hashBody(caller);
  return {
    ...(key === undefined ? {} : { key }),
    ...(bodyHash === undefined ? {} : { bodyHash }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(owner === undefined ? {} : { owner }),
  };
}

/** Returns the hash of `keyBody`, by default of graph, input and metadata, which tells a repeated call from another one under the same key. */
function hashBody({ graph, options }: RunCaller): string | undefined {
  const { input, metadata, keyBody } = options;
  return digestArgs(getCodec(options), keyBody ?? [graph.name, input ?? null, metadata ?? null]);
}

/** Throws `key_reused` if the run of a key has another body. A body that cannot be encoded is not compared. */
export function checkSameBody(
  where: string,
  existing: Pick<RunRow, "thread" | "id" | "key" | "bodyHash">,
  bodyHash: string | undefined,
): void {
  if (existing.bodyHash === undefined || bodyHash === undefined || existing.bodyHash === bodyHash) return;
  throw createReusedKeyError(where, existing);
}

function createReusedKeyError(
  where: string,
  { thread, id, key }: Pick<RunRow, "thread" | "id" | "key">,
): StatewrightError {
  return new StatewrightError("key_reused", {
    what: `${where}: expected the graph, the input and the metadata of the run with the key "${key}", got others`,
    next: "Use another key for other work, or pass the same input and metadata to repeat a call",
    place: { thread },
    details: { run: id },
  });
}

/** Returns true if the first commit of the run is durable. */
function hasStarted({ step }: Position, { saved }: Journal): boolean {
  return step !== (saved?.claim.head?.step ?? -1);
}

function rejectsWhenBusy({ options: { onBusy = "reject" } }: RunCaller): boolean {
  return onBusy === "reject";
}

/** Throws `invalid_option` for a run of another tenant. */
async function findRunByKey(
  { options: { store, key, tenant } }: RunCaller,
  thread: string,
): Promise<RunRow | undefined> {
  if (store === undefined || key === undefined) return undefined;
  const [found] = await store.runs({ thread, key });
  if (found !== undefined) checkTenant("run", { id: thread, tenant: found.tenant }, tenant);
  return found;
}

/**
 * Continues the existing run of this key: recovers a crashed run, waits for the turn of a queued run, returns the
 * outcome of any other.
 */
function joinExistingRun(
  caller: RunCaller,
  existing: RunRow,
  events: EventStream,
  stops: RunControls,
): Promise<RunResult<State>> {
  const storeCaller = caller as RunCaller & CallerWithStore;
  if (caller.options.onKeyReused === "refuse") checkSameBody("run", existing, hashBody(caller));
  events.announceRun?.(existing.id);
  if (existing.status === "crashed") return recoverRun(storeCaller, existing, events, { stops });
  return existing.status === "queued"
    ? waitInQueue(storeCaller, existing, events, stops)
    : getCurrentOutcome(storeCaller, existing);
}

/** Creates the write that puts a run into the queue. */
export function createQueueWrite(
  { graph, options }: RunCaller,
  thread: string,
  identity: Pick<RunRow, "id"> & RunLabels,
): QueueWrite {
  const { branch, input, onBusy } = options;
  const at = getWorld(options).clock.now();
  const { name, version } = graph;
  const breakpoints = toSavedBreakpoints(parseBreakpoints(getPlan(graph), options));
  const codec = getCodec(options);
  const text = encodeWrapper(codec, input, "the input");
  return {
    thread,
    branch,
    run: {
      ...identity,
      ...{ graph: name, version, status: "queued", attempt: 1, startedAt: at, queuedAt: at, input: text },
      ...(breakpoints === undefined ? {} : { breakpoints }),
    },
    stops: onBusy === "cancel" || onBusy === "rollback" ? onBusy : undefined,
  };
}

async function enqueueAndWait(
  caller: RunCaller,
  write: QueueWrite,
  events: EventStream,
  { stops, claimsOnCommit }: { readonly stops: RunControls; readonly claimsOnCommit: boolean },
): Promise<RunResult<State>> {
  const joined = await joinQueue(caller as RunCaller & CallerWithStore, write, events, stops);
  // The run that was to create the thread did not start.
  if ("deleted" in joined) throw claimsOnCommit ? new ClaimRaceError() : joined.deleted;
  return "result" in joined ? joined.result : joinExistingRun(caller, joined.existing, events, stops);
}

function hasUnfinishedRun({ claim: { run } }: Persistence): boolean {
  return run !== undefined && isUnfinished(run);
}

/** Returns true if runs of the branch are queued. Releases the thread when the store fails. */
async function hasQueue({ run: { thread } }: Position, world: World, { store, claim }: Persistence): Promise<boolean> {
  if (claim.queued === 0) return false;
  try {
    return (await findFirstQueued(store, thread, claim.branch)) !== undefined;
  } catch (error) {
    await release(store, thread, claim, { world });
    throw error;
  }
}

function createBusyError(position: Position, { claim: { run: before } }: Persistence): StatewrightError {
  const { thread } = position.run;
  const what =
    before === undefined || !isUnfinished(before)
      ? `the thread "${thread}" has queued inputs, which come first`
      : `the thread "${thread}" has an unfinished run: ${before.status === "running" ? "crashed" : before.status}`;
  return new StatewrightError("thread_busy", {
    what,
    next: `Continue it with resume and thread: "${thread}", pass onBusy ("cancel" ends it, "enqueue" waits for it), or use another thread`,
    place: getErrorPlace(position),
    details: before === undefined ? undefined : { run: before.id, status: before.status },
  });
}
