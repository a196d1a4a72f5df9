/** Statewright: agents as graphs, compiled to XState machines, persisted step by step to SQLite. */
export {
  type ArtifactBodies,
  type BackupOptions,
  type DriverName,
  type Encryption,
  type EncryptionKey,
  encryptStore,
  type Fault,
  folderArtifactBodies,
  type SocketRelay,
  type SocketRelayOptions,
  type SqliteStore,
  type SqliteStoreOptions,
  socketRelay,
  sqliteStore,
  type VerifyReport,
} from "@statewright/sqlite";
export * from "./browser.ts";
