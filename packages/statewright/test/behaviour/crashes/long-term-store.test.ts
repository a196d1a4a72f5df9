/** SIGKILL of a process with long-term writes, at every third point or at all points; another process continues. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { killAt, runUntilDone } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/long-term-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-counting-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function createProcessSetup(name: string) {
  const folder = join(home, name.replaceAll(" ", "-"));
  mkdirSync(folder);
  return { script, folder };
}

test("long-term writes of nodes, steps and tools are applied exactly once, wherever the process is killed", {
  timeout: 120_000,
}, async () => {
  const whole = await runUntilDone(createProcessSetup("whole"));
  const counts = ["alone 1", "first 1", "left 1", "right 1", "second 1", "step 1"];
  expect(JSON.parse(whole.stdout)).toEqual({ status: "done", counts });
  const points = whole.processes.flatMap((each) => each.points);
  expect(points.length).toBeGreaterThan(30);
  expect(points).toContain("after first");
  expect(points.filter((point) => point.startsWith("inside checkpoint")).length).toBeGreaterThan(3);
  const waiting = process.env["STATEWRIGHT_WHOLE"] === "1" ? [...points] : points.filter((_, nth) => nth % 3 === 0);
  const wrong: string[] = [];
  const worker = async (): Promise<void> => {
    for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
      const { stdout } = await killAt({ ...createProcessSetup(point), point });
      if (stdout !== whole.stdout) wrong.push(`${point}: ${stdout}`);
    }
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
  expect(wrong).toEqual([]);
});
