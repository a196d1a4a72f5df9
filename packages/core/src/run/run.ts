/** `run`: start a graph on a thread. */
import { isStatewrightError, located, StatewrightError } from "../base/errors.ts";
import { freshId } from "../base/ids.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { QueueWrite } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import { planOf } from "../compile/plan.ts";
import type { GraphTypes } from "../define/graph.ts";
import { encodeAround } from "../state/codec.ts";
import { beginAndDrive } from "./begin.ts";
import type { EventStream } from "./events/events.ts";
import { launch, type Stops } from "./launch.ts";
import {
  aboutToTake,
  type Caller,
  holding,
  isTaken,
  joinQueue,
  outcomeNow,
  type SavingCaller,
  standInLine,
} from "./queue.ts";
import { goOn } from "./recover-run.ts";
import { checkRunOptions } from "./session/check-run-options.ts";
import type { RunHandle, RunOptions, RunResult } from "./session/options.ts";
import type { State, Write } from "./session/returns.ts";
import { placeOf, type Saved, type Session } from "./session/session.ts";
import { atWorkUnder, deskOf } from "./session/thread-registry.ts";
import { inputLacks, readInput, unsetBy } from "./superstep/input.ts";
import { codecOf, openSession, readContext, release, threadId, unfinished, worldOf } from "./task/open-session.ts";

/**
 * Run a graph. Without a store everything but interrupts, resume and history works in memory. `result` rejects with
 * `invalid_input`, `invalid_context`, `thread_busy`, or the error that failed the run. Asked for again under the same `key`,
 * the run is not started again: the handle of the run at work here, or one that gives its outcome.
 */
export function run<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: RunOptions<Types>,
): RunHandle<Types["result"], Types["output"]> {
  checkRunOptions("run", graph, options);
  return startRun({ graph: graph as Graph, options }) as RunHandle<Types["result"], Types["output"]>;
}

type Starting = Caller & { readonly options: RunOptions<GraphTypes> };

/** {@link run} for whoever has checked its options. */
export function startRun(caller: Starting): RunHandle<unknown> {
  const { options } = caller;
  const { store, key } = options;
  const world = worldOf(options);
  const thread = threadId(world, options.thread);
  const runId = freshId("run_", world.random);
  refuseUnfit(caller, thread);
  const keyed = store === undefined || key === undefined ? undefined : deskOf(store).keyed;
  const atWork = store === undefined || key === undefined ? undefined : atWorkUnder(store, thread, key);
  if (atWork !== undefined) return atWork;
  const handle = launch<unknown, unknown>(options, thread, runId, async (events, stops) => {
    try {
      return await start({ caller, thread, runId, events, stops, input: inputOf(caller) });
    } finally {
      keyed?.delete(`${thread} ${key}`);
    }
  });
  keyed?.set(`${thread} ${key}`, handle);
  return handle;
}

/** The input, read: a bad one is refused before anything is asked of the store. A machine drawn by hand reads it itself. */
function inputOf({ graph, options }: Starting): readonly Write[] | undefined {
  const plan = planOf(graph);
  if (plan.drawing !== undefined) return undefined;
  return readInput(plan, codecOf(options), options.input === undefined ? {} : options.input);
}

function refuseUnfit({ graph, options: { store, key, onBusy } }: Starting, thread: string): void {
  if (key !== undefined && store === undefined)
    throw new StatewrightError("missing_store", {
      what: `a run was to be started once under the key "${key}", without a store`,
      next: "Give the run the store that holds its thread",
      place: { graph: graph.name, thread },
    });
  if (planOf(graph).drawing === undefined || (onBusy !== "interrupt" && onBusy !== "rollback")) return;
  throw new StatewrightError("invalid_option", {
    what: `the machine "${graph.name}" is drawn by hand, and a new input was to ${onBusy} its run`,
    next: 'Send it an event with resume, cancel its run, or use onBusy: "enqueue"',
    place: { graph: graph.name, thread },
  });
}

/** A run that is to begin. */
interface Start {
  readonly caller: Starting;
  readonly thread: string;
  readonly runId: string;
  readonly events: EventStream;
  readonly stops: Stops;
  readonly input: readonly Write[] | undefined;
}

async function start(given: Start): Promise<RunResult<State>> {
  try {
    return await startOn(given, true);
  } catch (error) {
    if (!(error instanceof Overtaken)) throw error;
    return startOn(given, false);
  }
}

/** Others have come to the thread before the first commit of the run, which was to take it. */
class Overtaken extends Error {}

