import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("the steering program prints the output on its page", async () => {
  const printed = await runProgram(new URL("steering.ts", import.meta.url), { cwd: tmpdir() });
  expect(printedOn("steering.md")).toContain(printed.trim());
});
