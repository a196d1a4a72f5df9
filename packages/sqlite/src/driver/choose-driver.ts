/** Choice of the driver of a file. */
import { StatewrightError } from "@statewright/core";
import { betterSqliteDriver } from "./better-sqlite-driver.ts";
import type { Driver, DriverName } from "./driver.ts";
import { nodeSqliteDriver } from "./node-sqlite-driver.ts";
import { findOpenDriver } from "./open-files.ts";

/** Drivers by name. */
const drivers: Readonly<Record<DriverName, Driver>> = {
  "better-sqlite3": betterSqliteDriver,
  "node:sqlite": nodeSqliteDriver,
};

/** Names of all drivers. */
export const driverNames: readonly DriverName[] = ["better-sqlite3", "node:sqlite"];

/**
 * Returns the driver for a file: the wanted one, else the driver that this process has the file open with, else
 * better-sqlite3. Throws `store_failed` for a file that is open through another driver than the wanted one.
 */
export function chooseDriver(path: string, wanted: DriverName | undefined): Driver {
  const used = findOpenDriver(path);
  if (used !== undefined && wanted !== undefined && used !== wanted) throw createOtherDriverError(path, used, wanted);
  return getDriverByName(wanted ?? used);
}

/** Returns a driver by name. Default: better-sqlite3. */
export function getDriverByName(name: DriverName = "better-sqlite3"): Driver {
  return drivers[name];
}

function createOtherDriverError(path: string, used: DriverName, wanted: DriverName): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `"${path}" is open in this process through the driver "${used}", and "${wanted}" would release its locks`,
    next: `Use the open store, or pass { driver: "${used}" }, or close the file first`,
    details: { path, driver: used },
  });
}
