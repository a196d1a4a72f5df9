/** Real processes that fire the slots of a schedule and start a delayed run: at once, and killed at each point. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { killAt, runUntilDone } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/schedule-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-schedules-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function createProcessSetup(name: string) {
  const folder = join(home, name.replaceAll(" ", "-"));
  mkdirSync(folder);
  return { script, folder };
}

const hours = (nth: number): string => `s:2030-01-01T0${nth}:00:00.000Z done`;
const expected = { rows: ["later done", hours(1), hours(2), hours(3)], next: [4 * 3_600_000] };

test("three processes that start at once queue each slot and each delayed run once [Y7, Y8, SE7]", {
  timeout: 60_000,
}, async () => {
  const { folder } = createProcessSetup("race");
  const start = () => promisify(execFile)(process.execPath, [fileURLToPath(script)], { cwd: folder });
  const ends = await Promise.all([start(), start(), start()]);
  expect(ends.map(({ stdout }) => JSON.parse(stdout))).toEqual([expected, expected, expected]);
});

test("each slot and each delayed run runs once, wherever a process is killed between slot and start [Y7, Y8, SE7]", {
  timeout: 120_000,
}, async () => {
  const whole = await runUntilDone(createProcessSetup("whole"));
  expect(JSON.parse(whole.stdout)).toEqual(expected);
  const points = (whole.processes[0]?.points ?? []).filter((point) => !point.startsWith("reported"));
  const slots = points.filter((point) => / slot | delayed/.test(point));
  expect(slots.length).toBe(8);
  const commits = points.filter((point) => !slots.includes(point));
  const isWhole = process.env["STATEWRIGHT_WHOLE"] === "1";
  const waiting = [...slots, ...commits.filter((_, nth) => isWhole || nth % 4 === 0)];
  const wrong: string[] = [];
  const worker = async (): Promise<void> => {
    for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
      const outcome = await killAt({ ...createProcessSetup(point), point, processNumber: 1 });
      if (outcome.stdout !== whole.stdout) wrong.push(`${point}: ${outcome.stdout}`);
    }
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
  expect(wrong).toEqual([]);
});
