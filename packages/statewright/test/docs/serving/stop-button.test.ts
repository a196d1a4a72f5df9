import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("a stop button cancels an answer in mid-sentence over HTTP [FX53]", async () => {
  const lines = (await runProgram(new URL("stop-button.ts", import.meta.url), { cwd: tmpdir() })).trim().split("\n");
  expect(lines).toEqual(["shown: In Oslo it rains, and ", "stopped: cancelled", "the thread is cancelled"]);
});
