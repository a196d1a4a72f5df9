/** Launches a run: creates its handle before the run starts. */
import { StatewrightError, toErrorRecord } from "../base/errors.ts";
import { checkChoice } from "../base/options.ts";
import type { ConversationMessageKind } from "../checkpoint/inbox-message.ts";
import { isCrashedError } from "../checkpoint/memory/crashed-error.ts";
import { plainCodec } from "../state/codec.ts";
import { copyInput } from "../state/copy-input.ts";
import { isDurable } from "./events/event-queue.ts";
import { createEventStream, type EventStream, type EventView, isInView } from "./events/events.ts";
import { createInspection } from "./events/inspection.ts";
import { getStoreRelay } from "./events/relay-publisher.ts";
import type { RunEvent } from "./events/run-event.ts";
import { createInboxBuffer, toMessages } from "./session/inbox/inbox.ts";
import type { InboxInput } from "./session/inbox/inbox-input.ts";
import type { CommonOptions, RunHandle, RunResult } from "./session/options/options.ts";
import { Preemption } from "./session/preemption.ts";
import { createStoredEventReader } from "./session/stored-events.ts";
import { checkTextOptions, streamText } from "./session/text-stream.ts";
import { getWorld, type OpenSessionOptions } from "./task/open-session.ts";

/** Controls of a run: cancel, drain at the next boundary, pre-emption by a new input, and inbox messages. */
export type RunControls = Required<Pick<OpenSessionOptions, "abort" | "drain" | "stop" | "mailbox">>;

/** Creates the handle and starts `work` in a microtask, so that readers attached synchronously miss no event. */
export function launch<State, Output>(
  options: CommonOptions,
  thread: string,
  runId: string,
  work: (events: EventStream, stops: RunControls) => Promise<RunResult<unknown>>,
): RunHandle<State, Output> {
  const world = getWorld(options);
  const logReaderError = (error: unknown): void => world.log("error", "a reader of events threw", { error });
  const { inspect } = options;
  const inspection =
    inspect === undefined
      ? undefined
      : createInspection(inspect, runId, (error) => world.log("error", "the inspector threw", { error }));
  const events = createEventStream(logReaderError, inspection);
  if (options.store !== undefined) events.relay = options.relay ?? getStoreRelay(options.store);
  const driven = createRunId(events);
  const abort = new AbortController();
  const drain = new AbortController();
  const stop: RunControls["stop"] = (reason) => abort.abort(reason);
  const mailbox = createInboxBuffer(thread, { hasStore: options.store !== undefined });
  const { signal } = options;
  const onAbort = (): void => abort.abort(signal?.reason ?? new Error("the run was cancelled"));
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const result: Promise<RunResult<State, Output>> = Promise.resolve()
    .then(() => driven.watch(work(events, { abort, drain: drain.signal, stop, mailbox })))
    .catch((error: unknown) => {
      events.close({ error });
      mailbox.end({ error });
      if (isHandled(events, error)) result.catch(ignoreRejection);
      throw error;
    })
    .finally(() => {
      signal?.removeEventListener("abort", onAbort);
      events.close();
      mailbox.end();
    }) as Promise<RunResult<State, Output>>;
  const send = (kind: ConversationMessageKind, input: InboxInput): Promise<void> => {
    const copied = copyInput(options.codec ?? plainCodec, input);
    const sent = Promise.resolve().then(() => mailbox.send(kind, toMessages(copied, world)));
    sent.catch((error: unknown) =>
      world.log("warn", "a message to a run was not saved", { thread, error: toErrorRecord(error) }),
    );
    return sent;
  };
  const handle: RunHandle<State, Output> = {
    id: runId,
    run: driven.promise,
    thread,
    result,
    events: ({ after, views, throwOnFailure, overflow = "merge" } = {}) => {
      checkChoice("events", { overflow }, ["merge", "keep"]);
      const isIncluded = (event: RunEvent): boolean =>
        isInView(event, views) && (after !== undefined || isOwnEvent(event));
      const live = events.iterate({ isIncluded, throwOnFailure, overflow });
      return after === undefined ? live : streamSince(options, thread, after, { views, live });
    },
    values: () => streamValues<State>(events),
    text: (options = {}) => {
      checkTextOptions(options);
      return streamText(events.iterate(), options);
    },
    on: (listener) => events.subscribe((event) => (isOwnEvent(event) ? listener(event) : undefined)),
    cancel: (reason = "the run was cancelled") => abort.abort(new Error(reason)),
    drain: (reason = "the process stops") => {
      if (options.store === undefined) throw createDrainError(thread);
      drain.abort(reason);
    },
    steer: (input) => send("steer", input),
    followUp: (input) => send("followUp", input),
  };
  stopFunctions.set(handle, stop);
  streams.set(handle, events);
  events.handle = handle;
  return handle;
}

