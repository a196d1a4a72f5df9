/** `watchStore`: the ids of threads that change, in any process with the store. */
import { toErrorRecord } from "../base/errors.ts";
import { checkOptions, checkTime, listOptionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkPort, checkStoreOption, checkWorldOption } from "../run/session/options/check-run-options.ts";

/** Options of `watchStore`. */
export interface WatchStoreOptions {
  /** Ends the watch. */
  readonly signal: AbortSignal;
  /** Time between two reads of a store without hints, in milliseconds. Default 1,000. */
  readonly pollMs?: number;
  /** Clock and log. Default: the system world. */
  readonly world?: World;
}

const names = listOptionNames<WatchStoreOptions>({ signal: true, pollMs: true, world: true });

/**
 * Yields the id of each thread that changes after this call: a checkpoint, a run, an interrupt, a message, a request,
 * a queued run, or the title and the metadata. A thread that changes several times before the reader asks is yielded
 * once. Ends when the signal fires. A change may be missed, or yielded twice: read the thread itself for its rows.
 * Throws `invalid_option`.
 *
 * @example
 * for await (const thread of watchStore(store, { signal })) show(await store.thread(thread));
 */
export function watchStore(store: Store, options: WatchStoreOptions): AsyncIterableIterator<string> {
  checkOptions("watchStore", options, names);
  checkStoreOption("watchStore", store ?? null);
  checkWorldOption("watchStore", options.world);
  checkTime("watchStore", { pollMs: options.pollMs });
  const { signal, pollMs = 1_000, world = systemWorld() } = options;
  checkPort("watchStore", "signal", signal ?? null, {
    members: ["aborted", "addEventListener"],
    expected: "the signal of an AbortController that ends the watch",
  });
  const changes = new ChangedThreads(signal);
  const stop = store.watch?.((thread) => changes.add(thread)) ?? pollThreads(store, changes, { pollMs, world });
  // Also for a reader that asks no further.
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return yieldChanges(changes, stop);
}

/** Threads that changed since the reader asked, each once. */
class ChangedThreads {
  readonly signal: AbortSignal;
  readonly #threads: Set<string> = new Set();
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal) {
    this.signal = signal;
  }

  add(thread: string): void {
    this.#threads.add(thread);
    this.#wake?.();
  }

  /** Returns the next thread; waits for one. Undefined when the signal has fired. */
  async next(): Promise<string | undefined> {
    while (!this.signal.aborted) {
      for (const thread of this.#threads) {
        this.#threads.delete(thread);
        return thread;
      }
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.signal.removeEventListener("abort", wake);
          this.#wake = undefined;
          resolve();
        };
        this.#wake = wake;
        this.signal.addEventListener("abort", wake, { once: true });
      });
    }
    return undefined;
  }
}

async function* yieldChanges(changes: ChangedThreads, stop: () => void): AsyncGenerator<string, undefined, undefined> {
  try {
    for (let thread = await changes.next(); thread !== undefined; thread = await changes.next()) yield thread;
    return undefined;
  } finally {
    changes.signal.removeEventListener("abort", stop);
    stop();
  }
}

/** Polls the threads of a store without hints by the time of their last change. */
function pollThreads(
  store: Store,
  changes: ChangedThreads,
  { pollMs, world }: { readonly pollMs: number; readonly world: World },
): () => void {
  let since = world.clock.now();
  let known: ReadonlySet<string> = new Set();
  let isStopped = false;
  const poll = async (): Promise<void> => {
    try {
      const rows = await store.threads({ since });
      const latest = rows.reduce((newest, { updatedAt }) => Math.max(newest, updatedAt), since);
      for (const { id, updatedAt } of rows) if (updatedAt > since || !known.has(id)) changes.add(id);
      // Threads changed in the same millisecond as the newest were read already.
      known = new Set(rows.flatMap(({ id, updatedAt }) => (updatedAt === latest ? [id] : [])));
      since = latest;
    } catch (error) {
      world.log("warn", "the threads of a store could not be read", { error: toErrorRecord(error) });
    }
    if (!isStopped) cancel = world.schedule.after(pollMs, () => void poll());
  };
  let cancel = world.schedule.after(pollMs, () => void poll());
  return () => {
    isStopped = true;
    cancel();
  };
}
