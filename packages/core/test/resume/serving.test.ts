import { expect, test } from "vitest";
import { memoryStore, type RunRow, type Store } from "../../src/index.ts";
import { engineStops, findRuns } from "../../src/resume/serving.ts";
import { virtualWorld } from "../support/virtual-world.ts";

function rowAt(index: number): RunRow {
  const common = { id: `r${index}`, branch: "main", graph: "g", version: 1, attempt: 1, startedAt: index };
  const drained = { code: "drained", kind: "run", name: "E", message: "", details: { reason: engineStops } } as const;
  if (index % 3 === 0) return { ...common, thread: `q${index % 30}`, status: "queued" };
  if (index % 3 === 1) return { ...common, thread: `p${index}`, status: "paused" };
  return { ...common, thread: `d${index}`, status: "paused", error: drained };
}

test("what there is to do is found page by page, the oldest first, whatever else a store holds", async () => {
  // Newest first, as a store lists them.
  const rows = Array.from({ length: 6_000 }, (_, index) => rowAt(index)).reverse();
  const asked: number[] = [];
  const runs: Store["runs"] = async ({ status = [], before, limit = 1 } = {}) => {
    const wanted: readonly string[] = typeof status === "string" ? [status] : status;
    const fitting = rows.filter((row) => wanted.includes(row.status));
    const from = before === undefined ? 0 : fitting.findIndex(({ id }) => id === before.id) + 1;
    asked.push(limit);
    return fitting.slice(from, from + limit);
  };
  const world = virtualWorld();
  let turns = 0;
  const soon = (work: () => void): void => {
    turns += 1;
    world.schedule.soon(work);
  };
  const schedule = { ...world.schedule, soon };
  const found = await findRuns({ ...memoryStore(), runs }, { ...world, schedule });
  expect(found.queued.map(({ id }) => id)).toEqual(["r0", "r3", "r6", "r9", "r12", "r15", "r18", "r21", "r24", "r27"]);
  expect(found.left).toHaveLength(2_000);
  expect(found.left.slice(0, 3).map(({ id }) => id)).toEqual(["r2", "r5", "r8"]);
  expect(found.parked).toEqual([]);
  // Between pages the event loop goes on.
  expect(turns).toBe(asked.length - 2);
  expect(turns).toBeGreaterThan(10);
});
