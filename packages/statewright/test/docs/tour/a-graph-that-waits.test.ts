import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the tour program runs unchanged", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tour-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("a-graph-that-waits.ts", import.meta.url), { cwd: folder });
  expect(printed.split("\n")).toEqual([
    "waiting { amount: 100 }",
    "done { note: undefined, paid: true, amount: 100 }",
    '2 pay → __end__ {"paid":{"kind":"replace","value":true}}',
    "1 approve → pay {}",
    '0 input → approve {"amount":{"kind":"replace","value":100}}',
    "done { note: 'too much', paid: false, amount: 100 }",
    "",
  ]);
});
