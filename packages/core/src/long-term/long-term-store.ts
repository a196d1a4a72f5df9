/** Long-term store outside of runs: a put is durable when its promise resolves. */

import { invalidOption } from "../base/invalid-option.ts";
import type { LongTerm } from "../base/long-term.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import { type Codec, plainCodec } from "../state/codec.ts";
import { createLongTermHandle } from "./handle.ts";
import type { LongTermChange, LongTermRows, LongTermTouch } from "./rows.ts";

/** Options of `longTermStore`. Use the same options as the runs that share the store. */
export interface LongTermStoreOptions {
  /** World whose clock decides when items expire; default: the system clock. */
  readonly world?: World;
  /** Encodes and decodes values; default: plain data and built-in types. */
  readonly codec?: Codec;
}

/** Root of a long-term store. */
export interface LongTermStore extends LongTerm {
  /**
   * Removes all expired items and returns their number. Expired items are already invisible, and writes remove some.
   */
  sweep(): Promise<number>;
}

const names = listOptionNames<LongTermStoreOptions>({ world: true, codec: true });
const sweepPageSize = 1_000;

/** Creates the long-term store inside a store, independent of threads. Throws `invalid_option`. */
export function longTermStore(
  store: { readonly longTerm: LongTermRows },
  options: LongTermStoreOptions = {},
): LongTermStore {
  if (typeof store?.longTerm?.page !== "function")
    throw invalidOption({
      where: "longTermStore",
      expected: "a store",
      got: store,
      fix: "Pass memoryStore() or sqliteStore(path)",
    });
  checkOptions("longTermStore", options, names);
  const { world = systemWorld(), codec = plainCodec } = options;
  const { longTerm: rows } = store;
  const now = (): number => world.clock.now();
  const port = {
    codec,
    now,
    reader: () => rows,
    change: (changes: readonly LongTermChange[]) => rows.write(changes, now()),
    refresh: async (touches: readonly LongTermTouch[]) =>
      (await rows.refresh(touches)).map((result) => result === "refreshed"),
  };
  const root = createLongTermHandle(() => port);
  return Object.freeze({
    ...root,
    sweep: async () => {
      for (let swept = 0; ; ) {
        const removed = await rows.sweep(now(), sweepPageSize);
        swept += removed;
        if (removed < sweepPageSize) return swept;
      }
    },
  });
}
