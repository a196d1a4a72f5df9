import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the interrupt expiry program runs unchanged", async () => {
  const folder = await mkdtemp(join(tmpdir(), "offer-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("expiring-interrupt.ts", import.meta.url), { cwd: folder });
  expect(printed.split("\n")).toEqual([
    "bob { price: 300 }",
    "ann { price: 900 }",
    "{ ok: true } ann@example.org 900",
    "bob accept refused",
    "",
  ]);
});
