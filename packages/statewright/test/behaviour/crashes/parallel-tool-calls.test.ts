/** SIGKILL of a process with four parallel tool calls: two completed and two running. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CrashOutcome, killAt } from "@statewright/testing";
import { afterAll, beforeAll, expect, test } from "vitest";

const script = new URL("../../support/processes/parallel-calls-process.ts", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "statewright-four-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type ToolRunLine = { readonly tool: string; readonly key: string; readonly isFirst: boolean };
type RequestLine = { readonly model: number };

let outcome: CrashOutcome;
beforeAll(async () => {
  outcome = await killAt({ script, folder, point: "two done, two running", timeoutMs: 60_000 });
}, 300_000);

/** Processes in which a tool ran, and its keys. */
function listRuns(name: string): { readonly processes: readonly string[]; readonly keys: number } {
  const runs = (outcome.effects as readonly (ToolRunLine | RequestLine)[]).filter(
    (effect): effect is ToolRunLine => "tool" in effect && effect.tool === name,
  );
  return {
    processes: runs.map(({ isFirst }) => (isFirst ? "before" : "after")),
    keys: new Set(runs.map(({ key }) => key)).size,
  };
}

test("a kill among four calls keeps the two completed calls and repeats no model call [C14]", () => {
  for (const name of ["read_done", "pay_done"]) expect(listRuns(name)).toEqual({ processes: ["before"], keys: 1 });
  const requests = (outcome.effects as readonly (ToolRunLine | RequestLine)[]).flatMap((effect) =>
    "model" in effect ? [effect.model] : [],
  );
  // One request that returned the calls, and one with their four answers.
  expect(requests).toEqual([1, 6]);
});

test("a kill among four calls repeats the running pure call under its key and leaves the running once call in doubt [C14]", () => {
  expect(listRuns("read_running")).toEqual({ processes: ["before", "after"], keys: 1 });
  expect(listRuns("pay_running")).toEqual({ processes: ["before"], keys: 1 });
  expect(JSON.parse(outcome.stdout)).toEqual({
    status: "done",
    asked: [{ key: "in_doubt", tool: "pay_running" }],
    said: [
      ["read_done", false, "read_done ran"],
      ["pay_done", false, "pay_done ran"],
      ["read_running", false, "read_running ran"],
      ["pay_running", false, "the bank has it"],
    ],
  });
});
