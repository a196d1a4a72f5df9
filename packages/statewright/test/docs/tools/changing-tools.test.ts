import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("the changing tools program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "changing-tools-page-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("changing-tools.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("changing-tools.md"));
});
