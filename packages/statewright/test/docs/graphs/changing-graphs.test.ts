import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the changing graphs program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "changing-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("changing-graphs.ts", import.meta.url), { cwd: folder });
  const why = [
    'the channel "euros" has no value and no default',
    'the node "approve" is pending, but the graph has no such node',
    'the interrupt "approve" of the node "approve" is recorded, but the graph has no such node',
  ].join("; ");
  expect(printed.split("\n")).toEqual([
    `t2 parks ${why}`,
    `t1 parks ${why}`,
    "migrates",
    "migrates",
    "done [ 'confirmed: true', 'paid 9 euros' ]",
    "t2 waits in approve",
    "done [ 'approved: true', 'paid 500 cents' ]",
    "",
  ]);
});
