import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("a stop button cancels an answer in mid-sentence over HTTP, and the output is the one on its page [FX53]", async () => {
  const printed = await runProgram(new URL("stop-button.ts", import.meta.url), { cwd: tmpdir() });
  expect(printed).toBe(printedOn("stop-button.md"));
});