/** `begins`: the thread is taken with the first commit, not before. */
async function startOn(
  { caller, thread, runId, events, stops, input }: Start,
  begins: boolean,
): Promise<RunResult<State>> {
  const { graph, options } = caller;
  // An input that lacks channels fits a thread that has them.
  const missing = input === undefined ? [] : unsetBy(planOf(graph), input);
  const { key, metadata } = options;
  const named = { ...(key === undefined ? {} : { key }), ...(metadata === undefined ? {} : { metadata }) };
  const known = await runOfKey(caller, thread);
  if (known !== undefined) return again(caller, known, events, stops);
  const takes = { mustExist: missing.length > 0, begins: begins && input !== undefined };
  const opening = { graph, options, thread, runId, events, ...stops, named, ...takes };
  const { store } = options;
  if (store !== undefined && !isRejected(caller) && (await isTaken(store, thread, options.branch))) {
    readContext(planOf(graph), options.context);
    return wait(caller, queueWrite(caller, thread, { id: runId, ...named }), events, stops, begins);
  }
  let session: Session;
  let result: Promise<RunResult<State>>;
  const taken = store === undefined ? undefined : aboutToTake(caller, store, thread);
  try {
    session = await openSession(opening);
    const { saved } = session;
    if (saved !== undefined && (isOccupied(saved) || (await hasQueue(session, saved)))) {
      await release(saved.store, thread, saved.claim, session.world);
      if (!isRejected(caller))
        return wait(caller, queueWrite(caller, thread, { id: runId, ...named }), events, stops, begins);
      throw occupied(session, saved);
    }
    result = holding(session, caller, () => beginAndDrive(session, options.input, input));
  } catch (error) {
    if (takes.begins && (isStatewrightError(error, "unknown_checkpoint") || isStatewrightError(error, "fenced")))
      throw new Overtaken();
    const isNew = isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "unknown_branch");
    if (missing.length > 0 && isNew) throw located(inputLacks(planOf(graph), missing), { thread });
    if (!isStatewrightError(error, "thread_busy") || isRejected(caller)) throw error;
    return wait(caller, queueWrite(caller, thread, { id: runId, ...named }), events, stops, begins);
  } finally {
    taken?.();
  }
  try {
    return await result;
  } catch (error) {
    if (takes.begins && isStatewrightError(error, "fenced") && !hasBegun(session)) throw new Overtaken();
    const first = isStatewrightError(error, "run_exists") ? await runOfKey(caller, thread) : undefined;
    if (first === undefined) throw error;
    // Another process has put it into the queue under this key, meaning the run that was about to begin here.
    return again(caller, first, events, stops);
  }
}

/** Whether its first commit is durable. */
function hasBegun({ step, saved }: Session): boolean {
  return step !== (saved?.claim.head?.step ?? -1);
}

function isRejected({ options: { onBusy = "reject" } }: Starting): boolean {
  return onBusy === "reject";
}

async function runOfKey({ options: { store, key } }: Starting, thread: string): Promise<RunRow | undefined> {
  return store === undefined || key === undefined ? undefined : (await store.runs({ thread, key }))[0];
}

/** What a run under this key came to; one whose process has died goes on, and one that is queued has its turn here if it comes. */
function again(caller: Starting, known: RunRow, events: EventStream, stops: Stops): Promise<RunResult<State>> {
  const given = caller as Starting & SavingCaller;
  if (known.status === "crashed") return goOn(given, known, events, stops);
  return known.status === "queued" ? standInLine(given, known, events, stops) : outcomeNow(given, known);
}

function queueWrite(
  { graph, options }: Starting,
  thread: string,
  named: Pick<RunRow, "id" | "key" | "metadata">,
): QueueWrite {
  const { branch, input, onBusy } = options;
  const at = worldOf(options).clock.now();
  const { name, version } = graph;
  const text = encodeAround(codecOf(options), input, "the input");
  return {
    thread,
    branch,
    run: { ...named, graph: name, version, status: "queued", attempt: 1, startedAt: at, queuedAt: at, input: text },
    stops: onBusy === "interrupt" || onBusy === "rollback" ? onBusy : undefined,
  };
}

async function wait(
  caller: Starting,
  write: QueueWrite,
  events: EventStream,
  stops: Stops,
  begins: boolean,
): Promise<RunResult<State>> {
  const joined = await joinQueue(caller as Starting & SavingCaller, write, events, stops);
  // The run that was to make the thread could not begin.
  if ("gone" in joined) throw begins ? new Overtaken() : joined.gone;
  return "result" in joined ? joined.result : again(caller, joined.known, events, stops);
}

function isOccupied({ claim: { run } }: Saved): boolean {
  return run !== undefined && unfinished(run);
}

/** Whether others stand in line for the branch already; where the store cannot say, the thread is let go. */
async function hasQueue({ run: { thread }, world }: Session, { store, claim }: Saved): Promise<boolean> {
  if (claim.queued === 0) return false;
  try {
    const queued = await store.runs({ thread, status: "queued" });
    return queued.some(({ branch }) => branch === claim.branch);
  } catch (error) {
    await release(store, thread, claim, world);
    throw error;
  }
}

function occupied(session: Session, { claim: { run: before } }: Saved): StatewrightError {
  const { thread } = session.run;
  const what =
    before === undefined || !unfinished(before)
      ? `the thread "${thread}" has inputs in its queue, which come first`
      : `the thread "${thread}" has a run that is ${before.status === "running" ? "interrupted by the death of its process" : before.status}`;
  return new StatewrightError("thread_busy", {
    what,
    next: `Continue it with resume and thread: "${thread}", say with onBusy what becomes of it, or give the new input another thread`,
    place: placeOf(session),
    details: before === undefined ? undefined : { run: before.id, status: before.status },
  });
}
