/**
 * Contract of the long-term store: rows independent of threads. Values arrive encoded. The caller passes the current
 * time: a row whose expiry has passed at that time is not visible.
 */
import type { LongTermVectors } from "./vectors.ts";

/** Stored item. */
export interface LongTermRow {
  /** Ids of the namespace, each followed by a slash: a parent namespace is a string prefix of its children. */
  readonly namespace: string;
  readonly key: string;
  /** Encoded value. */
  readonly value: string;
  /** Search words, unique, sorted, separated by spaces; absent when there are none. */
  readonly words?: string | undefined;
  /**
   * Embedding of the indexed strings, of length 1; absent without an embedding, and in results of queries without
   * `vectors`.
   */
  readonly vector?: Float32Array | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt?: number | undefined;
  /** Milliseconds by which each read extends the expiry. */
  readonly refreshMs?: number | undefined;
}

/** Address of a row. */
export type LongTermLocation = Pick<LongTermRow, "namespace" | "key">;

/** Change of a row. */
export type LongTermChange =
  /** Inserts or replaces a row. An unexpired row retains its `createdAt`; a new row gets its `updatedAt`. */
  | { readonly put: Omit<LongTermRow, "createdAt"> }
  | { readonly drop: LongTermLocation }
  /** Sets the expiry of an unexpired row that has an expiry. */
  | { readonly touch: LongTermTouch };

/** Extension of the expiry of a row that was read at time `at`. */
export interface LongTermTouch extends LongTermLocation {
  readonly at: number;
  readonly expiresAt: number;
}

/** Result of an expiry extension: `missing` for a row deleted meanwhile, `pending` for a row in buffered changes. */
export type RefreshResult = "refreshed" | "missing" | "pending";

/** Search word: an exact word, or a prefix. */
export interface LongTermWord {
  readonly word: string;
  readonly isPrefix: boolean;
}

/** Filter and cursor of a page of rows. */
export interface LongTermQuery {
  readonly namespace: string;
  /** Includes all child namespaces. */
  readonly deep: boolean;
  readonly at: number;
  readonly after?: LongTermLocation | undefined;
  /** Words that must all occur in the row. */
  readonly words?: readonly LongTermWord[] | undefined;
  /** Includes the vectors of rows. */
  readonly vectors?: boolean | undefined;
  readonly limit: number;
}

/** Reader of the long-term store. */
export interface LongTermReader {
  /** Embedding of the store; absent without an embedding function. */
  readonly vectors?: LongTermVectors | undefined;
  /** Returns the row of a location; undefined without a row, or when the row has expired at this time. */
  get(place: LongTermLocation, at: number): Promise<LongTermRow | undefined>;
  /**
   * Lists rows sorted by namespace, then by key, by character. Throws `invalid_option` for `words` when the store has
   * no word index.
   */
  page(query: LongTermQuery): Promise<readonly LongTermRow[]>;
  /**
   * Extends the expiry of rows at once and returns the result for each row; a row deleted by a concurrent sweep is
   * reported as deleted.
   */
  refresh(touches: readonly LongTermTouch[]): Promise<readonly RefreshResult[]>;
}

/** Long-term side of a store. Each write also removes some expired rows. */
export interface LongTermRows extends LongTermReader {
  /** Applies changes atomically and in order. Does not require ownership of a thread. */
  write(changes: readonly LongTermChange[], at: number): Promise<void>;
  /** Removes at most `limit` expired rows and returns the number of removed rows. */
  sweep(at: number, limit: number): Promise<number>;
}
