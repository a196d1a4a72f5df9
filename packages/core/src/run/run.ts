/** `run`: start a graph on a thread, and the handle of a run at work. */
import { isStatewrightError, located, StatewrightError } from "../base/errors.ts";
import { freshId } from "../base/ids.ts";
import type { Graph } from "../compile/define-graph.ts";
import { planOf } from "../compile/plan.ts";
import type { GraphTypes } from "../define/graph.ts";
import { drive } from "./drive.ts";
import { driveDrawn, enterDrawn } from "./drive-drawn.ts";
import { createEventStream, type EventStream, type RunEvent } from "./events.ts";
import { inputStep, readInput } from "./input.ts";
import { createInspection } from "./inspection.ts";
import { type Opening, openSession, release, threadId, unfinished, worldOf } from "./open.ts";
import type { CommonOptions, RunHandle, RunOptions, RunResult } from "./options.ts";
import { placeOf, type Session } from "./session.ts";

/**
 * Run a graph. Without a store everything but interrupts, resume and history works in memory. `result` rejects with
 * `invalid_input`, `invalid_context`, `thread_busy`, or the error that failed the run.
 */
export function run<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: RunOptions<Types>,
): RunHandle<Types["result"], Types["output"]> {
  const world = worldOf(options);
  const thread = threadId(world, options.thread);
  const runId = freshId("run_", world.random);
  return launch(options, thread, runId, async (events, stops) => {
    const plan = planOf(graph as Graph);
    const { drawing } = plan;
    const writes = drawing === undefined ? readInput(plan, options.input ?? {}) : [];
    const session = await openSession({
      graph: graph as Graph,
      options,
      thread,
      runId,
      events,
      ...stops,
      mustExist: false,
    });
    await begin(session, () =>
      drawing === undefined ? inputStep(session, writes) : enterDrawn(session, drawing, options.input),
    );
    return drawing === undefined ? drive(session) : driveDrawn(session, drawing);
  });
}

/** What starts work in the next turn, so that a reader attached now misses nothing. */
export function launch<State, Output>(
  options: CommonOptions,
  thread: string,
  runId: string,
  work: (events: EventStream, stops: Stops) => Promise<RunResult<unknown>>,
): RunHandle<State, Output> {
  const world = worldOf(options);
  const readerThrew = (error: unknown): void => world.log("error", "a reader of events threw", { error });
  const { inspect } = options;
  const inspection =
    inspect === undefined
      ? undefined
      : createInspection(inspect, runId, (error) => world.log("error", "the inspector threw", { error }));
  const events = createEventStream(readerThrew, inspection);
  const abort = new AbortController();
  const drain = new AbortController();
  const { signal } = options;
  const onAbort = (): void => abort.abort(signal?.reason ?? new Error("the run was cancelled"));
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const result = Promise.resolve()
    .then(() => work(events, { abort, drain: drain.signal }))
    .finally(() => {
      signal?.removeEventListener("abort", onAbort);
      events.close();
    }) as Promise<RunResult<State, Output>>;
  const owned = (): void => {
    result.catch(toldByEvents);
  };
  return {
    id: runId,
    thread,
    result,
    events: () => {
      owned();
      return events.iterate();
    },
    text: () => {
      owned();
      return texts(events.iterate());
    },
    on: (listener) => {
      owned();
      return events.subscribe(listener);
    },
    cancel: (reason = "the run was cancelled") => abort.abort(new Error(reason)),
    drain: (reason = "the process stops") => {
      if (options.store === undefined) throw drainsNothing(thread);
      drain.abort(reason);
    },
  };
}

/** What stops a run before its end: a cancel, and a drain at the next boundary. */
export type Stops = Pick<Opening, "abort" | "drain">;

function drainsNothing(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: "a run without a store was to be drained: nothing could go on with it",
    next: "Give the run a store, or cancel it",
    place: { thread },
  });
}

function toldByEvents(): void {
  // Whoever reads the events sees run.failed; awaiting `result` still rejects.
}

async function* texts(events: AsyncIterable<RunEvent>): AsyncGenerator<string, undefined, undefined> {
  for await (const event of events) if (event.type === "message.delta" && event.kind === "text") yield event.text;
}

/** Write the first checkpoint of the run, unless the thread has another run to end first. */
async function begin(session: Session, firstStep: () => Promise<void>): Promise<void> {
  const { saved } = session;
  try {
    refuseBusy(session);
    await firstStep();
  } catch (error) {
    if (saved !== undefined) await release(saved.store, session.run.thread, saved.claim, session.world);
    throw isStatewrightError(error) ? located(error, placeOf(session)) : error;
  }
}

function refuseBusy(session: Session): void {
  const before = session.saved?.claim.run;
  if (before === undefined || !unfinished(before)) return;
  throw new StatewrightError("thread_busy", {
    what: `the thread "${session.run.thread}" has a run that is ${before.status === "running" ? "interrupted by the death of its process" : before.status}`,
    next: `Continue it with resume and thread: "${session.run.thread}", or give the new input another thread`,
    place: placeOf(session),
    details: { run: before.id, status: before.status },
  });
}
