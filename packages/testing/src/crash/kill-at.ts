/** Outside the process that is to die: start it, kill it at a point by SIGKILL, start it again until it ends. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Json } from "@statewright/core";
import { anotherLife, crashEnv, effectsFile, pointsFile } from "./points.ts";

/** A script for Node that can be killed and started again. */
export interface CrashScript {
  readonly script: string | URL;
  /** An empty folder of the test's own: the script runs in it, and its effects and points are written there. */
  readonly folder: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A life that takes longer is an error. Default 20,000. */
  readonly timeoutMs?: number;
  /** More lives than this are an error. Default 10. */
  readonly maxLives?: number;
}

/** One process, from its start to its end. */
export interface ProcessLife {
  /** The points that it came to, in order. */
  readonly points: readonly string[];
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What is left when the last process has ended. */
export interface CrashOutcome {
  readonly lives: readonly ProcessLife[];
  /** What `logEffect` wrote down, in all lives. */
  readonly effects: readonly Json[];
  /** What the last life printed. */
  readonly stdout: string;
}

/** Start a script, and again while it asks for another life with exit code 75, until it ends with 0. Throws when it ends otherwise. */
export function untilDone(script: CrashScript): Promise<CrashOutcome> {
  return live(script, []);
}

/**
 * Start a script that dies by SIGKILL at `point` of its first life (or of `life`), and start it again until it ends.
 * Throws when it never comes to the point.
 */
export async function killAt(
  script: CrashScript & { readonly point: string; readonly life?: number },
): Promise<CrashOutcome> {
  const { point, life = 1 } = script;
  const lives: ProcessLife[] = [];
  while (lives.length < life - 1) {
    lives.push(await oneLife(script, lives.length + 1, undefined));
    if (lives.at(-1)?.exitCode !== anotherLife) throw notThere(point, lives.at(-1) as ProcessLife);
  }
  const dying = await oneLife(script, life, point);
  if (dying.signal !== "SIGKILL" || dying.points.at(-1) !== point) throw notThere(point, dying);
  return live(script, [...lives, dying]);
}

/**
 * Start a script again and again until it ends; its first life dies by SIGKILL at the first of `points`, its second at the
 * second, and so on. A life that does not come to its point goes on to its end.
 */
export async function killInTurn(
  script: CrashScript & { readonly points: readonly string[]; readonly before?: readonly ProcessLife[] },
): Promise<CrashOutcome> {
  const { points, before = [] } = script;
  const lives = [...before];
  for (const point of points) {
    const life = await oneLife(script, lives.length + 1, point);
    lives.push(life);
    if (life.exitCode === 0) return outcomeOf(script, lives);
    if (life.signal !== "SIGKILL" && life.exitCode !== anotherLife)
      throw new Error(`life ${lives.length} ${endOf(life)}.\n${life.stderr}`);
  }
  return live(script, lives);
}

function outcomeOf({ folder }: CrashScript, lives: readonly ProcessLife[]): CrashOutcome {
  const last = lives[lives.length - 1];
  return { lives, effects: readLines(join(folder, effectsFile)), stdout: last?.stdout ?? "" };
}

function notThere(point: string, life: ProcessLife): Error {
  const came = life.points.join(", ") || "no point";
  return new Error(`a process was to die at "${point}" and ${endOf(life)}. It came to: ${came}.\n${life.stderr}`);
}

async function live(script: CrashScript, before: readonly ProcessLife[]): Promise<CrashOutcome> {
  const { maxLives = 10 } = script;
  const lives = [...before];
  for (;;) {
    const life = await oneLife(script, lives.length + 1, undefined);
    lives.push(life);
    if (life.exitCode === 0) return outcomeOf(script, lives);
    if (life.exitCode !== anotherLife) throw new Error(`life ${lives.length} ${endOf(life)}.\n${life.stderr}`);
    if (lives.length >= maxLives) throw new Error(`after ${maxLives} lives the script still asks for another`);
  }
}

function oneLife(script: CrashScript, life: number, point: string | undefined): Promise<ProcessLife> {
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
      [crashEnv.life]: String(life),
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
      const points = readLines(join(folder, pointsFile(String(life)))).map(String);
      resolve({ points, exitCode, signal, stdout, stderr });
    });
  });
}

function endOf({ exitCode, signal }: ProcessLife): string {
  return signal === null ? `ended with exit code ${exitCode}` : `was ended by ${signal}`;
}

function readLines(file: string): readonly Json[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Json);
}
