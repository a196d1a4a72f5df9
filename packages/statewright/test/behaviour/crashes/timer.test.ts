/**
 * SIGKILL of a process that waits for a timer, and of the process that fires it, at every sixth point or at all
 * points.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type CrashOutcome, killAt, runUntilDone } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/reminder-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-reminder-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const day = 86_400_000;
const start = Date.UTC(2025, 0, 1);
const dueAt = start + 30 * day;
const returns = start + 45 * day;

function createProcessSetup(name: string) {
  const folder = join(home, name.replaceAll(" ", "-"));
  mkdirSync(folder);
  return {
    script,
    folder,
    args: [String(start), String(returns)],
  };
}

test("a timer of weeks outlives its process and fires once and late on return, wherever a process is killed [E39]", {
  timeout: 120_000,
}, async () => {
  const whole = await runUntilDone(createProcessSetup("whole"));
  const [arming, firing, looking] = whole.processes;
  const about = { id: "xstate.after.2592000000.reminder.quiet", kind: "after", generation: 0, dueAt };
  expect(JSON.parse(arming?.stdout ?? "")).toEqual([
    { thread: "reminder-1", branch: "main", ...about, about: about.id },
  ]);
  expect(JSON.parse(looking?.stdout ?? "")).toEqual({
    state: { value: "over", context: { reminders: 1 }, children: {} },
    states: [` → quiet at ${start}`, `quiet → reminding at ${returns}`, `reminding → __end__ at ${returns}`],
    timers: [],
  });
  expect(whole.effects).toHaveLength(1);
  const deaths = [
    ...(arming?.points ?? []).map((point) => ({ point, processNumber: 1 })),
    ...(firing?.points ?? []).map((point) => ({ point, processNumber: 2 })),
  ];
  expect(deaths).toContainEqual({ point: "armed", processNumber: 1 });
  expect(deaths).toContainEqual({ point: "inside remind", processNumber: 2 });
  expect(deaths.length).toBeGreaterThan(12);
  const wrong: string[] = [];
  const waiting = process.env["STATEWRIGHT_WHOLE"] === "1" ? [...deaths] : deaths.filter((_, nth) => nth % 6 === 0);
  const worker = async (): Promise<void> => {
    for (let death = waiting.shift(); death !== undefined; death = waiting.shift()) {
      const outcome = await killAt({ ...createProcessSetup(`${death.point} ${death.processNumber}`), ...death });
      wrong.push(
        ...listDifferences(`${death.point} of life ${death.processNumber}`, outcome, whole, death.processNumber === 1),
      );
    }
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
  expect(wrong).toEqual([]);
});

/** The transition is taken once wherever the process dies; its effects run once, or again under the same key. */
function listDifferences(where: string, outcome: CrashOutcome, whole: CrashOutcome, once: boolean): readonly string[] {
  const wrong: string[] = [];
  if (outcome.stdout !== whole.stdout) wrong.push(`${where}: diverged\n${outcome.stdout}\n${whole.stdout}`);
  const keys = new Set(outcome.effects.map((effect) => JSON.stringify(effect)));
  if (keys.size !== 1 || !keys.has(JSON.stringify(whole.effects[0]))) wrong.push(`${where}: keys ${[...keys].join()}`);
  if (once && outcome.effects.length !== 1) wrong.push(`${where}: reminded ${outcome.effects.length} times`);
  return wrong;
}
