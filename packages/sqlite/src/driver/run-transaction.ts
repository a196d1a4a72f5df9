/** Transactions outside of the single writer. */
import type { Database } from "./database.ts";

/**
 * Runs a function in a transaction, `immediate` with the write lock from the start; an exception rolls back. Inside a
 * transaction, the function is a part of it.
 */
export function runTransaction<Value>(db: Database, mode: "deferred" | "immediate", run: () => Value): Value {
  if (db.inTransaction) return run();
  db.exec(mode === "immediate" ? "BEGIN IMMEDIATE" : "BEGIN");
  try {
    const value = run();
    db.exec("COMMIT");
    return value;
  } catch (thrown) {
    if (db.inTransaction) db.exec("ROLLBACK");
    throw thrown;
  }
}
