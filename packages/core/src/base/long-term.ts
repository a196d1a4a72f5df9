/**
 * User-facing types of the long-term store: memory beyond a thread. A handle addresses a namespace, a path of ids
 * such as `users/u1`. Every thread, run and process with the same store reads the same items.
 */

/** An item of the long-term store. The value is frozen. */
export interface LongTermItem {
  readonly namespace: readonly string[];
  readonly key: string;
  readonly value: unknown;
  /** Time of the first put, in milliseconds since the epoch. `updatedAt` is the time of the last put. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Expiry time in milliseconds since the epoch; undefined: no expiry. */
  readonly expiresAt?: number;
  /** Similarity score of a vector search, from -1 to 1. */
  readonly score?: number;
}

/** Options of `put`: expiry and full-text index. */
export interface LongTermPut {
  /** Time to live in milliseconds. Default: no expiry. */
  readonly ttlMs?: number;
  /** Restarts `ttlMs` on each read. Default false. */
  readonly refreshOnRead?: boolean;
  /**
   * Fields of the full-text index, such as `"text"` or `"address.city"`. Default: all strings of the value. `false`:
   * none.
   */
  readonly index?: readonly string[] | false;
}

/** Start and size of a page. */
export interface LongTermPage {
  /** Cursor: the last item of the previous page. */
  readonly after?: Pick<LongTermItem, "namespace" | "key"> | undefined;
  /** Items per page. Default 100. */
  readonly limit?: number;
}

/** Comparison value of a field. */
export type LongTermScalar = string | number | boolean | null;

/** Condition on a field; all parts must hold. Values of different types are never equal and never ordered. */
export interface LongTermCondition {
  readonly eq?: LongTermScalar;
  /** Also true for a missing field. */
  readonly ne?: LongTermScalar;
  readonly gt?: string | number;
  readonly gte?: string | number;
  readonly lt?: string | number;
  readonly lte?: string | number;
  /** True when the field equals an item of this list. */
  readonly in?: readonly LongTermScalar[];
  /** True when the field is a list with an item equal to this value. */
  readonly has?: LongTermScalar;
}

/** Conditions by field path, such as `kind` or `address.city`; all must hold. A bare value means `{ eq: value }`. */
export type LongTermFilter = { readonly [field: string]: LongTermScalar | LongTermCondition };

/** Query of a search. Default: all items. */
export interface LongTermSearch extends LongTermPage {
  /**
   * Words that must all occur in the indexed strings, in any order; `word*` matches a prefix. Ignores case and
   * accents.
   */
  readonly text?: string;
  /** Text for a similarity search, nearest items first. Requires a store with an embedding function. */
  readonly near?: string;
  readonly filter?: LongTermFilter;
}

/** Returns the handle of a namespace by its ids; the root without ids. */
export type OpenLongTerm = (...ids: readonly string[]) => LongTerm;

/** Options of `namespaces`. */
export interface LongTermNamespaces {
  /** Number of ids below the namespace of the handle; deeper namespaces are merged. Default: no limit. */
  readonly depth?: number;
  /** Cursor: the last namespace of the previous page. */
  readonly after?: readonly string[] | undefined;
  /** Namespaces per page. Default 100. */
  readonly limit?: number;
}

/**
 * Handle of a namespace in the long-term store. Lists are ordered by namespace, then by key, each by character codes.
 * Throws `invalid_id` for a key or namespace outside the id grammar, and `invalid_option`.
 */
export interface LongTerm {
  readonly namespace: readonly string[];
  /** Returns the handle of a nested namespace. */
  under(...ids: readonly string[]): LongTerm;
  /** Returns the item of this key; undefined without an item. */
  get(key: string): Promise<LongTermItem | undefined>;
  /**
   * Stores an item, replacing the item of the same key. Throws `unencodable_value` for a value that cannot be saved.
   */
  put(key: string, value: unknown, options?: LongTermPut): Promise<void>;
  /** Deletes an item; no-op for an unknown key. */
  delete(key: string): Promise<void>;
  /** Lists the items of this namespace, without nested namespaces. */
  list(page?: LongTermPage): Promise<readonly LongTermItem[]>;
  /** Searches the items of this namespace and of nested namespaces. */
  search(query?: LongTermSearch): Promise<readonly LongTermItem[]>;
  /** Lists the namespaces with items: this namespace and nested ones. */
  namespaces(options?: LongTermNamespaces): Promise<readonly (readonly string[])[]>;
}
