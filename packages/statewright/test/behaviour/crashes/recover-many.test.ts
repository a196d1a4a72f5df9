/** SIGKILL of a process with many active runs: another process continues all of them. */
import { fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { getState, recover, sqliteStore } from "statewright";
import { listRuns } from "statewright/inspect";
import { afterAll, expect, test } from "vitest";
import { createUnfinishedGraph } from "../../support/processes/unfinished-runs-process.ts";

/** Number of runs; when set explicitly, a thousand runs have a time limit of two seconds. */
const asked = process.env["STATEWRIGHT_UNFINISHED"];
const count = Number(asked ?? 1_000);

const home = mkdtempSync(join(tmpdir(), "statewright-many-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("1,000 unfinished runs of a killed process are found and continued by another process [E35]", async () => {
  const file = join(home, "many.db");
  const child = fork(
    fileURLToPath(new URL("../../support/processes/unfinished-runs-process.ts", import.meta.url)),
    [file, String(count)],
    {
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    },
  );
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.once("message", () => resolve());
    gone.then(() => reject(new Error("it ended before its runs stood")), reject);
  });
  child.kill("SIGKILL");
  await gone;
  const began = performance.now();
  const store = sqliteStore(file, { durability: "normal" });
  const graph = createUnfinishedGraph(true);
  expect(await listRuns(store, { status: "crashed" })).toHaveLength(count);
  const handles = await recover({ store, graphs: [graph] });
  const ends = await Promise.all(handles.map(({ result }) => result));
  const seconds = (performance.now() - began) / 1_000;
  expect(ends.filter(({ status }) => status === "done")).toHaveLength(count);
  expect(await listRuns(store, { status: "done", limit: count + 1 })).toHaveLength(count);
  expect((await getState(graph, { store, thread: `t${count - 1}` })).state.log).toEqual(["first", "second"]);
  await store.close();
  if (asked === undefined) return;
  console.log(`unfinished runs: ${count} recovered in ${seconds.toFixed(2)} s`);
  expect(seconds).toBeLessThan((2 * count) / 1_000);
}, 120_000);
