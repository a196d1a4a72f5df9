/** SIGKILL of a process with a steered run around its commits, at every third point or at all points. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { killAt, runUntilDone } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/steering-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-steered-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function createProcessSetup(name: string) {
  const folder = join(home, name.replaceAll(" ", "-"));
  mkdirSync(folder);
  return { script, folder };
}

const whole = {
  said: [
    "user: go",
    "assistant: ",
    "tool: a",
    "tool: Skipped: a message of the user is queued and comes first.",
    "user: stop",
    "assistant: stopped",
  ],
  waits: 0,
};

test("a steered message is delivered once, after all tool answers, wherever the process is killed", {
  timeout: 120_000,
}, async () => {
  const undisturbed = await runUntilDone(createProcessSetup("whole"));
  expect(JSON.parse(undisturbed.stdout)).toEqual(whole);
  const points = (undisturbed.processes[0]?.points ?? []).filter((point) => !point.startsWith("reported"));
  expect(points.length).toBeGreaterThan(8);
  const tried = process.env["STATEWRIGHT_WHOLE"] === "1" ? points : points.filter((_, nth) => nth % 3 === 0);
  const waiting = tried.map((point) => ({ point, processNumber: 1 }));
  const seen: [string, unknown][] = [];
  const worker = async (): Promise<void> => {
    for (let death = waiting.shift(); death !== undefined; death = waiting.shift()) {
      const outcome = await killAt({ ...createProcessSetup(death.point), ...death });
      seen.push([death.point, JSON.parse(outcome.stdout)]);
    }
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
  for (const each of seen) expect(each).toEqual([each[0], whole]);
});
