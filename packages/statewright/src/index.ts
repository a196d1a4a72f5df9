/** Statewright: agents as graphs, compiled to XState machines, persisted step by step to SQLite. */
export {
  type BackupOptions,
  type Encryption,
  type EncryptionKey,
  encryptStore,
  type Fault,
  type SqliteStore,
  type SqliteStoreOptions,
  sqliteStore,
  type VerifyReport,
} from "@statewright/sqlite";
export * from "./browser.ts";
