/** Stores of a test: in memory, and in a SQLite file that is removed after the test. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore, type Store, type World } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import { onTestFinished } from "vitest";

export type StoreKind = "memory" | "sqlite";

export const storeKinds: readonly StoreKind[] = ["memory", "sqlite"];

/** Creates a path for a SQLite file; its folder is removed after the test. */
export function createStorePath(): string {
  const folder = mkdtempSync(join(tmpdir(), "statewright-server-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "threads.db");
}

/** Opens a store; it is closed after the test. */
export function openTestStore(kind: StoreKind, world: World): Store {
  const store = kind === "memory" ? memoryStore() : sqliteStore(createStorePath(), { world });
  onTestFinished(() => store.close());
  return store;
}
