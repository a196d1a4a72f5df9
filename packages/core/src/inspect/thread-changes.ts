/**
 * Changes of followed threads: a single listener for the hints of a store, and a single slow poll for hints that were
 * lost, which visits each thread about once a minute. The cost of a thread without changes is one visit a minute.
 */
import type { World } from "../base/world.ts";
import type { Store } from "../checkpoint/store.ts";

/** Time between two steps of the poll, in milliseconds. */
const stepMs = 1_000;

/** Steps in which the poll visits all threads. */
const stepsPerRound = 60;

const watches: WeakMap<Store, WeakMap<World, ChangeWatch>> = new WeakMap();

/**
 * Calls `onChange` when the thread may have changed, in any process with the store, until the returned function is
 * called. Returns undefined for a store without hints.
 */
export function watchThreadChanges(
  store: Store,
  { thread, world }: { readonly thread: string; readonly world: World },
  onChange: () => void,
): (() => void) | undefined {
  if (store.watch === undefined) return undefined;
  const byWorld = watches.get(store) ?? new WeakMap<World, ChangeWatch>();
  watches.set(store, byWorld);
  const watch = byWorld.get(world) ?? new ChangeWatch(store, world);
  byWorld.set(world, watch);
  return watch.add(thread, onChange);
}

/** Followed threads of a store. */
class ChangeWatch {
  readonly #store: Store;
  readonly #world: World;
  /** Lists, not sets: most threads have a single listener. */
  readonly #threads: Map<string, readonly (() => void)[]> = new Map();
  #stop: (() => void) | undefined;
  #cancelPoll: (() => void) | undefined;
  /** Threads that the current round of the poll has not visited. */
  #unvisited: Iterator<string> = this.#threads.keys();

  constructor(store: Store, world: World) {
    this.#store = store;
    this.#world = world;
  }

  add(thread: string, onChange: () => void): () => void {
    this.#threads.set(thread, [...(this.#threads.get(thread) ?? []), onChange]);
    this.#stop ??= this.#store.watch?.((changed) => this.#report(changed));
    this.#cancelPoll ??= this.#schedulePoll();
    return () => {
      const all = this.#threads.get(thread) ?? [];
      // Once: the same function may listen twice.
      const others = all.toSpliced(all.lastIndexOf(onChange), all.includes(onChange) ? 1 : 0);
      if (others.length > 0) this.#threads.set(thread, others);
      else if (this.#threads.delete(thread) && this.#threads.size === 0) this.#close();
    };
  }

  #close(): void {
    this.#stop?.();
    this.#cancelPoll?.();
    this.#stop = undefined;
    this.#cancelPoll = undefined;
  }

  #report(thread: string): void {
    for (const listener of this.#threads.get(thread) ?? []) listener();
  }

  #schedulePoll(): () => void {
    return this.#world.schedule.after(stepMs, () => {
      const visits = Math.ceil(this.#threads.size / stepsPerRound);
      for (let count = 0; count < visits; count++) this.#visitNext();
      if (this.#threads.size > 0) this.#cancelPoll = this.#schedulePoll();
    });
  }

  #visitNext(): void {
    let next = this.#unvisited.next();
    if (next.done === true) {
      this.#unvisited = this.#threads.keys();
      next = this.#unvisited.next();
    }
    if (next.done !== true) this.#report(next.value);
  }
}
