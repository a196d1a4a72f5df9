/** `sqliteStore` with the driver of the test run: STATEWRIGHT_DRIVER, or the default of the package. */
import process from "node:process";
import { sqliteStore as openStore, type SqliteStore, type SqliteStoreOptions } from "@statewright/sqlite";
import { driverNames } from "../../src/driver/choose-driver.ts";

const driver = driverNames.find((name) => name === process.env["STATEWRIGHT_DRIVER"]);

export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SqliteStore {
  return openStore(path, driver === undefined ? options : { driver, ...options });
}
