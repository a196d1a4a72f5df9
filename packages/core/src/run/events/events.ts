/**
 * The event stream of a run. A durable event has its own sequence number and is emitted after its commit; a transient
 * event has the sequence number of the latest durable event.
 */

import type { Step } from "../kernel/kernel.ts";
import { createEventQueue, isDurable } from "./event-queue.ts";
import type { Inspection } from "./inspection.ts";
import type { RunEvent, Transition } from "./run-event.ts";

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
 * Returns true when an event belongs to one of the views. Without views every event matches; `events.dropped` matches
 * every view.
 */
export function isInView(event: RunEvent, selectedViews: readonly EventView[] | undefined): boolean {
  return (
    selectedViews === undefined || event.type === "events.dropped" || selectedViews.some((view) => views[view](event))
  );
}

/** Connects the engine, which emits events, with readers. Without readers an emit costs one comparison. */
export interface EventStream {
  /** True when at least one reader is subscribed, so that building an event is worthwhile. */
  readonly hasReaders: () => boolean;
  readonly emit: (event: RunEvent) => void;
  readonly subscribe: (reader: (event: RunEvent) => void) => () => void;
  /** Iterates over events from now on, until the run ends or the loop is left. `isIncluded` filters the events. */
  readonly iterate: (isIncluded?: (event: RunEvent) => boolean) => AsyncIterableIterator<RunEvent>;
  /** Returns the state of the run as in its result; set once the state exists. */
  getState: (() => unknown) | undefined;
  /** Handle of the run that emits to this stream. */
  handle: object | undefined;
  /** Closes the stream. Iterators that have not seen the failure throw its error. */
  readonly close: (failure?: { readonly error: unknown }) => void;
  /** Reports machine transitions to an inspector; undefined without an inspector. */
  readonly inspection: Inspection | undefined;
}

/**
 * Creates a stream without readers. Contract: an error thrown by a reader goes to `onReaderError` and never reaches
 * the run.
 */
export function createEventStream(onReaderError: (error: unknown) => void, inspection?: Inspection): EventStream {
  const readers = new Set<(event: RunEvent) => void>();
  const closers = new Set<Close>();
  let closed = false;

  function subscribe(reader: (event: RunEvent) => void): () => void {
    readers.add(reader);
    return () => {
      readers.delete(reader);
    };
  }

  return {
    hasReaders: () => readers.size > 0,
    emit: (event) => {
      for (const reader of readers) {
        try {
          const returned: unknown = reader(event);
          // An async reader may reject later: its promise is not awaited.
          if (returned instanceof Promise) returned.catch(onReaderError);
        } catch (error) {
          onReaderError(error);
        }
      }
    },
    subscribe,
    iterate: (isIncluded) => iterateEvents(subscribe, closers, () => closed, isIncluded),
    getState: undefined,
    handle: undefined,
    inspection,
    close: (failure) => {
      closed = true;
      for (const close of closers) close(failure);
      closers.clear();
      // An abandoned node body may still emit: no event may follow the final event of the run.
      readers.clear();
    },
  };
}

type Close = EventStream["close"];

function iterateEvents(
  subscribe: EventStream["subscribe"],
  closers: Set<Close>,
  isClosed: () => boolean,
  isIncluded: (event: RunEvent) => boolean = matchAll,
): AsyncIterableIterator<RunEvent> {
  const queue = createEventQueue();
  let waiters: (() => void)[] = [];
  let ended = isClosed();
  const wake = (): void => {
    const resolvers = waiters;
    waiters = [];
    for (const resolve of resolvers) resolve();
  };
  let hasSeenFailure = false;
  let unseenFailure: { readonly error: unknown } | undefined;
  const unsubscribe = subscribe((event) => {
    if (event.type === "run.failed") hasSeenFailure = true;
    if (!isIncluded(event)) return;
    queue.push(event);
    wake();
  });
  const end: Close = (failure) => {
    ended = true;
    if (!hasSeenFailure) unseenFailure = failure;
    unsubscribe();
    closers.delete(end);
    wake();
  };
  closers.add(end);
  const iterator: AsyncIterableIterator<RunEvent> = {
    next: async () => {
      for (;;) {
        const event = queue.shift();
        if (event !== undefined) return { done: false, value: event };
        if (unseenFailure !== undefined) {
          const { error } = unseenFailure;
          unseenFailure = undefined;
          throw error;
        }
        if (ended) return { done: true, value: undefined };
        await new Promise<void>((resolve) => {
          waiters.push(resolve);
        });
      }
    },
    return: async () => {
      queue.clear();
      unseenFailure = undefined;
      end();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}

function matchAll(): boolean {
  return true;
}
