/** Launching: the handle of a run at work, before the run has begun. */
import { StatewrightError, toErrorRecord } from "../base/errors.ts";
import type { LetterKind } from "../checkpoint/inbox-message.ts";
import { plainCodec } from "../state/codec.ts";
import { isDurable } from "./events/event-queue.ts";
import { createEventStream, type EventStream, type EventView, isInView, type RunEvent } from "./events/events.ts";
import { createInspection } from "./events/inspection.ts";
import { storedEvents } from "./events/stored-events.ts";
import { checkTextOptions, textsIn } from "./events/text-stream.ts";
import { type LetterInput, messagesOf } from "./session/inbox.ts";
import { createMailbox } from "./session/inbox-buffer.ts";
import type { CommonOptions, RunHandle, RunResult } from "./session/options.ts";
import { Stopped } from "./session/preemption.ts";
import { type Opening, worldOf } from "./task/open-session.ts";

/** What reaches a run before its end: a cancel, a drain at the next boundary, a new input, and messages that people send. */
export type Stops = Required<Pick<Opening, "abort" | "drain" | "stop" | "mailbox">>;

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
  const stop: Stops["stop"] = (why) => (why.how === "interrupt" ? drain : abort).abort(why);
  const mailbox = createMailbox(thread, options.store !== undefined);
  const { signal } = options;
  const onAbort = (): void => abort.abort(signal?.reason ?? new Error("the run was cancelled"));
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const result = Promise.resolve()
    .then(() => work(events, { abort, drain: drain.signal, stop, mailbox }))
    .catch((error: unknown) => {
      events.close({ error });
      mailbox.end({ error });
      throw error;
    })
    .finally(() => {
      signal?.removeEventListener("abort", onAbort);
      events.close();
      mailbox.end();
    }) as Promise<RunResult<State, Output>>;
  const owned = (): void => {
    result.catch(toldByEvents);
  };
  const send = (kind: LetterKind, input: LetterInput): Promise<void> => {
    const sent = Promise.resolve().then(() => mailbox.send(kind, messagesOf(input, world)));
    sent.catch((error: unknown) =>
      world.log("warn", "a message to a run was not kept", { thread, error: toErrorRecord(error) }),
    );
    return sent;
  };
  const handle: RunHandle<State, Output> = {
    id: runId,
    thread,
    result,
    events: ({ after, views } = {}) => {
      owned();
      const live = events.iterate((event) => isInView(event, views) && (after !== undefined || isOwn(event)));
      return after === undefined ? live : since(options, thread, after, views, live);
    },
    values: () => {
      owned();
      return values<State>(events);
    },
    text: (options = {}) => {
      checkTextOptions(options);
      owned();
      return textsIn(events.iterate(), options);
    },
    on: (listener) => {
      owned();
      return events.subscribe((event) => (isOwn(event) ? listener(event) : undefined));
    },
    cancel: (reason = "the run was cancelled") => abort.abort(new Error(reason)),
    drain: (reason = "the process stops") => {
      if (options.store === undefined) throw drainsNothing(thread);
      drain.abort(reason);
    },
    steer: (input) => send("steer", input),
    followUp: (input) => send("followUp", input),
  };
  stops.set(handle, stop);
  events.handle = handle;
  return handle;
}

/** The end of the run before, which this one's input has ended, is for those who read the thread since a number. */
function isOwn(event: RunEvent): boolean {
  return event.type !== "run.cancelled" || event.run === undefined;
}

const stops: WeakMap<object, Stops["stop"]> = new WeakMap();

/** Stop the run of a handle at once for the sake of its process: its signals fire, and a resume goes on. */
export function stopNow(handle: RunHandle<unknown>, reason: string): void {
  stops.get(handle)?.(new Stopped("pause", reason));
}

function drainsNothing(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: "a run without a store was to be drained: nothing could go on with it",
    next: "Give the run a store, or cancel it",
    place: { thread },
  });
}

function toldByEvents(): void {
  // Whoever reads the events sees run.failed, or the loop throws what could not be told; awaiting `result` still rejects.
}

/** What is durable since a number, then what is told from now on. The subscription is older than the reading: nothing falls between them. */
async function* since(
  { store, codec = plainCodec }: CommonOptions,
  thread: string,
  after: number,
  views: readonly EventView[] | undefined,
  live: AsyncIterableIterator<RunEvent>,
): AsyncGenerator<RunEvent, undefined, undefined> {
  let seen = after;
  try {
    if (store === undefined) throw keepsNothing(thread);
    for await (const event of storedEvents(store, codec, thread, after)) {
      seen = event.seq;
      if (isInView(event, views)) yield event;
    }
    for await (const event of live) if (!isDurable(event) || event.seq > seen) yield event;
  } finally {
    await live.return?.();
  }
}

function keepsNothing(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: "events since a number were asked for in a run without a store, which keeps none",
    next: "Give the run a store, or read events() from its beginning",
    place: { thread },
  });
}

/** The subscription begins with the call, not with the first look at it. */
function values<State>(events: EventStream): AsyncIterableIterator<State> {
  const states: State[] = [];
  const steps = events.iterate((event) => {
    const stepped = event.type === "step.committed" && event.within === undefined && events.state !== undefined;
    if (stepped) states.push(events.state?.() as State);
    return stepped;
  });
  return inTurn(states, steps);
}

async function* inTurn<State>(
  states: State[],
  steps: AsyncIterableIterator<RunEvent>,
): AsyncGenerator<State, undefined, undefined> {
  for await (const _ of steps) yield states.shift() as State;
}
