import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the thread retention program runs unchanged", async () => {
  const folder = await mkdtemp(join(tmpdir(), "keeping-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("sqlite.ts", import.meta.url), { cwd: folder });
  const [thread, inspected, rotated, end] = printed.split("\n");
  expect([thread, inspected, end]).toEqual(["t7-before-the-change 1 0", "1 0", ""]);
  expect(rotated).toMatch(/^[1-9]\d* 0$/);
});
