/** Stores in temporary folders, for the conformance suite. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "@statewright/core";
import type { SqliteStoreOptions } from "@statewright/sqlite";
import type { StoreUnderTest } from "@statewright/testing/conformance";
import { sqliteStore } from "./sqlite-store.ts";

/** Creates a folder in a memory file system when the machine has one: thousands of writes wait for no disk. */
export function createMemoryFolder(): ReturnType<typeof createFolder> {
  return createFolder(existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
}

/** Creates a folder that is removed after the test. */
export function createFolder(base: string = tmpdir()): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(base, "statewright-sqlite-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export function openFile(options: SqliteStoreOptions = { durability: "normal" }): StoreUnderTest {
  const home = createMemoryFolder();
  const file = join(home.path, "agent.db");
  const opened: Store[] = [];
  const keep = (path: string): Store => {
    const store = sqliteStore(path, options);
    opened.push(store);
    return store;
  };
  const store = keep(file);
  return {
    store,
    peer: () => keep(file),
    // A crash leaves the file and its log in their current state, and no lock.
    crash: () => {
      const image = join(home.path, "image.db");
      for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, image + part);
      return keep(image);
    },
    dispose: async () => {
      for (const each of opened) await each.close();
      home.remove();
    },
  };
}

export function openMemory(options: SqliteStoreOptions = {}): StoreUnderTest {
  const store = sqliteStore(":memory:", options);
  const throwMissing = (): never => {
    throw new Error("a store in memory has one owner");
  };
  return { store, peer: throwMissing, crash: throwMissing, dispose: () => store.close() };
}
