import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore } from "@statewright/core";
import { crashPoint, crashPoints, killAt, logEffect, runUntilDone } from "@statewright/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const script = new URL("./support/crash-script.ts", import.meta.url);
let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "statewright-crash-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("process kills", () => {
  test("runUntilDone runs a process until it is done and returns its result", async () => {
    const { processes, effects, stdout } = await runUntilDone({ script, folder });
    expect(processes.map(({ points, exitCode }) => [...points, exitCode])).toEqual([
      ["one", "two", "three", 75],
      ["one", "two", "three", 0],
    ]);
    expect(effects).toEqual([{ process: 1 }, { process: 2 }]);
    expect(stdout).toBe("done\n");
  });

  test("killAt kills a process by SIGKILL at a point, and nothing after it happens in that process", async () => {
    const { processes, effects } = await killAt({ script, folder, point: "two" });
    expect(processes.map(({ points, signal }) => [...points, signal])).toEqual([
      ["one", "two", "SIGKILL"],
      ["one", "two", "three", null],
      ["one", "two", "three", null],
    ]);
    expect(effects).toEqual([{ process: 1 }, { process: 1 }, { process: 2 }]);
  });

  test("killAt kills a later process of the run", async () => {
    const { processes, effects } = await killAt({ script, folder, point: "one", processNumber: 2 });
    expect(processes.map(({ signal }) => signal)).toEqual([null, "SIGKILL", null]);
    expect(effects).toEqual([{ process: 1 }, { process: 2 }]);
  });

  test("killAt fails for a point that is not reached and lists the reached ones", async () => {
    await expect(killAt({ script, folder, point: "four" })).rejects.toThrow(
      'expected the process to die at "four", but the process ended with exit code 75. Points reached: one, two, three.',
    );
  });

  test("runUntilDone fails for a failing script with its output", async () => {
    const missing = new URL("./support/missing.ts", import.meta.url);
    await expect(runUntilDone({ script: missing, folder })).rejects.toThrow(
      /expected process 1 to exit with 0 or 75, but the process ended with exit code 1.*Cannot find module/s,
    );
  });
});

test("crash points of a commit are before it, when it is durable, and when it was reported", async () => {
  const seen: string[] = [];
  const store = crashPoints(memoryStore(), (name) => seen.push(name));
  const claim = await store.claim({ thread: "t", graph: "g", version: 1, shape: "s", at: 0 });
  await new Promise<void>((resolve) =>
    store.commit({ thread: "t", branch: claim.branch, epoch: claim.epoch, seq: 0, release: true }, () => {
      seen.push("reported");
      resolve();
    }),
  );
  expect(seen).toEqual(["before commit 1", "after commit 1", "reported", "reported commit 1"]);
});

test("crash points and logged effects do nothing outside a crash test", () => {
  crashPoint("anywhere");
  logEffect({ nothing: true });
});
