import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("engines in two processes share the queue of a file: each run once, urgent ones first, and no customer waits for another [PK8]", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "several-engines-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const start = (role: string): Promise<string> =>
    runProgram(new URL("several-engines.ts", import.meta.url), { cwd, args: [role] });
  const reports = [...Array.from({ length: 20 }, (_, nth) => `acme ${nth + 1}`), "bell 1", "bell 2"].sort();
  await start("order");
  const alone = (await start("work")).trimEnd().split("\n");
  expect(alone.slice(0, 4).sort()).toEqual(["acme 1", "acme 2", "bell 1", "bell 2"]);
  expect(alone.toSorted()).toEqual(reports);
  await start("order");
  const shared = await Promise.all([start("work"), start("work")]);
  expect(shared.join("").trimEnd().split("\n").sort()).toEqual(reports);
});
