/** Conformance tests of claims of runs and due timers by several processes. Skipped without `claimRuns` or `claimTimers`. */

import type { ErrorRecord, Store } from "@statewright/core";
import type { ClaimableKind, ClaimedRun, ClaimingGraph, RunClaimRequest, RunRow } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import {
  commitWrite,
  createCheckpoint,
  createClaimRequest,
  createRun,
  createTimer,
  forkThread,
  startThread,
} from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

const served: readonly ClaimingGraph[] = [{ name: "g", version: 1, shape: "s1" }];
const drained: ErrorRecord = { name: "E", code: "drained", message: "", details: { reason: "the engine stops" } };
const incompatible: ErrorRecord = { name: "E", code: "needs_migration", message: "" };

export const runClaimTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "queued runs are claimed by priority, round robin over tenants, and by age within a tenant [PK8, FX103]",
    async ({ store, peer }) => {
      if (store.claimRuns === undefined) return;
      const runs = ["z1 big", "a1 big", "a2 big", "a3 big", "b1 small", "c1 ", "b2 small", "u1 big 5", "l1 small -1"];
      for (const each of runs) {
        const [thread = "", tenant, priority] = each.split(" ");
        await submitRun(store, thread, { tenant, priority: Number(priority ?? 0) });
      }
      const other = await peer();
      assertEqual(await claimThreads(store, { limit: 3 }), ["u1", "c1", "z1"], "the first claims");
      assertEqual(await claimThreads(other, { limit: 2 }), ["b1", "a1"], "the claims of a second process");
      assertEqual(await claimThreads(store, { limit: 9 }), ["b2", "a2", "a3", "l1"], "the last claims");
      assertEqual(await claimThreads(other, { limit: 9 }), [], "the claims without a queued run");
    },
  ),

  defineStoreTest(
    "a tenant with a long queue does not delay another tenant, also after many claims [PK8]",
    async ({ store }) => {
      if (store.claimRuns === undefined) return;
      for (let nth = 0; nth < 60; nth++) await submitRun(store, `big${nth}`, { tenant: "big" });
      for (let nth = 0; nth < 3; nth++) await submitRun(store, `small${nth}`, { tenant: "small" });
      const order = (await claimThreads(store, { limit: 8 })).map((thread) => thread.replace(/\d+/, ""));
      assertEqual(order, ["big", "small", "big", "small", "big", "small", "big", "big"], "the tenants of the claims");
      await submitRun(store, "late", { tenant: "late" });
      assertEqual((await claimThreads(store, { limit: 2 })).includes("late"), true, "the claim of a new tenant");
    },
  ),

  defineStoreTest(
    "a queued run is claimed only when it can start: its branch is free, or the queue pre-empts the run of the branch [PK8]",
    async ({ store }) => {
      if (store.claimRuns === undefined) return;
      const statuses = ["waiting", "paused", "failed", "parked", "done", "cancelled"] as const;
      for (const status of statuses) {
        const held = await startThread(store, status);
        await submitRun(store, status);
        await held.commit({ run: { ...createRun("r1"), thread: status, status }, release: true });
      }
      const held = await startThread(store, "stopped");
      await submitRun(store, "stopped");
      await submitRun(store, "stopped", { id: "q2" }, { stops: "cancel" });
      await held.commit({ run: { ...createRun("r1"), thread: "stopped", status: "waiting" }, release: true });
      const claimed = await store.claimRuns(createRequest({ limit: 9 }));
      assertEqual(
        claimed.map(describeClaim),
        ["queued done q1-done", "queued cancelled q1-cancelled", "queued stopped q1-stopped"],
        "the claims",
      );
      assertEqual(claimed[2]?.claim.run?.status, "waiting", "the run that the queue pre-empts");
      const waiting = await startThread(store, "waiting");
      await waiting.commit({ run: { ...createRun("r1"), thread: "waiting", status: "done" }, release: true });
      assertEqual(await claimThreads(store, {}), ["waiting"], "the claims after the run before has ended");
    },
  ),

  defineStoreTest("the queue of a thread is claimed in its order, one run at a time [PK8]", async ({ store }) => {
    if (store.claimRuns === undefined) return;
    for (const id of ["q1", "q2", "q3"]) await submitRun(store, "t", { id, priority: id === "q3" ? 9 : 0 });
    const [first] = await store.claimRuns(createRequest({}));
    assertEqual([first?.run.id, first?.claim.queued], ["q1-t", 3], "the first claim");
    assertEqual(await claimThreads(store, {}), [], "the claims while the thread is claimed");
    await endRun(store, first);
    assertEqual(await store.dequeue("t", "q2-t", { at: 500, reason: "no" }), true, "the removal of the second run");
    const [next] = await store.claimRuns(createRequest({}));
    assertEqual([next?.run.id, next?.run.priority, next?.claim.run?.id], ["q3-t", 9, "q1-t"], "the next claim");
  }),

  defineSharedStoreTest(
    "a process that dies between the claim and the start of a queued run leaves the run claimable [PK8]",
    async ({ store, crash }) => {
      if (store.claimRuns === undefined) return;
      await submitRun(store, "t", { tenant: "a" });
      const [claimed] = await store.claimRuns(createRequest({}));
      const next = await crash();
      const [again] = (await next.claimRuns?.(createRequest({}))) ?? [];
      assertEqual([again?.run, again?.claim.previousOwner], [claimed?.run, "dead"], "the claim after the crash");
      assertEqual((again?.claim.epoch ?? 0) > (claimed?.claim.epoch ?? 0), true, "a higher epoch");
      await endRun(next, again);
      assertEqual(
        (await next.runs({ thread: "t" })).map(({ status }) => status),
        ["done"],
        "the runs",
      );
    },
  ),

  defineSharedStoreTest(
    "crashed, drained, incompatible and notified runs are claimed by kind, and none of a newer version [PK8, FX15]",
    async ({ store, crash }) => {
      if (store.claimRuns === undefined) return;
      const rows: readonly (readonly [string, Partial<RunRow>])[] = [
        ["stopped", { status: "paused", error: drained }],
        ["old", { status: "parked", error: incompatible }],
        ["rests", { status: "waiting" }],
        ["stops", { status: "paused", error: drained }],
      ];
      for (const version of [1, 2]) {
        for (const [name, more] of rows) {
          const thread = `${name}${version}`;
          const held = await startThread(store, thread, { version });
          await held.commit({ run: { ...createRun("r1"), version, thread, ...more }, release: true });
          if (name === "rests") await store.post({ thread, id: "m1", kind: "event", messages: "1", at: 400 });
          if (name === "stops") await submitRun(store, thread, { version }, { stops: "rollback" });
        }
        const dies = await startThread(store, `dies${version}`, { version, run: false });
        await dies.commit({ run: { ...createRun("r1"), version, thread: `dies${version}` } });
        await submitRun(store, `queued${version}`, { version });
      }
      const next = await crash();
      await startThread(next, "works");
      const claim = async (
        graphs: readonly ClaimingGraph[],
        kinds: readonly ClaimableKind[],
        isSkipped?: RunClaimRequest["isSkipped"],
      ) => ((await next.claimRuns?.({ graphs, kinds, limit: 20, at: 600, isSkipped })) ?? []).map(describeClaim);
      const kinds = ["crashed", "drained", "notified", "incompatible", "queued"] as const;
      assertEqual(await claim([{ name: "other", version: 9, shape: "s" }], kinds), [], "the claims of another graph");
      assertEqual(
        await claim(served, kinds, ({ thread }) => thread === "dies1" || thread === "queued1"),
        ["drained stopped1 r1", "notified rests1 r1", "incompatible old1 r1", "queued stops1 q1-stops1"],
        "the claims of version 1 without the skipped runs",
      );
      assertEqual(
        await claim(served, kinds),
        ["crashed dies1 r1", "queued queued1 q1-queued1"],
        "the claims of the skipped runs",
      );
      assertEqual(
        await claim([{ name: "g", version: 3, shape: "s3" }], ["queued", "crashed"]),
        ["queued stops2 q1-stops2", "queued queued2 q1-queued2", "crashed dies2 r1"],
        "the claims of version 3",
      );
    },
  ),

  defineStoreTest("queued runs of imported threads and forks can be claimed [PK8]", async ({ store }) => {
    if (store.claimRuns === undefined) return;
    const held = await startThread(store, "t");
    await held.writeStep(1);
    await submitRun(store, "t");
    const exported = await store.exportThread("t");
    await held.commit({ run: { ...createRun("r1"), status: "done" }, release: true });
    await forkThread(store, { branch: "b", from: 1 });
    await store.delete("t");
    assertEqual(await claimThreads(store, {}), [], "the claims after the deletion");
    await store.importThread({ ...exported, id: "copy" });
    assertEqual(await claimThreads(store, {}), [], "the claims of a queue behind a run that crashed");
    const copy = await startThread(store, "copy");
    await copy.commit({ run: { ...createRun("r1"), thread: "copy", status: "done" }, release: true });
    assertEqual(await claimThreads(store, {}), ["copy"], "the claims after that run has ended");
  }),

  defineStoreTest("an invalid request for claims is refused [PK8, R3]", async ({ store }) => {
    if (store.claimRuns === undefined) return;
    await assertRejected(store.claimRuns(createRequest({ limit: 0 })), "invalid_option", "a limit of 0");
    const kinds = ["done" as ClaimableKind];
    await assertRejected(store.claimRuns(createRequest({ kinds })), "invalid_option", "another kind");
  }),

  defineSharedStoreTest(
    "due timers are claimed by one process until the end of the claim, its death, or a new timer [PK8]",
    async ({ store, peer, crash }) => {
      if (store.claimTimers === undefined) return;
      const other = await peer();
      for (const thread of ["t", "u", "v"]) {
        const held = await startThread(store, thread);
        const timers = [{ arm: createTimer({ dueAt: thread === "v" ? 3_000 : 1_000 }) }];
        await held.commit({ checkpoint: createCheckpoint(1, undefined), timers, release: true });
      }
      const claim = async (
        from: Store,
        dueBy: number,
        more: { readonly limit?: number; readonly version?: number } = {},
      ) => {
        const { limit = 9, version = 1 } = more;
        const graphs = [{ name: "g", version }];
        return (await from.claimTimers?.({ graphs, dueBy, until: dueBy + 1_000, limit }))?.map(({ thread }) => thread);
      };
      assertEqual(await claim(store, 999), [], "the timers before their due time");
      assertEqual(await claim(store, 1_500, { version: 0 }), [], "the timers of a newer version");
      assertEqual(await claim(store, 1_500, { limit: 1 }), ["t"], "a page");
      assertEqual(await claim(other, 1_500), ["u"], "the timers of a second process");
      assertEqual(await claim(store, 1_500), ["t"], "the timers of the first process again");
      assertEqual(await claim(other, 2_499), ["u"], "the timers before the end of the claim");
      assertEqual(await claim(other, 2_500), ["t", "u"], "the timers at the end of the claim");
      assertEqual(await claim(store, 3_000), ["v"], "the timers with a claim of another process");
      const held = await startThread(other, "v");
      const timers = [{ arm: createTimer({ generation: 2, dueAt: 3_100 }) }];
      await held.commit({ checkpoint: createCheckpoint(2, 1), timers, release: true });
      assertEqual(await claim(other, 3_100), ["t", "u", "v"], "the timers after one was armed again");
      await other.close();
      assertEqual(await claim(store, 3_200), ["t", "u", "v"], "the timers after the process has ended");
      const next = await crash();
      assertEqual(await claim(next, 3_300), ["t", "u", "v"], "the timers after a crash");
    },
  ),
];

