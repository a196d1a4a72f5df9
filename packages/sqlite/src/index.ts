/** Threads of Statewright in one SQLite file. */
export { type SqliteStoreOptions, sqliteStore } from "./store.ts";
