/** SIGKILL of a process around its commits, at every sixth point or at all points; another process continues. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type CrashOutcome, killAt, runUntilDone } from "@statewright/testing";
import type { Json } from "statewright";
import { afterAll, expect, test } from "vitest";
import { listKeySalts, removeKeySalt } from "../../support/remove-key-salt.ts";

const script = new URL("../../support/processes/fan-out-process.ts", import.meta.url);
// All processes load the same modules: the compile cache halves their start time.
const home = mkdtempSync(join(tmpdir(), "statewright-killed-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function place(name: string): string {
  const path = join(home, name.replaceAll(" ", "-"));
  mkdirSync(path);
  return path;
}

/** Runs a few processes at a time. */
async function inParallel<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
}

test("a run killed at each point around every commit ends as an uninterrupted run [I2, I3, I6]", {
  timeout: 120_000,
}, async () => {
  const whole = await runUntilDone({ script, folder: place("whole") });
  expect(whole.processes).toHaveLength(2);
  expect(JSON.parse(whole.stdout)).toMatchObject({ status: "done", state: { verdict: "approved" } });
  const deaths = whole.processes.flatMap(({ points }, index) => points.map((point) => ({ point, life: index + 1 })));
  expect(deaths.length).toBeGreaterThan(30);
  const wrong: string[] = [];
  const tried = process.env["STATEWRIGHT_WHOLE"] === "1" ? deaths : deaths.filter((_, nth) => nth % 6 === 0);
  await inParallel(tried, async ({ point, life }) => {
    const where = `${point} of life ${life}`;
    const outcome = await killAt({ script, folder: place(where), point, processNumber: life });
    wrong.push(...listDifferences(where, outcome, whole));
  });
  expect(wrong).toEqual([]);
});

function listDifferences(point: string, outcome: CrashOutcome, whole: CrashOutcome): readonly string[] {
  const wrong: string[] = [];
  if (removeKeySalt(outcome.stdout) !== removeKeySalt(whole.stdout))
    wrong.push(`${point}: diverged\n${outcome.stdout}\n${whole.stdout}`);
  if (listKeySalts(JSON.stringify(outcome.effects)).length > 1) wrong.push(`${point}: a key changed its random part`);
  const keys = count(outcome.effects);
  for (const [effect, times] of count(whole.effects)) {
    const found = keys.get(effect) ?? 0;
    if (found < times) wrong.push(`${point}: lost ${effect}`);
    if (effect.includes('"charge"') && found !== 1) wrong.push(`${point}: ${effect} happened ${found} times`);
    keys.delete(effect);
  }
  // Repeated effects have their own keys, so that no effect remains without a match.
  for (const effect of keys.keys()) wrong.push(`${point}: ${effect} has a key of its own`);
  return wrong;
}

function count(effects: readonly Json[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const effect of effects.map((each) => removeKeySalt(JSON.stringify(each))))
    counts.set(effect, (counts.get(effect) ?? 0) + 1);
  return counts;
}
