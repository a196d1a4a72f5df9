/** Conformance tests of runs as rows: the queue of a thread, idempotency keys, runs of crashed owners, and lists. */

import type { Store } from "@statewright/core";
import type { RunRow } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import {
  createCheckpoint,
  createClaimRequest,
  createQueuedRun,
  createRun,
  releaseThread,
  removePosition,
  startThread,
} from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

const listIds = async (rows: Promise<readonly RunRow[]>): Promise<string> => (await rows).map(({ id }) => id).join(" ");

const listStatuses = async (store: Store): Promise<readonly string[]> =>
  (await store.runs()).map(({ id, status }) => `${id} ${status}`);

export const queueTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "any process can enqueue a run on a claimed thread, and the run is read back unchanged [E27]",
    async ({ store, peer }) => {
      const held = await startThread(store, "t");
      const other = await peer();
      const metadata = { who: "ann", "a'\"b": 1, deep: { list: [null, true] } };
      const row = createQueuedRun("q1", { key: "k", metadata, reason: "r", recovered: { count: 2, at: 7 } });
      const enqueued = await other.enqueue({ thread: "t", run: row, stops: "cancel" });
      assertEqual(
        enqueued,
        { ...row, thread: "t", branch: "main", stops: { run: "r1", how: "cancel" } },
        "the returned run",
      );
      assertEqual((await store.runs({ status: "queued" })).map(removePosition), [enqueued], "the run");
      assertEqual((await store.thread("t"))?.status, "running", "the status of the thread");
      await held.commit({ release: true });
      assertEqual((await other.claim(createClaimRequest("t"))).run?.id, "r1", "the newest run of the branch");
    },
  ),

  defineStoreTest("runs are listed by branch, and of a thread also oldest first [FX77]", async ({ store }) => {
    const held = await startThread(store, "t");
    await held.commit({ checkpoint: createCheckpoint(1, undefined, { run: "r1" }) });
    await held.commit({ run: { ...createRun("r1"), status: "done" }, release: true });
    const checkpoint = createCheckpoint(1, undefined, { run: "r1" });
    await store.branch({ thread: "t", branch: "other", from: 1, checkpoint, interrupts: [] });
    for (const id of ["q1", "q2"]) await store.enqueue({ thread: "t", run: createQueuedRun(id) });
    await store.enqueue({ thread: "t", branch: "other", run: createQueuedRun("q3") });
    const filter = { thread: "t", status: "queued" } as const;
    assertEqual(await listIds(store.runs({ ...filter, order: "oldest" })), "q1 q2 q3", "oldest first");
    assertEqual(await listIds(store.runs({ ...filter, order: "oldest", limit: 1 })), "q1", "the first of the queue");
    assertEqual(await listIds(store.runs({ ...filter, branch: "other", order: "oldest" })), "q3", "of a branch");
    assertEqual(await listIds(store.runs({ thread: "t", branch: "main" })), "q2 q1 r1", "newest first of a branch");
    assertEqual(await listIds(store.runs({ thread: "t", order: "oldest" })), "r1 q1 q2 q3", "all oldest first");
    await assertRejected(store.runs({ order: "oldest" }), "invalid_option", "oldest first of all threads");
  }),

  defineSharedStoreTest(
    "every commit and every claim returns the number of queued runs [E27]",
    async ({ store, peer }) => {
      const held = await startThread(store, "t");
      let queuedCount: number | undefined;
      const write = (more = {}) =>
        new Promise<void>((resolve, reject) => {
          const { epoch } = held.claim;
          store.commit({ thread: "t", branch: "main", epoch, seq: 9, ...more }, (failure, counts) => {
            queuedCount = counts?.queued;
            if (failure === undefined) resolve();
            else reject(failure);
          });
        });
      await write();
      assertEqual(queuedCount, 0, "without a queue");
      for (const id of ["q1", "q2"]) await (await peer()).enqueue({ thread: "t", run: createQueuedRun(id) });
      await write({ run: { ...createRun("r1"), status: "done" } });
      assertEqual(queuedCount, 2, "with two");
      await write({
        run: { ...createRun("q1"), queuedAt: 300 },
        checkpoint: createCheckpoint(1, undefined, { run: "q1" }),
      });
      assertEqual(queuedCount, 1, "the count after one queued run started");
      await store.dequeue("t", "q2", { at: 400, reason: "no" });
      await write({ release: true });
      assertEqual(queuedCount, 0, "the count after the other queued run was dequeued");
      await store.enqueue({ thread: "t", run: createQueuedRun("q3") });
      assertEqual((await (await peer()).claim(createClaimRequest("t"))).queued, 1, "the claim");
    },
  ),

  defineStoreTest(
    "a queued run starts in one commit and becomes the newest run of its branch [E27]",
    async ({ store }) => {
      const held = await startThread(store, "t");
      await store.enqueue({ thread: "t", run: createQueuedRun("q1", { metadata: { a: 1 } }) });
      await held.commit({ run: { ...createRun("r1"), status: "done", endedAt: 350 } });
      const startedRun = { ...createRun("q1"), startedAt: 400, queuedAt: 300, metadata: { a: 1 } };
      await held.commit({ run: startedRun, checkpoint: createCheckpoint(1, undefined, { run: "q1", at: 400 }) });
      assertEqual((await store.runs()).map(removePosition)[0], startedRun, "its row");
      assertEqual((await store.thread("t"))?.status, "running", "the thread");
      await held.commit({ run: { ...startedRun, status: "waiting" }, release: true });
      assertEqual((await store.claim(createClaimRequest("t"))).run?.id, "q1", "the newest run");
    },
  ),

  defineSharedStoreTest(
    "the queue keeps the order of the enqueues of all processes, independent of their clocks [E27]",
    async ({ store, peer }) => {
      await startThread(store, "t");
      const other = await peer();
      for (const [index, id] of ["q1", "q2", "q3", "q4"].entries())
        await (index % 2 === 0 ? store : other).enqueue({
          thread: "t",
          run: createQueuedRun(id, { startedAt: 900 - index }),
        });
      assertEqual(await listIds(store.runs({ status: "queued" })), "q4 q3 q2 q1", "the queued runs, newest first");
    },
  ),

  defineSharedStoreTest("a dequeued run is cancelled exactly once and cannot start [E27]", async ({ store, peer }) => {
    const held = await startThread(store, "t");
    await store.enqueue({ thread: "t", run: createQueuedRun("q1") });
    const dequeued = await Promise.all(
      [store, await peer()].map((each) => each.dequeue("t", "q1", { at: 400, reason: "no" })),
    );
    assertEqual(dequeued.filter(Boolean).length, 1, "the number of successful dequeues");
    assertEqual(
      (await store.runs()).map(removePosition)[0],
      {
        ...createQueuedRun("q1"),
        thread: "t",
        branch: "main",
        status: "cancelled",
        endedAt: 400,
        reason: "no",
        input: undefined,
      },
      "its row",
    );
    assertEqual(await store.dequeue("t", "r1", { at: 400, reason: "no" }), false, "a dequeue of a running run");
    assertEqual(await store.dequeue("t", "none", { at: 400, reason: "no" }), false, "a dequeue of an unknown run");
    assertEqual(
      await store.dequeue("none", "q1", { at: 400, reason: "no" }),
      false,
      "a dequeue from an unknown thread",
    );
    const late = { run: { ...createRun("q1"), queuedAt: 300 }, checkpoint: createCheckpoint(1, undefined) };
    await assertRejected(held.commit(late), "run_exists", "a late start");
    assertEqual(await store.head("t"), undefined, "the head");
  }),

  defineStoreTest(
    "a run for an unknown thread or branch, or with an invalid or used id, is refused and not queued [E27]",
    async ({ store }) => {
      await assertRejected(store.enqueue({ thread: "none", run: createQueuedRun("q") }), "unknown_thread", "no thread");
      await startThread(store, "t");
      await assertRejected(
        store.enqueue({ thread: "t", branch: "none", run: createQueuedRun("q") }),
        "unknown_branch",
        "no branch",
      );
      await assertRejected(
        store.enqueue({ thread: "t", run: createQueuedRun("a b") }),
        "invalid_id",
        "an id outside the grammar",
      );
      await assertRejected(store.enqueue({ thread: "t", run: createQueuedRun("r1") }), "run_exists", "an id in use");
      assertEqual(await listStatuses(store), ["r1 running"], "the runs");
    },
  ),

  defineSharedStoreTest(
    "a queued run creates a missing thread in the same write, with its graph, its tenant and its owner, and leaves an existing thread unchanged [PK7]",
    async ({ store, peer }) => {
      const creates = { graph: "g", version: 2, shape: "s", outline: "{}", at: 300, keySalt: "salt" };
      const parties = { tenant: "acme", owner: "ann" };
      const row = createQueuedRun("q1", { key: "k", bodyHash: "0123456789abcdef", resumeKey: "r", ...parties });
      const enqueued = await store.enqueue({ thread: "t", run: row, creates });
      assertEqual(enqueued, { ...row, thread: "t", branch: "main" }, "the returned run");
      assertEqual((await store.runs({ thread: "t" })).map(removePosition), [enqueued], "the run");
      const { status, ...thread } = (await store.thread("t")) ?? {};
      const times = { createdAt: 300, updatedAt: 300 };
      assertEqual(thread, { id: "t", graph: "g", version: 2, headBranch: "main", ...times, ...parties }, "the thread");
      assertEqual(status, undefined, "its status");
      assertEqual(await store.outline?.({ graph: "g", version: 2, shape: "s" }), "{}", "the saved outline");
      assertEqual(
        (await store.claimable({ kind: "queued", limit: 5 })).map(({ id }) => id),
        ["q1"],
        "the work",
      );
      const other = await peer();
      const later = { ...creates, graph: "h", at: 900, keySalt: "other" };
      await other.enqueue({ thread: "t", run: createQueuedRun("q2"), creates: later });
      assertEqual((await store.thread("t"))?.graph, "g", "the graph of the existing thread");
      const claim = await other.claim(createClaimRequest("t", { version: 2, shape: "s", mustExist: true }));
      assertEqual([claim.keySalt, claim.tenant, claim.head, claim.queued], ["salt", "acme", null, 2], "the claim");
      await assertRejected(
        store.enqueue({ thread: "u", run: createQueuedRun("q1"), creates }),
        "run_exists",
        "a used id",
      );
      assertEqual(await store.thread("u"), undefined, "the thread of a refused run");
    },
  ),

  defineSharedStoreTest(
    "a queued run that needs an idle branch is refused while the thread has an owner, or the branch an unfinished or a queued run [PK7]",
    async ({ store, peer }) => {
      const held = await startThread(store, "t");
      const other = await peer();
      const enqueue = (id: string, more: object = {}) =>
        other.enqueue({ thread: "t", run: createQueuedRun(id, more), mustBeIdle: true });
      await assertRejected(enqueue("q1"), "thread_busy", "a running run");
      await held.commit({ run: { ...createRun("r1"), status: "waiting" }, release: true });
      await assertRejected(enqueue("q1"), "thread_busy", "a waiting run");
      const next = await startThread(store, "t", { run: false });
      await assertRejected(enqueue("q1"), "thread_busy", "a claimed thread");
      await next.commit({ run: { ...createRun("r1"), status: "done" }, release: true });
      assertEqual((await enqueue("q1", { key: "k" })).id, "q1", "an idle branch");
      await assertRejected(enqueue("q2"), "thread_busy", "a queued run");
      assertEqual((await enqueue("q2", { key: "k" })).id, "q1", "a known key");
    },
  ),

  defineSharedStoreTest(
    "a queued run with the id of a queued run of another thread is refused, by every process, until that run has left the queue [FX103]",
    async ({ store, peer }) => {
      for (const thread of ["t", "u"]) await startThread(store, thread);
      await store.enqueue({ thread: "t", run: createQueuedRun("q") });
      for (const each of [store, await peer()])
        await assertRejected(each.enqueue({ thread: "u", run: createQueuedRun("q") }), "run_exists", "a used id");
      assertEqual(await store.runs({ thread: "u", status: "queued" }), [], "the queue of the other thread");
      await store.dequeue("t", "q", { at: 400, reason: "not needed" });
      assertEqual((await store.enqueue({ thread: "u", run: createQueuedRun("q") })).id, "q", "a free id");
    },
  ),

  defineSharedStoreTest(
    "an idempotency key is unique within its thread, for queued and started runs [E27]",
    async ({ store, peer }) => {
      const held = await startThread(store, "t", { run: false });
      const first = { ...createRun("r1"), key: "k" };
      await held.commit({ run: first });
      assertEqual(
        (await (await peer()).enqueue({ thread: "t", run: createQueuedRun("q1", { key: "k" }) })).id,
        "r1",
        "a run started with the key",
      );
      const others = await Promise.all(
        [store, await peer()].map((each, index) =>
          each.enqueue({ thread: "t", run: createQueuedRun(`q${index + 2}`, { key: "other" }) }),
        ),
      );
      assertEqual(new Set(others.map(({ id }) => id)).size, 1, "two concurrent enqueues with the same key");
      await held.commit({ run: { ...first, status: "done" } });
      await assertRejected(
        held.commit({ run: { ...createRun("r2"), key: "other" }, checkpoint: createCheckpoint(1, undefined) }),
        "run_exists",
        "a run with the key of a queued run",
      );
      assertEqual(await store.head("t"), undefined, "the head after the refused commit");
      assertEqual(await listIds(store.runs({ thread: "t", key: "k" })), "r1", "the run with the key");
      const another = await startThread(store, "u", { run: false });
      await another.commit({ run: { ...createRun("r9"), thread: "u", key: "k" } });
      assertEqual(await listIds(store.runs({ key: "k" })), "r9 r1", "the runs with the same key in two threads");
    },
  ),

  defineSharedStoreTest(
    "a run whose owner crashed, or released the thread without a status, is listed as crashed without a write [E35]",
    async ({ store, peer, crash }) => {
      const other = await peer();
      for (const thread of ["dead", "waits"]) {
        const held = await startThread(store, thread, { run: false });
        await held.commit({ run: { ...createRun(`r-${thread}`), thread } });
        if (thread === "waits")
          await held.commit({ run: { ...createRun("r-waits"), thread, status: "waiting" }, release: true });
      }
      assertEqual(
        await listIds(other.runs({ status: "running" })),
        "r-dead",
        "the running runs while the owner is alive",
      );
      assertEqual(await listIds(other.runs({ status: "crashed" })), "", "the crashed runs while the owner is alive");
      const next = await crash();
      const liveThread = await startThread(next, "alive", { run: false });
      await liveThread.commit({ run: { ...createRun("r-alive"), thread: "alive" } });
      assertEqual(await listStatuses(next), ["r-alive running", "r-waits waiting", "r-dead crashed"], "all runs");
      assertEqual(await listIds(next.runs({ status: "crashed" })), "r-dead", "the crashed runs");
      assertEqual(await listIds(next.runs({ status: ["running", "crashed"] })), "r-alive r-dead", "both");
      assertEqual(
        await listIds(next.runs({ thread: "dead", status: "running" })),
        "",
        "the running runs of the thread",
      );
      assertEqual((await next.thread("dead"))?.status, "crashed", "the thread");
      assertEqual(
        (await next.threads({ status: "crashed" })).map(({ id }) => id),
        ["dead"],
        "the threads",
      );
      const claim = await next.claim(createClaimRequest("dead"));
      assertEqual(
        [claim.previousOwner, claim.run?.status],
        ["dead", "running"],
        "the claim, with the stored status of the run",
      );
      await releaseThread(next, "dead", claim);
      assertEqual((await next.thread("dead"))?.status, "crashed", "the status after a claim without a commit");
    },
  ),

  defineStoreTest("runs can be listed by several filters at once, in pages [E66]", async ({ store }) => {
    for (const [index, status] of (["done", "waiting", "failed", "done", "waiting"] as const).entries()) {
      const graph = index % 2 === 0 ? "even" : "odd";
      const thread = await startThread(store, `t${index}`, { graph, run: false });
      const metadata = { nth: index, odd: index % 2 === 1, "a.\"b'": "x", none: null };
      await thread.commit({
        run: {
          ...createRun(`r${index}`),
          thread: `t${index}`,
          graph,
          status,
          startedAt: 100 * index,
          ...(index === 4 ? {} : { metadata }),
        },
        release: true,
      });
    }
    const list = (filter: Parameters<Store["runs"]>[0]) => listIds(store.runs(filter));
    assertEqual(await list({ status: ["waiting", "failed"] }), "r4 r2 r1", "several statuses");
    assertEqual(await list({ status: [] }), "", "an empty list of statuses");
    assertEqual(await list({ graph: "odd" }), "r3 r1", "a graph");
    assertEqual(await list({ graph: "even", status: "waiting" }), "r4", "a graph and a status");
    assertEqual(await list({ since: 100, until: 300 }), "r2 r1", "a start time and an end time");
    assertEqual(await list({ graph: "odd", since: 300 }), "r3", "a graph and a start time");
    assertEqual(await list({ metadata: { odd: true } }), "r3 r1", "a boolean");
    assertEqual(await list({ metadata: { nth: 2, none: null } }), "r2", "a number and null");
    assertEqual(await list({ metadata: { "a.\"b'": "x" }, limit: 2 }), "r3 r2", "a string under a key with quotes");
    assertEqual(await list({ metadata: { nth: "2" } }), "", "a string instead of a number");
    assertEqual(await list({ metadata: { odd: 1 } }), "", "a number instead of a boolean");
    assertEqual(await list({ metadata: { missing: null } }), "", "null for an absent key");
    assertEqual(await list({ metadata: {} }), "r4 r3 r2 r1 r0", "no condition");
    const first = await store.runs({ limit: 2 });
    assertEqual(await listIds(Promise.resolve(first)), "r4 r3", "a page");
    const second = await store.runs({ limit: 2, before: first[1] });
    assertEqual(await listIds(Promise.resolve(second)), "r2 r1", "the next page");
    assertEqual(await listIds(store.runs({ limit: 2, before: second[1] })), "r0", "the last page");
    assertEqual(await list({ status: "waiting", before: first[0] }), "r1", "a page with a status");
    assertEqual(await list({ graph: "even", before: second[0] }), "r0", "a page with a graph");
  }),

  defineStoreTest(
    "threads can be listed by several filters at once, in pages, by their newest run [E66]",
    async ({ store }) => {
      for (const [index, status] of (["done", "waiting", "failed", "done"] as const).entries()) {
        const graph = index % 2 === 0 ? "even" : "odd";
        const id = `t${index}`;
        const thread = await startThread(store, id, { graph, at: 100 * index, run: false });
        const row = { ...createRun(`r${index}`), thread: id, graph, startedAt: 100 * index };
        await thread.commit({ run: { ...row, id: "before", status: "done", metadata: { nth: 99 } } });
        await thread.commit({ run: { ...row, status, metadata: { nth: index } }, release: true });
      }
      const late = await startThread(store, "t9", { at: 300, run: false });
      await late.commit({ release: true });
      const list = async (filter: Parameters<Store["threads"]>[0]) =>
        (await store.threads(filter)).map(({ id }) => id).join(" ");
      assertEqual(await list({}), "t9 t3 t2 t1 t0", "all");
      assertEqual(await list({ status: ["waiting", "failed"] }), "t2 t1", "several statuses");
      assertEqual(await list({ status: "done", graph: "odd" }), "t3", "a status and a graph");
      assertEqual(await list({ since: 100, until: 300 }), "t2 t1", "a start time and an end time");
      assertEqual(await list({ runMetadata: { nth: 1 } }), "t1", "metadata of the newest run");
      assertEqual(await list({ runMetadata: { nth: 99 } }), "", "metadata of an older run");
      const first = await store.threads({ limit: 2 });
      assertEqual(
        first.map(({ id }) => id),
        ["t9", "t3"],
        "a page",
      );
      const second = await store.threads({ limit: 2, before: first[1] });
      assertEqual(
        second.map(({ id }) => id),
        ["t2", "t1"],
        "the next page",
      );
      assertEqual(
        await list({ before: { id: "t9", updatedAt: 300 } }),
        "t3 t2 t1 t0",
        "the threads after a thread with the same update time",
      );
    },
  ),

  defineStoreTest("a list with an unknown filter or an unknown status is refused [R3]", async ({ store }) => {
    for (const wrong of [
      { ownr: "me" },
      { owner: 7 },
      { tenant: null },
      { status: "asleep" },
      { status: ["done", "asleep"] },
      { metadata: { a: {} } },
      { limit: 0 },
    ]) {
      await assertRejected(store.runs(wrong as never), "invalid_option", `runs ${JSON.stringify(wrong)}`);
      await assertRejected(store.threads(wrong as never), "invalid_option", `threads ${JSON.stringify(wrong)}`);
    }
    await assertRejected(store.threads({ key: "k" } as never), "invalid_option", "a filter by key for threads");
  }),
];
