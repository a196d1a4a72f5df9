import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { schedules, sqliteStore } from "statewright";
import { listRuns } from "statewright/inspect";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the program of the page plans runs, lists them, and its engine writes the report of the last key stroke [Y7, Y8]", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "run-later-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const start = (role: string): Promise<string> =>
    runProgram(new URL("run-later.ts", import.meta.url), { cwd, args: [role] });
  expect(await start("plan")).toBe("");
  const planned = (await start("list")).trimEnd().split("\n");
  expect(planned).toHaveLength(3);
  expect(planned[0]).toMatch(/^morning-report active \d{4}-\d\d-\d\dT0[78]:00:00\.000Z$/);
  expect(planned[2]).toMatch(/^stock queued \d{4}-/);
  expect(await start("work")).toBe("A report on visitors\n");
  await start("plan");
  const store = sqliteStore(join(cwd, "reports.db"));
  expect((await schedules.list(store)).map(({ id }) => id)).toEqual(["morning-report"]);
  expect((await listRuns(store)).map(({ status }) => status)).toEqual(["queued", "done", "queued"]);
  await store.close();
});
