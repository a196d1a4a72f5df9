/** Publishes the events of a run at work to a relay; and the relay in memory, which every store has by default. */

import type { World } from "../../base/world.ts";
import type { Store } from "../../checkpoint/store.ts";
import { createOpenWork, type OpenWorkFold } from "./open-work.ts";
import type { Relay, RelayFrame, RelayGap } from "./relay.ts";
import type { RunEvent } from "./run-event.ts";

/** Run at work: its thread and claim, and the newest durable event. */
export interface PublishedRun extends Pick<RelayFrame, "run" | "branch" | "epoch" | "seq"> {
  readonly thread: string;
  readonly world: World;
}

/** Publisher of the events of a run. */
export interface RelayPublisher {
  readonly isInUse: () => boolean;
  /**
   * Publishes an event. A durable event is sent as its number: readers load it from the store. While the relay is not
   * in use, publishes nothing.
   */
  readonly publish: (event: RunEvent, durability: "durable" | "transient") => void;
  /**
   * Notes a delta that is not published. The later deltas of its message are not published either, because readers
   * would take the end of the text for the whole.
   */
  readonly skip: (delta: SkippedDelta) => void;
  readonly end: () => void;
}

/** Message of a delta that no reader has received. */
interface SkippedDelta {
  readonly withinId?: string | undefined;
  readonly messageId: string;
}

/** Creates a publisher. Contract: an error of the relay is logged once and never reaches the run. */
export function createRelayPublisher(
  relay: Relay,
  { thread, run, branch, epoch, seq, world }: PublishedRun,
): RelayPublisher {
  const source = `${run}.${epoch}`;
  let index = 0;
  let newestSeq = seq;
  let hasFailed = false;
  /** Unfinished messages with deltas that were not published. */
  const skipped = new Set<string>();

  function send(parts: Pick<RelayFrame, "event" | "committed" | "ended">): void {
    index += 1;
    try {
      relay.publish(thread, [{ source, run, branch, epoch, index, seq: newestSeq, ...parts }]);
    } catch (error) {
      if (!hasFailed) world.log("warn", "the relay threw; readers may miss text until its commit", { thread, error });
      hasFailed = true;
    }
  }

  /** Returns true for a delta of a skipped message; the end of a message ends its skipping. */
  function isSkipped(event: RunEvent): boolean {
    if (isDelta(event)) return skipped.has(toKey(event));
    if (event.type === "message.retracted") skipped.delete(toKey(event));
    else if (event.type === "message.completed")
      skipped.delete(toKey({ withinId: event.withinId, messageId: event.message.id }));
    return false;
  }

  return {
    isInUse: () => relay.isInUse?.() !== false,
    publish: (event, durability) => {
      // The durable event `step.committed` has the same changes.
      if (event.type === "transition.taken") return;
      if (relay.isInUse?.() === false) {
        if (isDelta(event)) skipped.add(toKey(event));
        return;
      }
      if (skipped.size > 0 && isSkipped(event)) return;
      // A transient event repeats the number of the newest durable event.
      newestSeq = Math.max(newestSeq, event.seq);
      if (durability === "transient") return send({ event });
      send(event.type === "step.committed" ? { committed: event.withinId ?? "" } : {});
    },
    skip: (delta) => void skipped.add(toKey(delta)),
    end: () => {
      if (index > 0) send({ ended: true });
    },
  };
}

function isDelta(
  event: RunEvent,
): event is Extract<RunEvent, { readonly type: "message.delta" | "message.call_delta" }> {
  return event.type === "message.delta" || event.type === "message.call_delta";
}

function toKey({ withinId = "", messageId }: SkippedDelta): string {
  return `${withinId} ${messageId}`;
}

/** Publisher of a thread after its newest frame. */
interface Publisher {
  last: RelayFrame;
  readonly open: OpenWorkFold;
}

/**
 * Creates a relay for the runs and readers of this process. Every store has one by default, which starts with the
 * first reader that follows a thread of the store; a relay passed to `run`, `resume` or `engine` always works.
 *
 * @example
 * const relay = memoryRelay();
 * const host = engine({ store, graphs: [chat], relay });
 * for await (const event of streamEvents({ store, thread: "t1", follow: signal, relay })) console.log(event.type);
 */
export function memoryRelay(): Relay {
  const publishers = new Map<string, Publisher>();
  /** Lists, not sets: most threads have a single listener. */
  const listeners = new Map<string, readonly ((received: RelayFrame | RelayGap) => void)[]>();

  function fold(thread: string, frame: RelayFrame): void {
    let publisher = publishers.get(thread);
    if (publisher === undefined || publisher.last.source !== frame.source) {
      if (publisher !== undefined && publisher.last.epoch > frame.epoch) return;
      publisher = { last: frame, open: createOpenWork() };
      publishers.set(thread, publisher);
    }
    publisher.last = frame;
    if (frame.ended === true) publishers.delete(thread);
    else publisher.open.apply(frame);
  }

  return {
    publish: (thread, frames) => {
      const subscribed = listeners.get(thread);
      for (const frame of frames) {
        fold(thread, frame);
        for (const listener of subscribed ?? []) listener(frame);
      }
    },
    subscribe: (thread, listener) => {
      listeners.set(thread, [...(listeners.get(thread) ?? []), listener]);
      return () => {
        const all = listeners.get(thread) ?? [];
        // Once: the same function may listen twice.
        const others = all.toSpliced(all.lastIndexOf(listener), all.includes(listener) ? 1 : 0);
        if (others.length === 0) listeners.delete(thread);
        else listeners.set(thread, others);
      };
    },
    snapshot: async (thread) => {
      const publisher = publishers.get(thread);
      if (publisher === undefined) return undefined;
      const { source, run, branch, epoch, index, seq } = publisher.last;
      return { source, run, branch, epoch, index, seq, open: publisher.open.read() };
    },
  };
}

const storeRelays: WeakMap<Store, Relay> = new WeakMap();

/** Returns the default relay of a store, in use from its first subscription on. */
export function getStoreRelay(store: Store): Relay {
  let relay = storeRelays.get(store);
  if (relay === undefined) {
    const { publish, subscribe, snapshot } = memoryRelay();
    let isInUse = false;
    relay = {
      publish,
      snapshot,
      subscribe: (thread, listener) => {
        isInUse = true;
        return subscribe(thread, listener);
      },
      isInUse: () => isInUse,
    };
    storeRelays.set(store, relay);
  }
  return relay;
}
