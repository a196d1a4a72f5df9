/** SIGKILL of a process around the commits of an interrupt and of its answer; another process continues. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CrashOutcome, killAt, runUntilDone } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/approval-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-asking-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function place(name: string): string {
  const path = join(home, name.replaceAll(" ", "-"));
  mkdirSync(path);
  return path;
}

const second = { code: "already_answered", details: { answer: { ok: true }, answeredBy: "ann" } };
const end = { status: "done", log: ["approved true", "after"], second };

function getEnd({ stdout }: CrashOutcome): unknown {
  return JSON.parse(stdout);
}

test("after a kill around the commit of an interrupt or its answer the next process lists the interrupt or uses the answer [C18, C19]", async () => {
  const whole = await runUntilDone({ script, folder: place("whole") });
  expect(getEnd(whole)).toEqual(end);
  expect(whole.effects).toEqual([{ waiting: [] }, { waiting: ["0:0:approve"] }]);
  // The interrupt is the last commit of the first process, the answer the first commit of the second.
  const asked = whole.processes[0]?.points.filter((point) => point.startsWith("before")).length ?? 0;

  const shown = await killAt({ script, folder: place("shown"), point: `after commit ${asked}` });
  expect([getEnd(shown), shown.effects]).toEqual([end, [{ waiting: [] }, { waiting: ["0:0:approve"] }]]);

  const unrecorded = await killAt({ script, folder: place("unrecorded"), point: `before commit ${asked}` });
  expect(getEnd(unrecorded)).toEqual(end);
  expect(unrecorded.effects).toEqual([{ waiting: [] }, { waiting: [] }, { waiting: ["0:0:approve"] }]);

  const answered = await killAt({ script, folder: place("answered"), point: "after commit 1", processNumber: 2 });
  expect(getEnd(answered)).toEqual(end);
  expect(answered.effects).toEqual([{ waiting: [] }, { waiting: ["0:0:approve"] }, { waiting: [] }, { second }]);
});
