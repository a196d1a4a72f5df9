import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("a secured server answers each caller by tenant and rights, and prints the output on its page", async () => {
  const printed = await runProgram(new URL("secure.ts", import.meta.url), { cwd: tmpdir() });
  expect(printed).toBe(printedOn("tour/9-secure.md"));
});
