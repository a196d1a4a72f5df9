/** Insertion of several rows of a table with a single statement. */
import type { Database, Statement } from "../driver/database.ts";

/** Rows per statement: SQLite compiles a statement for each number of rows. */
const maxRowsPerStatement = 8;

type Value = string | number | bigint | Uint8Array | null;

/** Inserts rows; `onInserted` gets the position and the row key of each row, which are in the same order. */
type InsertRows = (rows: readonly (readonly Value[])[], onInserted?: (nth: number, key: number) => void) => void;

/**
 * Prepares an insertion of rows into a table whose next row key is one above the largest. Call inside a write
 * transaction: no other connection writes then, so that the keys of a statement are consecutive.
 */
export function prepareInsert(db: Database, into: string, row: string): InsertRows {
  const statements: Statement[] = [];
  const prepare = (count: number): Statement => {
    statements[count] ??= db.prepare(into + Array.from({ length: count }, () => row).join(", "));
    return statements[count];
  };
  return (rows, onInserted) => {
    for (let from = 0; from < rows.length; from += maxRowsPerStatement) {
      const some = rows.slice(from, from + maxRowsPerStatement);
      const { lastInsertRowid } = prepare(some.length).run(...some.flat());
      const first = Number(lastInsertRowid) - some.length + 1;
      if (onInserted !== undefined) for (const nth of some.keys()) onInserted(from + nth, first + nth);
    }
  };
}
