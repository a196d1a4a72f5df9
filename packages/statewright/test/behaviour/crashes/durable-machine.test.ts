/** SIGKILL of a process with a durable machine, at every third point or at all points; another process continues. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type CrashOutcome, killAt, runUntilDone } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";
import { removeKeySalt } from "../../support/remove-key-salt.ts";

const script = new URL("../../support/processes/order-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-order-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function place(name: string): string {
  const path = join(home, name.replaceAll(" ", "-"));
  mkdirSync(path);
  return path;
}

test("a durable machine killed at each point between its commits charges once and ships under one key [E53]", {
  timeout: 120_000,
}, async () => {
  const whole = await runUntilDone({ script, folder: place("whole") });
  // The delay of the child machine ends the first process.
  expect(whole.processes).toHaveLength(2);
  expect(JSON.parse(whole.stdout)).toEqual({
    state: {
      value: "shipped",
      context: { id: "9", receipt: "paid 9", parcel: "order 9, wrapped", tracking: "sent order 9, wrapped" },
      children: {},
    },
    states: ["shipping → __end__", "packing → shipping", "packing → packing", "charging → packing", " → charging"],
  });
  expect(listNames(whole)).toEqual(["charge", "wrap", "ship"]);
  const deaths = whole.processes.flatMap(({ points }, index) => points.map((point) => ({ point, life: index + 1 })));
  expect(deaths).toContainEqual({ point: "inside charge", life: 1 });
  expect(deaths).toContainEqual({ point: "inside ship", life: 2 });
  expect(deaths.length).toBeGreaterThan(20);
  const wrong: string[] = [];
  const waiting = process.env["STATEWRIGHT_WHOLE"] === "1" ? [...deaths] : deaths.filter((_, nth) => nth % 3 === 0);
  const worker = async (): Promise<void> => {
    for (let death = waiting.shift(); death !== undefined; death = waiting.shift()) {
      const where = `${death.point} of life ${death.life}`;
      const outcome = await killAt({ script, folder: place(where), point: death.point, processNumber: death.life });
      wrong.push(...listDifferences(where, outcome, whole));
    }
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
  expect(wrong).toEqual([]);
});

function listDifferences(point: string, outcome: CrashOutcome, whole: CrashOutcome): readonly string[] {
  const wrong: string[] = [];
  if (outcome.stdout !== whole.stdout) wrong.push(`${point}: diverged\n${outcome.stdout}\n${whole.stdout}`);
  const charges = listNames(outcome).filter((name) => name === "charge").length;
  if (charges !== 1) wrong.push(`${point}: charged ${charges} times`);
  const keys = (effects: CrashOutcome["effects"]): string =>
    [...new Set(effects.map((effect) => removeKeySalt(JSON.stringify(effect))))].join();
  if (keys(outcome.effects) !== keys(whole.effects)) wrong.push(`${point}: other keys: ${keys(outcome.effects)}`);
  return wrong;
}

function listNames({ effects }: CrashOutcome): readonly string[] {
  return effects.map((effect) => String((effect as { readonly what: string }).what));
}
