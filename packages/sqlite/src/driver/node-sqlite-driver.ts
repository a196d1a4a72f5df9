/** Driver of `node:sqlite`, in the shape of better-sqlite3. The module is loaded at its first use. */
import process from "node:process";
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { StatewrightError } from "@statewright/core";
import type { Database, FunctionOptions, RunResult, Statement } from "./database.ts";
import type { Driver, OpenOptions } from "./driver.ts";
import { recordUntilClosed } from "./open-files.ts";
import { compareVersions, oldestSqlite } from "./sqlite-version.ts";

/** Page cache of a connection in KiB, as that of better-sqlite3; the default of Node is an eighth of it. */
const cacheKib = 16_000;

/** More pages than any file has: a copy in a single piece. */
const allPages = 2 ** 31 - 1;

/** Creates the driver. */
export const nodeSqliteDriver: Driver = {
  name: "node:sqlite",
  pragmas: [`cache_size = -${cacheKib}`],
  check: () => refuseOldNodeSqlite(process.versions),
  open: (path, options = {}) => new NodeConnection(path, options),
  backUp,
};

/** Throws `store_failed` for a Node whose SQLite has the bug in its write-ahead log, or that has no `node:sqlite`. */
export function refuseOldNodeSqlite({ sqlite, node }: { readonly sqlite?: string; readonly node: string }): void {
  if (sqlite !== undefined && compareVersions(sqlite, oldestSqlite) >= 0) return;
  throw new StatewrightError("store_failed", {
    what:
      sqlite === undefined
        ? `Node ${node} has no SQLite`
        : `the SQLite ${sqlite} of Node ${node} has a bug in its write-ahead log`,
    next: 'Use Node 24.15 or newer of version 24, or Node 26, or pass { driver: "better-sqlite3" }',
    details: { driver: "node:sqlite", sqlite },
  });
}

function loadModule(): typeof import("node:sqlite") {
  return process.getBuiltinModule("node:sqlite");
}

/** Connection of `node:sqlite`. */
class NodeConnection implements Database {
  readonly name: string;
  readonly memory: boolean;
  readonly connection: DatabaseSync;

  constructor(path: string, { timeoutMs = 5_000, readOnly = false, immutable = false }: OpenOptions) {
    this.name = path;
    this.memory = path === ":memory:";
    this.connection = new (loadModule().DatabaseSync)(immutable ? toImmutableUrl(path) : path, {
      timeout: timeoutMs,
      readOnly,
    });
  }

  get inTransaction(): boolean {
    return this.connection.isTransaction;
  }

  prepare<Parameters extends unknown[] | object = unknown[], Result = unknown>(
    sql: string,
  ): Parameters extends unknown[] ? Statement<Parameters, Result> : Statement<[Parameters], Result>;
  prepare(sql: string): Statement {
    return new NodeStatement(this.connection.prepare(sql));
  }

  exec(sql: string): void {
    this.connection.exec(sql);
  }

  pragma(sql: string, { simple = false }: { readonly simple?: boolean } = {}): unknown {
    const statement = this.connection.prepare("PRAGMA " + sql);
    if (!simple) return statement.all();
    const [row] = statement.all();
    return row === undefined ? undefined : Object.values(row)[0];
  }

  function(name: string, options: FunctionOptions, run: (...values: unknown[]) => unknown): void {
    this.connection.function(name, options, (...values) => run(...values) as SQLInputValue);
  }

  close(): void {
    if (this.connection.isOpen) this.connection.close();
  }
}

/** Optional argument of the modes of a statement; true by default. */
type Toggle = readonly [isOn?: boolean];

/** Statement of `node:sqlite`; integers outside of the safe range throw. */
class NodeStatement implements Statement {
  readonly #statement: StatementSync;
  #isPlucked = false;

  constructor(statement: StatementSync) {
    this.#statement = statement;
    statement.setAllowUnknownNamedParameters(true);
  }

  run(...values: unknown[]): RunResult {
    const { changes, lastInsertRowid } = this.#statement.run(...(values as SQLInputValue[]));
    return { changes: Number(changes), lastInsertRowid };
  }

  get(...values: unknown[]): unknown {
    const row = this.#statement.get(...(values as SQLInputValue[]));
    return this.#isPlucked ? pluck(row) : row;
  }

  all(...values: unknown[]): unknown[] {
    const rows = this.#statement.all(...(values as SQLInputValue[]));
    return this.#isPlucked ? rows.map(pluck) : rows;
  }

  *iterate(...values: unknown[]): IterableIterator<unknown> {
    for (const row of this.#statement.iterate(...(values as SQLInputValue[]))) yield this.#isPlucked ? pluck(row) : row;
  }

  pluck(...[isOn = true]: Toggle): this {
    this.#isPlucked = isOn;
    this.#statement.setReturnArrays(isOn);
    return this;
  }

  raw(...[isOn = true]: Toggle): this {
    this.#isPlucked = false;
    this.#statement.setReturnArrays(isOn);
    return this;
  }
}

/** Returns the first value of a row that is an array. */
function pluck(row: unknown): unknown {
  return Array.isArray(row) ? row[0] : undefined;
}

function toImmutableUrl(path: string): URL {
  const url = pathToFileURL(path);
  url.search = "immutable=1";
  return url;
}

/**
 * Copies in another thread, all pages at once: the event loop is free meanwhile, and a write restarts nothing. A
 * connection of its own reads a single snapshot, while the store writes.
 */
async function backUp(db: Database, path: string): Promise<void> {
  if (!(db instanceof NodeConnection)) throw new TypeError("backUp: expected a connection of node:sqlite");
  const { backup } = loadModule();
  if (db.memory) {
    await backup(db.connection, path, { rate: allPages });
    return;
  }
  const source = new NodeConnection(db.name, { readOnly: true });
  recordUntilClosed(source, db.name, "node:sqlite");
  try {
    await backup(source.connection, path, { rate: allPages });
  } finally {
    source.close();
  }
}
