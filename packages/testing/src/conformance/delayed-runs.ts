/** Conformance tests of delayed runs: start times, debounce names, and the moment at which a run enters its queue. */

import type { RunRow } from "@statewright/core/store";
import { assertEqual, assertRejected, assertTrue } from "./assert.ts";
import { createClaimRequest, createQueuedRun, createRun, removePosition, startThread } from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

const creates = { graph: "g", version: 1, shape: "s1", at: 100 };
const inQueue = { status: "queued", delayed: "exclude" } as const;

const toIds = (rows: readonly RunRow[]): string => rows.map(({ id }) => id).join(" ");

export const delayedRunTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "a delayed run is listed as queued, is not claimable before its time, and survives a crash [Y8, SE7]",
    async ({ store, crash }) => {
      const run = createQueuedRun("later", { startAt: 2_000 });
      const row = await store.enqueue({ thread: "t", creates, run });
      assertEqual(row, { ...run, thread: "t", branch: "main" }, "the returned run");
      await store.enqueue({ thread: "t", run: createQueuedRun("now") });
      const next = await crash();
      assertEqual((await next.run("later")) ?? null, row, "the run after a crash");
      assertEqual(toIds(await next.runs({ thread: "t", status: "queued" })), "now later", "the queued runs");
      assertEqual(toIds(await next.runs({ thread: "t", ...inQueue, order: "oldest" })), "now", "the queue");
      assertEqual(toIds(await next.runs({ ...inQueue })), "now", "the queues of all threads");
      assertEqual((await next.countRuns()).byStatus.queued, 2, "the count of queued runs");
      assertEqual(toIds(await next.claimable({ kind: "queued", limit: 5 })), "now", "the claimable runs");
      const timer = { thread: "t", branch: "main", id: "start:later", kind: "start", generation: 0, dueAt: 2_000 };
      assertEqual(await next.timers({ kinds: ["start"] }), [{ ...timer, about: "" }], "the timer");
      assertEqual(await next.timers({ kinds: ["after", "wake"] }), [], "the timers of other kinds");
      assertEqual((await next.claim(createClaimRequest("t"))).queued, 1, "the length of the queue in a claim");
    },
  ),

  defineSharedStoreTest(
    "a due run enters the queue of its thread once over all processes, behind the runs queued before [Y8, SE7]",
    async ({ store, peer }) => {
      const other = await peer();
      await store.enqueue({ thread: "t", creates, run: createQueuedRun("late", { startAt: 2_000 }) });
      await store.enqueue({ thread: "u", creates, run: createQueuedRun("soon", { startAt: 1_000 }) });
      await store.enqueue({ thread: "t", run: createQueuedRun("now") });
      assertEqual(await store.enqueueDue({ at: 999, limit: 9 }), [], "the due runs before the first time");
      const moved = [
        ...(await Promise.all([store.enqueueDue({ at: 2_000, limit: 1 }), other.enqueueDue({ at: 2_000, limit: 1 })])),
        await store.enqueueDue({ at: 2_000, limit: 9 }),
      ].flat();
      assertEqual(toIds(moved), "soon late", "the moved runs, each once");
      const { startAt: _, ...soon } = createQueuedRun("soon", { startedAt: 1_000, queuedAt: 1_000 });
      assertEqual(moved[0], { ...soon, thread: "u", branch: "main" }, "the row of a moved run");
      assertEqual(await other.timers(), [], "the timers");
      assertEqual(toIds(await other.runs({ thread: "t", ...inQueue, order: "oldest" })), "now late", "the queue");
      assertEqual(toIds(await other.claimable({ kind: "queued", limit: 5 })), "now soon", "the claimable runs");
      await assertRejected(store.enqueueDue({ at: 1, limit: 0 }), "invalid_option", "a page without a limit");
    },
  ),

  defineStoreTest(
    "a delayed run does not make its thread busy, and cannot start before its time [Y8]",
    async ({ store }) => {
      await store.enqueue({ thread: "t", creates, run: createQueuedRun("later", { startAt: 2_000, key: "k" }) });
      const row = await store.enqueue({ thread: "t", run: createQueuedRun("now"), mustBeIdle: true });
      assertEqual(row.id, "now", "the run for an idle thread");
      const repeated = await store.enqueue({ thread: "t", run: createQueuedRun("again", { key: "k" }) });
      assertEqual(repeated.id, "later", "the run of a known key");
      const held = await startThread(store, "t", { run: false });
      const start = held.commit({ run: { ...createRun("later"), queuedAt: 300 } });
      await assertRejected(start, "run_exists", "the start of a delayed run");
    },
  ),

  defineStoreTest("a delayed run is cancelled like a queued run, and its timer is removed [Y8]", async ({ store }) => {
    await store.enqueue({ thread: "t", creates, run: createQueuedRun("later", { startAt: 2_000 }) });
    assertTrue(await store.dequeue("t", "later", { at: 400, reason: "no" }), "the delayed run could not be cancelled");
    const [row] = await store.runs({ thread: "t" });
    assertEqual([row?.status, row?.reason, row?.startAt, row?.input], ["cancelled", "no", undefined, undefined], "it");
    assertEqual(await store.timers(), [], "the timers");
    assertEqual(await store.enqueueDue({ at: 9_999, limit: 9 }), [], "the due runs");
    assertEqual((await store.claim(createClaimRequest("t"))).queued, 0, "the length of the queue");
  }),

  defineSharedStoreTest(
    "two processes that debounce at once leave one delayed run, with the input and time of the last call [Y8]",
    async ({ store, peer }) => {
      const other = await peer();
      const call = (id: string, startAt: number) => ({
        ...{ thread: `t-${id}`, creates, debounce: "name" },
        run: createQueuedRun(id, { startAt, debounceKey: "name", metadata: { of: id } }),
      });
      await Promise.all([store.enqueue(call("a", 1_000)), other.enqueue(call("b", 1_500))]);
      const last = await store.enqueue(call("c", 2_500));
      assertEqual((await store.threads()).length, 1, "the threads");
      const [only, ...more] = await other.runs();
      assertEqual(more, [], "the other runs");
      assertEqual(only === undefined ? undefined : removePosition(only), last, "the run");
      assertEqual([last.input, last.startAt, last.metadata], [`{"of":"c"}`, 2_500, { of: "c" }], "its values");
      assertEqual(toIds(await other.runs({ metadata: { of: "c" } })), last.id, "the run by its metadata");
      assertEqual(await other.runs({ metadata: { of: "a" } }), [], "the runs by the metadata of the first call");
      assertEqual(await store.enqueueDue({ at: 2_499, limit: 9 }), [], "the due runs at the time of the second call");
      assertEqual(toIds(await other.enqueueDue({ at: 2_500, limit: 9 })), last.id, "the due runs at the last time");
      assertEqual((await store.enqueue(call("d", 3_000))).id, "d", "the run of a call after the start");
    },
  ),

  defineStoreTest("a debounce name and a known key give the run of the key, unchanged [Y8]", async ({ store }) => {
    const call = (id: string, key: string) => ({
      ...{ thread: "t", creates, debounce: "name" },
      run: createQueuedRun(id, { startAt: 1_000, key }),
    });
    const first = await store.enqueue(call("a", "k1"));
    assertEqual(await store.enqueue(call("b", "k1")), first, "the repeated call");
    const second = await store.enqueue(call("c", "k2"));
    assertEqual([second.id, second.key, second.input], ["a", "k2", `{"of":"c"}`], "the replaced run");
  }),

  defineStoreTest(
    "a due run pre-empts the run of its thread, or is cancelled on a busy thread, as it says [Y8]",
    async ({ store }) => {
      const held = await startThread(store, "t");
      const delayed = (id: string, onBusy: RunRow["onBusy"]) =>
        store.enqueue({ thread: "t", run: createQueuedRun(id, { startAt: 1_000, onBusy }) });
      await delayed("reject", "reject");
      const busy = await store.enqueueDue({ at: 1_200, limit: 9 });
      assertEqual(
        busy.map(({ status, endedAt, input, startAt }) => [status, endedAt, input, startAt]),
        [["cancelled", 1_200, undefined, undefined]],
        "the run that does not wait",
      );
      await delayed("stop", "cancel");
      const [stop] = await store.enqueueDue({ at: 1_200, limit: 9 });
      assertEqual(stop?.stops, { run: "r1", how: "cancel" }, "the run that it pre-empts");
      await store.dequeue("t", "stop", { at: 1_300, reason: "no" });
      await held.commit({ run: { ...createRun("r1"), status: "done", endedAt: 1_400 }, release: true });
      await delayed("idle", "reject");
      assertEqual((await store.enqueueDue({ at: 2_000, limit: 9 }))[0]?.status, "queued", "the run on an idle thread");
    },
  ),

  defineSharedStoreTest(
    "a delayed run moves with its thread, and a deleted thread leaves no timer [Y8, SE7]",
    async ({ store, peer }) => {
      await store.enqueue({ thread: "t", creates, run: createQueuedRun("later", { startAt: 2_000 }) });
      const exported = await store.exportThread("t");
      await store.delete("t");
      assertEqual(await store.timers(), [], "the timers of a deleted thread");
      await store.importThread(exported);
      const other = await peer();
      assertEqual(toIds(await other.claimable({ kind: "queued", limit: 9 })), "", "the claimable runs of the import");
      assertEqual((await other.claim(createClaimRequest("t"))).queued, 0, "the queue of the import");
      assertEqual(toIds(await store.enqueueDue({ at: 2_000, limit: 9 })), "later", "the due runs of the import");
    },
  ),

  defineStoreTest("timers are listed by kind and after a due time [SE7]", async ({ store }) => {
    const held = await startThread(store, "t");
    const arm = (kind: "after" | "expiry" | "wake", dueAt: number) => ({
      arm: { id: kind, kind, generation: 1, dueAt, about: "x" },
    });
    await held.commit({ timers: [arm("after", 300), arm("expiry", 200), arm("wake", 100)] });
    const list = async (filter: Parameters<typeof store.timers>[0]) =>
      (await store.timers(filter)).map(({ kind }) => kind).join(" ");
    assertEqual(await list({}), "wake expiry after", "all timers");
    assertEqual(await list({ kinds: ["after", "wake"] }), "wake after", "two kinds");
    assertEqual(await list({ dueAfter: 100 }), "expiry after", "the timers after a time");
    assertEqual(await list({ dueAfter: 100, limit: 1 }), "expiry", "the next timer");
    assertEqual(await list({ thread: "t", kinds: ["wake"], dueBy: 100 }), "wake", "the timers of a thread");
    assertEqual(await list({ kinds: [] }), "", "no kind");
    await assertRejected(store.timers({ kinds: ["soon" as "wake"] }), "invalid_option", "an unknown kind");
  }),
];
