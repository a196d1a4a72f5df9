/**
 * The event stream of a run, and the emitter of its sessions. A durable event has its own sequence number and is emitted after its commit; a transient
 * event has the sequence number of the latest durable event.
 */

import type { World } from "../../base/world.ts";
import type { CheckpointRow, CheckpointSource } from "../../checkpoint/checkpoint.ts";
import type { Step } from "../kernel/kernel.ts";
import { createEventQueue, type EventOverflow, type EventQueue, isDurable } from "./event-queue.ts";
import type { Inspection } from "./inspection.ts";
import type { Relay } from "./relay.ts";
import { createRelayPublisher, type PublishedRun, type RelayPublisher } from "./relay-publisher.ts";
import type { EventPosition, RunEvent, RunEventBody, Transition } from "./run-event.ts";

/** Checkpoint fields of a transition without a checkpoint. */
export const noCheckpoint: Pick<Transition, "changes" | "bytes" | "durationMs"> = Object.freeze({
  changes: Object.freeze({}),
  bytes: 0,
  durationMs: 0,
});

/** Returns the fields of a transition record that come from a kernel step. */
export function describeStep([to, effects, { guards }]: Step): Pick<Transition, "to" | "guards" | "effects"> {
  return { to: to.value, guards, effects: effects.flatMap((effect) => (effect.kind === "start" ? [effect.id] : [])) };
}

type CommittedFields = Omit<Extract<RunEventBody, { readonly type: "step.committed" }>, "nodes" | "next" | "changes">;

/** Returns the fields of `step.committed` that come from the row of the checkpoint. */
export function describeCheckpoint(row: CheckpointRow): CommittedFields {
  const { id: checkpoint, step, parent, source, run, bytes, durationMs } = row;
  return { type: "step.committed", step, checkpoint, parent, source, run, bytes, durationMs };
}

/** Returns the fields of `step.committed` of a superstep that is not saved. */
export function describeUnsavedStep(
  { run, step }: { readonly run: { readonly id: string }; readonly step: number },
  source: CheckpointSource,
  durationMs: number,
): CommittedFields {
  const saved = { checkpoint: undefined, parent: undefined, bytes: 0 };
  return { type: "step.committed", step, ...saved, source, run: run.id, durationMs };
}

/**
 * A selection of event types: supersteps with their changes, streamed messages, custom events, tasks, tools, or
 * everything.
 */
export type EventView = "updates" | "checkpoints" | "messages" | "custom" | "tasks" | "tools" | "debug";

const views: Readonly<Record<EventView, (event: RunEvent) => boolean>> = {
  updates: ({ type }) => type === "step.committed",
  checkpoints: (event) => isDurable(event),
  messages: ({ type }) => type.startsWith("message.") || type.startsWith("inbox."),
  custom: ({ type }) => type === "custom" || type === "node.progress",
  tasks: ({ type }) => type.startsWith("task.") || type.startsWith("effect."),
  tools: ({ type }) => type.startsWith("tool."),
  debug: () => true,
};

/**
 * Returns true when an event belongs to one of the views. Without views every event matches; `snapshot`,
 * `events.dropped` and `events.pruned` match every view.
 */
export function isInView(event: RunEvent, selectedViews: readonly EventView[] | undefined): boolean {
  return (
    selectedViews === undefined ||
    event.type === "snapshot" ||
    event.type.startsWith("events.") ||
    selectedViews.some((view) => views[view](event))
  );
}

interface Failure {
  readonly error: unknown;
}

interface IterateOptions {
  readonly isIncluded?: (event: RunEvent) => boolean;
  readonly throwOnFailure?: boolean | undefined;
  readonly overflow?: EventOverflow | undefined;
}

/** Connects the engine, which emits events, with readers. Without readers an emit costs a single comparison. */
export interface EventStream {
  /** True when at least one reader is subscribed or a relay is in use, so that building an event is worthwhile. */
  readonly hasReaders: () => boolean;
  /** `durability` is `durable` for an event that the store holds under its own number. */
  readonly emit: (event: RunEvent, durability: "durable" | "transient") => void;
  /** Notes a delta of a message that is not emitted, because the stream has no readers. */
  readonly skipDelta: RelayPublisher["skip"];
  readonly subscribe: (reader: (event: RunEvent) => void) => () => void;
  /**
   * Iterates over events from now on, until the run ends or the loop is left. After the last event of a failed run, the
   * iterator throws the error of the run, unless `throwOnFailure` is false.
   */
  readonly iterate: (options?: IterateOptions) => AsyncIterableIterator<RunEvent>;
  /** True when a reader has the failure of the run: an open iterator throws it, or a reader received `run.failed`. */
  readonly hasFailureReader: () => boolean;
  /** Returns the state of the run as in its result; set once the state exists. */
  getState: (() => unknown) | undefined;
  /** Number of recorded effects that ran, without reused ones. */
  effects: number;
  /** Handle of the run that emits to this stream. */
  handle: object | undefined;
  /** Relay of the run; set by the handle. */
  relay: Relay | undefined;
  /** Publishes the events from now on to the relay, under the claim of the run; without a relay does nothing. */
  readonly startPublishing: (run: PublishedRun) => void;
  /** Reports the id of the run that the handle drives; set by the handle. */
  announceRun: ((run: string) => void) | undefined;
  /** Closes the stream, with the failure of the run. */
  readonly close: (failure?: Failure) => void;
  /** Reports machine transitions to an inspector; undefined without an inspector. */
  readonly inspection: Inspection | undefined;
}

/**
 * Creates a stream without readers. Contract: an error thrown by a reader goes to `onReaderError` and never reaches
 * the run.
 */
