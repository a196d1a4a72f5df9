/**
 * Connection to a database file: the operations that the store needs, in the shape of better-sqlite3, whose objects
 * are used directly.
 */

/** Result of a statement that changes rows. */
export interface RunResult {
  readonly changes: number;
  readonly lastInsertRowid: number | bigint;
}

/** Prepared statement. Blobs are `Uint8Array`, integers are numbers. */
export interface Statement<Parameters extends unknown[] = unknown[], Result = unknown> {
  run(...parameters: Parameters): RunResult;
  get(...parameters: Parameters): Result | undefined;
  all(...parameters: Parameters): Result[];
  iterate(...parameters: Parameters): IterableIterator<Result>;
  /** Returns the first column of each row instead of the row. */
  pluck(isOn?: boolean): this;
  /** Returns each row as an array instead of an object. */
  raw(isOn?: boolean): this;
}

/** Options of a user function. */
export interface FunctionOptions {
  readonly varargs: boolean;
  readonly deterministic: boolean;
  /** Refuses the function in triggers and views. */
  readonly directOnly: boolean;
}

/** Open connection. */
export interface Database {
  /** Path of the file. */
  readonly name: string;
  readonly memory: boolean;
  readonly inTransaction: boolean;
  /** Named parameters are a single object, whose keys have no prefix; other keys are ignored. */
  prepare<Parameters extends unknown[] | object = unknown[], Result = unknown>(
    sql: string,
  ): Parameters extends unknown[] ? Statement<Parameters, Result> : Statement<[Parameters], Result>;
  exec(sql: string): unknown;
  /** Returns all rows; with `simple` the first column of the first row. */
  pragma(sql: string, options?: { readonly simple?: boolean }): unknown;
  function(name: string, options: FunctionOptions, run: (...values: unknown[]) => unknown): unknown;
  close(): unknown;
}
