/** Requests to runs of real processes. */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cancelRun, engine, getState, pauseRun, recover, resume, type Store } from "@statewright/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { graph } from "./support/processes/requested-process.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let store: Store;
let child: ChildProcess;
let reports: string[];

beforeEach(() => {
  home = createFolder();
  const file = join(home.path, "agent.db");
  store = sqliteStore(file, { durability: "normal" });
  reports = [];
  child = fork(fileURLToPath(new URL("./support/processes/requested-process.ts", import.meta.url)), [file], {
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  child.on("message", (report) => void reports.push(String(report)));
});

afterEach(async () => {
  child.kill("SIGKILL");
  await store.close();
  home.remove();
});

/** Resolves when the process reports a line that begins with this text. */
function waitForReport(start: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("exit", () => reject(new Error(`the process ended before it reported "${start}"`)));
    child.on("message", (report) => {
      if (String(report).startsWith(start)) resolve();
    });
  });
}

/** Kills the process and waits for its end. */
async function killChild(): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

test("a cancel from another process fires the signal of a node in mid-call and keeps the finished node [PK11, PK12, SE5]", async () => {
  await waitForReport("waits");
  const ended = waitForReport("ended");
  const outcome = await cancelRun(store, { thread: "t", reason: "not needed", by: "ann" });
  expect(outcome).toMatchObject({ status: "requested", runStatus: "running" });
  await ended;
  expect(reports).toEqual(["waits", "aborted: not needed", "ended: cancelled"]);
  expect(await store.run(outcome.run)).toMatchObject({ status: "cancelled", reason: "not needed" });
  expect(await store.requests("t")).toEqual([]);
  const effects = await store.effects("t", "main");
  expect(effects.filter(({ kind, state }) => kind === "task" && state === "ok")).toHaveLength(1);
});

test("a request of a process that was killed is handled by the next engine, which runs no node [PK11]", async () => {
  await waitForReport("waits");
  child.kill("SIGSTOP");
  const { run } = await cancelRun(store, { thread: "t", reason: "not needed" });
  expect(await store.requests("t")).toHaveLength(1);
  await killChild();
  const host = engine({ store, graphs: [graph] });
  await host.start();
  await host.stop();
  expect(await store.run(run)).toMatchObject({ status: "cancelled", reason: "not needed" });
  expect(await store.requests("t")).toEqual([]);
  expect((await store.verify?.())?.faults).toEqual([]);
  expect(reports).toEqual(["waits"]);
});

test("a run of a killed process is paused at once by another process, and resumed later [PK11]", async () => {
  await waitForReport("waits");
  await killChild();
  expect(await pauseRun(store, { thread: "t" })).toMatchObject({ status: "paused" });
  expect(await recover({ store, graphs: [graph] })).toEqual([]);
  expect((await getState(graph, { store, thread: "t" })).status).toBe("paused");
  const resumed = resume(graph, { store, thread: "t" });
  resumed.on(({ type }) => {
    if (type === "task.started") resumed.cancel("seen");
  });
  expect(await resumed.result).toMatchObject({ status: "cancelled", reason: "seen" });
});
