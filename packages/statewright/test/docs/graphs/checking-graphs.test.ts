import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the graph check program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "deploy-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("checking-graphs.ts", import.meta.url), { cwd: folder });
  expect(printed.split("\n")).toEqual([
    "dead_end start → test + approve → (nothing runs)",
    "may write anything: test, approve",
    "lost_write start → test + approve",
    "0 violations",
    "",
  ]);
});
