/** Effects outside of a worker: each one is a line of a file, and a hold keeps an effect at work. */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout } from "node:timers/promises";

/** Effect that a worker has begun. */
export interface LoggedDelivererEffect {
  readonly name: string;
  readonly key: string;
  readonly pid: number;
}

const pollMs = 4;
/** Polls of a condition, 30 s together. */
const maxPolls = 7_500;

const getEffectsFile = (folder: string): string => join(folder, "effects.ndjson");
const getHoldFile = (folder: string, name: string): string => join(folder, `hold-${name}`);

/** Logs an effect, and keeps it at work while its hold exists. */
export async function performEffect(folder: string, name: string, key: string): Promise<string> {
  appendFileSync(getEffectsFile(folder), `${JSON.stringify({ name, key, pid: process.pid })}\n`);
  while (existsSync(getHoldFile(folder, name))) await setTimeout(pollMs);
  return `${name} done`;
}

/** Keeps the effects of a name at work until the returned function is called. */
export function holdEffect(folder: string, name: string): () => void {
  writeFileSync(getHoldFile(folder, name), "");
  return () => rmSync(getHoldFile(folder, name), { force: true });
}

/** Lists the effects of a name that workers have begun; of all names by default. */
export function listEffects(folder: string, name?: string): readonly LoggedDelivererEffect[] {
  if (!existsSync(getEffectsFile(folder))) return [];
  return readFileSync(getEffectsFile(folder), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LoggedDelivererEffect)
    .filter((effect) => name === undefined || effect.name === name);
}

/** Waits until a condition holds. Rejects after 30 s. */
export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let polls = 0; !(await condition()); polls++) {
    if (polls > maxPolls) throw new Error(`expected ${what} within 30 s`);
    await setTimeout(pollMs);
  }
}