export function createEventStream(onReaderError: (error: unknown) => void, inspection?: Inspection): EventStream {
  const readers = new Set<(event: RunEvent) => void>();
  const iterators = new Set<EventIterator>();
  let closed = false;
  let runFailure: Failure | undefined;
  let hasFailureReader = false;
  let publisher: RelayPublisher | undefined;

  function subscribe(reader: (event: RunEvent) => void): () => void {
    const receive = (event: RunEvent): unknown => {
      if (event.type === "run.failed" && event.within === undefined) hasFailureReader = true;
      return reader(event);
    };
    readers.add(receive);
    return () => {
      readers.delete(receive);
    };
  }

  const stream: EventStream = {
    hasReaders: () => readers.size > 0 || iterators.size > 0 || publisher?.isInUse() === true,
    emit: (event, durability) => {
      publisher?.publish(event, durability);
      for (const iterator of iterators) iterator.push(event);
      for (const reader of readers) callReader(reader, event, onReaderError);
    },
    skipDelta: (delta) => publisher?.skip(delta),
    subscribe,
    iterate: (options = {}) => {
      const iterator = new EventIterator(options, () => iterators.delete(iterator));
      if (closed) iterator.close(runFailure);
      else iterators.add(iterator);
      return iterator;
    },
    hasFailureReader: () => hasFailureReader,
    getState: undefined,
    effects: 0,
    handle: undefined,
    announceRun: undefined,
    relay: undefined,
    startPublishing: (run) => {
      publisher?.end();
      publisher = stream.relay === undefined || closed ? undefined : createRelayPublisher(stream.relay, run);
    },
    inspection,
    close: (failure) => {
      closed = true;
      publisher?.end();
      publisher = undefined;
      runFailure ??= failure;
      for (const iterator of iterators) if (iterator.close(runFailure)) hasFailureReader = true;
      iterators.clear();
      // An abandoned node body may still emit: no event may follow the final event of the run.
      readers.clear();
    },
  };
  return stream;
}

/** Calls a reader. An async reader may reject later: its promise is not awaited. */
function callReader(
  reader: (event: RunEvent) => unknown,
  event: RunEvent,
  onReaderError: (error: unknown) => void,
): void {
  try {
    const returned = reader(event);
    if (returned instanceof Promise) returned.catch(onReaderError);
  } catch (error) {
    onReaderError(error);
  }
}

/** Iterator over the events of a stream, with a queue for a slow reader. */
class EventIterator implements AsyncIterableIterator<RunEvent> {
  readonly #queue: EventQueue;
  readonly #options: IterateOptions;
  readonly #onLeave: () => void;
  #waiters: (() => void)[] = [];
  #hasEnded = false;
  #hasReportedFailure = false;
  /** Failure to throw after the last event. */
  #failure: Failure | undefined;

  constructor(options: IterateOptions, onLeave: () => void) {
    this.#queue = createEventQueue(options.overflow);
    this.#options = options;
    this.#onLeave = onLeave;
  }

  push(event: RunEvent): void {
    if (this.#options.isIncluded?.(event) === false) return;
    if (event.type === "run.failed" && event.within === undefined) this.#hasReportedFailure = true;
    this.#queue.push(event);
    this.#wake();
  }

  /** Ends the iteration after the queued events. Returns true if the reader receives the failure. */
  close(failure: Failure | undefined): boolean {
    this.#hasEnded = true;
    if (this.#options.throwOnFailure !== false) this.#failure = failure;
    this.#wake();
    return this.#failure !== undefined || this.#hasReportedFailure;
  }

  async next(): Promise<IteratorResult<RunEvent, undefined>> {
    for (;;) {
      const event = this.#queue.shift();
      if (event !== undefined) return { done: false, value: event };
      if (this.#failure !== undefined) {
        const { error } = this.#failure;
        this.#failure = undefined;
        throw error;
      }
      if (this.#hasEnded) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#waiters.push(resolve);
      });
    }
  }

  async return(): Promise<IteratorResult<RunEvent, undefined>> {
    this.#queue.clear();
    this.#failure = undefined;
    this.#hasEnded = true;
    this.#onLeave();
    this.#wake();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }
}

/** Events of a session: the stream of the run, the sequence numbers and the position of an inner graph. */
export interface EventEmitter {
  readonly stream: EventStream;
  /** Event sequence numbers, shared with inner graphs; the thread's numbers when the run has a store. */
  readonly sequence: Sequence;
  readonly world: World;
  /** Branch of the run. */
  readonly branch: string;
  /** Path and id of an inner graph; undefined for the outermost graph. */
  readonly nesting: { readonly path: readonly string[]; readonly id: string; readonly unsaved: boolean } | undefined;
}

/** Sequence numbers of durable events: next, last committed, last emitted. */
export interface Sequence {
  nextSeq: number;
  durableSeq: number;
  emittedSeq: number;
}

/**
 * Emits an event when there are listeners. A durable event has its own sequence number; other events get the number
 * of the newest durable event.
 */
export function emit(events: EventEmitter, body: RunEventBody, at?: Pick<EventPosition, "seq" | "at">): void {
  const { stream, sequence, branch, nesting } = events;
  if (at !== undefined) sequence.emittedSeq = at.seq;
  if (!stream.hasReaders()) {
    if (body.type === "message.delta" || body.type === "message.call_delta")
      stream.skipDelta({ withinId: nesting?.id, messageId: body.messageId });
    return;
  }
  const place = at ?? { seq: sequence.emittedSeq, at: events.world.clock.now() };
  stream.emit(
    nesting === undefined
      ? { ...body, ...place, branch }
      : { ...body, ...place, branch, within: nesting.path.join("."), withinId: nesting.id },
    at === undefined || nesting?.unsaved === true ? "transient" : "durable",
  );
}
