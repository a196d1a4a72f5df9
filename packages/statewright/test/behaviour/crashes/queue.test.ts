/** SIGKILL of a process with queued inputs around its commits, at every third point or at all points. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { killAt, runUntilDone } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/queue-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-queue-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function createProcessSetup(name: string) {
  const folder = join(home, name.replaceAll(" ", "-"));
  mkdirSync(folder);
  return { script, folder };
}

test("every queued input starts once and in order, wherever a process is killed [E27]", {
  timeout: 120_000,
}, async () => {
  const whole = await runUntilDone(createProcessSetup("whole"));
  expect(JSON.parse(whole.stdout)).toEqual({
    log: ["a 1", "a 2", "b 1", "b 2", "c 1", "c 2"],
    rows: ["c done", "b done", "a done"],
  });
  // The next process cannot know whether the callback of a commit ran.
  const points = (whole.processes[0]?.points ?? []).filter((point) => !point.startsWith("reported"));
  expect(points.length).toBeGreaterThan(20);
  const wrong: string[] = [];
  const tried = process.env["STATEWRIGHT_WHOLE"] === "1" ? points : points.filter((_, nth) => nth % 3 === 0);
  const waiting = tried.map((point) => ({ point, processNumber: 1 }));
  const worker = async (): Promise<void> => {
    for (let death = waiting.shift(); death !== undefined; death = waiting.shift()) {
      const outcome = await killAt({ ...createProcessSetup(death.point), ...death });
      const { log, rows } = JSON.parse(outcome.stdout) as {
        readonly log: readonly string[];
        readonly rows: readonly string[];
      };
      if (JSON.stringify(log) !== JSON.stringify(["a 1", "a 2", "b 1", "b 2", "c 1", "c 2"]))
        wrong.push(`${death.point}: ${log.join()}`);
      if (rows.length !== 3) wrong.push(`${death.point}: ${rows.join()}`);
    }
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
  expect(wrong).toEqual([]);
});
