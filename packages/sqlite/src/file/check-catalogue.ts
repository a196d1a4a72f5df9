/**
 * Check of the tables through which all other rows are found. Their rows have no checksums: an index that does not
 * lead to a row would hide the row.
 */
import { createCorruptError } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

/** Per table: the newest row, and the first row after a key that the unique index of the table does not have. */
const catalogue = {
  graphs: {
    newest: "SELECT max(key) FROM graphs",
    unindexed:
      "SELECT key FROM graphs AS row NOT INDEXED WHERE key > ? AND NOT EXISTS (SELECT 1 FROM graphs AS entry" +
      " INDEXED BY sqlite_autoindex_graphs_1 WHERE entry.name = row.name AND entry.version = row.version AND entry.shape = row.shape AND entry.key = row.key)",
  },
  threads: {
    newest: "SELECT max(key) FROM threads",
    unindexed:
      "SELECT key FROM threads AS row NOT INDEXED WHERE key > ? AND NOT EXISTS (SELECT 1 FROM threads AS entry" +
      " INDEXED BY sqlite_autoindex_threads_1 WHERE entry.id = row.id AND entry.key = row.key)",
  },
  branches: {
    newest: "SELECT max(key) FROM branches",
    unindexed:
      "SELECT key FROM branches AS row NOT INDEXED WHERE key > ? AND NOT EXISTS (SELECT 1 FROM branches AS entry" +
      " INDEXED BY sqlite_autoindex_branches_1 WHERE entry.thread = row.thread AND entry.name = row.name AND entry.key = row.key)",
  },
  channels: {
    newest: "SELECT max(key) FROM channels",
    unindexed:
      "SELECT key FROM channels AS row NOT INDEXED WHERE key > ? AND NOT EXISTS (SELECT 1 FROM channels AS entry" +
      " INDEXED BY sqlite_autoindex_channels_1 WHERE entry.branch = row.branch AND entry.name = row.name AND entry.key = row.key)",
  },
} as const;

/**
 * Maximum number of rows that SQLite checks per table, and of the newest rows that are checked in a larger table. The
 * check takes at most about a millisecond, in a file of any size; `verify` checks all rows.
 */
export const maxCheckedRows = 250;

/** Throws `store_corrupt` for a table whose rows and indexes differ. */
export function checkCatalogue(db: Database, path: string): void {
  for (const [table, queries] of Object.entries(catalogue)) {
    const fault = findFault(db, table, queries);
    if (fault !== undefined) throw createCorruptError(`the table ${table} in "${path}" is damaged (${fault})`);
  }
}

function findFault(
  db: Database,
  table: string,
  queries: { readonly newest: string; readonly unindexed: string },
): string | undefined {
  const newest = db.prepare<[], number | null>(queries.newest).pluck().get() ?? 0;
  if (newest > maxCheckedRows) {
    const key = db
      .prepare<[number], number>(queries.unindexed)
      .pluck()
      .get(newest - maxCheckedRows);
    return key === undefined ? undefined : `row ${key} missing from index sqlite_autoindex_${table}_1`;
  }
  const [found] = db.pragma("integrity_check(" + table + ")") as readonly { readonly integrity_check: string }[];
  return found?.integrity_check === "ok" ? undefined : String(found?.integrity_check);
}
