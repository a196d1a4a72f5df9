/**
 * Run queue of a thread: inputs that wait behind a run, and the start of the next run. The store holds the queue. The
 * process that ends a run starts the next run; after a crash in between, the next process that opens the thread does.
 */

import { describeFailure, isStatewrightError, type StatewrightError, toErrorRecord } from "../base/errors.ts";
import type { RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import { inQueue } from "../checkpoint/delayed-run.ts";
import type { InboxMessage } from "../checkpoint/inbox-message.ts";
import type { ClaimMode } from "../checkpoint/previous-owner.ts";
import type { RunRequest } from "../checkpoint/run-request.ts";
import type { Claim, QueueWrite, Store } from "../checkpoint/store.ts";
import { checkThread } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { getPlan } from "../compile/plan.ts";
import { beginRun, getProgram, programs } from "./begin.ts";
import type { EventStream } from "./events/events.ts";
import { launch, type RunControls } from "./launch.ts";
import { finishCancelled, finishPaused } from "./loop/finish.ts";
import { finishPreempted } from "./loop/finish-preempted.ts";
import { finishRequestedRun } from "./loop/finish-requested-run.ts";
import { migrateQueuedInput } from "./loop/migrate-queued-input.ts";
import { createDrainedError } from "./loop/run-supersteps.ts";
import { loadRunOutcome, type OutcomeSource } from "./outcome.ts";
import { subscribeToAbort } from "./session/abort.ts";
import { applyRequest, describeRequest } from "./session/check-requests.ts";
import type { BreakpointOption, CommonOptions, RunHandle, RunResult } from "./session/options/options.ts";
import type { Persistence } from "./session/parts/persistence.ts";
import type { Position } from "./session/parts/position.ts";
import { Preemption } from "./session/preemption.ts";
import type { State } from "./session/returns.ts";
import type { Session } from "./session/session.ts";
import {
  getThreadRegistry,
  isThreadActive,
  listWaitingRuns,
  registerActiveRun,
  type StartingRun,
  toRunKey,
  type WaitingRun,
} from "./session/thread-registry.ts";
import { createWatch, watchThread } from "./session/thread-watch.ts";
import {
  getCodec,
  getWorld,
  isUnfinished,
  type OpenSessionOptions,
  openSession,
  release,
} from "./task/open-session.ts";

/** Graph and options with which a process runs the runs of a thread. */
export interface Caller {
  readonly graph: Graph;
  readonly options: CommonOptions & BreakpointOption<string> & { readonly context?: unknown };
  /** Host of runs without a waiting caller, such as an engine. */
  readonly host?: RunHost | undefined;
  /** Claim of a thread with a live owner. Default `free`. */
  readonly claim?: ClaimMode | undefined;
}

/** Host of runs that an engine starts itself. */
export interface RunHost {
  /** Returns true if the host accepts new runs now. */
  readonly canStart: () => boolean;
  /** Returns the caller for a run queued by another process; undefined when its graph is not registered here. */
  readonly getCaller: (run: RunRow) => Caller | undefined;
  /** Called when a run without a waiting caller has started. */
  readonly onLaunch: (handle: RunHandle<unknown>) => void;
  /**
   * Asks the host to claim queued runs by `claimRuns`, in the order of the store, since a run of this thread can start.
   * A host with this function starts no queued run without its claim, and resolves the waiting runs of the thread when
   * another process has claimed it.
   */
  readonly requestRuns?: ((thread: string) => void) | undefined;
}

/** A caller with a store. */
export type CallerWithStore = Caller & { readonly options: { readonly store: Store } };

/**
 * Runs `work` as the active run of its thread, then starts the next queued run, unless a failed run is still first in
 * the queue.
 */
export async function runAsActive(
  session: Session,
  caller: Caller,
  work: () => Promise<RunResult<State>>,
  isStillFirst: (error: unknown) => boolean = () => false,
): Promise<RunResult<State>> {
  const { run } = session.position;
  const { saved } = session.journal;
  const { stop } = session.signals;
  const { inbox, events } = session.inboxes;
  session.events.stream.announceRun?.(run.id);
  if (saved === undefined) return work();
  const { store } = saved;
  const { active, waiting } = getThreadRegistry(store);
  const { id, branch, key, bodyHash, tenant } = run;
  const handle = session.events.stream.handle as RunHandle<unknown> | undefined;
  const activeRun = {
    run: id,
    graph: run.graph,
    branch,
    key,
    bodyHash,
    tenant,
    handle,
    stop,
    stopForRequest: (request: RunRequest): void => applyRequest(saved.thread, request),
    notifyArrival: ({ id: message, kind }: Pick<InboxMessage, "id" | "kind">): void => {
      saved.thread.arrivals.version += 1;
      if (kind === "event") events.notifyArrival();
      else if (kind === "steer") inbox.notifyArrival([message]);
    },
  };
  active.set(run.thread, activeRun);
  const unregister =
    handle === undefined ? undefined : registerActiveRun([caller.graph, session.position.plan.graph], handle);
  const unwatch = watchThread(store, createWatch(session, saved));
  // A run that could not start has released the thread without reading the queue length.
  let shouldStartNext = true;
  try {
    const result = await startUnlessRequested(session, saved, work);
    shouldStartNext = saved.thread.queued > 0 || waiting.size > 0;
    if (isResting(result)) void continueWithArrivals(session, caller);
    return result;
  } catch (error) {
    shouldStartNext = !isStillFirst(error);
    throw error;
  } finally {
    unregister?.();
    unwatch();
    if (active.get(run.thread) === activeRun) active.delete(run.thread);
    // A request that arrived while the run came to rest.
    if (saved.thread.requests > 0) void finishRequestedRuns(caller, store, run.thread);
    if (shouldStartNext) void startNextQueued(caller, store, run.thread);
    else resolveWaitingRuns(store, run.thread);
  }
}

/** Ends or pauses the runs at rest that requests of the thread are about. Never rejects. */
async function finishRequestedRuns({ options }: Caller, store: Store, thread: string): Promise<void> {
  const world = getWorld(options);
  try {
    while ((await finishRequestedRun({ store, world, codec: getCodec(options), thread })).kind === "finished");
  } catch (error) {
    world.log("warn", "a request of a run could not be handled", { thread, error: toErrorRecord(error) });
  }
}

/** Returns true for a machine that only events or delays continue. */
function isResting(result: RunResult<State>): boolean {
  return result.status === "waiting" || (result.status === "paused" && result.cause.code === "timer_pending");
}

/**
 * Continues a machine whose inbox received an event after the last read of its run: the sender saw a run at work. Never
 * rejects.
 */
async function continueWithArrivals(
  { position, inboxes }: Pick<Session, "position" | "inboxes">,
  caller: Caller,
): Promise<void> {
  const { thread, branch, id } = position.run;
  const { graph, options, host } = caller;
  const world = getWorld(options);
  try {
    if (getProgram(position.plan).delivery === undefined || host?.canStart() === false) return;
    if (!(await inboxes.events.hasUnlistedEvents())) return;
    const detached = host === undefined ? toDetachedCaller(caller) : caller;
    const handle = launch<unknown, unknown>(detached.options, thread, id, async (events, stops) => {
      const opening = {
        programs,
        graph,
        options: { ...detached.options, branch },
        thread,
        runId: id,
        events,
        ...stops,
      };
      const session = await openSession({ ...opening, mustExist: true, onIncompatible: "parks" });
      return runAsActive(session, detached, () => getProgram(session.position.plan).recover(session));
    });
    host?.onLaunch(handle);
    await handle.result;
  } catch (error) {
    // Another process has claimed the thread, and reads its inbox.
    if (!isStatewrightError(error, "thread_busy"))
      world.log("warn", "a queued event could not be processed", { thread, run: id, error: toErrorRecord(error) });
  }
}

/** Marks the thread as being opened in this process; the returned function removes the mark. */
function markOpening(store: Store, thread: string): () => void {
  const { opening } = getThreadRegistry(store);
  opening.set(thread, (opening.get(thread) ?? 0) + 1);
  return () => {
    const remaining = (opening.get(thread) ?? 1) - 1;
    if (remaining > 0) opening.set(thread, remaining);
    else opening.delete(thread);
  };
}

/**
 * Announces a claim by a run outside of the queue: inputs that arrive meanwhile wait for it. The returned function
 * starts the next queued run if this run does not start.
 */
export function announceClaim(caller: Caller, store: Store, thread: string): () => void {
  const unmark = markOpening(store, thread);
  return () => {
    unmark();
    startNextUnlessActive(caller, store, thread);
  };
}

/**
 * Announces a claim by an operation that runs nothing: afterwards only the runs waiting in this process are started.
 */
export function announceUpdate(caller: Omit<Caller, "host">, store: Store, thread: string): () => void {
  const unmark = markOpening(store, thread);
  return () => {
    unmark();
    const { waiting, starting } = getThreadRegistry(store);
    if (waiting.size > 0 || starting.size > 0) startNextUnlessActive({ ...caller, host: idleHost }, store, thread);
  };
}

const idleHost: RunHost = { canStart: () => true, getCaller: () => undefined, onLaunch: () => undefined };

/**
 * Starts the next queued run unless a run is active here, which does so when it ends. A waiting run may have been
 * refused meanwhile.
 */
function startNextUnlessActive(caller: Caller, store: Store, thread: string): void {
  if (!getThreadRegistry(store).active.has(thread)) void startNextQueued(caller, store, thread);
}

/** Statuses that block the next queued run. */
export const unfinishedStatuses: readonly RunStatus[] = ["running", "waiting", "paused", "parked", "failed", "crashed"];

/**
 * Starts the next runnable run of a thread. Returns the handle of a run without a waiting caller; a run whose caller
 * waits in this process continues in that caller. Never rejects.
 */
export async function startNextQueued(
  caller: Caller,
  store: Store,
  thread: string,
): Promise<RunHandle<unknown> | undefined> {
  try {
    const { waiting: waitingRuns, starting: startingRuns } = getThreadRegistry(store);
    const rows = caller.host?.canStart() === false ? [] : streamStartableRuns(store, thread);
    for await (const next of rows) {
      if (next.graph !== caller.graph.name && (await dropForeignInput(caller, store, next)))
        return await startNextQueued(caller, store, thread);
      const starting = startingRuns.get(toRunKey(next));
      const waiting = waitingRuns.get(toRunKey(next));
      if (starting !== undefined) starting.needsRecheck = true;
      else waiting?.start();
      if (starting !== undefined || waiting !== undefined) return undefined;
      if (caller.host?.requestRuns !== undefined) {
        caller.host.requestRuns(thread);
        return undefined;
      }
      const nextCaller = caller.host === undefined ? toDetachedCaller(caller) : caller.host.getCaller(next);
      if (nextCaller !== undefined && canRun(nextCaller, next))
        return launchQueued(nextCaller as CallerWithStore, next);
    }
  } catch (error) {
    const fields = { thread, error: toErrorRecord(error) };
    getWorld(caller.options).log("warn", "the next queued run of a thread could not be started", fields);
  }
  resolveWaitingRuns(store, thread);
  return undefined;
}

/** Returns true if the caller's graph can run the input: same graph, and not queued for a later version. */
function canRun({ graph }: Caller, { graph: name, version }: RunRow): boolean {
  return graph.name === name && version <= graph.version;
}

/**
 * Removes an input of another graph than the thread's from the queue, since no process can ever start it. Returns
 * false for a matching input.
 */
async function dropForeignInput({ options }: Caller, store: Store, { thread, id, graph }: RunRow): Promise<boolean> {
  const threadRow = await store.thread(thread);
  if (threadRow?.graph === undefined || threadRow.graph === graph) return false;
  const { clock, log } = getWorld(options);
  const reason = `the thread belongs to the graph "${threadRow.graph}", and the input was for "${graph}"`;
  if (await store.dequeue(thread, id, { at: clock.now(), reason }))
    log("warn", "an input was removed from the queue: it is for another graph", { thread, run: id, graph });
  getThreadRegistry(store).waiting.get(toRunKey({ thread, id }))?.detach();
  return true;
}

/** Resolves the runs waiting in this process as queued, unless the thread is active here. */
export function resolveWaitingRuns(store: Store, thread: string): void {
  if (isThreadActive(store, thread)) return;
  for (const each of listWaitingRuns(store, thread)) each.detach();
}

/**
 * Returns true if a new input of a branch would meet an unfinished run or queued runs. Needs no claim on the thread.
 */
export async function isBranchBusy(store: Store, thread: string, branch: string | undefined): Promise<boolean> {
  const open = await store.runs({ thread, status: unfinishedStatuses });
  const first = await findFirstQueued(store, thread);
  if (open.length === 0 && first === undefined) return false;
  const name = branch ?? (await store.thread(thread))?.headBranch;
  if (name === undefined) return false;
  if (first?.branch === name || open.some((row) => row.branch === name)) return true;
  return first !== undefined && (await findFirstQueued(store, thread, name)) !== undefined;
}

/** Finds the first queued run of a thread or of a branch, independent of the length of the queue. */
export async function findFirstQueued(store: Store, thread: string, branch?: string): Promise<RunRow | undefined> {
  const place = branch === undefined ? { thread } : { thread, branch };
  const [first] = await store.runs({ ...place, ...inQueue, order: "oldest", limit: 1 });
  return first;
}

/**
 * Streams the runs that can start: the first of each branch whose last run has ended or is to be pre-empted. Reads the
 * whole queue only if the first run of the thread cannot start.
 */
async function* streamStartableRuns(store: Store, thread: string): AsyncGenerator<RunRow, void> {
  const first = await findFirstQueued(store, thread);
  if (first === undefined) return;
  const openRuns = await store.runs({ thread, status: unfinishedStatuses });
  const isFirstFree = openRuns.every(({ branch }) => branch !== first.branch);
  if (isFirstFree) yield first;
  const queued = await store.runs({ thread, ...inQueue, order: "oldest" });
  yield* queued.filter(({ id, branch }) => {
    if (isFirstFree && id === first.id) return false;
    if (queued.find((each) => each.branch === branch)?.id !== id) return false;
    const current = openRuns.find((each) => each.branch === branch);
    if (current === undefined) return true;
    return current.status !== "running" && queued.some(({ stops }) => stops?.run === current.id);
  });
}

/** Finds the first queued run of a thread that can start; undefined when each waits behind an unfinished run. */
export async function findStartable(store: Store, thread: string): Promise<RunRow | undefined> {
  for await (const row of streamStartableRuns(store, thread)) return row;
  return undefined;
}

/** Derives the caller of the next run: the same options without those of the previous run alone. */
function toDetachedCaller({ graph, options }: Caller): Caller {
  const { signal: _, breakpoints: __, inspect: ___, ...rest } = options;
  return { graph, options: rest };
}

/** Starts a queued run in this process when its turn comes, with the claim of its thread if `claimRuns` made one. */
export function launchQueued(caller: CallerWithStore, row: RunRow, heldClaim?: Claim): RunHandle<unknown> {
  const { options, host } = caller;
  const world = getWorld(options);
  const starting = registerStarting(options.store, row);
  const handle = launch<unknown, unknown>(options, row.thread, row.id, (events, stops) =>
    startQueued(caller, row, events, { stops, waitAgain: () => getCurrentOutcome(caller, row), starting, heldClaim }),
  );
  handle.result.catch((error: unknown) => {
    // Another process has started the run, and reports its end.
    if (isStatewrightError(error, "thread_busy")) return;
    const fields = { thread: row.thread, run: row.id, error: toErrorRecord(error) };
    world.log("warn", "a run started from the queue failed", fields);
  });
  host?.onLaunch(handle);
  return handle;
}

function toOutcomeSource({ graph, options }: CallerWithStore): OutcomeSource {
  return { plan: getPlan(graph), store: options.store, codec: getCodec(options) };
}

/** Registers a queued run as starting in this process, until `end`. */
function registerStarting(store: Store, row: RunRow): StartingRun & { readonly end: () => void } {
  const { starting: startingRuns } = getThreadRegistry(store);
  const unmark = markOpening(store, row.thread);
  const key = toRunKey(row);
  const starting = {
    needsRecheck: false,
    end: (): void => {
      if (startingRuns.get(key) === starting) startingRuns.delete(key);
      unmark();
    },
  };
  startingRuns.set(key, starting);
  return starting;
}

/** Options of `startQueued`. */
interface StartQueuedOptions {
  readonly stops: RunControls;
  readonly waitAgain: () => Promise<RunResult<State>>;
  readonly starting?: ReturnType<typeof registerStarting> | undefined;
  readonly heldClaim?: Claim | undefined;
}

/**
 * Starts a queued run when its turn comes, after ending the run that it pre-empts. `waitAgain` is called when another
 * run active in this process comes first. If the run does not start, no run end would wake the waiting runs here, so
 * they are resolved.
 */
async function startQueued(
  caller: CallerWithStore,
  row: RunRow,
  events: EventStream,
  { stops, waitAgain, starting = registerStarting(caller.options.store, row), heldClaim }: StartQueuedOptions,
): Promise<RunResult<State>> {
  const { graph, options } = caller;
  const { store } = options;
  const { thread } = row;
  const opening = {
    ...{ programs, graph, options, thread, runId: row.id, events, ...stops, queued: row, mustExist: true },
    claim: caller.claim,
    onIncompatible: "parks",
  } as const;
  const isStopped = (): boolean => stops.drain.aborted || stops.abort.signal.aborted;
  let result: Promise<RunResult<State>> | undefined;
  let unusedClaim = heldClaim;
  /** True when other queued runs may be startable now. */
  let mayUnblockOthers = false;
  try {
    for (
      let turn: TurnResult = "ended";
      result === undefined && !isStopped() && (turn === "ended" || starting.needsRecheck);
    ) {
      starting.needsRecheck = false;
      const opened = openIfNext({ ...opening, heldClaim: unusedClaim }, row);
      unusedClaim = undefined;
      turn = await opened;
      mayUnblockOthers ||= turn === "ended" || turn === "later";
      if (typeof turn === "string") continue;
      const { session, saved } = turn;
      const work = (): Promise<RunResult<State>> => startOrDequeue(session, saved, row, options.migrations);
      result = runAsActive(
        session,
        caller,
        work,
        (error) => isStoreFailure(error) && hasNotStarted(session.position, saved),
      );
    }
  } catch (error) {
    mayUnblockOthers ||= isStatewrightError(error, "graph_changed") && (await dropForeignInput(caller, store, row));
    throw error;
  } finally {
    if (unusedClaim !== undefined) await release(store, thread, unusedClaim, { world: getWorld(options) });
    starting.end();
    mayUnblockOthers ||= stops.abort.signal.aborted;
    // A drained input stays first in the queue, for a later process.
    if (result === undefined && mayUnblockOthers && !stops.drain.aborted) void startNextQueued(caller, store, thread);
    else if (result === undefined) resolveWaitingRuns(store, thread);
  }
  if (result !== undefined) return await awaitStarted(caller, row, result);
  return await (isThreadActive(store, thread) && !isStopped() ? waitAgain() : getCurrentOutcome(caller, row));
}

/** Awaits a started run. A run dequeued just before its first write was cancelled by the dequeue. */
async function awaitStarted(
  caller: CallerWithStore,
  row: RunRow,
  result: Promise<RunResult<State>>,
): Promise<RunResult<State>> {
  try {
    return await result;
  } catch (error) {
    if (isStatewrightError(error, "run_exists")) return await getCurrentOutcome(caller, row);
    throw error;
  }
}

/**
 * Result of a queued run's turn: the open session; or `busy` (thread claimed by another process), `later` (another
 * run comes first), `ended` (the run before was ended here). With `later` and `ended` this process claimed the thread
 * for a moment, so other inputs may have been refused meanwhile.
 */
type TurnResult = "busy" | "later" | "ended" | { readonly session: Session; readonly saved: Persistence };

async function openIfNext(opening: OpenSessionOptions, row: RunRow): Promise<TurnResult> {
  const session = await openUnlessBusy(opening);
  if (session === undefined) return "busy";
  const saved = session.journal.saved as Persistence;
  const turn = await resolveTurn(session, saved, row, opening.heldClaim === undefined ? "unknown" : "first");
  return turn === "now" ? { session, saved } : turn;
}

async function openUnlessBusy(opening: OpenSessionOptions): Promise<Session | undefined> {
  try {
    return await openSession(opening);
  } catch (error) {
    if (isStatewrightError(error, "thread_busy")) return undefined;
    throw error;
  }
}

/**
 * Decides if a queued run can start. Ends the run before it when a queued input pre-empts that run. `place` is `first`
 * for a run that its claim found first in the queue.
 */
async function resolveTurn(
  session: Session,
  saved: Persistence,
  { id, thread, branch }: RunRow,
  place: "first" | "unknown",
): Promise<"now" | "later" | "ended"> {
  const { store, claim } = saved;
  try {
    const current = claim.run;
    if (current === undefined || !isUnfinished(current)) {
      if (place === "first" || (await findFirstQueued(store, thread, branch))?.id === id) return "now";
    } else {
      const queued = await store.runs({ thread, branch, ...inQueue, order: "oldest" });
      const next = queued.find(({ stops }) => stops?.run === current.id);
      if (next?.stops !== undefined) {
        await finishPreempted(session, saved, current, Preemption.createForInput(next.stops.how, next.id));
        return "ended";
      }
    }
  } catch (error) {
    await release(store, thread, claim, { world: session.env.world });
    throw error;
  }
  await release(store, thread, claim, { world: session.env.world });
  return "later";
}

/**
 * Starts a queued run. An input that can never start is removed from the queue, so that it does not block the others.
 */
async function startOrDequeue(
  session: Session,
  saved: Persistence,
  row: RunRow,
  migrations: CommonOptions["migrations"] = [],
): Promise<RunResult<State>> {
  const { codec, world } = session.env;
  const { plan } = session.position;
  try {
    let input: unknown;
    try {
      input = migrateQueuedInput(row, plan.graph, migrations, codec);
    } catch (error) {
      await release(saved.store, row.thread, saved.claim, { world });
      throw error;
    }
    return await beginRun(session, input);
  } catch (error) {
    if (hasNotStarted(session.position, saved) && !(isStatewrightError(error) && error.kind === "store")) {
      const ended = { at: world.clock.now(), reason: describeFailure(error) };
      if (await saved.store.dequeue(row.thread, row.id, ended)) saved.thread.queued -= 1;
    }
    throw error;
  }
}

function hasNotStarted({ step }: Position, { claim }: Persistence): boolean {
  return step === (claim.head?.step ?? -1);
}

/** Returns true for errors of the store, where an immediate retry would fail again. */
function isStoreFailure(error: unknown): boolean {
  return isStatewrightError(error) && error.kind === "store" && error.code !== "fenced";
}

/** Returns the current outcome of a stored run; awaits the result of a run active in this process. */
export async function getCurrentOutcome(caller: CallerWithStore, row: RunRow): Promise<RunResult<State>> {
  const { thread, id } = row;
  const { store } = caller.options;
  const current = (await loadRunRow(store, row)) ?? row;
  const active = current.status === "running" ? getThreadRegistry(store).active.get(thread) : undefined;
  if (active?.run === id && active.handle !== undefined) return (await active.handle.result) as RunResult<State>;
  return loadRunOutcome(toOutcomeSource(caller), current);
}

/** Loads the current row of a run: nearly always among the newest, so the first query has a limit. */
async function loadRunRow(store: Store, { thread, id, key }: RunRow): Promise<RunRow | undefined> {
  if (key !== undefined) return (await store.runs({ thread, key })).find((each) => each.id === id);
  for (const filter of [{ thread, limit: 50 }, { thread }]) {
    const found = (await store.runs(filter)).find((each) => each.id === id);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Enqueues a run behind the current run and waits for its turn in this process; returns `deleted` when the thread no
 * longer exists.
 */
export async function joinQueue(
  caller: CallerWithStore,
  write: QueueWrite,
  events: EventStream,
  stops: RunControls,
): Promise<
  { readonly existing: RunRow } | { readonly result: RunResult<State> } | { readonly deleted: StatewrightError }
> {
  const { store } = caller.options;
  const threadRow = await store.thread(write.thread);
  if (threadRow !== undefined) checkThread(threadRow, caller.graph);
  let row: RunRow;
  try {
    row = await store.enqueue(write);
  } catch (error) {
    if (isStatewrightError(error, "unknown_thread")) return { deleted: error };
    throw error;
  }
  return row.id === write.run.id ? { result: await waitInQueue(caller, row, events, stops) } : { existing: row };
}

/**
 * Waits for the turn of a queued run in this process; starts at once when a dead process left the run first in the
 * queue.
 */
export async function waitInQueue(
  caller: CallerWithStore,
  row: RunRow,
  events: EventStream,
  stops: RunControls,
): Promise<RunResult<State>> {
  const { store } = caller.options;
  const { thread } = row;
  const world = getWorld(caller.options);
  events.announceRun?.(row.id);
  if (events.hasReaders())
    events.emit(
      { type: "run.queued", run: row.id, thread, branch: row.branch, seq: 0, at: world.clock.now() },
      "transient",
    );
  if (!canRun(caller, row)) return await getCurrentOutcome(caller, row);
  stopPreempted(store, row);
  return await waitForTurn(caller, row, events, stops);
}

/** Stops the run that a queued run pre-empts, if that run is active in this process. */
export function stopPreempted(store: Store, { id, thread, stops }: RunRow): void {
  const active = getThreadRegistry(store).active.get(thread);
  if (active !== undefined && stops?.run === active.run) active.stop(Preemption.createForInput(stops.how, id));
}

function waitForTurn(
  caller: CallerWithStore,
  row: RunRow,
  events: EventStream,
  stops: RunControls,
): Promise<RunResult<State>> {
  const { store } = caller.options;
  const { thread } = row;
  const key = toRunKey(row);
  const { clock } = getWorld(caller.options);
  const { waiting: waitingRuns } = getThreadRegistry(store);
  return new Promise<RunResult<State>>((resolve, reject) => {
    const leaveQueue = (outcome: () => Promise<RunResult<State>>): void => {
      if (waitingRuns.get(key) !== waiting) return;
      waitingRuns.delete(key);
      outcome().then(resolve, reject);
    };
    const leave = (): void => leaveQueue(() => getCurrentOutcome(caller, row));
    const cancel = (): void => {
      const { reason } = stops.abort.signal;
      const ended = { at: clock.now(), reason: reason instanceof Error ? reason.message : String(reason) };
      store.dequeue(thread, row.id, ended).then((cancelled) => {
        if (!cancelled) return;
        // A second caller with the same key waits in place of this caller.
        waitingRuns.get(key)?.detach();
        startNextUnlessActive(caller, store, thread);
      }, reject);
    };
    const waitAgain = (): Promise<RunResult<State>> => waitForTurn(caller, row, events, stops);
    const waiting: WaitingRun = {
      row,
      start: () => leaveQueue(() => startQueued(caller, row, events, { stops, waitAgain })),
      detach: leave,
    };
    waitingRuns.set(key, waiting);
    if (stops.abort.signal.aborted) cancel();
    else subscribeToAbort(stops.abort.signal, cancel);
    if (stops.drain.aborted) leave();
    else subscribeToAbort(stops.drain, leave);
    // A drained input stays in the queue for a later process: a start here would run it after its drain.
    if (!stops.drain.aborted && !isThreadActive(store, thread)) void startNextQueued(caller, store, thread);
  });
}

/** Resolves the caller in this process that waits for a run which has left the queue. */
export function leaveQueue(store: Store, run: RunRow): void {
  getThreadRegistry(store).waiting.get(toRunKey(run))?.detach();
}

/**
 * Calls `work` unless the run has a request. A run that continues is cancelled or paused without running a node; a run
 * that starts stops before its first node.
 */
async function startUnlessRequested(
  session: Session,
  saved: Persistence,
  work: () => Promise<RunResult<State>>,
): Promise<RunResult<State>> {
  if (saved.claim.requests === 0) return await work();
  const requests = await listOwnRequests(saved);
  for (const request of requests) applyRequest(saved.thread, request);
  const [first] = requests;
  if (first === undefined || saved.claim.run?.id !== saved.thread.run.id) return await work();
  return session.signals.abort.signal.aborted
    ? await finishCancelled(session)
    : await finishPaused(session, createDrainedError(session.position, describeRequest(first)));
}

/** Lists the requests of the run. A store that fails here fails the first commit of the run too. */
async function listOwnRequests({ store, thread: { run, world } }: Persistence): Promise<readonly RunRequest[]> {
  try {
    return (await store.requests(run.thread)).filter((request) => request.run === run.id);
  } catch (error) {
    world.log("warn", "the requests of a thread could not be read", {
      thread: run.thread,
      error: toErrorRecord(error),
    });
    return [];
  }
}
