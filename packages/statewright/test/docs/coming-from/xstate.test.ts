import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("the XState migration program prints the output on its page for an actor and a durable run", async () => {
  const folder = await mkdtemp(join(tmpdir(), "from-xstate-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("xstate.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("coming-from-xstate.md"));
  expect(JSON.parse(await readFile(join(folder, "count.json"), "utf8"))).toMatchObject({ id: "count" });
});
