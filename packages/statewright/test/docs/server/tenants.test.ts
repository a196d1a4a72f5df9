import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("tenants of one service have threads of the same name and see nothing of each other [FX53]", async () => {
  expect(await runProgram(new URL("tenants.ts", import.meta.url), { cwd: tmpdir() })).toBe(printedOn("tenants.md"));
});
