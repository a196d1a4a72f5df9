/** Threads of Statewright in one SQLite file. */
export type { BackupOptions } from "./backup-options.ts";
export { encryptStore } from "./encrypt.ts";
export { type SqliteStore, type SqliteStoreOptions, sqliteStore } from "./store.ts";
export type { Encryption, EncryptionKey } from "./vault.ts";
export type { Fault, VerifyReport } from "./verify-report.ts";
