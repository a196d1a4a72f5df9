/** Ledgers: channels that hooks share while they are at work, in a graph, in its parallel calls, and in the graphs inside it. */
import type { Channel } from "../../state/channel.ts";

/**
 * A channel with what hooks have entered since its superstep began. An entry is seen by all at once, is kept across crashes,
 * and becomes part of the channel when the task at work is done. An entry of the same key takes the place of the one before.
 */
export interface Ledger<Value = unknown, Write = unknown> {
  /** The channel as it stands, with what was entered and what is reserved. */
  readonly value: (options?: LedgerView) => Value;
  /** Whether a write of this key was entered: by a pass of the hooks whose effect was not recorded. */
  readonly has: (key: string) => boolean;
  /** Count a write beforehand, in this process, until one of its key is entered or released. */
  readonly reserve: (key: string, write: Write) => void;
  /**
   * Keep a write. Keys are of the effect that the hook stands around, so that its repetition counts once; a `shared` one is of
   * the task that is at work, for what hooks beside each other enter once.
   */
  readonly enter: (key: string, write: Write, options?: { readonly shared?: boolean }) => void;
  readonly release: (key: string) => void;
  /** Resolves when an entry or a reservation of anybody changes. */
  readonly changed: () => Promise<void>;
}

/** What of a ledger is looked at. */
export interface LedgerView {
  /** With what is reserved; default true. */
  readonly reserved?: boolean;
  /** Keys of the effect itself that do not count. */
  readonly without?: readonly string[];
  /**
   * What counts of other effects of the same task, such as the calls of one message: `all` (the default), only what graphs
   * `inside` them have entered, or `none` of it.
   */
  readonly beside?: "all" | "inside" | "none";
}

/** Opens the ledger of a channel that the graph of the middleware, or one around it, declares: the same object as in `channels`. */
export type OpenLedger = <Value, Write, Input>(channel: Channel<Value, Write, Input>) => Ledger<Value, Write>;
