/** A process is killed with many runs at work: another one goes on with all of them. */
import { fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { getState, listRuns, recover, sqliteStore } from "statewright";
import { afterAll, expect, test } from "vitest";
import { unending } from "../support/unfinished.ts";

const home = mkdtempSync(join(tmpdir(), "statewright-many-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("E35 1,000 unfinished runs of a killed process are found and continued by another", async () => {
  const file = join(home, "many.db");
  const child = fork(fileURLToPath(new URL("../support/unfinished.ts", import.meta.url)), [file, "1000"], {
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.once("message", () => resolve());
    gone.then(() => reject(new Error("it ended before its runs stood")), reject);
  });
  child.kill("SIGKILL");
  await gone;
  const store = sqliteStore(file, { durability: "normal" });
  const graph = unending(true);
  expect(await listRuns(store, { status: "crashed" })).toHaveLength(1_000);
  const handles = await recover({ store, graphs: [graph] });
  const ends = await Promise.all(handles.map(({ result }) => result));
  expect(ends.filter(({ status }) => status === "done")).toHaveLength(1_000);
  expect(await listRuns(store, { status: "done", limit: 2_000 })).toHaveLength(1_000);
  expect((await getState(graph, { store, thread: "t999" })).state.log).toEqual(["first", "second"]);
  store.close();
}, 120_000);
