/**
 * The queue of a thread: inputs that stand behind a run, and how they come to their turn. What stands in it is in the store;
 * the process that ends a run takes up what comes next, and so does whoever opens the thread after a crash in between.
 */
import { isStatewrightError, type StatewrightError, toErrorRecord } from "../base/errors.ts";
import { checkThread } from "../checkpoint/check-writer.ts";
import type { RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import type { QueueWrite, Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import { planOf } from "../compile/plan.ts";
import { beginAndDrive } from "./begin.ts";
import type { EventStream } from "./events/events.ts";
import { launch, type Stops } from "./launch.ts";
import { endForInput } from "./loop/finish-preempted.ts";
import { queuedInput } from "./loop/migrate-queued-input.ts";
import { type OutcomeSource, outcomeOf } from "./outcome.ts";
import { whenAborted } from "./session/abort.ts";
import type { BreakpointOption, CommonOptions, RunHandle, RunResult } from "./session/options.ts";
import { Stopped } from "./session/preemption.ts";
import type { State } from "./session/returns.ts";
import type { Saved, Session } from "./session/session.ts";
import { type Beginning, deskOf, type InLine, inLineOn, isBusyHere } from "./session/thread-registry.ts";
import { codecOf, type Opening, openSession, release, unfinished, worldOf } from "./task/open-session.ts";

/** What a process runs the runs of a thread with. */
export interface Caller {
  readonly graph: Graph;
  readonly options: CommonOptions & BreakpointOption<string> & { readonly context?: unknown };
  /** Who has runs in hand that nobody waits for. */
  readonly host?: RunHost | undefined;
}

/** What an engine is to the runs that it begins by itself. */
export interface RunHost {
  /** Whether anything may begin now. */
  readonly accepts: () => boolean;
  /** What a run begins with that was queued elsewhere; nothing when its graph is not known here. */
  readonly callerOf: (run: RunRow) => Caller | undefined;
  /** A run has begun that nobody waits for. */
  readonly launched: (handle: RunHandle<unknown>) => void;
}

/** A caller with a store. */
export type SavingCaller = Caller & { readonly options: { readonly store: Store } };

/** Do the work of a run; whoever stands behind it comes next, unless it is still first in line itself after a failure. */
export async function holding(
  session: Session,
  caller: Caller,
  work: () => Promise<RunResult<State>>,
  isStillFirst: (error: unknown) => boolean = () => false,
): Promise<RunResult<State>> {
  const { saved, run, stop, inbox } = session;
  if (saved === undefined) return work();
  const { store } = saved;
  const { atWork, inLine } = deskOf(store);
  const { id, branch, key } = run;
  const mine = { run: id, branch, key, handle: session.events.handle, stop, arrived: inbox.arrived };
  atWork.set(run.thread, mine);
  // A run that could not begin has let the thread go without a word about the queue.
  let look = true;
  try {
    const result = await work();
    look = saved.thread.queued > 0 || inLine.size > 0;
    return result;
  } catch (error) {
    look = !isStillFirst(error);
    throw error;
  } finally {
    if (atWork.get(run.thread) === mine) atWork.delete(run.thread);
    if (look) void takeUp(caller, store, run.thread);
    else leaveLine(store, run.thread);
  }
}

/** Say that a run is about to take a thread here; gives what says that it has it, or does not get it. */
function enter(store: Store, thread: string): () => void {
  const { opening } = deskOf(store);
  opening.set(thread, (opening.get(thread) ?? 0) + 1);
  return () => {
    const others = (opening.get(thread) ?? 1) - 1;
    if (others > 0) opening.set(thread, others);
    else opening.delete(thread);
  };
}

/** The same for a run that does not stand in the queue: who comes to the thread in between waits for it, and comes next where it does not begin. */
export function aboutToTake(caller: Caller, store: Store, thread: string): () => void {
  const leave = enter(store, thread);
  return () => {
    leave();
    lookAgain(caller, store, thread);
  };
}

/** The same for what runs nothing itself: only those who wait in line here come next. */
export function aboutToHold(caller: Omit<Caller, "host">, store: Store, thread: string): () => void {
  const leave = enter(store, thread);
  return () => {
    leave();
    const { inLine, beginning } = deskOf(store);
    if (inLine.size > 0 || beginning.size > 0) lookAgain({ ...caller, host: beginsNothing }, store, thread);
  };
}

const beginsNothing: RunHost = { accepts: () => true, callerOf: () => undefined, launched: () => undefined };

/** Unless a run is at work here, which looks when it ends: who was about to begin may have been turned away meanwhile. */
function lookAgain(caller: Caller, store: Store, thread: string): void {
  if (!deskOf(store).atWork.has(thread)) void takeUp(caller, store, thread);
}

/** What keeps those behind it from beginning, until it is done or cancelled. */
export const unfinishedStatuses: readonly RunStatus[] = ["running", "waiting", "paused", "parked", "failed", "crashed"];

/**
 * Begin what comes next on a thread, if it may begin now. Gives the handle of a run that nobody waits for; one whose caller
 * waits in this process goes on there. Never rejects.
 */
export async function takeUp(caller: Caller, store: Store, thread: string): Promise<RunHandle<unknown> | undefined> {
  try {
    const { inLine, beginning } = deskOf(store);
    const rows = caller.host?.accepts() === false ? [] : await mayBegin(store, thread);
    for (const next of rows) {
      if (next.graph !== caller.graph.name && (await dropStray(caller, store, next)))
        return await takeUp(caller, store, thread);
      const begins = beginning.get(next.id);
      const waiting = inLine.get(next.id);
      if (begins !== undefined) begins.again = true;
      else waiting?.begin();
      if (begins !== undefined || waiting !== undefined) return undefined;
      const given = caller.host === undefined ? detached(caller) : caller.host.callerOf(next);
      if (given !== undefined && knows(given, next)) return launchQueued(given as SavingCaller, next);
    }
  } catch (error) {
    const fields = { thread, error: toErrorRecord(error) };
    worldOf(caller.options).log("warn", "what stands in the queue of a thread could not be taken up", fields);
  }
  leaveLine(store, thread);
  return undefined;
}

/** Whether an input is one for this graph: what was given to a later version is left to those who have that. */
function knows({ graph }: Caller, { graph: name, version }: RunRow): boolean {
  return graph.name === name && version <= graph.version;
}

/** Take an input of another graph than the thread's out of the queue: nobody can ever begin with it. False where it is none. */
async function dropStray({ options }: Caller, store: Store, { thread, id, graph }: RunRow): Promise<boolean> {
  const there = await store.thread(thread);
  if (there === undefined || there.graph === graph) return false;
  const { clock, log } = worldOf(options);
  const reason = `the thread is of the graph "${there.graph}", and the input was for "${graph}"`;
  if (await store.dequeue(thread, id, { at: clock.now(), reason }))
    log("warn", "an input was taken out of the queue: it is for another graph", { thread, run: id, graph });
  deskOf(store).inLine.get(id)?.leave();
  return true;
}

/** Those who wait here for a thread that is not at work here are told that they are queued. */
function leaveLine(store: Store, thread: string): void {
  if (isBusyHere(store, thread)) return;
  for (const each of inLineOn(store, thread)) each.leave();
}

/** Whether a new input of a branch would meet a run that has not ended, or others in line. Nobody needs to own the thread to see that. */
export async function isTaken(store: Store, thread: string, branch: string | undefined): Promise<boolean> {
  const rows = await store.runs({ thread, status: ["queued", ...unfinishedStatuses] });
  if (rows.length === 0) return false;
  const name = branch ?? (await store.thread(thread))?.headBranch;
  return rows.some((row) => row.branch === name);
}

/** The runs that may begin: the first of each branch whose last run has ended, or is to be ended. */
async function mayBegin(store: Store, thread: string): Promise<readonly RunRow[]> {
  const queued = (await store.runs({ thread, status: "queued" })).toReversed();
  if (queued.length === 0) return [];
  const open = await store.runs({ thread, status: unfinishedStatuses });
  return queued.filter(({ id, branch }) => {
    if (queued.find((each) => each.branch === branch)?.id !== id) return false;
    const before = open.find((each) => each.branch === branch);
    if (before === undefined) return true;
    return before.status !== "running" && queued.some(({ stops }) => stops?.run === before.id);
  });
}

/** What a caller gave for its own run goes for the next one, save what was about that run alone. */
function detached({ graph, options }: Caller): Caller {
  const { signal: _, breakpoints: __, inspect: ___, ...rest } = options;
  return { graph, options: rest };
}

function launchQueued(caller: SavingCaller, row: RunRow): RunHandle<unknown> {
  const { options, host } = caller;
  const world = worldOf(options);
  const mine = about(options.store, row);
  const handle = launch<unknown, unknown>(options, row.thread, row.id, (events, stops) =>
    beginQueued(caller, row, events, stops, () => outcomeNow(caller, row), mine),
  );
  handle.result.catch((error: unknown) => {
    // Another process has begun it, and tells how it ends.
    if (isStatewrightError(error, "thread_busy")) return;
    const fields = { thread: row.thread, run: row.id, error: toErrorRecord(error) };
    world.log("warn", "a run that was taken up from the queue failed", fields);
  });
  host?.launched(handle);
  return handle;
}

function sourceOf({ graph, options }: SavingCaller): OutcomeSource {
  return { plan: planOf(graph), store: options.store, codec: codecOf(options) };
}

/** A queued run that is about to begin here, until `end`. */
function about(store: Store, { id, thread }: RunRow): Beginning & { readonly end: () => void } {
  const { beginning } = deskOf(store);
  const leave = enter(store, thread);
  const mine = {
    again: false,
    end: (): void => {
      if (beginning.get(id) === mine) beginning.delete(id);
      leave();
    },
  };
  beginning.set(id, mine);
  return mine;
}

/**
 * Begin a run that stands in the queue, when it is its turn; before it the run that it stops is ended. `later` is what it does
 * where a run that is at work here comes before it. Where it does not begin, nobody is woken by its end: those who wait here
 * are told.
 */
async function beginQueued(
  caller: SavingCaller,
  row: RunRow,
  events: EventStream,
  stops: Stops,
  later: () => Promise<RunResult<State>>,
  mine: ReturnType<typeof about> = about(caller.options.store, row),
): Promise<RunResult<State>> {
  const { graph, options } = caller;
  const { store } = options;
  const { thread } = row;
  const opening = {
    ...{ graph, options, thread, runId: row.id, events, ...stops, queued: row, mustExist: true },
    unfit: "parks",
  } as const;
  const isStopped = (): boolean => stops.drain.aborted || stops.abort.signal.aborted;
  let result: Promise<RunResult<State>> | undefined;
  /** Others may have their turn by what was done here. */
  let makesWay = false;
  try {
    for (let turn: Turn = "ended"; result === undefined && !isStopped() && (turn === "ended" || mine.again); ) {
      mine.again = false;
      turn = await openInTurn(opening, row);
      makesWay ||= turn === "ended" || turn === "later";
      if (typeof turn === "string") continue;
      const { session, saved } = turn;
      const work = (): Promise<RunResult<State>> => beginOrDrop(session, saved, row, options.migrations);
      result = holding(session, caller, work, (error) => isKeptByStore(error) && hasNotBegun(session, saved));
    }
  } catch (error) {
    makesWay ||= isStatewrightError(error, "graph_changed") && (await dropStray(caller, store, row));
    throw error;
  } finally {
    mine.end();
    makesWay ||= stops.abort.signal.aborted;
    if (result === undefined && makesWay) void takeUp(caller, store, thread);
    else if (result === undefined) leaveLine(store, thread);
  }
  if (result !== undefined) return await unlessTakenBack(caller, row, result);
  return await (isBusyHere(store, thread) && !isStopped() ? later() : outcomeNow(caller, row));
}

/** What a run comes to whose turn has come; one that was taken out of the queue just before its first write was cancelled there. */
async function unlessTakenBack(
  caller: SavingCaller,
  row: RunRow,
  result: Promise<RunResult<State>>,
): Promise<RunResult<State>> {
  try {
    return await result;
  } catch (error) {
    if (isStatewrightError(error, "run_exists")) return await outcomeNow(caller, row);
    throw error;
  }
}

/**
 * The thread, when the turn of a run has come; else that somebody has it, that the turn has not come, or that a run before it
 * was ended. After the last two the thread was held here for a moment: who came to it meanwhile was turned away.
 */
type Turn = "busy" | "later" | "ended" | { readonly session: Session; readonly saved: Saved };

async function openInTurn(opening: Opening, row: RunRow): Promise<Turn> {
  const session = await openUnlessBusy(opening);
  if (session === undefined) return "busy";
  const saved = session.saved as Saved;
  const turn = await turnOf(session, saved, row);
  return turn === "now" ? { session, saved } : turn;
}

async function openUnlessBusy(opening: Opening): Promise<Session | undefined> {
  try {
    return await openSession(opening);
  } catch (error) {
    if (isStatewrightError(error, "thread_busy")) return undefined;
    throw error;
  }
}

/** Whether a run may begin; the run before it is ended here, when somebody in the queue asks for that. */
async function turnOf(
  session: Session,
  saved: Saved,
  { id, thread, branch }: RunRow,
): Promise<"now" | "later" | "ended"> {
  const { store, claim } = saved;
  try {
    const queued = (await store.runs({ thread, status: "queued" })).filter((row) => row.branch === branch);
    const before = claim.run;
    if (before === undefined || !unfinished(before)) {
      if (queued[queued.length - 1]?.id === id) return "now";
    } else {
      const next = queued.findLast(({ stops }) => stops?.run === before.id);
      if (next?.stops !== undefined) {
        await endForInput(session, saved, before, Stopped.forInput(next.stops.how, next.id));
        return "ended";
      }
    }
  } catch (error) {
    await release(store, thread, claim, session.world);
    throw error;
  }
  await release(store, thread, claim, session.world);
  return "later";
}

/** An input that nobody could begin with does not keep the others from beginning. */
async function beginOrDrop(
  session: Session,
  saved: Saved,
  row: RunRow,
  migrations: CommonOptions["migrations"] = [],
): Promise<RunResult<State>> {
  const { codec, world, plan } = session;
  try {
    let input: unknown;
    try {
      input = queuedInput(row, plan.graph, migrations, codec);
    } catch (error) {
      await release(saved.store, row.thread, saved.claim, world);
      throw error;
    }
    return await beginAndDrive(session, input);
  } catch (error) {
    if (hasNotBegun(session, saved) && isStatewrightError(error) && error.kind !== "store") {
      const ended = { at: world.clock.now(), reason: error.message };
      if (await saved.store.dequeue(row.thread, row.id, ended)) saved.thread.queued -= 1;
    }
    throw error;
  }
}

function hasNotBegun({ step }: Session, { claim }: Saved): boolean {
  return step === (claim.head?.step ?? -1);
}

/** What the store cannot read or take now: trying again at once would fail at once. */
function isKeptByStore(error: unknown): boolean {
  return isStatewrightError(error) && error.kind === "store" && error.code !== "fenced";
}

/** The outcome of a run as the store has it now; its end, where it is at work here. */
export async function outcomeNow(caller: SavingCaller, row: RunRow): Promise<RunResult<State>> {
  const { thread, id } = row;
  const { store } = caller.options;
  const now = (await rowNow(store, row)) ?? row;
  const here = now.status === "running" ? deskOf(store).atWork.get(thread) : undefined;
  if (here?.run === id && here.handle !== undefined) return (await here.handle.result) as RunResult<State>;
  return outcomeOf(sourceOf(caller), now);
}

/** The row of a run as it is by now: nearly always one of the newest, however many its thread has. */
async function rowNow(store: Store, { thread, id, key }: RunRow): Promise<RunRow | undefined> {
  if (key !== undefined) return (await store.runs({ thread, key })).find((each) => each.id === id);
  for (const filter of [{ thread, limit: 50 }, { thread }]) {
    const found = (await store.runs(filter)).find((each) => each.id === id);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Put a run behind what its thread is doing, and wait for its turn if it comes in this process; `gone` where there is no such thread any more. */
export async function joinQueue(
  caller: SavingCaller,
  write: QueueWrite,
  events: EventStream,
  stops: Stops,
): Promise<{ readonly known: RunRow } | { readonly result: RunResult<State> } | { readonly gone: StatewrightError }> {
  const { store } = caller.options;
  const there = await store.thread(write.thread);
  if (there !== undefined) checkThread(there, caller.graph);
  let row: RunRow;
  try {
    row = await store.enqueue(write);
  } catch (error) {
    if (isStatewrightError(error, "unknown_thread")) return { gone: error };
    throw error;
  }
  return row.id === write.run.id ? { result: await standInLine(caller, row, events, stops) } : { known: row };
}

/** Wait for the turn of a run that stands in the queue, if it comes in this process: at once, where a dead one has left it first in line. */
export async function standInLine(
  caller: SavingCaller,
  row: RunRow,
  events: EventStream,
  stops: Stops,
): Promise<RunResult<State>> {
  const { store } = caller.options;
  const { thread } = row;
  const world = worldOf(caller.options);
  if (events.listening())
    events.emit({ type: "run.queued", run: row.id, thread, branch: row.branch, seq: 0, at: world.clock.now() });
  if (!knows(caller, row)) return await outcomeNow(caller, row);
  const busy = deskOf(store).atWork.get(thread);
  if (busy !== undefined && row.stops?.run === busy.run) busy.stop(Stopped.forInput(row.stops.how, row.id));
  return await turnInLine(caller, row, events, stops);
}

function turnInLine(caller: SavingCaller, row: RunRow, events: EventStream, stops: Stops): Promise<RunResult<State>> {
  const { store } = caller.options;
  const { thread } = row;
  const { clock } = worldOf(caller.options);
  const { inLine } = deskOf(store);
  return new Promise<RunResult<State>>((resolve, reject) => {
    const out = (outcome: () => Promise<RunResult<State>>): void => {
      if (inLine.get(row.id) !== mine) return;
      inLine.delete(row.id);
      outcome().then(resolve, reject);
    };
    const leave = (): void => out(() => outcomeNow(caller, row));
    const cancel = (): void => {
      const { reason } = stops.abort.signal;
      const ended = { at: clock.now(), reason: reason instanceof Error ? reason.message : String(reason) };
      store.dequeue(thread, row.id, ended).then((cancelled) => {
        if (!cancelled) return;
        // Whoever has asked for it again under its key stands there in its place.
        inLine.get(row.id)?.leave();
        lookAgain(caller, store, thread);
      }, reject);
    };
    const again = (): Promise<RunResult<State>> => turnInLine(caller, row, events, stops);
    const mine: InLine = { row, begin: () => out(() => beginQueued(caller, row, events, stops, again)), leave };
    inLine.set(row.id, mine);
    if (stops.abort.signal.aborted) cancel();
    else whenAborted(stops.abort.signal, cancel);
    if (stops.drain.aborted) leave();
    else whenAborted(stops.drain, leave);
    if (!isBusyHere(store, thread)) void takeUp(caller, store, thread);
  });
}
