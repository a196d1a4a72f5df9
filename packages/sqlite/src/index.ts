/** SQLite store of Statewright: threads in a single database file. */

export type { ArtifactBodies, Fault, VerifyReport } from "@statewright/core/store";
export type { Encryption, EncryptionKey } from "@statewright/store-kit";
export { folderArtifactBodies } from "./bodies/folder-artifact-bodies.ts";
export type { DriverName } from "./driver/driver.ts";
export { encryptStore } from "./encryption/encrypt-store.ts";
export type { BackupOptions } from "./file/backup-options.ts";
export { type SocketRelay, type SocketRelayOptions, socketRelay } from "./relay/socket-relay.ts";
export type { SqliteStore } from "./sqlite-store.ts";
export { sqliteStore } from "./store.ts";
export type { SqliteStoreOptions } from "./store-options.ts";
