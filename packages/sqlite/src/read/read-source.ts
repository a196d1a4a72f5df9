/** Source of reads: the transactions of a store, or one snapshot. */
import type { Reader } from "./reader.ts";

/** Performs reads. */
export interface ReadSource {
  /** Performs a read in a single transaction. */
  read<Value>(operation: (reader: Reader) => Value, thread?: string): Promise<Value>;
  /** Performs a read that needs the owners known to be dead. */
  readStatus<Value>(
    operation: (reader: Reader, dead: readonly number[]) => Value,
    thread?: string,
    listOwners?: (reader: Reader) => readonly number[],
  ): Promise<Value>;
  /** Returns true if the thread certainly has no inbox message. */
  isInboxEmpty(thread: string): boolean;
}
