/** Stores of a simulated machine: two processes with one thread, and crashes of both. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore, type Store, type World } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";

/** Stores of the two processes of one life, until the next crash. */
export interface LifeStores {
  readonly owner: Store;
  readonly other: Store;
  /** Kills both processes as with SIGKILL. */
  readonly crash: () => void;
}

/** Storage that outlives crashes. */
export interface MachineStores {
  readonly open: (world: World) => LifeStores;
  readonly dispose: () => void | Promise<void>;
}

/** Kind of storage; `killed`: a file of SQLite, and processes that are killed by SIGKILL. */
export type StoreKind = "memory" | "sqlite" | "killed";

/** Creates the storage of one simulation. */
export function createMachineStores(kind: Exclude<StoreKind, "killed">): MachineStores {
  return kind === "memory" ? createMemoryStores() : createFileStores();
}

function createMemoryStores(): MachineStores {
  const threads = memoryStore();
  return {
    open: () => {
      const [owner, other] = [threads.peer(), threads.peer()];
      return {
        owner,
        other,
        crash: () => {
          owner.crash();
          other.crash();
        },
      };
    },
    dispose: () => undefined,
  };
}

/** A crash leaves a copy of the file and its log, which the next processes open. */
function createFileStores(): MachineStores {
  const folder = mkdtempSync(join(tmpdir(), "statewright-machines-"));
  const opened: Store[] = [];
  let copies = 0;
  let file = join(folder, "0.db");
  return {
    open: (world) => {
      const owner = sqliteStore(file, { durability: "normal", world });
      const other = sqliteStore(file, { durability: "normal", world });
      opened.push(owner, other);
      return {
        owner,
        other,
        crash: () => {
          const copy = join(folder, `${++copies}.db`);
          for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, copy + part);
          file = copy;
        },
      };
    },
    dispose: async () => {
      for (const store of opened) await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Opens the file of a process that a crash kills: `kill` never returns. */
export function createKilledStores(file: string, kill: () => void): MachineStores {
  const opened: Store[] = [];
  return {
    open: (world) => {
      const owner = sqliteStore(file, { durability: "normal", world });
      const other = sqliteStore(file, { durability: "normal", world });
      opened.push(owner, other);
      return { owner, other, crash: kill };
    },
    dispose: async () => {
      for (const store of opened) await store.close();
    },
  };
}
