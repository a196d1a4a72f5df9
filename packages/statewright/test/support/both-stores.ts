/** The same test over the store in memory and over a file: what one holds for the other must hold too. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isStatewrightError, memoryStore, type StatewrightError, type Store, sqliteStore } from "statewright";
import type { Commit } from "statewright/store";

/** A store, and other processes on the same threads. */
export interface Place {
  readonly store: Store;
  /** A second process. */
  readonly peer: () => Store;
  /** The process of `store` is killed; gives the store of one that comes after it. */
  readonly crash: () => Store;
  readonly close: () => void;
}

export const places: readonly (readonly [string, () => Place])[] = [
  ["in memory", inMemory],
  ["in a file", inFile],
];

function inMemory(): Place {
  const store = memoryStore();
  return {
    store,
    peer: () => store.peer(),
    crash: () => {
      const next = store.peer();
      store.crash();
      return next;
    },
    close: () => store.close(),
  };
}

function inFile(): Place {
  const home = mkdtempSync(join(tmpdir(), "statewright-stores-"));
  const file = join(home, "agent.db");
  const opened: Store[] = [];
  const open = (path: string): Store => {
    const store = sqliteStore(path, { durability: "normal" });
    opened.push(store);
    return store;
  };
  const store = open(file);
  return {
    store,
    peer: () => open(file),
    // What a kill leaves is the file and its log as they are at that moment, and no lock.
    crash: () => {
      const image = join(home, "image.db");
      for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, image + part);
      return open(image);
    },
    close: () => {
      for (const each of opened) each.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** A store whose process dies at a commit: before it is made, or when it is durable and nobody was told. */
export function diesAt(
  store: Store,
  fatal: (commit: Commit) => boolean,
  when: "before" | "after",
): { readonly store: Store; readonly dead: Promise<void> } {
  let die: () => void = () => undefined;
  let isDead = false;
  const dead = new Promise<void>((resolve) => {
    die = () => {
      isDead = true;
      resolve();
    };
  });
  const commit: Store["commit"] = (write, told) => {
    if (isDead) return;
    const last = fatal(write);
    if (last && when === "before") return die();
    store.commit(write, (failure, queued) => (last ? die() : told(failure, queued)));
  };
  return { store: Object.assign(Object.create(store) as Store, { commit }), dead };
}

/** The same at the nth of its commits, from 1; at none for 0. `commits` tells how many it has made. */
export function diesAtNth(
  store: Store,
  nth: number,
  when: "before" | "after",
): { readonly store: Store; readonly dead: Promise<void>; readonly commits: () => number } {
  let commits = 0;
  const dying = diesAt(
    store,
    () => {
      commits += 1;
      return commits === nth;
    },
    when,
  );
  return { ...dying, commits: () => commits };
}

/** The error that `work` ends with, of this code. */
export async function failureOf(work: Promise<unknown>, code: StatewrightError["code"]): Promise<StatewrightError> {
  try {
    await work;
  } catch (error) {
    if (isStatewrightError(error, code)) return error;
    throw error;
  }
  throw new Error(`nothing failed, expected ${code}`);
}

/** A run that dies on purpose: what becomes of its result is not what the test looks at. */
export function leftToDie(result: Promise<unknown>): void {
  result.then(nobodyLooks, nobodyLooks);
}

function nobodyLooks(): void {
  // Nothing comes after a death.
}
