/**
 * The contract of the long-term store: rows beside the threads, which no thread owns. Values arrive encoded, as everywhere
 * in a store. Who asks says what time it is: a row whose end has come is not there any more for whoever reads at that time.
 */
import type { LongTermVectors } from "./vectors.ts";

/** An item as a store keeps it. */
export interface LongTermRow {
  /** The ids of its namespace, each with a slash after it: a prefix of namespaces is a prefix of these texts. */
  readonly namespace: string;
  readonly key: string;
  /** The encoded value. */
  readonly value: string;
  /** The words by which search finds it, each once, in their order, with spaces between; absent when it has none. */
  readonly words?: string | undefined;
  /** What its texts are about, of length 1; absent when it has none, and where nobody asked for it. */
  readonly vector?: Float32Array | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt?: number | undefined;
  /** Each read lets it live so much longer. */
  readonly refreshMs?: number | undefined;
}

/** Which row. */
export type LongTermPlace = Pick<LongTermRow, "namespace" | "key">;

/** A change of one row. */
export type LongTermChange =
  /** In place of what is there; a row that has not ended keeps its `createdAt`, a new one gets its `updatedAt`. */
  | { readonly put: Omit<LongTermRow, "createdAt"> }
  | { readonly drop: LongTermPlace }
  /** Let a row that has an end, and has not come to it by then, end at this time instead. */
  | { readonly touch: LongTermTouch };

/** A row that was read at a time, and is to live longer for that. */
export interface LongTermTouch extends LongTermPlace {
  readonly at: number;
  readonly expiresAt: number;
}

/** What became of a row that is to live longer: it does; it is not there any more; it is not written yet, and waits in changes. */
export type Refreshed = "kept" | "gone" | "held";

/** A word that is looked for: it whole, or all words that begin so. */
export interface LongTermWord {
  readonly word: string;
  readonly isPrefix: boolean;
}

/** Which rows a page has. */
export interface LongTermQuery {
  readonly namespace: string;
  /** Also those of all namespaces below it. */
  readonly deep: boolean;
  readonly at: number;
  readonly after?: LongTermPlace | undefined;
  /** All of them stand in the row's words. */
  readonly words?: readonly LongTermWord[] | undefined;
  /** Rows have their vectors. */
  readonly vectors?: boolean | undefined;
  readonly limit: number;
}

/** What reads the long-term store. */
export interface LongTermReader {
  /** How vectors are made; absent in a store without an embedding function. */
  readonly vectors?: LongTermVectors | undefined;
  get(place: LongTermPlace, at: number): Promise<LongTermRow | undefined>;
  /** Rows by namespace, then by key, in the order of their characters. Throws `invalid_option` for words where nothing is indexed. */
  page(query: LongTermQuery): Promise<readonly LongTermRow[]>;
  /** Touch rows at once, and say of each what became of it: one that was swept between the read and this was read too late. */
  refresh(touches: readonly LongTermTouch[]): Promise<readonly Refreshed[]>;
}

/** The long-term side of a store. Each write also removes some rows whose end has come. */
export interface LongTermRows extends LongTermReader {
  /** Make changes, in their order, all or none. Anyone may. */
  write(changes: readonly LongTermChange[], at: number): Promise<void>;
  /** Remove at most so many rows whose end has come; gives how many went. */
  sweep(at: number, limit: number): Promise<number>;
}
