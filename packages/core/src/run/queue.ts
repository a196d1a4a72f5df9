/**
 * The queue of a thread: inputs that stand behind a run, and how they come to their turn. What stands in it is in the store;
 * the process that ends a run takes up what comes next, and so does whoever opens the thread after a crash in between.
 */
import { isStatewrightError, type StatewrightError, toErrorRecord } from "../base/errors.ts";
import type { RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import type { QueueWrite, Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import { planOf } from "../compile/plan.ts";
import { whenAborted } from "./abort.ts";
import { deskOf, inLineOn } from "./at-work.ts";
import { beginAndDrive } from "./begin.ts";
import { endForInput } from "./end-for-input.ts";
import type { EventStream } from "./events.ts";
import { launch, type Stops } from "./launch.ts";
import { codecOf, openSession, release, unfinished, worldOf } from "./open.ts";
import type { BreakpointOption, CommonOptions, RunHandle, RunResult } from "./options.ts";
import { type OutcomeSource, outcomeOf } from "./outcome.ts";
import { queuedInput } from "./queued-input.ts";
import type { State } from "./returns.ts";
import type { Saved, Session } from "./session.ts";
import { Stopped } from "./stopped.ts";

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

/** Do the work of a run; whoever stands behind it comes next. */
export async function holding(
  session: Session,
  caller: Caller,
  work: () => Promise<RunResult<State>>,
): Promise<RunResult<State>> {
  const { saved, run, stop, inbox } = session;
  if (saved === undefined) return work();
  const { store } = saved;
  const { atWork, inLine } = deskOf(store);
  const mine = { run: run.id, branch: run.branch, stop, arrived: inbox.arrived };
  atWork.set(run.thread, mine);
  // A run that could not begin has let the thread go without a word about the queue.
  let look = true;
  try {
    const result = await work();
    look = saved.thread.queued > 0 || inLine.size > 0;
    return result;
  } finally {
    if (atWork.get(run.thread) === mine) atWork.delete(run.thread);
    if (look) void takeUp(caller, store, run.thread);
  }
}

/** What keeps those behind it from beginning, until it is done or cancelled. */
export const unfinishedStatuses: readonly RunStatus[] = ["running", "waiting", "paused", "parked", "failed", "crashed"];

/**
 * Begin what comes next on a thread, if it may begin now. Gives the handle of a run that nobody waits for; one whose caller
 * waits in this process goes on there. Never rejects.
 */
export async function takeUp(caller: Caller, store: Store, thread: string): Promise<RunHandle<unknown> | undefined> {
  try {
    const next = await nextInLine(store, thread);
    if (next !== undefined && caller.host?.accepts() !== false) {
      const waiting = deskOf(store).inLine.get(next.id);
      if (waiting !== undefined) {
        waiting.begin();
        return undefined;
      }
      const given = caller.host === undefined ? detached(caller) : caller.host.callerOf(next);
      if (given !== undefined) return launchQueued(given as SavingCaller, next);
    }
  } catch (error) {
    const fields = { thread, error: toErrorRecord(error) };
    worldOf(caller.options).log("warn", "what stands in the queue of a thread could not be taken up", fields);
  }
  leaveLine(store, thread);
  return undefined;
}

/** Those who wait here for a thread that is not at work here are told that they are queued. */
function leaveLine(store: Store, thread: string): void {
  if (deskOf(store).atWork.has(thread)) return;
  for (const each of inLineOn(store, thread)) each.leave();
}

/** Whether a new input of a branch would meet a run that has not ended, or others in line. Nobody needs to own the thread to see that. */
export async function isTaken(store: Store, thread: string, branch: string | undefined): Promise<boolean> {
  const rows = await store.runs({ thread, status: ["queued", ...unfinishedStatuses] });
  if (rows.length === 0) return false;
  const name = branch ?? (await store.thread(thread))?.headBranch;
  return rows.some((row) => row.branch === name);
}

/** The run that may begin next: the first of a branch whose last run has ended, or is to be ended. */
async function nextInLine(store: Store, thread: string): Promise<RunRow | undefined> {
  const queued = (await store.runs({ thread, status: "queued" })).toReversed();
  if (queued.length === 0) return undefined;
  const open = await store.runs({ thread, status: unfinishedStatuses });
  return queued.find(({ id, branch }) => {
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
  const handle = launch<unknown, unknown>(options, row.thread, row.id, (events, stops) =>
    beginQueued(caller, row, events, stops),
  );
  handle.result.catch((error: unknown) => {
    const fields = { thread: row.thread, run: row.id, error: toErrorRecord(error) };
    world.log("warn", "a run that was taken up from the queue failed", fields);
  });
  host?.launched(handle);
  return handle;
}

function sourceOf({ graph, options }: SavingCaller): OutcomeSource {
  return { plan: planOf(graph), store: options.store, codec: codecOf(options) };
}

/** Begin a run that stands in the queue, when it is its turn; before it the run that it stops is ended. */
async function beginQueued(
  caller: SavingCaller,
  row: RunRow,
  events: EventStream,
  stops: Stops,
): Promise<RunResult<State>> {
  const { graph, options } = caller;
  const opening = {
    ...{ graph, options, thread: row.thread, runId: row.id, events, ...stops, queued: row, mustExist: true },
    unfit: "parks",
  } as const;
  for (;;) {
    if (stops.drain.aborted || stops.abort.signal.aborted) return outcomeNow(caller, row);
    const found = await openInTurn(opening, row);
    if (found === "ended") continue;
    if (found === "later") return outcomeNow(caller, row);
    return await holding(found, caller, () => beginOrDrop(found, found.saved as Saved, row, options.migrations));
  }
}

/** The thread, when the turn of a run has come. Where it has not, nobody is woken by its end: those who wait here are told. */
async function openInTurn(
  opening: Parameters<typeof openSession>[0],
  row: RunRow,
): Promise<Session | "later" | "ended"> {
  let turn: "now" | "later" | "ended" = "later";
  try {
    const session = await openUnlessBusy(opening);
    if (session === undefined) return "later";
    turn = await turnOf(session, session.saved as Saved, row);
    return turn === "now" ? session : turn;
  } finally {
    if (turn === "later") leaveLine((opening.options as SavingCaller["options"]).store, row.thread);
  }
}

async function openUnlessBusy(opening: Parameters<typeof openSession>[0]): Promise<Session | undefined> {
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
    if (session.step === (saved.claim.head?.step ?? -1) && isStatewrightError(error) && error.kind !== "store") {
      const ended = { at: world.clock.now(), reason: error.message };
      if (await saved.store.dequeue(row.thread, row.id, ended)) saved.thread.queued -= 1;
    }
    throw error;
  }
}

/** The outcome of a run as the store has it now. */
export async function outcomeNow(caller: SavingCaller, row: RunRow): Promise<RunResult<State>> {
  const { thread, id } = row;
  const rows = await caller.options.store.runs({ thread });
  return outcomeOf(sourceOf(caller), rows.find((each) => each.id === id) ?? row);
}

/** Put a run behind what its thread is doing, and wait for its turn if it comes in this process; `gone` where there is no such thread any more. */
export async function joinQueue(
  caller: SavingCaller,
  write: QueueWrite,
  events: EventStream,
  stops: Stops,
): Promise<{ readonly known: RunRow } | { readonly result: RunResult<State> } | { readonly gone: StatewrightError }> {
  const { store } = caller.options;
  const { thread } = write;
  let row: RunRow;
  try {
    row = await store.enqueue(write);
  } catch (error) {
    if (isStatewrightError(error, "unknown_thread")) return { gone: error };
    throw error;
  }
  if (row.id !== write.run.id) return { known: row };
  const world = worldOf(caller.options);
  if (events.listening())
    events.emit({ type: "run.queued", run: row.id, thread, branch: row.branch, seq: 0, at: world.clock.now() });
  const { atWork, inLine } = deskOf(store);
  const busy = atWork.get(thread);
  if (busy !== undefined && row.stops?.run === busy.run) busy.stop(Stopped.forInput(row.stops.how, row.id));
  const result = await new Promise<RunResult<State>>((resolve, reject) => {
    const out = (outcome: () => Promise<RunResult<State>>): void => {
      if (inLine.delete(row.id)) outcome().then(resolve, reject);
    };
    const leave = (): void => out(() => outcomeNow(caller, row));
    const cancel = (): void => {
      const { reason } = stops.abort.signal;
      const ended = { at: world.clock.now(), reason: reason instanceof Error ? reason.message : String(reason) };
      store.dequeue(thread, row.id, ended).then((cancelled) => {
        if (cancelled) leave();
      }, reject);
    };
    inLine.set(row.id, { row, begin: () => out(() => beginQueued(caller, row, events, stops)), leave });
    if (stops.abort.signal.aborted) cancel();
    else whenAborted(stops.abort.signal, cancel);
    if (stops.drain.aborted) leave();
    else whenAborted(stops.drain, leave);
    if (busy === undefined) void takeUp(caller, store, thread);
  });
  return { result };
}
