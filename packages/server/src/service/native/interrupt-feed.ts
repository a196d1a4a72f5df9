/** Open interrupts of the threads that change: each thread is read once for all readers of a store. */
import { listInterrupts, type Store, type WaitingInterrupt, type World } from "@statewright/core";
import { watchStore } from "@statewright/core/inspect";
import type { Codec } from "@statewright/core/store";
import { omitUndefined } from "../omit-undefined.ts";

/** Reader of the open interrupts of the threads below a prefix. */
export interface InterruptReader {
  /** Prefix of the ids of its threads in the store, such as `t.acme.`. */
  readonly prefix: string;
  /** Receives all open interrupts of a thread that has changed, oldest first. */
  readonly receive: (thread: string, open: readonly WaitingInterrupt[]) => void;
  /** Called once when the store cannot be read: nothing is received after it. */
  readonly fail: (error: unknown) => void;
}

/** Open interrupts of the threads that change. */
export interface InterruptFeed {
  /** Adds a reader; returns the function that removes it. The store is watched while there are readers. */
  add(reader: InterruptReader): () => void;
}

/** Time between two reads of a store without hints, in milliseconds. */
const pollMs = 500;

const pageSize = 200;

/** Creates the feed of a store. */
export function createInterruptFeed(parts: {
  readonly store: Store;
  readonly world: World;
  readonly codec: Codec;
}): InterruptFeed {
  const { store, world } = parts;
  const readers = new Set<InterruptReader>();
  let watching: AbortController | undefined;

  function stop(): void {
    watching?.abort();
    watching = undefined;
  }

  /** Begins before it returns: no change after the first `add` is missed. */
  function start(): void {
    watching = new AbortController();
    const { signal } = watching;
    const threads = watchStore(store, { signal, world, pollMs });
    follow(threads).catch((error: unknown) => {
      // Another watch may have begun meanwhile.
      if (watching?.signal !== signal) return;
      stop();
      const failed = [...readers];
      readers.clear();
      for (const reader of failed) reader.fail(error);
    });
  }

  async function follow(threads: AsyncIterable<string>): Promise<void> {
    for await (const thread of threads) {
      if (![...readers].some(({ prefix }) => thread.startsWith(prefix))) continue;
      const open = await listOpen(parts, thread);
      for (const reader of readers) if (thread.startsWith(reader.prefix)) reader.receive(thread, open);
    }
  }

  return {
    add: (reader) => {
      readers.add(reader);
      if (watching === undefined) start();
      return () => {
        readers.delete(reader);
        if (readers.size === 0) stop();
      };
    },
  };
}

/** Lists the open interrupts of a thread, oldest first; none for a thread that was deleted. */
async function listOpen(
  { store, world, codec }: { readonly store: Store; readonly world: World; readonly codec: Codec },
  thread: string,
): Promise<readonly WaitingInterrupt[]> {
  const open: WaitingInterrupt[] = [];
  for (let before: string | undefined; ; ) {
    const page = { thread, world, codec, limit: pageSize, ...omitUndefined({ before }) };
    const rows = await listInterrupts(store, page);
    open.unshift(...rows.toReversed());
    before = rows.at(-1)?.cursor;
    if (rows.length < pageSize) return open;
  }
}
