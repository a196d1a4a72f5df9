/**
 * The long-term store as its users see it: memory beyond a thread. A handle stands for a namespace, a path of ids such as
 * `users/u1`; what is put there is found by every thread, run and process that has the same store.
 */

/** An item as it is read. The value is frozen. */
export interface LongTermItem {
  readonly namespace: readonly string[];
  readonly key: string;
  readonly value: unknown;
  /** Milliseconds since the epoch: when it was put first, and when it was put last. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** When it ends; absent: never. */
  readonly expiresAt?: number;
  /** Of a search by nearness: how near it is, from -1 to 1. */
  readonly score?: number;
}

/** How an item is kept. */
export interface LongTermPut {
  /** How long it lives, in milliseconds; for ever when absent. */
  readonly ttlMs?: number;
  /** Each time that it is read it lives `ttlMs` from then on. Default false. */
  readonly refreshOnRead?: boolean;
  /** Fields, such as `"text"` or `"address.city"`, whose texts full-text search finds; all texts of the value by default. `false`: none. */
  readonly index?: readonly string[] | false;
}

/** Where a page begins, and how long it is. */
export interface LongTermPage {
  /** Those after this one: the last item of a page gives the next. */
  readonly after?: Pick<LongTermItem, "namespace" | "key"> | undefined;
  /** Default 100. */
  readonly limit?: number;
}

/** What a field may be compared with. */
export type LongTermScalar = string | number | boolean | null;

/** What must hold of a field: all of it. Values of different types are never equal, and never more or less than each other. */
export interface LongTermCondition {
  readonly eq?: LongTermScalar;
  /** Also true of a field that is not there. */
  readonly ne?: LongTermScalar;
  readonly gt?: string | number;
  readonly gte?: string | number;
  readonly lt?: string | number;
  readonly lte?: string | number;
  /** It equals one of these. */
  readonly in?: readonly LongTermScalar[];
  /** It is a list, and one of its items equals this. */
  readonly has?: LongTermScalar;
}

/** Conditions by field, such as `kind` or `address.city`; all must hold. A value alone means `{ eq: value }`. */
export type LongTermFilter = { readonly [field: string]: LongTermScalar | LongTermCondition };

/** What a search looks for; everything when nothing is said. */
export interface LongTermSearch extends LongTermPage {
  /** Words that must all stand in the indexed texts, in any order; `word*` finds what begins so. Case and accents do not count. */
  readonly text?: string;
  /** What they should be about: the items whose texts mean most nearly this, the nearest first. The store must have an embedding function. */
  readonly near?: string;
  readonly filter?: LongTermFilter;
}

/** Gives the handle of a namespace, by its ids; without any, the root. */
export type OpenLongTerm = (...ids: readonly string[]) => LongTerm;

/** Which namespaces a list shows. */
export interface LongTermNamespaces {
  /** So many ids below the handle's own namespace are told apart; all when absent. */
  readonly depth?: number;
  /** Those after this one: the last of a page gives the next. */
  readonly after?: readonly string[] | undefined;
  /** Default 100. */
  readonly limit?: number;
}

/**
 * A namespace of the long-term store. Items are listed by namespace, then by key, each in the order of their characters.
 * Throws `invalid_id` for a key or a namespace outside the grammar of ids, and `invalid_option`.
 */
export interface LongTerm {
  readonly namespace: readonly string[];
  /** The namespace that these ids lead to from here. */
  under(...ids: readonly string[]): LongTerm;
  get(key: string): Promise<LongTermItem | undefined>;
  /** Put an item in place of the one of that key. Throws `unencodable_value` for a value that cannot be saved. */
  put(key: string, value: unknown, options?: LongTermPut): Promise<void>;
  /** Remove an item; nothing happens where there is none. */
  delete(key: string): Promise<void>;
  /** The items of this very namespace. */
  list(page?: LongTermPage): Promise<readonly LongTermItem[]>;
  /** The items of this namespace, and of all below it, that fit. */
  search(query?: LongTermSearch): Promise<readonly LongTermItem[]>;
  /** The namespaces that hold items: this one and those below it. */
  namespaces(which?: LongTermNamespaces): Promise<readonly (readonly string[])[]>;
}
