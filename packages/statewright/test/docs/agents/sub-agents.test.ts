import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("the sub-agents program prints the output on its page", async () => {
  const printed = await runProgram(new URL("sub-agents.ts", import.meta.url), { cwd: tmpdir() });
  const page = printedOn("sub-agents.md");
  for (const part of printed.trim().split("\n")) expect(page).toContain(part.trimEnd());
});
