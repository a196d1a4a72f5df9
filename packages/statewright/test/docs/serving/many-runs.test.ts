import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the program of the page about acts retries, resumes, cancels and deletes the runs of a tenant [Y33]", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "many-runs-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const printed = await runProgram(new URL("many-runs.ts", import.meta.url), { cwd });
  expect(printed.trimEnd().split("\n")).toEqual([
    "3 failed runs",
    "1 of 3",
    "2 of 3",
    "3 of 3",
    "1 resumed",
    "1 cancelled",
    "1 3 true",
    "2 1 1",
  ]);
});
