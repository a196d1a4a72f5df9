import { expect, test } from "vitest";
import { memoryStore, StatewrightError, type Store } from "../../src/index.ts";
import { createScanner, findClaimableRuns } from "../../src/resume/serving.ts";
import type { RunRow } from "../../src/store.ts";
import { createVirtualWorld } from "../support/virtual-world.ts";

const rows = Array.from({ length: 6_000 }, (_, index): RunRow & { readonly kind: string } => {
  const common = { id: `r${index}`, branch: "main", graph: "g", version: 1, attempt: 1, startedAt: index };
  if (index % 3 === 0) return { ...common, thread: `q${index}`, status: "queued", kind: "queued" };
  if (index % 3 === 1) return { ...common, thread: `c${index}`, status: "crashed", kind: "crashed" };
  return { ...common, thread: `d${index}`, status: "paused", kind: "drained" };
});

/** Creates a store that counts its reads. */
function counted() {
  const asked: number[] = [];
  const claimable: Store["claimable"] = async ({ kind, after, limit }) => {
    const fitting = rows.filter((row) => row.kind === kind);
    const from = after === undefined ? 0 : fitting.findIndex(({ id }) => id === after.id) + 1;
    const page = fitting.slice(from, from + limit);
    asked.push(page.length);
    return page;
  };
  return { asked, store: { ...memoryStore(), claimable } };
}

test("findRuns lists open runs in pages, oldest first", async () => {
  const world = createVirtualWorld();
  let turns = 0;
  const runSoon = (work: () => void): void => {
    turns += 1;
    world.schedule.soon(work);
  };
  const { asked, store } = counted();
  const found = await findClaimableRuns(store, { ...world, schedule: { ...world.schedule, soon: runSoon } });
  expect([found.queued.length, found.orphaned.length, found.parked.length]).toEqual([2_000, 4_000, 0]);
  expect(found.orphaned.slice(0, 2).map(({ id }) => id)).toEqual(["r1", "r4"]);
  // The event loop turns between two pages.
  expect(turns).toBe(asked.length - 5);
  expect(turns).toBeGreaterThan(10);
});

test("a damaged queue of one thread leaves out the crashed run of that thread only [F6]", async () => {
  const world = createVirtualWorld();
  const { store } = counted();
  const queued = (await store.claimable({ kind: "queued", limit: 1 }))[0] as RunRow;
  const damaged: Store = {
    ...store,
    claimable: async (page) =>
      page.kind === "queued"
        ? [
            { ...queued, thread: "c1" },
            { ...queued, thread: "c4" },
          ]
        : await store.claimable(page),
    runs: async (filter) => {
      if (filter?.thread === "c1") throw new StatewrightError("store_corrupt", { what: "a row", next: "Stop" });
      return [];
    },
  };
  const { orphaned } = await findClaimableRuns(damaged, world);
  expect(orphaned.slice(0, 2).map(({ id }) => id)).toEqual(["r4", "r7"]);
  expect((await createScanner(damaged, world).next()).orphaned[0]?.id).toBe("r4");
  expect(world.lines.map(({ message }) => message)).toEqual([
    "a damaged thread is skipped",
    "a damaged thread is skipped",
  ]);
});

test("an engine poll reads a bounded number of rows, and repeated polls cover all rows", async () => {
  const { asked, store } = counted();
  const finder = createScanner(store, createVirtualWorld(), 100);
  const seen = new Map<string, number>();
  let looks = 0;
  for (let more = true; more; looks++) {
    const before = asked.length;
    const found = await finder.next();
    expect(asked.slice(before).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(400);
    for (const { id } of [...found.queued, ...found.orphaned]) seen.set(id, (seen.get(id) ?? 0) + 1);
    more = found.more;
  }
  expect([looks, seen.size, Math.max(...seen.values())]).toEqual([21, 6_000, 1]);
  expect((await finder.next()).queued[0]?.id).toBe("r0");
});
