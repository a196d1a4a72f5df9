/** The long-term store outside of runs: what is put is durable when the promise settles. */
import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import type { LongTerm } from "../base/long-term.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import { type Codec, plainCodec } from "../state/codec.ts";
import { longTermHandle } from "./handle.ts";
import type { LongTermChange, LongTermRows, LongTermTouch } from "./rows.ts";

/** What `longTermStore` takes besides the store: the same as the runs that use it. */
export interface LongTermStoreOptions {
  /** The world whose clock says when items end; the real one by default. */
  readonly world?: World;
  /** Turns values into saved text and back; plain data and built-in types by default. */
  readonly codec?: Codec;
}

/** The root of a long-term store. */
export interface LongTermStore extends LongTerm {
  /** Remove all items whose end has come; gives how many went. They are invisible before, and writes remove some too. */
  sweep(): Promise<number>;
}

const names = optionNames<LongTermStoreOptions>({ world: true, codec: true });
const sweptAtOnce = 1_000;

/** The long-term store that stands in a store beside its threads. Throws `invalid_option`. */
export function longTermStore(
  store: { readonly longTerm: LongTermRows },
  options: LongTermStoreOptions = {},
): LongTermStore {
  if (typeof store?.longTerm?.page !== "function")
    throw new StatewrightError("invalid_option", {
      what: `longTermStore got ${describeValue(store)} where a store is due`,
      next: "Give memoryStore() or sqliteStore(path)",
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
      (await rows.refresh(touches)).map((became) => became === "kept"),
  };
  const root = longTermHandle(() => port);
  return Object.freeze({
    ...root,
    sweep: async () => {
      for (let swept = 0; ; ) {
        const went = await rows.sweep(now(), sweptAtOnce);
        swept += went;
        if (went < sweptAtOnce) return swept;
      }
    },
  });
}
