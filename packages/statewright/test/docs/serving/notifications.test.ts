import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the program of the page about notifications tells about a failed and a waiting run once each [Y35]", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "notifications-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const printed = await runProgram(new URL("notifications.ts", import.meta.url), { cwd });
  const lines = printed.trimEnd().split("\n");
  expect(lines.slice(0, 2).toSorted()).toEqual(["run.failed order-1: node_failed", "run.waiting order-2: approve"]);
  expect(lines.slice(2)).toEqual([expect.stringMatching(/^run\.failed [12] /), "order-2 { amount: 500 }", "true"]);
});
