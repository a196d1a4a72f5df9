import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("the program of docs/machines.md runs unchanged", async () => {
  const program = fileURLToPath(new URL("machines.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  expect(stdout.trim().split("\n")).toEqual([
    "read back: start write review done",
    "6 states, the farthest 4 steps away",
    "the actor is done with 400 words",
    '"start" → {"write":"executing"} (to yes) ',
    '{"write":"committing"} → {"review":"executing"} (to yes) words',
    '{"review":"committing"} → {"write":"executing"} (to yes) ',
    '{"write":"committing"} → {"review":"executing"} (to yes) words',
    '{"review":"committing"} → "done" (to no, finished yes) ',
    "9 @xstate.actor, 22 @xstate.event, 26 @xstate.snapshot, 16 @xstate.action, 9 @xstate.microstep",
  ]);
});
