import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore } from "@statewright/core";
import { crashPoint, crashPoints, killAt, logEffect, untilDone } from "@statewright/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const script = new URL("./support/dies.ts", import.meta.url);
let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "statewright-crash-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a process that dies", () => {
  test("lives until it is done, and says what it came to", async () => {
    const { lives, effects, stdout } = await untilDone({ script, folder });
    expect(lives.map(({ points, exitCode }) => [...points, exitCode])).toEqual([
      ["one", "two", "three", 75],
      ["one", "two", "three", 0],
    ]);
    expect(effects).toEqual([{ life: 1 }, { life: 2 }]);
    expect(stdout).toBe("done\n");
  });

  test("dies by SIGKILL at a point, and nothing after it happens in that life", async () => {
    const { lives, effects } = await killAt({ script, folder, point: "two" });
    expect(lives.map(({ points, signal }) => [...points, signal])).toEqual([
      ["one", "two", "SIGKILL"],
      ["one", "two", "three", null],
      ["one", "two", "three", null],
    ]);
    expect(effects).toEqual([{ life: 1 }, { life: 1 }, { life: 2 }]);
  });

  test("dies in a later life", async () => {
    const { lives, effects } = await killAt({ script, folder, point: "one", life: 2 });
    expect(lives.map(({ signal }) => signal)).toEqual([null, "SIGKILL", null]);
    expect(effects).toEqual([{ life: 1 }, { life: 2 }]);
  });

  test("a point that it never comes to is an error that lists those it came to", async () => {
    await expect(killAt({ script, folder, point: "four" })).rejects.toThrow(
      'a process was to die at "four" and ended with exit code 75. It came to: one, two, three.',
    );
  });

  test("a script that fails is an error with what it said", async () => {
    const missing = new URL("./support/missing.ts", import.meta.url);
    await expect(untilDone({ script: missing, folder })).rejects.toThrow(
      /life 1 ended with exit code 1.*Cannot find module/s,
    );
  });
});

test("points around a commit stand before it, when it is durable, and when it was told", async () => {
  const seen: string[] = [];
  const store = crashPoints(memoryStore(), (name) => seen.push(name));
  const claim = await store.claim({ thread: "t", graph: "g", version: 1, shape: "s", at: 0 });
  await new Promise<void>((resolve) =>
    store.commit({ thread: "t", branch: claim.branch, epoch: claim.epoch, seq: 0, release: true }, () => {
      seen.push("told");
      resolve();
    }),
  );
  expect(seen).toEqual(["before commit 1", "after commit 1", "told", "told commit 1"]);
});

test("outside a crash test points and effects do nothing", () => {
  crashPoint("anywhere");
  logEffect({ nothing: true });
});
