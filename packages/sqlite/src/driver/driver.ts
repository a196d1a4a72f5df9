/** Driver port: the SQLite libraries behind a single interface. */
import type { Database } from "./database.ts";

/** Names of the drivers. */
export type DriverName = "better-sqlite3" | "node:sqlite";

/** How a connection is opened. */
export interface OpenOptions {
  /** Wait for locks inside SQLite, in milliseconds. Default: the driver's. */
  readonly timeoutMs?: number;
  /** Opens the file with SQLITE_OPEN_READONLY. */
  readonly readOnly?: boolean;
  /**
   * Promises that no process changes the file: SQLite uses no locks, no log and no `-shm` file. better-sqlite3 reads the
   * whole file into memory.
   */
  readonly immutable?: boolean;
}

/** Pages of a copy. `remaining` grows when another process writes to the source, which restarts the copy. */
export interface CopyProgress {
  readonly total: number;
  readonly remaining: number;
}

/** SQLite library. */
export interface Driver {
  readonly name: DriverName;
  /** Pragmas of each connection of a store. */
  readonly pragmas: readonly string[];
  /** Throws `store_failed`, with what to install, where the library cannot run or has a known bug. */
  check(): void;
  /** Opens a connection; creates a missing file unless `readOnly`. */
  open(path: string, options?: OpenOptions): Database;
  /**
   * Copies a database page by page to a new file. `getPages` returns the number of pages of the next piece, all of
   * them after too many restarts.
   */
  backUp(db: Database, path: string, getPages: (progress: CopyProgress) => number): Promise<void>;
}

const drivers: WeakMap<Database, Driver> = new WeakMap();

/** Opens a connection, and remembers its driver for {@link getDriver}. */
export function openWith(driver: Driver, path: string, options: OpenOptions = {}): Database {
  const db = driver.open(path, options);
  drivers.set(db, driver);
  return db;
}

/** Returns the driver of a connection of {@link openWith}. */
export function getDriver(db: Database): Driver {
  const driver = drivers.get(db);
  if (driver === undefined) throw new TypeError("getDriver: expected a connection of openWith, got another one");
  return driver;
}