function createRequest(more: Partial<RunClaimRequest>): RunClaimRequest {
  return { graphs: served, kinds: ["queued"], limit: 10, at: 600, ...more };
}

async function claimThreads(store: Store, more: Partial<RunClaimRequest>): Promise<readonly string[]> {
  return ((await store.claimRuns?.(createRequest(more))) ?? []).map(({ run }) => run.thread);
}

function describeClaim({ kind, run }: ClaimedRun): string {
  return `${kind} ${run.thread} ${run.id}`;
}

/** Enqueues the run `q1`, by default; creates a missing thread. */
async function submitRun(
  store: Store,
  thread: string,
  { tenant, ...more }: Partial<RunRow> = {},
  write: { readonly stops?: "cancel" | "rollback" } = {},
): Promise<void> {
  const { thread: _, branch: __, ...row } = { ...createRun("q1"), ...more };
  const { graph, version, shape } = createClaimRequest(thread);
  const owned = tenant === undefined || tenant === "" ? {} : { tenant };
  const id = more.id === undefined ? `q1-${thread}` : `${more.id}-${thread}`;
  await store.enqueue({
    thread,
    creates: { graph, version: more.version ?? version, shape, at: 300 },
    run: { ...row, ...owned, id, status: "queued", input: "1", queuedAt: 300 },
    ...write,
  });
}

/** Starts a claimed queued run and ends it. */
async function endRun(store: Store, claimed: ClaimedRun | undefined): Promise<void> {
  if (claimed === undefined) throw new TypeError("expected a claimed run");
  const { run, claim } = claimed;
  const { input: _, ...row } = run;
  const { branch, epoch, nextSeq: seq } = claim;
  const ended: RunRow = { ...row, status: "done", endedAt: 700 };
  await commitWrite(store, { thread: run.thread, branch, epoch, seq, run: ended, release: true });
}
