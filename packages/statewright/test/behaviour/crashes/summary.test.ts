/** SIGKILL of a process whose agent summarises, answers and saves memories; another process continues. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { killAt, runUntilDone } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/summary-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-summary-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function createProcessSetup(name: string) {
  const folder = join(home, name.replaceAll(/\W/g, "-"));
  mkdirSync(folder);
  return { script, folder };
}

const count = (effects: readonly unknown[], name: string): number => effects.filter((effect) => effect === name).length;

test("a summary already answered is not requested again, and memories are stored once, wherever the process is killed", {
  timeout: 120_000,
}, async () => {
  const whole = await runUntilDone(createProcessSetup("whole"));
  const end = JSON.parse(whole.stdout);
  expect(end).toMatchObject({
    status: "done",
    facts: { conversationSummary: { text: "They talked.", upTo: "m5" } },
    memories: [
      ["city", { text: "Bergen", topic: "city" }],
      ["move", { text: "Moved", topic: "move" }],
    ],
  });
  expect(whole.effects).toEqual(["summary", "answer", "answer", "extract"]);
  const points = whole.processes.flatMap((each) => each.points);
  const wanted = points.filter(
    (point, nth) => point.startsWith("asked") || process.env["STATEWRIGHT_WHOLE"] === "1" || nth % 12 === 0,
  );
  for (const point of new Set(wanted)) {
    const { stdout, effects } = await killAt({ ...createProcessSetup(point), point });
    expect(stdout, point).toBe(whole.stdout);
    // A reply is unknown until its outcome is durable.
    const most = points.indexOf(point) >= points.indexOf("asked answer") ? 1 : 2;
    expect(count(effects, "summary"), point).toBeLessThanOrEqual(most);
    expect(effects.length, point).toBeLessThanOrEqual(5);
  }
});
