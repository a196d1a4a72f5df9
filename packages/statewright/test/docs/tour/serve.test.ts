import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("a served graph waits for an answer over HTTP, refuses a second answer, and prints the output on its page", async () => {
  const printed = await runProgram(new URL("serve.ts", import.meta.url), { cwd: tmpdir() });
  expect(printed).toBe(printedOn("tour/8-serve.md"));
});
