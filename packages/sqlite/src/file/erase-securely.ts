/** Deletion without traces in the file. */
import type { Database } from "../driver/database.ts";

/** Overwrites deleted data in place; copies in formerly free pages are removed by `vacuum`. */
export function eraseSecurely<Value>(db: Database, operation: () => Value): Value {
  db.pragma("secure_delete = ON");
  try {
    return operation();
  } finally {
    db.pragma("secure_delete = OFF");
  }
}
