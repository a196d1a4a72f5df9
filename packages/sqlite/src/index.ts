/** SQLite store of Statewright: threads in one database file. */

export type { Encryption, EncryptionKey } from "./encryption/cipher.ts";
export { encryptStore } from "./encryption/encrypt-store.ts";
export type { BackupOptions } from "./file/backup-options.ts";
export type { SqliteStore } from "./sqlite-store.ts";
export { sqliteStore } from "./store.ts";
export type { SqliteStoreOptions } from "./store-options.ts";
export type { Fault, VerifyReport } from "./verify/verify-report.ts";
