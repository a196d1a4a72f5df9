/**
 * Inside the process that is to die: named points, a store that has points around every commit, and a log of effects that
 * outlives the process. Outside a crash test all of this does nothing.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Json, Store } from "@statewright/core";
import { storeAround } from "../wrap-store.ts";
import type { CrashEffect } from "./external-world.ts";

/** What the parent of a dying process tells it. */
export const crashEnv = {
  folder: "STATEWRIGHT_CRASH_FOLDER",
  point: "STATEWRIGHT_CRASH_POINT",
  life: "STATEWRIGHT_CRASH_LIFE",
} as const;

/** With this exit code a process asks for another life: it has come to a stop, such as a question, and is not done. */
export const anotherLife = 75;

/** Come to a named point: it is written down, and the process dies here by SIGKILL if it was told to. */
export function crashPoint(name: string): void {
  const folder = process.env[crashEnv.folder];
  if (folder === undefined) return;
  appendFileSync(join(folder, pointsFile(process.env[crashEnv.life] ?? "1")), `${JSON.stringify(name)}\n`);
  if (process.env[crashEnv.point] !== name) return;
  process.kill(process.pid, "SIGKILL");
  // Where the signal takes a moment, nothing may happen in it.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

/**
 * The store with points around each commit: `before commit n`, `after commit n` when it is durable and nobody was told,
 * `told commit n`. Commits count from 1 in each process.
 */
export function crashPoints(store: Store, onPoint: (name: string) => void = crashPoint): Store {
  let commits = 0;
  return storeAround(store, {
    commit: (commit, told) => {
      const nth = ++commits;
      onPoint(`before commit ${nth}`);
      store.commit(commit, (failure, queued) => {
        onPoint(`after commit ${nth}`);
        told(failure, queued);
        onPoint(`told commit ${nth}`);
      });
    },
  });
}

/** Write down that something happened in the world outside, where no crash and no database can take it back. */
export function logEffect(effect: Json): void {
  const folder = process.env[crashEnv.folder];
  if (folder !== undefined) appendFileSync(join(folder, effectsFile), `${JSON.stringify(effect)}\n`);
}

/** What the programs of a crash matrix have written down in a folder, in all lives. */
export function loggedEffects(folder: string): readonly CrashEffect[] {
  const file = join(folder, effectsFile);
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as CrashEffect);
}

/** The file of effects in a crash test's folder, one line of JSON each. */
export const effectsFile = "effects.ndjson";

/** The file of the points that one life came to. */
export function pointsFile(life: string): string {
  return `points-${life}.ndjson`;
}
