/** SQLite store of Statewright: threads in one database file. */

export type { ArtifactBodies, Fault, VerifyReport } from "@statewright/core/store";
export type { Encryption, EncryptionKey } from "@statewright/store-kit";
export type { DriverName } from "./driver/driver.ts";
export { encryptStore } from "./encryption/encrypt-store.ts";
export type { BackupOptions } from "./file/backup-options.ts";
export type { SqliteStore } from "./sqlite-store.ts";
export { sqliteStore } from "./store.ts";
export type { SqliteStoreOptions } from "./store-options.ts";
export { folderArtifactBodies } from "./write/folder-artifact-bodies.ts";
