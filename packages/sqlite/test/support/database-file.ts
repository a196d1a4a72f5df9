/** Looking at a file from the side: every table, and the bytes. */
import { existsSync, readFileSync } from "node:fs";
import Database from "better-sqlite3";

/** Names of all tables that hold rows, but those of SQLite itself and of its index of words. */
export function tablesOf(file: string): readonly string[] {
  return ask(file, (db) =>
    db
      .prepare<[], string>(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name",
      )
      .pluck()
      .all(),
  );
}

/** How many rows each table has. */
export function countsOf(file: string): Readonly<Record<string, number>> {
  const tables = tablesOf(file);
  return ask(file, (db) =>
    Object.fromEntries(
      tables.map((table) => [table, db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0]),
    ),
  );
}

/** All rows of all tables as text. */
export function textOf(file: string): string {
  const tables = tablesOf(file);
  return ask(file, (db) =>
    tables
      .flatMap((table) => db.prepare(`SELECT * FROM ${table}`).raw().all() as unknown[][])
      .flat()
      .map((value) => (Buffer.isBuffer(value) ? value.toString("latin1") : String(value)))
      .join("\n"),
  );
}

/** The bytes of the file and of its log. */
export function bytesOf(file: string): string {
  return [file, `${file}-wal`]
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path).toString("latin1"))
    .join("\n");
}

/** Change the file behind the back of every store. */
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
