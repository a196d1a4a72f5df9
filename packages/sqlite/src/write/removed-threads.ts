/**
 * Rows of deleted threads. A deletion first removes the row of the thread and its entries in lists, so that nothing
 * finds its other rows. The other rows follow in pieces, each in a transaction of its own: the event loop and other
 * writers run in between. After a crash, the next opening or deletion continues.
 */
import type { Database } from "../driver/database.ts";
import { inRange, threadTables } from "../rows/thread-tables.ts";

/** Maximum number of rows in a piece. */
export const rowsPerPiece = 500;

/** Bytes of values after which a piece ends. */
export const bytesPerPiece: number = 4 * 2 ** 20;

/** Column that identifies a row of an owner; `key` in other tables. */
const idColumns: Readonly<Record<string, string>> = { timers: "id", events: "seq" };

/** Size of the large values of a row. Reads the header of the row only. */
const sizes: Readonly<Record<string, string>> = {
  deltas: "octet_length(text)",
  checkpoints: "octet_length(control) + coalesce(octet_length(effects), 0)",
  effects: "coalesce(octet_length(args), 0) + coalesce(octet_length(outcome), 0)",
  interrupts: "octet_length(payload) + coalesce(octet_length(answer), 0)",
  inbox_messages: "octet_length(messages)",
  events: "octet_length(text)",
  artifact_pieces: "octet_length(data)",
};

/** Rest of the current piece. */
interface PieceBudget {
  rows: number;
  bytes: number;
}

interface RowSize {
  readonly row: number | string;
  readonly bytes: number;
}

/** Rows of an owner in tables, and rows that own rows themselves, which are deleted after them. */
interface OwnedRows {
  readonly parents: readonly ParentRows[];
  readonly tables: readonly ReturnType<typeof prepareTable>[];
}

interface ParentRows extends ReturnType<typeof prepareParents> {
  readonly owned: OwnedRows;
}

/** Prepares the deletion of the rows of an owner in a table. */
function prepareTable(db: Database, table: string, where: string) {
  const id = idColumns[table] ?? "key";
  const size = sizes[table] ?? "0";
  return {
    page: db.prepare<[{ key: number; limit: number }], RowSize>(
      "SELECT " + id + " AS row, " + size + " AS bytes FROM " + table + " WHERE " + where + " LIMIT @limit",
    ),
    drop: db.prepare<[{ key: number; row: number | string }]>(
      "DELETE FROM " + table + " WHERE " + where + " AND " + id + " = @row",
    ),
  };
}

function prepareParents(db: Database, table: string, owner: string) {
  return {
    next: db.prepare<[number], number>("SELECT key FROM " + table + " WHERE " + owner + " = ? LIMIT 1").pluck(),
    drop: db.prepare<[number]>("DELETE FROM " + table + " WHERE key = ?"),
  };
}

/** Tables whose rows own the rows of other tables. */
const parentTables: ReadonlySet<string> = new Set(["branches", "channels", "artifacts"]);

function prepareOwnedRows(db: Database): OwnedRows {
  const prepareTables = (of: "thread" | "namespace" | "channel") =>
    Object.entries(threadTables)
      .filter(([table, { owner }]) => owner === of && !parentTables.has(table) && table !== "artifact_pieces")
      .filter(([, { outlives }]) => of !== "thread" || outlives === true)
      .map(([table, { where }]) => prepareTable(db, table, where));
  const ofChannel: OwnedRows = { parents: [], tables: prepareTables("channel") };
  const ofNamespace: OwnedRows = {
    parents: [{ ...prepareParents(db, "channels", "branch"), owned: ofChannel }],
    tables: prepareTables("namespace"),
  };
  const ofArtifact: OwnedRows = { parents: [], tables: [prepareTable(db, "artifact_pieces", inRange)] };
  return {
    parents: [
      { ...prepareParents(db, "branches", "thread"), owned: ofNamespace },
      { ...prepareParents(db, "artifacts", "thread"), owned: ofArtifact },
    ],
    tables: prepareTables("thread"),
  };
}

function prepareStatements(db: Database) {
  return {
    first: db.prepare<[], number | null>("SELECT min(key) FROM removed_threads").pluck(),
    add: db.prepare<[number, number]>("INSERT INTO removed_threads (key, at) VALUES (?, ?)"),
    remove: db.prepare<[number]>("DELETE FROM removed_threads WHERE key = ?"),
  };
}

/** Deletes the rows of deleted threads; call inside a transaction. */
export class RemovedThreads {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #rows: OwnedRows;

  constructor(db: Database) {
    this.#sql = prepareStatements(db);
    this.#rows = prepareOwnedRows(db);
  }

  /** Returns true if rows of deleted threads remain. */
  hasAny(): boolean {
    return this.#find() !== undefined;
  }

  /** Deletes a first piece of a thread whose own row is gone; {@link removePiece} deletes the others. */
  begin(thread: number, at: number): void {
    if (!this.#removeRows(thread)) this.#sql.add.run(thread, at);
  }

  /** Deletes the next piece of the oldest deleted thread. Returns true if rows remain. */
  removePiece(): boolean {
    const thread = this.#find();
    if (thread === undefined) return false;
    if (this.#removeRows(thread)) this.#sql.remove.run(thread);
    return this.hasAny();
  }

  #find(): number | undefined {
    return this.#sql.first.get() ?? undefined;
  }

  /** Deletes a piece; returns true when no row of the thread is left. */
  #removeRows(thread: number): boolean {
    return removeOwned(this.#rows, thread, { rows: rowsPerPiece, bytes: bytesPerPiece });
  }
}

/** Deletes the rows of an owner until the budget is spent; returns true when none is left. */
function removeOwned({ parents, tables }: OwnedRows, key: number, budget: PieceBudget): boolean {
  for (const { next, drop, owned } of parents)
    for (let parent = next.get(key); parent !== undefined; parent = next.get(key)) {
      if (!removeOwned(owned, parent, budget) || isSpent(budget)) return false;
      drop.run(parent);
      budget.rows -= 1;
    }
  return tables.every((table) => removeFromTable(table, key, budget));
}

function removeFromTable({ page, drop }: OwnedRows["tables"][number], key: number, budget: PieceBudget): boolean {
  while (!isSpent(budget)) {
    const limit = budget.rows;
    const found = page.all({ key, limit });
    for (const { row, bytes } of found) {
      if (isSpent(budget)) return false;
      drop.run({ key, row });
      budget.rows -= 1;
      budget.bytes -= bytes;
    }
    if (found.length < limit) return true;
  }
  return false;
}

function isSpent({ rows, bytes }: PieceBudget): boolean {
  return rows <= 0 || bytes <= 0;
}
