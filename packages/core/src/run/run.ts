/** `run`: start a graph on a thread, and the handle of a run at work. */
import { isStatewrightError, located, StatewrightError } from "../base/errors.ts";
import { freshId } from "../base/ids.ts";
import { isPlainObject } from "../base/json.ts";
import { issuesText, type SchemaIssue } from "../base/schema.ts";
import type { Graph } from "../compile/define-graph.ts";
import { type Plan, planOf } from "../compile/plan.ts";
import { START } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import { overwrite } from "../state/channel.ts";
import { commitInput, drive } from "./drive.ts";
import { driveDrawn, enterDrawn } from "./drive-drawn.ts";
import { createEventStream, type EventStream, type RunEvent } from "./events.ts";
import { openSession, release, threadId, unfinished, worldOf } from "./open.ts";
import type { CommonOptions, RunHandle, RunOptions, RunResult } from "./options.ts";
import { readUpdate, type State, type Write } from "./returns.ts";
import { placeOf, type Session } from "./session.ts";
import { firstTasks, foldInput } from "./superstep.ts";

/**
 * Run a graph. Without a store everything but interrupts, resume and history works in memory. `result` rejects with
 * `invalid_input`, `invalid_context`, `thread_busy`, or the error that failed the run.
 */
export function run<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: RunOptions<Types>,
): RunHandle<Types["state"]> {
  const world = worldOf(options);
  const thread = threadId(world, options.thread);
  const runId = freshId("run_", world.random);
  return launch(options, thread, runId, async (events, abort) => {
    const plan = planOf(graph as Graph);
    const { drawing } = plan;
    const writes = drawing === undefined ? readInput(plan, options.input ?? {}) : [];
    const session = await openSession({
      graph: graph as Graph,
      options,
      thread,
      runId,
      events,
      abort,
      mustExist: false,
    });
    await begin(session, () =>
      drawing === undefined ? inputStep(session, writes) : enterDrawn(session, drawing, options.input),
    );
    return drawing === undefined ? drive(session) : driveDrawn(session, drawing);
  });
}

/** What starts work in the next turn, so that a reader attached now misses nothing. */
export function launch<State>(
  options: CommonOptions,
  thread: string,
  runId: string,
  work: (events: EventStream, abort: AbortController) => Promise<RunResult<unknown>>,
): RunHandle<State> {
  const world = worldOf(options);
  const events = createEventStream((error) => world.log("error", "a reader of events threw", { error }));
  const abort = new AbortController();
  const { signal } = options;
  const onAbort = (): void => abort.abort(signal?.reason ?? new Error("the run was cancelled"));
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const result = Promise.resolve()
    .then(() => work(events, abort))
    .finally(() => {
      signal?.removeEventListener("abort", onAbort);
      events.close();
    }) as Promise<RunResult<State>>;
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
  };
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

/** Fold the input into the thread's state. */
async function inputStep(session: Session, writes: readonly Write[]): Promise<void> {
  const { plan } = session;
  const step = session.step + 1;
  const { state, deltas } = foldInput(plan, session.state, writes);
  checkSet(session, state);
  session.snapshot = session.kernel.initial()[0];
  await commitInput(session, { state, deltas, ...firstTasks(plan, step, state) }, "input");
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

/** Parse the input. For a channel with a reducer it is the whole value, not one write. */
function readInput(plan: Plan, input: unknown): readonly Write[] {
  const { channels } = plan.graph.state;
  const whole = ([name, value]: readonly [string, unknown]): readonly [string, unknown] =>
    value !== undefined && Object.hasOwn(channels, name) && channels[name]?.kind === "reduce"
      ? [name, overwrite(value)]
      : [name, value];
  try {
    return readUpdate(plan, START, isPlainObject(input) ? Object.fromEntries(Object.entries(input).map(whole)) : input);
  } catch (cause) {
    throw inputError(plan, cause);
  }
}

/** What is wrong with an input, in the words of who gives it. */
function inputError(plan: Plan, cause: unknown): unknown {
  const { name, state } = plan.graph;
  if (!isStatewrightError(cause)) return cause;
  const { node: _start, ...place } = cause.place;
  const { channel } = place;
  const known = Object.keys(state.channels).map((each) => `"${each}"`);
  const issues = Array.isArray(cause.details) ? issuesText(cause.details as readonly SchemaIssue[]) : undefined;
  const what =
    cause.code === "unknown_channel"
      ? `the input of graph "${name}" has "${channel}", which is no channel of its state`
      : channel === undefined
        ? `the input of graph "${name}" is not an object of channels`
        : `the input of graph "${name}" does not fit at "${channel}"${issues === undefined ? "" : `: ${issues}`}`;
  return new StatewrightError("invalid_input", {
    what,
    next: `Give the channels that the state declares: ${known.join(", ")}`,
    place,
    details: cause.details,
    cause,
  });
}

function checkSet(session: Session, state: State): void {
  const { channels } = session.plan.graph.state;
  const missing = Object.keys(channels).filter((name) => !Object.hasOwn(state, name));
  if (missing.length === 0) return;
  throw new StatewrightError("invalid_input", {
    what: `the input of graph "${session.plan.graph.name}" lacks ${missing.map((name) => `"${name}"`).join(", ")}`,
    next: "Give them in the input, or give the channels a default",
    place: { graph: session.plan.graph.name },
    details: missing,
  });
}
