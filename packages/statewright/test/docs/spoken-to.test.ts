import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { printedOn } from "../support/page.ts";
import { runProgram } from "../support/run-program.ts";

test("the program about steering prints what the page says", async () => {
  const printed = await runProgram(new URL("spoken-to.ts", import.meta.url), { cwd: tmpdir() });
  expect(printedOn("steering.md")).toContain(printed.trim());
});
