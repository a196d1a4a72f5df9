/**
 * Simulation stores over a real SQLite file. A crash leaves a copy of the database and its WAL file, without locks.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { sqliteStore } from "@statewright/sqlite";
import type { SimulatedStores } from "./simulated-stores.ts";

/** Creates the store of one simulation: one process at a time; the next process opens a copy of the file. */
export function createSqliteStores(): SimulatedStores {
  const folder = mkdtempSync(join(tmpdir(), "statewright-simulation-"));
  const opened: Store[] = [];
  let copies = 0;
  let file = join(folder, "0.db");
  let reader: { readonly file: string; readonly store: Store } | undefined;
  const real = systemWorld();
  const world = { ...real, schedule: { ...real.schedule, soon: queueMicrotask } };

  function open(): Store {
    const store = sqliteStore(file, { durability: "normal", world });
    opened.push(store);
    return store;
  }

  return {
    open: () => ({
      store: withoutHints(open()),
      crash: () => {
        const copy = join(folder, `${++copies}.db`);
        for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, copy + part);
        file = copy;
      },
    }),
    getReader: () => {
      if (reader?.file !== file) reader = { file, store: open() };
      return reader.store;
    },
    dispose: async () => {
      for (const store of opened) await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Hints of a file come from polls at real times: runs of simulations find inputs with their commits. */
function withoutHints({ watch: _, ...store }: Store): Store {
  return store;
}
