/** Cancel of a durable machine at work in another process. */
import { fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cancelRun, sqliteStore } from "statewright";
import { expect, onTestFinished, test } from "vitest";

const program = fileURLToPath(new URL("../../support/processes/machine-process.ts", import.meta.url));

test("a cancel from another process fires the signal of a promise of a durable machine and ends its run [PK11, SE5]", async () => {
  const home = mkdtempSync(join(tmpdir(), "statewright-cancelled-"));
  const file = join(home, "agent.db");
  const child = fork(program, [file], { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
  onTestFinished(() => {
    child.kill("SIGKILL");
    rmSync(home, { recursive: true, force: true });
  });
  const reports: string[] = [];
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the process ended with code ${code}`)));
    child.on("message", (report) => {
      reports.push(String(report));
      if (report === "waits") resolve();
    });
  });
  const store = sqliteStore(file, { durability: "normal" });
  const { status, run } = await cancelRun(store, { thread: "t", reason: "not needed", by: "ann" });
  await ended;
  expect([status, ...reports]).toEqual(["requested", "waits", "aborted", "ended: cancelled"]);
  expect(await store.run(run)).toMatchObject({ status: "cancelled", reason: "not needed" });
  expect(await store.requests("t")).toEqual([]);
  expect((await store.verify()).faults).toEqual([]);
  await store.close();
});
