/** Process under test, controlled from outside: start, SIGKILL at a crash point, and restart until the end. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Json } from "@statewright/core";
import { crashEnv, effectsFile, getPointsFile, restartExitCode } from "./points.ts";

/** A script for Node that can be killed and restarted. */
export interface CrashScript {
  readonly script: string | URL;
  /** Empty folder of the test: working directory of the script, also for the files of effects and points. */
  readonly folder: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Maximum run time of a process, in milliseconds. A longer run is an error. Default 20,000. */
  readonly timeoutMs?: number;
  /** Maximum number of processes. More processes are an error. Default 10. */
  readonly maxProcesses?: number;
}

/** A process from start to end. */
export interface CrashProcess {
  /** Reached crash points, in order. */
  readonly points: readonly string[];
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Result of all processes of a script. */
export interface CrashOutcome {
  readonly processes: readonly CrashProcess[];
  /** Effects logged by `logEffect` in all processes. */
  readonly effects: readonly Json[];
  /** Standard output of the last process. */
  readonly stdout: string;
}

/** Restarts a script after each exit with code 75 (`restartExitCode`), until the exit code is 0; throws for others. */
export function runUntilDone(script: CrashScript): Promise<CrashOutcome> {
  return runToEnd(script, []);
}

/**
 * Kills the first process of a script (or process number `processNumber`) by SIGKILL at `point`, and restarts the
 * script until the end. Throws when the process does not reach the point.
 */
export async function killAt(
  script: CrashScript & { readonly point: string; readonly processNumber?: number },
): Promise<CrashOutcome> {
  const { point, processNumber = 1 } = script;
  const processes: CrashProcess[] = [];
  while (processes.length < processNumber - 1) {
    processes.push(await spawnProcess(script, processes.length + 1, undefined));
    if (processes.at(-1)?.exitCode !== restartExitCode)
      throw createMissedPointError(point, processes.at(-1) as CrashProcess);
  }
  const killed = await spawnProcess(script, processNumber, point);
  if (killed.signal !== "SIGKILL" || killed.points.at(-1) !== point) throw createMissedPointError(point, killed);
  return runToEnd(script, [...processes, killed]);
}

/**
 * Restarts a script until the end. SIGKILL ends the first process at the first of `points`, the second process at the
 * second, and so on. A process that does not reach its point runs to its end.
 */
export async function killInSequence(
  script: CrashScript & { readonly points: readonly string[]; readonly before?: readonly CrashProcess[] },
): Promise<CrashOutcome> {
  const { points, before = [] } = script;
  const processes = [...before];
  for (const point of points) {
    const child = await spawnProcess(script, processes.length + 1, point);
    processes.push(child);
    if (child.exitCode === 0) return createOutcome(script, processes);
    if (child.signal !== "SIGKILL" && child.exitCode !== restartExitCode) throw createExitError(processes);
  }
  return runToEnd(script, processes);
}

function createOutcome({ folder }: CrashScript, processes: readonly CrashProcess[]): CrashOutcome {
  const last = processes[processes.length - 1];
  return { processes, effects: readLines(join(folder, effectsFile)), stdout: last?.stdout ?? "" };
}

function createMissedPointError(point: string, child: CrashProcess): Error {
  const reached = child.points.join(", ") || "no point";
  return new Error(
    `expected the process to die at "${point}", but the process ${describeEnd(child)}. Points reached: ${reached}.\n${child.stderr}`,
  );
}

function createExitError(processes: readonly CrashProcess[]): Error {
  const child = processes.at(-1) as CrashProcess;
  return new Error(
    `expected process ${processes.length} to exit with 0 or ${restartExitCode}, but the process ${describeEnd(child)}.\n${child.stderr}`,
  );
}

async function runToEnd(script: CrashScript, before: readonly CrashProcess[]): Promise<CrashOutcome> {
  const { maxProcesses = 10 } = script;
  const processes = [...before];
  for (;;) {
    const child = await spawnProcess(script, processes.length + 1, undefined);
    processes.push(child);
    if (child.exitCode === 0) return createOutcome(script, processes);
    if (child.exitCode !== restartExitCode) throw createExitError(processes);
    if (processes.length >= maxProcesses)
      throw new Error(
        `expected the script to end within ${maxProcesses} processes, but the last process requested another restart. Fix the script, or increase maxProcesses.`,
      );
  }
}

function spawnProcess(script: CrashScript, processNumber: number, point: string | undefined): Promise<CrashProcess> {
  const { script: file, folder, args = [], env = {}, timeoutMs = 20_000 } = script;
  const child = spawn(process.execPath, [file instanceof URL ? fileURLToPath(file) : file, ...args], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: timeoutMs,
    killSignal: "SIGTERM",
    env: {
      ...process.env,
      ...env,
      [crashEnv.folder]: folder,
      [crashEnv.processNumber]: String(processNumber),
      ...(point === undefined ? {} : { [crashEnv.point]: point }),
    },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => {
      const points = readLines(join(folder, getPointsFile(String(processNumber)))).map(String);
      resolve({ points, exitCode, signal, stdout, stderr });
    });
  });
}

function describeEnd({ exitCode, signal }: CrashProcess): string {
  return signal === null ? `ended with exit code ${exitCode}` : `was ended by ${signal}`;
}

function readLines(file: string): readonly Json[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Json);
}