/** Promise of the id of the run that a handle drives. */
interface RunId {
  readonly promise: Promise<string>;
  /** Resolves the promise with the id of the result at the latest, or rejects it with the error. Returns the work. */
  watch(work: Promise<RunResult<unknown>>): Promise<RunResult<unknown>>;
}

function createRunId(events: EventStream): RunId {
  let reject: (error: unknown) => void = ignoreRejection;
  const promise = new Promise<string>((resolve, rejectPromise) => {
    events.announceRun = resolve;
    reject = rejectPromise;
  });
  // A caller that reads no `run` handles the rejection of `result` only.
  promise.catch(ignoreRejection);
  return {
    promise,
    watch: (work) => {
      work.then(({ run }) => events.announceRun?.(run), reject);
      return work;
    },
  };
}

/** Filters out the cancellation of the pre-empted previous run, which only readers of the whole thread expect. */
function isOwnEvent(event: RunEvent): boolean {
  return event.type !== "run.cancelled" || event.run === undefined;
}

const stopFunctions: WeakMap<object, RunControls["stop"]> = new WeakMap();

const streams: WeakMap<object, EventStream> = new WeakMap();

/**
 * Returns the converted result of a run. A rejection is unhandled when that of the handle is: no reader of the run's
 * events has received the failure.
 */
export function mapResult<State, Output, Mapped>(
  handle: RunHandle<State, Output>,
  convert: (result: RunResult<State, Output>) => Mapped,
): Promise<Mapped> {
  const mapped = handle.result.then(convert);
  handle.result.catch((error: unknown) => {
    if (isHandled(streams.get(handle), error)) mapped.catch(ignoreRejection);
  });
  return mapped;
}

/** Returns true for a failure that a reader of the events has received, or whose process has crashed in a test. */
function isHandled(events: EventStream | undefined, error: unknown): boolean {
  return events?.hasFailureReader() === true || isCrashedError(error);
}

/** Pauses the run of a handle at once because its process stops: its signals abort, and a resume continues the run. */
export function suspendRun(handle: RunHandle<unknown>, reason: string): void {
  stopFunctions.get(handle)?.(new Preemption("pause", reason));
}

/** Returns the number of recorded effects that the run of a handle ran in this process. */
export function countEffects(handle: RunHandle<unknown>): number {
  return streams.get(handle)?.effects ?? 0;
}

function createDrainError(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: "a run without a store cannot be drained, because it cannot be resumed",
    next: "Pass a store to the run, or cancel the run",
    place: { thread },
  });
}

function ignoreRejection(): void {
  // Awaiting `result` still rejects.
}

/**
 * Streams stored events after a sequence number, then live events. The live subscription starts first, so that no
 * event is missed.
 */
async function* streamSince(
  { store, codec = plainCodec }: CommonOptions,
  thread: string,
  after: number,
  { views, live }: { readonly views: readonly EventView[] | undefined; readonly live: AsyncIterableIterator<RunEvent> },
): AsyncGenerator<RunEvent, undefined, undefined> {
  let lastSeq = after;
  try {
    if (store === undefined) throw createNoEventsError(thread);
    for await (const event of createStoredEventReader({ store, codec, thread, after }).readNew()) {
      lastSeq = event.seq;
      if (isInView(event, views)) yield event;
    }
    for await (const event of live) if (!isDurable(event) || event.seq > lastSeq) yield event;
  } finally {
    await live.return?.();
  }
}

function createNoEventsError(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: "events after a sequence number were requested from a run without a store",
    next: "Pass a store to the run, or read events() from the start",
    place: { thread },
  });
}

/** Subscribes synchronously at the call, not at the first read of the iterator. */
function streamValues<State>(events: EventStream): AsyncIterableIterator<State> {
  const states: State[] = [];
  const isIncluded = (event: RunEvent): boolean => {
    const isCommit = event.type === "step.committed" && event.within === undefined && events.getState !== undefined;
    if (isCommit) states.push(events.getState?.() as State);
    return isCommit;
  };
  const steps = events.iterate({ isIncluded });
  return yieldStates(states, steps);
}

async function* yieldStates<State>(
  states: State[],
  steps: AsyncIterableIterator<RunEvent>,
): AsyncGenerator<State, undefined, undefined> {
  for await (const _ of steps) yield states.shift() as State;
}
