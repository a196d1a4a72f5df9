/** Conformance tests of claimable runs: runs that an engine continues automatically, listed by kind and in pages. */

import type { ErrorRecord, Store } from "@statewright/core";
import type { ClaimableKind, InboxMessageKind, RunRow } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import { commitWrite, createClaimRequest, createRun, releaseThread, startThread } from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

const drained: ErrorRecord = { name: "E", code: "drained", message: "", details: { reason: "the engine stops" } };
const pausedByPerson: ErrorRecord = { ...drained, details: { reason: "a person" } };
const incompatible: ErrorRecord = { name: "E", code: "needs_migration", message: "" };
const poisoned: ErrorRecord = { name: "E", code: "parked", message: "" };

export const claimableTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "claimable runs are listed by kind, and waiting, paused, failed or poisoned runs are not listed",
    async ({ store, crash }) => {
      const statuses: readonly (readonly [string, Partial<RunRow>])[] = [
        ["done", { status: "done" }],
        ["waits", { status: "waiting" }],
        ["failed", { status: "failed", error: poisoned }],
        ["stopped", { status: "paused", error: drained }],
        ["rests", { status: "paused", error: pausedByPerson }],
        ["old", { status: "parked", error: incompatible }],
        ["poison", { status: "parked", error: poisoned }],
      ];
      for (const [thread, more] of statuses) {
        const held = await startThread(store, thread);
        await held.commit({ run: { ...createRun("r1"), thread, ...more }, release: true });
      }
      await startThread(store, "dies");
      const next = await crash();
      await startThread(next, "works");
      const listThreadIds = async (kind: ClaimableKind) =>
        (await next.claimable({ kind, limit: 10 })).map(({ thread }) => thread);
      assertEqual(await listThreadIds("crashed"), ["dies"], "the runs of crashed processes");
      assertEqual(await listThreadIds("drained"), ["stopped"], "the runs stopped by an engine");
      assertEqual(await listThreadIds("incompatible"), ["old"], "the runs parked by an incompatible version");
      assertEqual(await listThreadIds("queued"), [], "the queued runs");
      assertEqual((await next.claimable({ kind: "drained", limit: 1 }))[0]?.status, "paused", "the status of the row");
      assertEqual(
        (await next.runs({ status: "paused" })).map(({ thread }) => thread),
        ["rests", "stopped"],
        "all paused runs",
      );
      assertEqual(
        (await next.runs({ status: "parked" })).map(({ thread }) => thread),
        ["poison", "old"],
        "all parked runs",
      );
      assertEqual((await next.threads({ status: "paused" })).length, 2, "the number of threads with a paused run");
    },
  ),

  defineStoreTest(
    "each thread offers only its first queued run as claimable, and none while the thread is claimed",
    async ({ store }) => {
      for (const thread of ["a", "b", "c"]) {
        const claim = await store.claim(createClaimRequest(thread));
        for (const id of [`${thread}1`, `${thread}2`]) await enqueueRun(store, thread, id);
        if (thread !== "b") await releaseThread(store, thread, claim);
      }
      const listQueued = async () =>
        (await store.claimable({ kind: "queued", limit: 10 })).map(({ thread, id }) => [thread, id]);
      assertEqual(
        await listQueued(),
        [
          ["a", "a1"],
          ["c", "c1"],
        ],
        "the first run of each queue",
      );
      await store.dequeue("a", "a1", { at: 500, reason: "no" });
      assertEqual(
        await listQueued(),
        [
          ["a", "a2"],
          ["c", "c1"],
        ],
        "the queues after a dequeue",
      );
    },
  ),

  defineSharedStoreTest(
    "a queued run becomes claimable when the owner of its thread crashes before a run starts",
    async ({ store, crash }) => {
      await store.claim(createClaimRequest("t"));
      await enqueueRun(store, "t", "q1");
      assertEqual(
        await store.claimable({ kind: "queued", limit: 10 }),
        [],
        "the queued runs while the thread is claimed",
      );
      const next = await crash();
      const found = await next.claimable({ kind: "queued", limit: 10 });
      assertEqual(
        found.map(({ id }) => id),
        ["q1"],
        "the queued runs after the crash",
      );
    },
  ),

  defineSharedStoreTest(
    "a waiting or paused run with an undelivered event is claimable while no process owns its thread",
    async ({ store, crash }) => {
      const statuses: readonly (readonly [string, Partial<RunRow>])[] = [
        ["waits", { status: "waiting" }],
        ["rests", { status: "paused", error: pausedByPerson }],
        ["stopped", { status: "paused", error: drained }],
        ["failed", { status: "failed", error: poisoned }],
        ["done", { status: "done" }],
        ["silent", { status: "waiting" }],
        ["chats", { status: "waiting" }],
      ];
      for (const [thread, more] of statuses) {
        const held = await startThread(store, thread);
        await held.commit({ run: { ...createRun("r1"), thread, ...more }, release: true });
        if (thread !== "silent") await postTo(store, thread, thread === "chats" ? "steer" : "event");
      }
      const listThreads = async (from: Store) =>
        (await from.claimable({ kind: "notified", limit: 10 })).map(({ thread }) => thread);
      assertEqual(await listThreads(store), ["waits", "rests"], "the runs with an undelivered event");
      const held = await startThread(store, "waits");
      assertEqual(await listThreads(store), ["rests"], "the runs while the thread is claimed");
      const next = await crash();
      assertEqual(await listThreads(next), ["waits", "rests"], "the runs after the owner crashed");
      const taken = await startThread(next, "waits");
      const run: RunRow = { ...createRun("r1"), thread: "waits", branch: held.claim.branch, status: "waiting" };
      await taken.commit({ run, deliveredMessages: ["m1"], release: true });
      assertEqual(await listThreads(next), ["rests"], "the runs after the event was delivered");
    },
  ),

  defineStoreTest("pages of claimable runs are consecutive and contain each run once", async ({ store }) => {
    for (let nth = 0; nth < 25; nth++) {
      const thread = `t${nth}`;
      const held = await startThread(store, thread);
      await held.commit({ run: { ...createRun("r1"), thread, status: "paused", error: drained } });
      await enqueueRun(store, thread, `q${nth}`);
      await held.commit({ release: true });
      const resting = await startThread(store, `e${nth}`);
      await resting.commit({ run: { ...createRun("r1"), thread: `e${nth}`, status: "waiting" }, release: true });
      for (const id of ["m1", "m2"]) await postTo(store, `e${nth}`, "event", id);
    }
    for (const [kind, prefix] of [
      ["queued", "t"],
      ["drained", "t"],
      ["notified", "e"],
    ] as const) {
      const all: string[] = [];
      for (let after: RunRow | undefined; ; ) {
        const page: readonly RunRow[] = await store.claimable({ kind, limit: 10, after });
        all.push(...page.map(({ thread }) => thread));
        after = page.at(-1);
        if (page.length < 10) break;
      }
      assertEqual(
        all,
        Array.from({ length: 25 }, (_, nth) => `${prefix}${nth}`),
        `the threads with ${kind} runs`,
      );
    }
    await assertRejected(
      store.claimable({ kind: "done" as ClaimableKind, limit: 1 }),
      "invalid_option",
      "another kind",
    );
    await assertRejected(store.claimable({ kind: "queued", limit: 0 }), "invalid_option", "a limit of 0");
  }),

  defineStoreTest("runs and threads can be filtered by several metadata values at once", async ({ store }) => {
    for (let nth = 0; nth < 60; nth++) {
      const thread = `t${nth}`;
      const metadata = { all: true, third: nth % 3, name: nth % 2 === 0 ? "even" : "odd", none: null };
      const claim = await store.claim(createClaimRequest(thread));
      const row = { ...createRun("r1"), thread, status: "done" as const, metadata, startedAt: nth };
      await commitWrite(store, { thread, branch: "main", epoch: claim.epoch, seq: 1, run: row, release: true });
    }
    const filter = { all: true, third: 1, name: "odd", none: null };
    const runs = await store.runs({ metadata: filter });
    assertEqual(
      runs.map(({ thread }) => thread),
      ["t55", "t49", "t43", "t37", "t31", "t25", "t19", "t13", "t7", "t1"],
      "the runs",
    );
    assertEqual((await store.threads({ runMetadata: filter })).length, 10, "the threads");
    const page = await store.runs({ metadata: filter, limit: 2, before: runs[1] });
    assertEqual(
      page.map(({ thread }) => thread),
      ["t43", "t37"],
      "a page",
    );
    assertEqual(
      (await store.runs({ metadata: filter, since: 30, status: "done" })).length,
      5,
      "the number of runs with a start time and a status",
    );
    assertEqual(
      (await store.runs({ metadata: { ...filter, third: "1" } })).length,
      0,
      "the number of runs with a value of another type",
    );
    assertEqual((await store.runs({ metadata: { other: null } })).length, 0, "the number of runs with an unknown key");
    assertEqual(
      (await store.runs({ metadata: {}, limit: 100 })).length,
      60,
      "the number of runs with an empty metadata filter",
    );
    await store.delete("t55");
    assertEqual((await store.runs({ metadata: filter })).length, 9, "the number of runs after a thread was deleted");
  }),
];

async function postTo(store: Store, thread: string, kind: InboxMessageKind, id = "m1"): Promise<void> {
  await store.post({ thread, id, kind, messages: "1", at: 400 });
}

async function enqueueRun(store: Store, thread: string, id: string): Promise<void> {
  const { thread: _, branch: __, ...row } = createRun(id);
  await store.enqueue({ thread, run: { ...row, status: "queued", input: "1", queuedAt: 300 } });
}
