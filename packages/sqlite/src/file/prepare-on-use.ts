/**
 * Statements prepared at their first use: a store has more than 200 statements, and most programs run a few dozen.
 * Preparing all of them takes longer than opening the file.
 */
import type { Database, RunResult, Statement } from "../driver/database.ts";

/** Optional argument of the modes of a statement; true by default. */
type Toggle = readonly [isOn?: boolean];

/** Prepares the statements of this connection at their first use, from now on. */
export function prepareOnUse(db: Database): void {
  const prepare = db.prepare;
  db.prepare = ((sql: string) => new DeferredStatement(() => prepare.call(db, sql) as Statement)) as typeof prepare;
}

/** A statement that SQLite parses at its first use. An error in its text is thrown there. */
class DeferredStatement implements Statement {
  readonly #prepare: () => Statement;
  #statement: Statement | undefined;
  #mode: "pluck" | "raw" | undefined;

  constructor(prepare: () => Statement) {
    this.#prepare = prepare;
  }

  run(...values: unknown[]): RunResult {
    return this.#open().run(...values);
  }

  get(...values: unknown[]): unknown {
    return this.#open().get(...values);
  }

  all(...values: unknown[]): unknown[] {
    return this.#open().all(...values);
  }

  iterate(...values: unknown[]): IterableIterator<unknown> {
    return this.#open().iterate(...values);
  }

  pluck(...toggle: Toggle): this {
    return this.#setMode("pluck", toggle);
  }

  raw(...toggle: Toggle): this {
    return this.#setMode("raw", toggle);
  }

  #setMode(mode: "pluck" | "raw", [isOn = true]: Toggle): this {
    if (this.#statement !== undefined) this.#statement[mode](isOn);
    else if (isOn) this.#mode = mode;
    else if (this.#mode === mode) this.#mode = undefined;
    return this;
  }

  #open(): Statement {
    if (this.#statement !== undefined) return this.#statement;
    const statement = this.#prepare();
    if (this.#mode !== undefined) statement[this.#mode](true);
    this.#statement = statement;
    return statement;
  }
}
