/** Statewright: agents as graphs, compiled to XState machines, persisted step by step to SQLite. */
export {
  type BackupOptions,
  type DriverName,
  type SqliteStore,
  type SqliteStoreOptions,
  sqliteStore,
} from "@statewright/sqlite";
export * from "./browser.ts";
