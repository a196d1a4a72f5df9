/** Direct access to a database file: tables and bytes. */
import { existsSync, readFileSync } from "node:fs";
import Database from "better-sqlite3";

/** Names of all tables with rows, except those of SQLite and of its text index. */
export function listTables(file: string): readonly string[] {
  return ask(file, (db) =>
    db
      .prepare<[], string>(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name",
      )
      .pluck()
      .all(),
  );
}

/** Number of rows per table. */
export function countRows(file: string): Readonly<Record<string, number>> {
  const tables = listTables(file);
  return ask(file, (db) =>
    Object.fromEntries(
      tables.map((table) => [table, db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0]),
    ),
  );
}

/** All rows of all tables as text. */
export function readText(file: string): string {
  const tables = listTables(file);
  return ask(file, (db) =>
    tables
      .flatMap((table) => db.prepare(`SELECT * FROM ${table}`).raw().all() as unknown[][])
      .flat()
      .map((value) => (Buffer.isBuffer(value) ? value.toString("latin1") : String(value)))
      .join("\n"),
  );
}

/** Bytes of the file and its log. */
export function readBytes(file: string): string {
  return [file, `${file}-wal`]
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path).toString("latin1"))
    .join("\n");
}

/** Changes the file without a store. */
export function change<Value>(file: string, work: (db: Database.Database) => Value): Value {
  const db = new Database(file);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

function ask<Value>(file: string, work: (db: Database.Database) => Value): Value {
  const db = new Database(file, { readonly: true });
  try {
    return work(db);
  } finally {
    db.close();
  }
}
