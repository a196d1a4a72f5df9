import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the busy threads program runs unchanged", async () => {
  const folder = await mkdtemp(join(tmpdir(), "busy-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("busy-threads.ts", import.meta.url), { cwd: folder });
  expect(printed.split("\n")).toEqual([
    "queued heard send it",
    'queued {"said":"send another"}',
    "waiting ",
    "done heard send it, did send it",
    "waiting heard send it, heard stop",
    "waiting heard start over",
    "true waiting",
    "u",
    "Order 7, paid 1 0",
    "0 waiting",
    "",
  ]);
});
