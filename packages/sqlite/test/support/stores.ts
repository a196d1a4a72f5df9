/** Stores in a folder of their own, as the conformance suite wants them. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "@statewright/core";
import { type SqliteStoreOptions, sqliteStore } from "@statewright/sqlite";
import type { StoreUnderTest } from "@statewright/testing/conformance";

/** A folder in memory where the machine has such a one: what is written there by the thousand waits for no disk. */
export function memoryFolder(): ReturnType<typeof folder> {
  return folder(existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
}

/** A folder that is gone after the test. */
export function folder(base: string = tmpdir()): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(base, "statewright-sqlite-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export function openFile(options: SqliteStoreOptions = { durability: "normal" }): StoreUnderTest {
  const home = memoryFolder();
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
    // What a crash leaves is the file and its log as they are at that moment, and no lock.
    crash: () => {
      const image = join(home.path, "image.db");
      for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, image + part);
      return keep(image);
    },
    dispose: () => {
      for (const each of opened) each.close();
      home.remove();
    },
  };
}

export function openMemory(): StoreUnderTest {
  const store = sqliteStore(":memory:");
  const none = (): never => {
    throw new Error("a store in memory has one owner");
  };
  return { store, peer: none, crash: none, dispose: () => store.close() };
}
