/** Entries of ledgers since the start of a superstep. */
import type { Write } from "./returns.ts";

/** Entries and reservations, by slot. */
export interface LedgerBook {
  readonly entered: Map<string, LedgerEntry>;
  readonly reserved: Map<string, Reservation>;
  /** By channel: the entered writes, and the value with the writes reduced so far. */
  readonly sums: Map<string, Sum>;
  /** By channel: the same, including reservations. */
  readonly reservedSums: Map<string, ReservedSum>;
  /** Callbacks for the next change. */
  listeners: (() => void)[];
}

/** A write entered by a task. */
export interface LedgerEntry {
  readonly task: string;
  readonly write: Write;
}

/** A reservation of a hook pass; an abandoned pass releases only its own reservations. */
export interface Reservation extends LedgerEntry {
  readonly owner: object | undefined;
}

export interface Sum {
  readonly writes: Write[];
  reducedCount: number;
  value: unknown;
}

export interface ReservedSum extends Sum {
  /** Start value: the channel value including all entries. */
  readonly from: unknown;
}
