/** Simulations over a real SQLite file: what a crash leaves is the file and its log as they are at that moment, and no lock. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Store, systemWorld } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import type { SimulatedStores } from "@statewright/testing";

/** One file for one simulation. One process at a time: another life has a copy of the file. */
export function sqliteStores(): SimulatedStores {
  const folder = mkdtempSync(join(tmpdir(), "statewright-simulation-"));
  const opened: Store[] = [];
  let copies = 0;
  let file = join(folder, "0.db");
  let looking: { readonly file: string; readonly store: Store } | undefined;
  const real = systemWorld();
  const world = { ...real, schedule: { ...real.schedule, soon: queueMicrotask } };

  function open(): Store {
    const store = sqliteStore(file, { durability: "normal", world });
    opened.push(store);
    return store;
  }

  return {
    open: () => ({
      store: open(),
      crash: () => {
        const image = join(folder, `${++copies}.db`);
        for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, image + part);
        file = image;
      },
    }),
    look: () => {
      if (looking?.file !== file) looking = { file, store: open() };
      return looking.store;
    },
    dispose: () => {
      for (const store of opened) store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
