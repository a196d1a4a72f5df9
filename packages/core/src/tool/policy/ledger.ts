/** Ledgers: channels that hooks of parallel calls and inner graphs share during a superstep. */
import type { Channel } from "../../state/channel.ts";

/**
 * View of a channel with the entries of hooks in the current superstep. An entry is visible to all hooks immediately,
 * survives crashes, and is committed to the channel with the current task. An entry replaces the previous entry of
 * the same key.
 */
export interface Ledger<Value = unknown, Write = unknown> {
  /** Returns the current value of the channel, including entries and reservations. */
  readonly getValue: (options?: LedgerView) => Value;
  /**
   * Returns true if a write of this key was entered, by an earlier execution of the hooks whose effect was not
   * recorded.
   */
  readonly has: (key: string) => boolean;
  /** Reserves a write in this process until an entry of the same key or a release. */
  readonly reserve: (key: string, write: Write) => void;
  /**
   * Enters a write. Keys are scoped to the effect of the hook, so that a repetition counts once. A `shared` key is
   * scoped to the current task, for entries that parallel hooks make together.
   */
  readonly enter: (key: string, write: Write, options?: { readonly shared?: boolean }) => void;
  /** Removes the reservation of this key, if any. */
  readonly release: (key: string) => void;
  /** Resolves at the next change of an entry or reservation by any hook. */
  readonly waitForChange: () => Promise<void>;
}

/** Selection of the entries in a ledger value. */
export interface LedgerView {
  /** Include reservations. Default true. */
  readonly reserved?: boolean;
  /** Keys of the current effect to exclude. */
  readonly excludedKeys?: readonly string[];
  /**
   * Entries of other effects in the same task, such as parallel calls of a message: `all` (default), only entries of
   * their `inside` inner graphs, or `none`.
   */
  readonly siblings?: "all" | "inside" | "none";
}

/**
 * Opens the ledger of a channel declared by the graph of the middleware or by its parent graph: the same object as in
 * `channels`.
 */
export type OpenLedger = <Value, Write, Input>(channel: Channel<Value, Write, Input>) => Ledger<Value, Write>;
