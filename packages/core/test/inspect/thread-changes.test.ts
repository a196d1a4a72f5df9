/** Followers of threads in a store with hints: no polling of their own, and an end with the deletion of their thread. */
import { expect, test } from "vitest";
import { memoryStore, type RunEvent, type Store } from "../../src/index.ts";
import { streamEvents } from "../../src/inspect.ts";
import { memoryRelay } from "../../src/store.ts";
import { createVirtualWorld, type VirtualWorld } from "../support/virtual-world.ts";

interface CountedStore {
  readonly store: Store;
  readonly world: VirtualWorld;
  reads: number;
  /** Listeners of the store. */
  listeners: number;
}

/** A store that counts its reads of threads and events, and its listeners. */
function createCountedStore(): CountedStore {
  const plain = memoryStore();
  const counted: CountedStore = {
    world: createVirtualWorld(),
    reads: 0,
    listeners: 0,
    store: {
      ...plain,
      events: (...args) => {
        counted.reads += 1;
        return plain.events(...args);
      },
      thread: (id) => {
        counted.reads += 1;
        return plain.thread(id);
      },
      watch: (...args) => {
        counted.listeners += 1;
        const stop = plain.watch?.(...args);
        return () => {
          counted.listeners -= 1;
          stop?.();
        };
      },
    },
  };
  return counted;
}

/** Follows a thread until `stop`. */
function follow({ store, world }: CountedStore, thread: string) {
  const signal = new AbortController();
  const state: { readonly events: RunEvent[]; hasEnded: boolean; readonly stop: () => Promise<void> } = {
    events: [],
    hasEnded: false,
    stop: async () => {
      signal.abort();
      await reading;
    },
  };
  const reading = (async () => {
    const relay = memoryRelay();
    for await (const event of streamEvents({ store, world, relay, thread, follow: signal.signal }))
      state.events.push(event);
    state.hasEnded = true;
  })();
  return state;
}

async function createThreads({ store, world }: CountedStore, count: number): Promise<readonly string[]> {
  const threads = Array.from({ length: count }, (_, index) => `t${index}`);
  for (const thread of threads) await store.createThread({ thread, at: world.clock.now() });
  return threads;
}

test("silent followers share one listener and one timer, and read their threads about once a minute [V116, V117]", async () => {
  const counted = createCountedStore();
  const { world } = counted;
  const followers = (await createThreads(counted, 300)).map((thread) => follow(counted, thread));
  await world.waitUntilIdle();
  expect({ listeners: counted.listeners, timers: world.timers }).toEqual({ listeners: 1, timers: 1 });
  counted.reads = 0;
  await world.advance(30_000);
  expect(counted.reads).toBeLessThanOrEqual(300);
  await world.advance(31_000);
  expect(counted.reads).toBeGreaterThanOrEqual(600);
  expect(counted.reads).toBeLessThanOrEqual(630);
  for (const follower of followers) await follower.stop();
  expect({ listeners: counted.listeners, timers: world.timers }).toEqual({ listeners: 0, timers: 0 });
});

test("a follower without a reachable publisher reads its thread shortly after a hint, and others read nothing [V116]", async () => {
  const counted = createCountedStore();
  const { store, world } = counted;
  const [one = "", other = ""] = await createThreads(counted, 2);
  const followers = [follow(counted, one), follow(counted, other)];
  await world.waitUntilIdle();
  counted.reads = 0;
  await store.updateThread(one, { at: world.clock.now(), title: "new" });
  await world.advance(30);
  expect(counted.reads).toBe(2);
  await world.advance(500);
  expect(counted.reads).toBe(2);
  for (const follower of followers) await follower.stop();
});

test("a follower ends when its thread is deleted, at once with a hint and within a minute without [V19]", async () => {
  const counted = createCountedStore();
  const { store, world } = counted;
  const [hinted = "", lost = "", kept = ""] = await createThreads(counted, 3);
  const followers = [hinted, lost, kept].map((thread) => follow(counted, thread));
  await world.waitUntilIdle();
  await store.delete(hinted);
  await world.advance(30);
  expect(followers.map(({ hasEnded }) => hasEnded)).toEqual([true, false, false]);
  const silent = follow({ ...counted, store: { ...store, watch: () => () => undefined } }, lost);
  await world.waitUntilIdle();
  await store.delete(lost);
  await world.advance(30);
  expect(silent.hasEnded).toBe(false);
  await world.advance(61_000);
  expect([silent.hasEnded, followers[2]?.hasEnded]).toEqual([true, false]);
  await followers[2]?.stop();
  expect(world.timers).toBe(0);
});

test("a follower with an interval of its own polls at this interval and listens to no hint", async () => {
  const counted = createCountedStore();
  const { store, world } = counted;
  const [thread = ""] = await createThreads(counted, 1);
  const signal = new AbortController();
  const events = streamEvents({ store, world, thread, follow: signal.signal, everyMs: 50 });
  await events.next();
  const next = events.next();
  await world.waitUntilIdle();
  counted.reads = 0;
  await world.advance(500);
  expect({ reads: counted.reads, listeners: counted.listeners }).toEqual({ reads: 20, listeners: 0 });
  signal.abort();
  await next;
});
