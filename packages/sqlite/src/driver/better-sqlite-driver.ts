/** Driver of better-sqlite3: its objects are used directly. */
import { readFileSync } from "node:fs";
import { StatewrightError } from "@statewright/core";
import BetterSqlite from "better-sqlite3";
import type { Database } from "./database.ts";
import type { Driver, OpenOptions } from "./driver.ts";

/** Creates the driver. */
export const betterSqliteDriver: Driver = {
  name: "better-sqlite3",
  pragmas: [],
  check: () => refuseOldNode(process.versions),
  open,
  backUp: async (db, path, getPages) => {
    if (!(db instanceof BetterSqlite)) throw new TypeError("backUp: expected a connection of better-sqlite3");
    await db.backup(path, {
      progress: ({ totalPages, remainingPages }) => getPages({ total: totalPages, remaining: remainingPages }),
    });
  },
};

function open(path: string, { timeoutMs, readOnly = false, immutable = false }: OpenOptions = {}): Database {
  if (immutable) return new BetterSqlite(readImmutable(path), { readonly: true });
  const timeout = timeoutMs === undefined ? {} : { timeout: timeoutMs };
  return new BetterSqlite(path, { ...timeout, readonly: readOnly });
}

/** Header bytes with the versions of the file format for writes and reads: 2 with a write-ahead log, 1 without. */
const formatBytes = [18, 19] as const;

/** Reads a whole file: better-sqlite3 opens no URI, and so no file without its log. A database in memory has no log. */
function readImmutable(path: string): Buffer {
  const bytes = readFileSync(path);
  for (const offset of formatBytes) if (bytes[offset] === 2) bytes[offset] = 1;
  return bytes;
}

/**
 * The prebuilt binary of better-sqlite3 requires Node-API version 10; an older Node crashes instead of refusing the
 * binary.
 */
export function refuseOldNode({ napi, node }: { readonly napi?: string; readonly node: string }): void {
  if (napi === undefined || Number(napi) >= 10) return;
  throw new StatewrightError("store_failed", {
    what: `Node ${node} cannot load the SQLite binary of better-sqlite3`,
    next: "Use Node 22.14 or newer",
  });
}
