/** Runs the same test over the memory store and over a file. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isStatewrightError, memoryStore, type StatewrightError, type Store, sqliteStore } from "statewright";
import type { Commit } from "statewright/store";

/** A store, and further processes on the same threads. */
export interface Place {
  readonly store: Store;
  /** Opens a second process. */
  readonly peer: () => Store;
  /** Kills the process of `store`; returns the store of the next process. */
  readonly crash: () => Store;
  readonly close: () => Promise<void>;
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
    // A kill leaves the file and its log in their current state, and no lock.
    crash: () => {
      const image = join(home, "image.db");
      for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, image + part);
      return open(image);
    },
    close: async () => {
      for (const each of opened) await each.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/**
 * Wraps a store whose process dies at a matching commit: before the commit, or when it is durable and not yet
 * reported.
 */
export function crashAt(
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
  const commit: Store["commit"] = (write, onCommitted) => {
    if (isDead) return;
    const last = fatal(write);
    if (last && when === "before") return die();
    store.commit(write, (failure, queued) => (last ? die() : onCommitted(failure, queued)));
  };
  return { store: Object.assign(Object.create(store) as Store, { commit }), dead };
}

/** Wraps a store whose process dies at its nth commit, from 1; never for 0. `commits` counts the commits. */
export function crashAtNth(
  store: Store,
  nth: number,
  when: "before" | "after",
): { readonly store: Store; readonly dead: Promise<void>; readonly commits: () => number } {
  let commits = 0;
  const dying = crashAt(
    store,
    () => {
      commits += 1;
      return commits === nth;
    },
    when,
  );
  return { ...dying, commits: () => commits };
}

/** Returns the StatewrightError of this code that `work` rejects with. */
export async function getFailure(work: Promise<unknown>, code: StatewrightError["code"]): Promise<StatewrightError> {
  try {
    await work;
  } catch (error) {
    if (isStatewrightError(error, code)) return error;
    throw error;
  }
  throw new Error(`nothing failed, expected ${code}`);
}

/** Ignores the result of a run whose process is killed on purpose. */
export function ignoreResult(result: Promise<unknown>): void {
  result.then(doNothing, doNothing);
}

function doNothing(): void {
  // No callback runs after the crash.
}
