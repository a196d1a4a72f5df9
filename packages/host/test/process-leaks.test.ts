import { getEventListeners } from "node:events";
import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { isHostError, runProcess } from "../src/index.ts";
import { listChildren, onLinux, waitUntil } from "./support/processes.ts";

/** Rounds of 20 processes; more with STATEWRIGHT_WHOLE=1. */
const rounds = process.env["STATEWRIGHT_WHOLE"] === "1" ? 10 : 3;

describe.runIf(onLinux)("after many runs", () => {
  test("each of many processes aborted at any point settles once, and no handle remains", async () => {
    const handles = () => readdirSync("/proc/self/fd").length;
    const resources = () => process.getActiveResourcesInfo().filter((name) => /Process|Pipe/.test(name)).length;
    await runProcess("true");
    await waitUntil(() => listChildren(process.pid).length === 0);
    await new Promise((next) => setImmediate(next));
    const before = { handles: handles(), resources: resources() };
    const endings = new Map<string, number>();
    const attempt = async (turn: number) => {
      const controller = new AbortController();
      const { signal } = controller;
      const run = runProcess("sh", ["-c", "echo one; sleep 0.001; echo two"], {
        signal,
        onOutput: () => turn % 7 === 0 && controller.abort(),
      }).then(
        (result) => result.ended,
        (error: unknown) => (isHostError(error) ? error.code : String(error)),
      );
      for (let passes = turn % 40; passes > 0; passes--) {
        await (passes % 2 === 0 ? new Promise((next) => setImmediate(next)) : Promise.resolve());
      }
      if (turn % 5 !== 0) controller.abort();
      const ending = await run;
      expect(getEventListeners(signal, "abort")).toEqual([]);
      endings.set(ending, (endings.get(ending) ?? 0) + 1);
    };
    for (let round = 0; round < rounds; round++) {
      await Promise.all(Array.from({ length: 20 }, (_, index) => attempt(round * 20 + index)));
    }
    expect([...endings.keys()].every((ending) => ending === "exited" || ending === "cancelled")).toBe(true);
    expect([...endings.values()].reduce((sum, count) => sum + count, 0)).toBe(rounds * 20);
    await waitUntil(() => listChildren(process.pid).length === 0);
    await waitUntil(() => handles() <= before.handles && resources() <= before.resources);
  });
});
