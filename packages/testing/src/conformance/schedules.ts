/** Conformance tests of schedules as rows: lists, revisions, and the run of a slot in the same write. */

import type { ScheduleRow, ScheduleWrite } from "@statewright/core/store";
import { assertEqual, assertRejected, assertTrue } from "./assert.ts";
import { createQueuedRun } from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

function createSchedule(id: string, more: Partial<ScheduleRow> = {}): ScheduleWrite["row"] {
  return {
    id,
    ...{ graph: "g", version: 1, shape: "s1", everyMs: 1_000, anchorAt: 0, input: `{"of":"${id}"}` },
    ...{ missed: "last", createdAt: 100, updatedAt: 100, dueAt: 1_000 },
    ...more,
  };
}

const creates = { graph: "g", version: 1, shape: "s1", at: 100 };

const toIds = (rows: readonly ScheduleRow[]): string => rows.map(({ id }) => id).join(" ");

export const scheduleTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "a schedule is stored with every value, and survives a crash [Y7]",
    async ({ store, crash }) => {
      const row = createSchedule("daily", {
        ...{ tenant: "acme", owner: "ann", thread: "t", needsThread: true, outline: "{}", metadata: { a: [1, null] } },
        ...{ onBusy: "cancel", missed: "all", until: 9_000, pausedAt: 5, cron: "0 9 * * *", timeZone: "Europe/Berlin" },
        last: { slot: 1, at: 2, thread: "t", run: "r", skipped: "no \ud83d\ude00" },
      });
      const written = await store.schedules.put({ row, revision: 0 });
      assertEqual(written, { row: { ...row, revision: 1 } }, "the written row");
      const next = await crash();
      assertEqual(await next.schedules.get("daily"), { ...row, revision: 1 }, "the row after a crash");
      assertEqual((await next.schedules.get("none")) ?? null, null, "an unknown schedule");
      assertTrue(await next.schedules.delete("daily"), "the schedule could not be deleted");
      assertTrue(!(await next.schedules.delete("daily")), "a deleted schedule was deleted again");
      assertEqual(await next.schedules.list(), [], "the schedules after the deletion");
      await assertRejected(next.schedules.put({ row: createSchedule("a b"), revision: 0 }), "invalid_id", "an id");
    },
  ),

  defineStoreTest("schedules are listed by id in pages, and by due time [Y7]", async ({ store }) => {
    for (const [id, dueAt, graph, tenant] of [
      ["a", 3_000, "g", "acme"],
      ["b", 1_000, "h", "acme"],
      ["c", undefined, "g", "other"],
      ["d", 2_000, "g", "acme"],
    ] as const)
      await store.schedules.put({ row: createSchedule(id, { dueAt, graph, tenant, owner: id }), revision: 0 });
    const list = async (filter: Parameters<typeof store.schedules.list>[0]) =>
      toIds(await store.schedules.list(filter));
    assertEqual(await list({}), "a b c d", "all schedules");
    assertEqual(await list({ after: "a", limit: 2 }), "b c", "a page");
    assertEqual(await list({ tenant: "acme", after: "a" }), "b d", "a page of a tenant");
    assertEqual(await list({ owner: "c" }), "c", "the schedules of an owner");
    assertEqual(await list({ graphs: ["h"] }), "b", "the schedules of a graph");
    assertEqual(await list({ dueBy: 2_000 }), "b d", "the due schedules");
    assertEqual(await list({ dueBy: 2_000, graphs: ["g"], limit: 1 }), "d", "the due schedules of a graph");
    assertEqual(await list({ dueAfter: 1_000, limit: 1 }), "d", "the next schedule");
    await assertRejected(store.schedules.list({ limit: 0 }), "invalid_option", "a limit of 0");
    await assertRejected(store.schedules.list({ graphs: "g" as never }), "invalid_option", "graphs");
  }),

  defineSharedStoreTest(
    "of two processes that fire a slot one queues its run, in the write of the next slot [Y7]",
    async ({ store, peer }) => {
      const other = await peer();
      await store.schedules.put({ row: createSchedule("s"), revision: 0 });
      const fire = (id: string): ScheduleWrite => ({
        row: createSchedule("s", { dueAt: 2_000, last: { slot: 1_000, at: 1_001, thread: "t", run: id } }),
        revision: 1,
        run: { thread: "t", creates, run: createQueuedRun(id, { key: "s:1000" }) },
      });
      const results = await Promise.all([store.schedules.put(fire("one")), other.schedules.put(fire("two"))]);
      const fired = results.filter((result) => result !== undefined);
      assertEqual(fired.length, 1, "the processes that fired");
      assertEqual(fired[0]?.row.revision, 2, "the revision");
      const runs = await store.runs();
      assertEqual([runs.length, runs[0]?.id, runs[0]?.key], [1, fired[0]?.run?.id, "s:1000"], "the queued run");
      assertEqual((await other.schedules.get("s"))?.last?.run, fired[0]?.run?.id, "the run in the schedule");
      const repeated = await store.schedules.put({ ...fire("three"), revision: 2 });
      assertEqual(repeated?.run?.id, fired[0]?.run?.id, "the run of a known key");
    },
  ),

  defineStoreTest("a refused run leaves its schedule unchanged [Y7]", async ({ store }) => {
    await store.schedules.put({ row: createSchedule("s"), revision: 0 });
    const run = { thread: "missing", run: createQueuedRun("q") };
    const fire = store.schedules.put({ row: createSchedule("s", { dueAt: 2_000 }), revision: 1, run });
    await assertRejected(fire, "unknown_thread", "a run of a missing thread");
    assertEqual(await store.schedules.get("s"), { ...createSchedule("s"), revision: 1 }, "the schedule");
    assertEqual(await store.runs(), [], "the runs");
  }),
];
