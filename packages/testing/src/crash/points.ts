/**
 * API for the process under test: named crash points, a store with crash points around every commit, and a log of
 * effects outside the process. All functions do nothing outside a crash test.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Json, Store } from "@statewright/core";
import { wrapStore } from "../wrap-store.ts";
import type { CrashEffect } from "./external-world.ts";

/** Environment variables from the parent process to the process under test. */
export const crashEnv = {
  folder: "STATEWRIGHT_CRASH_FOLDER",
  point: "STATEWRIGHT_CRASH_POINT",
  processNumber: "STATEWRIGHT_CRASH_PROCESS",
} as const;

/**
 * Exit code with which a process requests a restart: the run stopped, for example at an interrupt, and is not done.
 */
export const restartExitCode = 75;

/** Reaches a named point: records the point, and kills the process by SIGKILL when the test selected this point. */
export function crashPoint(name: string): void {
  const folder = process.env[crashEnv.folder];
  if (folder === undefined) return;
  appendFileSync(join(folder, getPointsFile(process.env[crashEnv.processNumber] ?? "1")), `${JSON.stringify(name)}\n`);
  if (process.env[crashEnv.point] !== name) return;
  process.kill(process.pid, "SIGKILL");
  // Block until the signal arrives, so that no code runs after the point.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

/**
 * Wraps a store with points around each commit: `before commit n`, `after commit n` when the commit is durable but
 * not reported yet, and `reported commit n` after the callback. Commits are numbered from 1 in each process.
 */
export function crashPoints(store: Store, onPoint: (name: string) => void = crashPoint): Store {
  let commits = 0;
  return wrapStore(store, {
    commit: (commit, onCommitted) => {
      const nth = ++commits;
      onPoint(`before commit ${nth}`);
      store.commit(commit, (failure, counts) => {
        onPoint(`after commit ${nth}`);
        onCommitted(failure, counts);
        onPoint(`reported commit ${nth}`);
      });
    },
  });
}

/** Logs an external effect to a file that survives crashes and database rollbacks. */
export function logEffect(effect: Json): void {
  const folder = process.env[crashEnv.folder];
  if (folder !== undefined) appendFileSync(join(folder, effectsFile), `${JSON.stringify(effect)}\n`);
}

/** Reads the effects that all processes of a crash matrix logged in a folder. */
export function readLoggedEffects(folder: string): readonly CrashEffect[] {
  const file = join(folder, effectsFile);
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as CrashEffect);
}

/** Name of the effects file in the folder of a crash test. Each line is the JSON of an effect. */
export const effectsFile = "effects.ndjson";

/** Returns the name of the file with the points of a process. */
export function getPointsFile(processNumber: string): string {
  return `points-${processNumber}.ndjson`;
}
