/** Driver of better-sqlite3: its objects are used directly. */
import { pathToFileURL } from "node:url";
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
  const timeout = timeoutMs === undefined ? {} : { timeout: timeoutMs };
  return new BetterSqlite(immutable ? `${pathToFileURL(path).href}?immutable=1` : path, {
    ...timeout,
    readonly: readOnly,
  });
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
