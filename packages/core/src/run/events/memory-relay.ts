/** Relay inside one process. */
import type { Store } from "../../checkpoint/store.ts";
import { createOpenWork, type OpenWorkFold } from "./open-work.ts";
import type { Relay, RelayFrame, RelayGap } from "./relay.ts";

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
  const listeners = new Map<string, Set<(received: RelayFrame | RelayGap) => void>>();

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
      const subscribed = listeners.get(thread) ?? new Set();
      listeners.set(thread, subscribed.add(listener));
      return () => {
        subscribed.delete(listener);
        if (subscribed.size === 0 && listeners.get(thread) === subscribed) listeners.delete(thread);
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
