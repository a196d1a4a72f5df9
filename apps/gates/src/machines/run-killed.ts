/** Subject in real processes: each crash of the plan kills the process by SIGKILL, and another process continues. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runChild } from "../run-child.ts";
import type { MachinePlan } from "./random-machine.ts";
import type { DurableResult, SavedSimulation } from "./run-durable.ts";

const processFile = fileURLToPath(new URL("./killed-process.ts", import.meta.url));

/** Name of the file in which a process leaves the state of the simulation. */
export const stateFile = "simulation.json";

/** State that a killed process leaves. */
export interface KilledState {
  readonly kills: number;
  readonly saved: SavedSimulation;
}

/** Result of the subject, with the number of processes that SIGKILL ended. */
export interface KilledResult extends DurableResult {
  readonly kills: number;
}

/** Compiled modules of all processes of the gate: most of the time of a short process is its compilation. */
const compileCache = join(tmpdir(), "statewright-killed-modules");

/** Time limit of one process, in milliseconds. */
const timeoutMs = 120_000;

/** Adds a crash at an early write to a plan without crashes. */
export function addKill(plan: MachinePlan, seed: number): MachinePlan {
  if (plan.crashes.length > 0) return plan;
  return { ...plan, crashes: [{ nth: 2 + (seed % 4), isAfter: seed % 2 === 0 }] };
}

/** Runs the plan of a seed until a process reaches its end. Rejects when a process ends in another way. */
export async function runKilled(seed: number): Promise<KilledResult> {
  const folder = mkdtempSync(join(tmpdir(), "statewright-killed-"));
  try {
    for (let kills = 0; ; kills++) {
      let line: string | undefined;
      const onLine = (text: string): void => {
        line = text;
      };
      const { code, signal, stderr } = await runChild(processFile, [folder, String(seed)], onLine, {
        timeoutMs,
        compileCache,
      });
      if (code === 0 && line !== undefined) return parseResult(line, kills);
      // A process that the time limit ended has not saved its state.
      if (signal !== "SIGKILL" || countKills(join(folder, stateFile)) !== kills + 1)
        throw new Error(`seed ${seed}: a process exited with ${signal ?? code}\n${stderr}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function countKills(file: string): number {
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as KilledState).kills : 0;
}

function parseResult(line: string, kills: number): KilledResult {
  const { endTimes, ...result } = JSON.parse(line) as Omit<DurableResult, "endTimes"> & {
    readonly endTimes: readonly (readonly [string, number])[];
  };
  return { ...result, endTimes: new Map(endTimes), kills };
}
