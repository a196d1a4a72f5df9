/**
 * Watch of the threads at work of a store: a single listener for the hints of the store, and a single query of waiting
 * inputs for all hinted threads. Without hints, and for hints that were lost, a single query per second counts the
 * inputs of the threads that are polled.
 */
import { toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { InputCounts } from "../../checkpoint/run-request.ts";
import type { Store } from "../../checkpoint/store.ts";
import { checkPreemption } from "./check-preemption.ts";
import { checkRequests } from "./check-requests.ts";
import type { Inbox } from "./inbox/inbox.ts";
import type { Persistence } from "./parts/persistence.ts";
import type { Session } from "./session.ts";

/** A thread at work. */
export interface WatchedThread {
  readonly thread: string;
  readonly world: World;
  /** Called at a hint, before the inputs are counted. */
  readonly onHint: () => void;
  /** Called with the waiting inputs after a hint or a poll. */
  readonly onInputs: (counts: InputCounts) => void;
}

/** Time between two polls, in milliseconds. */
const pollMs = 1_000;

/** Threads polled together. */
interface PollGroup {
  readonly entries: Set<WatchedThread>;
  cancel: () => void;
}

interface StoreWatch {
  /** Threads at work by name; a thread has several entries for a moment, when a run follows another. */
  readonly watched: Map<string, Set<WatchedThread>>;
  /** Threads to poll, by world. */
  readonly polled: Map<World, PollGroup>;
  readonly hinted: Set<WatchedThread>;
  stop: (() => void) | undefined;
}

const watches: WeakMap<Store, StoreWatch> = new WeakMap();

function getWatch(store: Store): StoreWatch {
  const known = watches.get(store);
  if (known !== undefined) return known;
  const watch: StoreWatch = { watched: new Map(), polled: new Map(), hinted: new Set(), stop: undefined };
  watches.set(store, watch);
  return watch;
}

/** Watches a thread by the hints of its store, until the returned function is called. */
export function watchThread(store: Store, entry: WatchedThread): () => void {
  const watch = getWatch(store);
  const entries = watch.watched.get(entry.thread) ?? new Set();
  watch.watched.set(entry.thread, entries.add(entry));
  watch.stop ??= store.watch?.((thread) => receiveHint(store, watch, thread), { kinds: ["input"] });
  return () => {
    entries.delete(entry);
    watch.hinted.delete(entry);
    if (entries.size > 0) return;
    watch.watched.delete(entry.thread);
    if (watch.watched.size > 0) return;
    watch.stop?.();
    watch.stop = undefined;
  };
}

/** Polls the inputs of a thread, together with those of other polled threads, until the returned function is called. */
export function pollThread(store: Store, entry: WatchedThread): () => void {
  const { polled } = getWatch(store);
  const group = polled.get(entry.world) ?? startPoll(store, entry.world);
  polled.set(entry.world, group);
  group.entries.add(entry);
  return () => {
    group.entries.delete(entry);
    if (group.entries.size > 0 || polled.get(entry.world) !== group) return;
    group.cancel();
    polled.delete(entry.world);
  };
}

function startPoll(store: Store, world: World): PollGroup {
  const schedule = (): (() => void) => world.schedule.after(pollMs, () => void poll());
  const poll = async (): Promise<void> => {
    await countInputs(store, [...group.entries]);
    if (group.entries.size > 0) group.cancel = schedule();
  };
  const group: PollGroup = { entries: new Set(), cancel: schedule() };
  return group;
}

function receiveHint(store: Store, { watched, hinted }: StoreWatch, thread: string): void {
  const entries = watched.get(thread);
  if (entries === undefined) return;
  for (const entry of entries) {
    entry.onHint();
    if (hinted.size === 0)
      entry.world.schedule.soon(() => {
        const all = [...hinted];
        hinted.clear();
        void countInputs(store, all);
      });
    hinted.add(entry);
  }
}

/** Counts the inputs of these threads in a single query. Never rejects. */
async function countInputs(store: Store, entries: readonly WatchedThread[]): Promise<void> {
  const [first] = entries;
  if (first === undefined) return;
  try {
    const counts = await store.countInputs(entries.map(({ thread }) => thread));
    for (const [index, { onInputs }] of entries.entries()) {
      const found = counts[index];
      if (found !== undefined) onInputs(found);
    }
  } catch (error) {
    first.world.log("warn", "the inputs of threads could not be counted", { error: toErrorRecord(error) });
  }
}

/** Creates the watch of a run. */
export function createWatch({ inboxes }: Pick<Session, "inboxes">, { thread, store }: Persistence): WatchedThread {
  const { inbox, events } = inboxes;
  return {
    thread: thread.run.thread,
    world: thread.world,
    onHint: () => {
      thread.arrivals.version += 1;
    },
    onInputs: ({ queued, messages, requests }) => {
      if (queued > 0) void checkPreemption(thread, store);
      if (requests > 0) void checkRequests(thread, store);
      // Senders of this process have notified the run.
      if (messages === 0 || store.local === true) return;
      thread.arrivals.version += 1;
      events.notifyArrival();
      void notifySteering(thread, inbox);
    },
  };
}

/** Reads the inbox, and ends waits of tools for a steering message. Never rejects. */
async function notifySteering({ run, world }: Persistence["thread"], inbox: Inbox): Promise<void> {
  if (!inbox.mayHaveMessages()) return;
  try {
    const steering = (await inbox.listMessages()).filter(({ kind }) => kind === "steer");
    if (steering.length > 0) inbox.notifyArrival(steering.map(({ id }) => id));
  } catch (error) {
    const fields = { thread: run.thread, error: toErrorRecord(error) };
    world.log("warn", "inbox messages could not be read", fields);
  }
}
