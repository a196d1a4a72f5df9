/** Store conformance suite: tests of every store, to run against a custom store. */

import type { Store } from "@statewright/core";
import type { EffectRow, PrunedDelta } from "@statewright/core/store";
import { artifactTests } from "./artifacts.ts";
import { assertEqual, assertRejected } from "./assert.ts";
import { childNamespaceTests } from "./child-namespaces.ts";
import { claimableTests } from "./claimable.ts";
import { claimedRowTests } from "./claimed-rows.ts";
import { clockTests } from "./clock.ts";
import { delayedRunTests } from "./delayed-runs.ts";
import { eventTests } from "./events.ts";
import { inboxTests } from "./inbox.ts";
import { interruptTests } from "./interrupts.ts";
import { longTermTests } from "./long-term.ts";
import { outboxTests } from "./outbox.ts";
import { queueTests } from "./queue.ts";
import { requestTests } from "./requests.ts";
import { runClaimTests } from "./run-claims.ts";
import { scheduleTests } from "./schedules.ts";
import {
  commitWrite,
  createCheckpoint,
  createClaimRequest,
  createDelta,
  createEffect,
  createInterrupt,
  createRun,
  createTimer,
  forkThread,
  readState,
  releaseThread,
  removePosition,
  startThread,
} from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";
import { threadMoveTests } from "./thread-moves.ts";
import { threadTests } from "./threads.ts";
import { timelineTests } from "./timelines.ts";

/** Tests for every store. */
export const storeConformance: readonly StoreTest[] = [
  defineStoreTest("a claim of a new thread creates an empty thread at epoch 1", async ({ store }) => {
    const { at: _, ...claim } = await store.claim(createClaimRequest("t", { keySalt: "salt" }));
    assertEqual(
      claim,
      {
        epoch: 1,
        keySalt: "salt",
        branch: "main",
        nextSeq: 1,
        nextCheckpoint: 1,
        writtenBy: { graph: "g", version: 1, shape: "s1" },
        previousOwner: "new",
        queued: 0,
        messages: 0,
        requests: 0,
      },
      "the claim",
    );
    assertEqual(
      await store.thread("t"),
      { id: "t", graph: "g", version: 1, createdAt: 100, updatedAt: 100, headBranch: "main" },
      "the thread",
    );
    assertEqual(await store.branches("t"), [{ name: "main" }], "the branches");
  }),

  defineStoreTest(
    "a claim with mustExist refuses an unknown thread or branch and creates nothing",
    async ({ store }) => {
      await assertRejected(
        store.claim({ ...createClaimRequest("t"), mustExist: true }),
        "unknown_thread",
        "the thread",
      );
      assertEqual(await store.thread("t"), undefined, "the thread");
      await releaseThread(store, "t", await store.claim(createClaimRequest("t")));
      await assertRejected(
        store.claim({ ...createClaimRequest("t"), branch: "other", mustExist: true }),
        "unknown_branch",
        "the branch",
      );
      assertEqual(await store.branches("t"), [{ name: "main" }], "the branches");
      assertEqual(
        (await store.claim({ ...createClaimRequest("t"), mustExist: true })).epoch,
        2,
        "the epoch after the refused claims",
      );
    },
  ),

  defineSharedStoreTest(
    "a claimed thread is busy, for the store of its owner and for every other store",
    async ({ store, peer }) => {
      await store.claim(createClaimRequest("t"));
      await assertRejected(store.claim(createClaimRequest("t")), "thread_busy", "a claim by the same store");
      await assertRejected((await peer()).claim(createClaimRequest("t")), "thread_busy", "another store");
      await assertRejected(
        (await peer()).claim({ ...createClaimRequest("t"), branch: "other" }),
        "thread_busy",
        "another branch",
      );
      assertEqual((await (await peer()).claim(createClaimRequest("u"))).epoch, 1, "another thread");
    },
  ),

  defineSharedStoreTest(
    "the claim of a starting run holds until its first commit, or that commit is refused as fenced",
    async (under) => {
      const { store } = under;
      await startThread(store, "busy");
      const claimForStart = (thread: string) => startThread(store, thread, { startsRun: true, run: false });

      const first = await claimForStart("t");
      await assertRejected(
        claimForStart("t"),
        "thread_busy",
        "a starting claim by the same store before the first commit",
      );
      await assertRejected(
        store.claim(createClaimRequest("t")),
        "thread_busy",
        "a plain claim by the same store before the first commit",
      );
      await first.writeStep(1);
      await assertRejected(
        (await under.peer()).claim(createClaimRequest("t")),
        "thread_busy",
        "a claim by another store after the first commit",
      );
      await first.commit({ release: true });

      const idle = await claimForStart("t");
      assertEqual(
        [idle.claim.epoch, idle.claim.head?.id, idle.claim.previousOwner],
        [2, 1, "released"],
        "the next claim",
      );
      await releaseThread(store, "t", idle.claim);

      for (const thread of ["t", "new"]) {
        const late = await claimForStart(thread);
        const peer = await under.peer();
        const [claimResult] = await Promise.allSettled([peer.claim(createClaimRequest(thread))]);
        if (claimResult.status === "rejected") {
          await assertRejected(
            Promise.reject(claimResult.reason),
            "thread_busy",
            "a claim by another store before the first commit",
          );
          await late.commit({ release: true });
          continue;
        }
        const claim = claimResult.value;
        await assertRejected(late.writeStep(2), "fenced", "the first commit after another store claimed the thread");
        await releaseThread(peer, thread, claim);
        assertEqual((await claimForStart(thread)).claim.epoch, claim.epoch + 1, "the epoch of the next claim");
      }
    },
  ),

  defineSharedStoreTest(
    "a forced claim takes the thread of a live owner, whose next commit is fenced [PK2, F10, F15]",
    async ({ store, peer }) => {
      const first = await startThread(store, "t");
      await first.writeStep(1);
      const next = await peer();
      await assertRejected(next.claim(createClaimRequest("t")), "thread_busy", "a free claim");
      const claim = await next.claim(createClaimRequest("t", { claim: "force" }));
      assertEqual(
        [claim.epoch, claim.previousOwner, claim.head?.id, claim.run?.status],
        [2, "displaced", 1, "running"],
        "the forced claim",
      );
      await assertRejected(first.writeStep(2), "fenced", "the next commit of the displaced owner");
      await assertRejected(
        next.claim(createClaimRequest("t", { claim: "force" })),
        "thread_busy",
        "a forced claim by the store that holds the thread",
      );
      assertEqual((await next.thread("t"))?.status, "crashed", "the status of the run of the displaced owner");
      await releaseThread(next, "t", claim);
      const own = await store.claim(createClaimRequest("t"));
      assertEqual([own.epoch, own.previousOwner], [3, "displaced"], "the claim of the owner that was displaced");
    },
  ),

  defineSharedStoreTest("a claim names displaced owners until they are gone [PK2]", async ({ store, peer }) => {
    const [first, second] = [await peer(), await peer()];
    await startThread(first, "t");
    const displacing = await second.claim(createClaimRequest("t", { claim: "force" }));
    assertEqual(displacing.previousOwner, "displaced", "the first forced claim");
    const claim = await store.claim(createClaimRequest("t", { claim: "force" }));
    assertEqual([claim.epoch, claim.previousOwner], [3, "displaced"], "the second forced claim");
    await releaseThread(store, "t", claim);
    await second.close();
    const living = await store.claim(createClaimRequest("t"));
    assertEqual(living.previousOwner, "displaced", "the claim while the first owner lives");
    await releaseThread(store, "t", living);
    await first.close();
    const free = await store.claim(createClaimRequest("t", { startsRun: true }));
    assertEqual([free.epoch, free.previousOwner], [5, "released"], "the claim after both owners closed");
  }),

  defineSharedStoreTest(
    "a forced claim of a new, a released and a dead thread names its previous owner [PK2]",
    async ({ store, crash }) => {
      const claimByForce = (owner: Store) => owner.claim(createClaimRequest("t", { claim: "force" }));
      const first = await claimByForce(store);
      assertEqual(first.previousOwner, "new", "the previous owner of a new thread");
      await releaseThread(store, "t", first);
      assertEqual((await claimByForce(store)).previousOwner, "released", "the previous owner of a released thread");
      assertEqual((await claimByForce(await crash())).previousOwner, "dead", "the previous owner of a dead thread");
    },
  ),

  defineStoreTest("a thread claimed for a starting run refuses delete, fork and import", async ({ store }) => {
    const before = await startThread(store, "t");
    await before.writeStep(1);
    await before.writeStep(2);
    await before.commit({ run: { ...createRun("r1"), status: "done" }, release: true });
    const image = await store.exportThread("t");
    for (const thread of ["t", "new"]) {
      const held = await startThread(store, thread, { startsRun: true, run: false });
      await assertRejected(store.delete(thread), "thread_busy", `a delete of ${thread}`);
      await assertRejected(forkThread(store, { thread, branch: "b", from: 1 }), "thread_busy", `a fork of ${thread}`);
      await assertRejected(store.importThread({ ...image, id: thread }), "thread_exists", `an import of ${thread}`);
      if (thread === "t") {
        const { thread: _, branch: __, ...row } = createRun("q1");
        await store.enqueue({ thread, run: { ...row, status: "queued", queuedAt: 300, input: "{}" } });
        assertEqual(await store.dequeue(thread, "q1", { at: 400, reason: "no" }), true, "the result of a dequeue");
        const merge = (rows: readonly PrunedDelta[]): readonly PrunedDelta[] => rows;
        assertEqual(
          await store.prune({ thread, keepLast: 1, merge }),
          1,
          "the number of checkpoints pruned during the claim",
        );
      }
      await held.writeStep(3, [createDelta("last", "replace", '"on"')]);
      await held.commit({ release: true });
      assertEqual((await store.head(thread))?.step, 3, `the first checkpoint of the run on ${thread}`);
      assertEqual((await store.claim(createClaimRequest(thread))).queued, 0, `the queue of ${thread}`);
    }
  }),

  defineSharedStoreTest("exactly one of many concurrent claims succeeds", async ({ store, peer }) => {
    const stores = [store, await peer(), await peer()];
    const claims = Array.from({ length: 30 }, (_, index) =>
      (stores[index % 3] as Store).claim(createClaimRequest("t")),
    );
    const results = await Promise.allSettled(claims);
    assertEqual(results.filter(({ status }) => status === "fulfilled").length, 1, "the number of successful claims");
  }),

  defineSharedStoreTest("a claim of a released thread continues from its head checkpoint", async ({ store, peer }) => {
    const first = await startThread(store, "t");
    await first.writeStep(1);
    await first.commit({ seq: 9, release: true });
    const next = await peer();
    const { at: _, ...claim } = await next.claim(createClaimRequest("t"));
    assertEqual(
      { ...claim, head: claim.head?.id, run: claim.run?.id },
      {
        epoch: 2,
        keySalt: "",
        branch: "main",
        nextSeq: 10,
        nextCheckpoint: 2,
        writtenBy: { graph: "g", version: 1, shape: "s1" },
        head: 1,
        run: "r1",
        previousOwner: "released",
        queued: 0,
        messages: 0,
        requests: 0,
      },
      "the claim",
    );
    assertEqual(await next.head("t"), first.rows[0], "the head");
  }),

  defineSharedStoreTest(
    "the thread of a crashed owner can be claimed and names the death of its previous owner",
    async ({ store, crash }) => {
      const first = await startThread(store, "t");
      await first.writeStep(1);
      const next = await crash();
      const claim = await next.claim(createClaimRequest("t"));
      assertEqual(
        [claim.epoch, claim.previousOwner, claim.head, claim.run?.status],
        [2, "dead", first.rows[0], "running"],
        "the claim",
      );
      await assertRejected(next.claim(createClaimRequest("t")), "thread_busy", "a second claim after the takeover");
      await releaseThread(next, "t", claim);
      assertEqual(
        (await next.claim(createClaimRequest("t"))).previousOwner,
        "released",
        "the previous owner after the new owner released the thread",
      );
    },
  ),

  defineStoreTest("a commit whose sequence number leaves a gap is refused completely", async ({ store }) => {
    const first = await startThread(store, "t");
    await first.writeStep(1);
    const position = { thread: "t", branch: "main", epoch: first.claim.epoch };
    const { seq = 0 } = (await store.head("t")) ?? {};
    const ahead = { ...position, after: seq + 1, seq: seq + 2, effects: [createEffect({ step: 1 })] };
    await assertRejected(commitWrite(store, ahead), "store_failed", "a commit that leaves a gap");
    assertEqual(await store.effects("t", "main"), [], "the effects");
    await commitWrite(store, { ...position, after: seq, seq: seq + 1 });
    await commitWrite(store, ahead);
    assertEqual((await store.effects("t", "main")).length, 1, "the number of effects after the missing commit");
  }),

  defineSharedStoreTest(
    "a commit of a stale writer is refused and none of its rows is written [E36]",
    async ({ store, peer }) => {
      const stale = await startThread(store, "t");
      await stale.writeStep(1);
      await stale.commit({ release: true });
      const next = await peer();
      await next.claim(createClaimRequest("t"));
      const write = {
        seq: 50,
        run: createRun("r2"),
        effects: [createEffect({ step: 1 })],
        checkpoint: createCheckpoint(2, 1),
        interrupts: [createInterrupt({})],
      };
      await assertRejected(stale.commit(write), "fenced", "the stale commit");
      const fresh = await next.claim(createClaimRequest("u"));
      await assertRejected(
        commitWrite(next, { thread: "t", branch: "main", epoch: 1, seq: 51 }),
        "fenced",
        "an old epoch in the store of the new owner",
      );
      await assertRejected(
        commitWrite(store, { thread: "u", branch: "main", epoch: fresh.epoch, seq: 51 }),
        "fenced",
        "a store that never claimed the thread",
      );
      await assertRejected(
        commitWrite(store, { thread: "none", branch: "main", epoch: 1, seq: 1 }),
        "fenced",
        "an unknown thread",
      );
      assertEqual((await next.head("t"))?.id, 1, "the head");
      assertEqual(await next.effects("t", "main"), [], "the effects");
      assertEqual(await next.interrupts("t", "main"), [], "the interrupts");
      assertEqual(
        (await next.runs()).map(({ id }) => id),
        ["r1"],
        "the runs",
      );
    },
  ),

  defineStoreTest(
    "a commit after the release of a thread is refused, even when both are sent together",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      const releasing = thread.commit({ release: true });
      const late = thread.commit({ effects: [createEffect({ step: 0 })] });
      await releasing;
      await assertRejected(late, "fenced", "the late commit");
      await assertRejected(thread.commit({ run: createRun("r2") }), "fenced", "a later commit");
      assertEqual(await store.effects("t", "main"), [], "the effects");
    },
  ),

  defineSharedStoreTest("rows are read back as they were written", async ({ store, peer }) => {
    const claim = await store.claim(createClaimRequest("t"));
    const first = createCheckpoint(
      1,
      undefined,
      { source: "input", nodes: [], control: '{"machine":"ä𝄞\\u0000","tasks":[]}', durationMs: 0.25, bytes: 12 },
      [
        createDelta("messages", "append", '[{"id":"m1"}]', { base: false }),
        createDelta("cart", "patch", "[]", { base: true }),
      ],
    );
    const second = createCheckpoint(2, 1, { source: "step", nodes: ["model", "tools"], run: "r1" }, []);
    const error = { name: "Error", message: "no", code: "x", cause: { name: "Error", message: "why" } };
    const failed = { ...createRun("r1"), status: "failed", attempt: 3, endedAt: 900, error } as const;
    const effects = [
      createEffect({
        step: 1,
        task: "1:0",
        key: "call'\"1",
        kind: "tool",
        name: "pay",
        effect: "once",
        state: "ok",
        attempts: 2,
        endedAt: 130,
        outcome: '{"ok":1}',
        stage: "answered",
      }),
      createEffect({ step: 1, task: "1:1", key: "model", kind: "model" }),
    ];
    const interrupts = [
      createInterrupt({ id: "i2", schema: { type: "object", properties: { ok: { type: "boolean" } } } }),
      createInterrupt({ id: "i1", answer: "true", answeredAt: 140 }),
    ];
    await commitWrite(store, {
      thread: "t",
      branch: "main",
      epoch: claim.epoch,
      seq: 1,
      run: failed,
      checkpoint: first,
    });
    await commitWrite(store, {
      thread: "t",
      branch: "main",
      epoch: claim.epoch,
      seq: 2,
      checkpoint: second,
      interrupts,
    });
    await commitWrite(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: 3, effects });
    const other = await peer();
    assertEqual(await other.checkpoint("t", 1), first.row, "the first checkpoint");
    assertEqual(await other.head("t"), second.row, "the head");
    assertEqual(
      await other.history("t", { limit: 9 }),
      [
        { ...second.row, deltas: [] },
        { ...first.row, deltas: first.deltas },
      ],
      "the history",
    );
    assertEqual((await other.runs()).map(removePosition), [failed], "the run");
    assertEqual(await other.effects("t", "main", 1), effects, "the effects");
    assertEqual(await other.interrupts("t", "main"), interrupts, "the interrupts");
  }),

  defineStoreTest("long texts and unusual names are stored as data", async ({ store }) => {
    const claim = await store.claim(createClaimRequest("t"));
    const names = ["__proto__", "constructor", "a'b\"c", "😀", "toString", "%", "a\u0000b"];
    const long = JSON.stringify("ß".repeat(300_000));
    const write = createCheckpoint(
      1,
      undefined,
      { nodes: names, control: long },
      names.map((name) => createDelta(name, "replace", long)),
    );
    const effects = names.map((key) => createEffect({ step: 1, key, outcome: long, effect: "once" }));
    await commitWrite(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: 1, checkpoint: write, effects });
    assertEqual(await store.head("t"), write.row, "the head");
    assertEqual(
      await store.state("t", 1),
      names.map((channel) => ({ channel, deltas: [{ kind: "replace", text: long }] })),
      "the state",
    );
    assertEqual(await store.effects("t", "main"), effects, "the effects");
  }),

  defineStoreTest(
    "the state of a checkpoint contains the latest base of every channel and the deltas after that base",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(1, [
        createDelta("list", "append", "[1]"),
        createDelta("last", "replace", "1"),
        createDelta("draft", "patch", "[0]"),
      ]);
      await thread.writeStep(2, [createDelta("list", "append", "[2]"), createDelta("last", "replace", "2")]);
      await thread.writeStep(3, [
        createDelta("list", "append", "[1,2,3]", { base: true }),
        createDelta("gone", "replace", "3"),
      ]);
      await thread.writeStep(4, [createDelta("list", "append", "[4]"), createDelta("gone", "clear", "")]);
      await thread.writeStep(5, []);
      assertEqual(
        await readState(store, "t", 1),
        { draft: ["patch [0]"], last: ["replace 1"], list: ["append [1]"] },
        "the state at checkpoint 1",
      );
      assertEqual(
        await readState(store, "t", 2),
        { draft: ["patch [0]"], last: ["replace 2"], list: ["append [1]", "append [2]"] },
        "the state at checkpoint 2",
      );
      const after = {
        draft: ["patch [0]"],
        gone: ["clear "],
        last: ["replace 2"],
        list: ["append [1,2,3]", "append [4]"],
      };
      assertEqual(await readState(store, "t", 4), after, "the state at checkpoint 4");
      assertEqual(await readState(store, "t", 5), after, "the state at checkpoint 5");
      await assertRejected(store.state("t", 6), "unknown_checkpoint", "the state at an unknown checkpoint");
    },
  ),

  defineStoreTest(
    "a replace or clear delta is stored as a base even when the writer sets base to false",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(1, [
        createDelta("a", "replace", "1", { base: false }),
        createDelta("b", "clear", "", { base: false }),
        createDelta("c", "append", "[1]", { base: false }),
      ]);
      const [entry] = await store.history("t", { limit: 1 });
      assertEqual(
        entry?.deltas.map(({ base }) => base),
        [true, true, false],
        "the bases",
      );
    },
  ),

  defineStoreTest(
    "a branch inherits state up to its fork point and no later writes of the original branch",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(1, [
        createDelta("list", "append", "[0,1]", { base: true }),
        createDelta("x", "replace", "1"),
      ]);
      await thread.writeStep(2, [createDelta("list", "append", "[2]")]);
      await thread.writeStep(3, [
        createDelta("list", "append", "[3]"),
        createDelta("x", "replace", "3"),
        createDelta("late", "replace", "3"),
      ]);
      await thread.commit({ release: true });
      const before = await store.history("t", { limit: 99 });
      const forked = await forkThread(store, { branch: "b", from: 2, deltas: [createDelta("list", "append", "[9]")] });
      assertEqual([forked.id, forked.branch, forked.parent], [4, "b", 2], "the first checkpoint of the branch");
      assertEqual(await store.head("t", "b"), forked, "the head of the branch");
      assertEqual(
        await readState(store, "t", 4),
        { list: ["append [0,1]", "append [2]", "append [9]"], x: ["replace 1"] },
        "the state of the branch",
      );
      assertEqual(
        (await store.history("t", { branch: "b", limit: 99 })).map(({ id }) => id),
        [4, 2, 1],
        "the history of the branch",
      );
      assertEqual(await store.history("t", { limit: 99 }), before, "the history of the original branch");
      const deeper = await forkThread(store, { branch: "c", from: 4, deltas: [createDelta("x", "replace", "5")] });
      assertEqual(
        await readState(store, "t", deeper.id),
        { list: ["append [0,1]", "append [2]", "append [9]"], x: ["replace 5"] },
        "the state of a fork of the fork",
      );
      const from = await forkThread(store, { branch: "d", from: 1 });
      assertEqual(
        await readState(store, "t", from.id),
        { list: ["append [0,1]"], x: ["replace 1"] },
        "the state of a fork from the first checkpoint",
      );
      assertEqual(
        await store.branches("t"),
        [
          { name: "main", head: 3 },
          { name: "b", from: 2, head: 4 },
          { name: "c", from: 4, head: 5 },
          { name: "d", from: 1, head: 6 },
        ],
        "the branches",
      );
      assertEqual((await store.thread("t"))?.headBranch, "main", "the head branch");
    },
  ),

  defineStoreTest(
    "each branch is written separately, and checkpoint ids are unique within a thread",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(1, [createDelta("x", "replace", "1")]);
      await thread.commit({ release: true });
      await forkThread(store, { branch: "b", from: 1 });
      const other = await startThread(store, "t", { branch: "b" });
      assertEqual(
        [other.claim.nextCheckpoint, other.claim.nextSeq, other.claim.head?.id],
        [3, 5, 2],
        "the claim of the branch",
      );
      await other.writeStep(2, [createDelta("x", "replace", "2")]);
      await other.commit({ release: true });
      const again = await startThread(store, "t");
      assertEqual([again.claim.nextCheckpoint, again.claim.head?.id], [4, 1], "the claim of the original branch");
      await again.writeStep(2, []);
      assertEqual(await readState(store, "t", 3), { x: ["replace 2"] }, "the state of the branch");
      assertEqual(await readState(store, "t", 4), { x: ["replace 1"] }, "the state of the original branch");
    },
  ),

  defineSharedStoreTest(
    "a fork of an unknown thread or checkpoint, under a used name, or of a claimed thread is refused",
    async ({ store, peer }) => {
      await assertRejected(forkThread(store, { branch: "b", from: 1 }), "unknown_thread", "an unknown thread");
      const thread = await startThread(store, "t");
      await thread.writeStep(1);
      await assertRejected(
        forkThread(store, { branch: "b", from: 1 }),
        "thread_busy",
        "a thread claimed by this store",
      );
      await assertRejected(
        forkThread(await peer(), { branch: "b", from: 1 }),
        "thread_busy",
        "a thread claimed by another store",
      );
      await thread.commit({ release: true });
      await assertRejected(forkThread(store, { branch: "b", from: 7 }), "unknown_checkpoint", "an unknown checkpoint");
      await assertRejected(forkThread(store, { branch: "main", from: 1 }), "thread_exists", "a branch name in use");
      assertEqual(await store.branches("t"), [{ name: "main", head: 1 }], "the branches");
    },
  ),

  defineStoreTest("a fork stores the answered interrupts that it receives", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(1);
    await thread.commit({ interrupts: [createInterrupt({ id: "i1", answer: "1", answeredAt: 5 })], release: true });
    const answered = await store.interrupts("t", "main");
    await forkThread(store, { branch: "b", from: 1, interrupts: answered });
    assertEqual(
      await store.interrupts("t", "b"),
      answered.map((each) => ({ ...each, branch: "b" })),
      "the interrupts of the fork",
    );
    assertEqual(await store.interrupts("t", "main"), answered, "the interrupts of the original branch");
  }),

  ...childNamespaceTests,

  ...interruptTests,
  ...claimableTests,
  ...claimedRowTests,
  ...runClaimTests,
  ...clockTests,
  ...queueTests,
  ...delayedRunTests,
  ...scheduleTests,
  ...longTermTests,
  ...inboxTests,
  ...requestTests,
  ...outboxTests,
  ...eventTests,
  ...threadMoveTests,
  ...threadTests,
  ...timelineTests,
  ...artifactTests,

  defineStoreTest("history is read in pages, newest checkpoint first", async ({ store }) => {
    const thread = await startThread(store, "t");
    for (let id = 1; id <= 7; id++) await thread.writeStep(id, [createDelta("n", "replace", String(id))]);
    await thread.commit({ release: true });
    await forkThread(store, { branch: "b", from: 4, deltas: [createDelta("n", "replace", "8")] });
    const pages: number[][] = [];
    for (let before: number | undefined; ; before = pages.at(-1)?.at(-1)) {
      const page = await store.history("t", { branch: "b", before, limit: 2 });
      if (page.length === 0) break;
      pages.push(page.map(({ id }) => id));
    }
    assertEqual(pages, [[8, 4], [3, 2], [1]], "the pages");
    const [entry] = await store.history("t", { before: 3, limit: 1 });
    assertEqual(entry?.deltas, [createDelta("n", "replace", "2")], "the deltas of a checkpoint");
  }),

  defineStoreTest("a checkpoint folds the journal of the previous superstep only", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(1);
    const journal = [
      createEffect({ step: 1, key: "task", kind: "task", effect: "pure", outcome: "1" }),
      createEffect({ step: 1, key: "model", kind: "model", effect: "idempotent", outcome: "2" }),
      createEffect({ step: 1, key: "pay", kind: "tool", effect: "once", outcome: "3" }),
      createEffect({ step: 2, key: "early", kind: "step", effect: "pure", outcome: "4" }),
    ];
    await thread.commit({ effects: journal });
    assertEqual(await store.effects("t", "main"), journal, "the journal before the checkpoint");
    await thread.writeStep(2);
    const [, model, pay, early] = journal as [EffectRow, EffectRow, EffectRow, EffectRow];
    assertEqual(
      await store.effects("t", "main", 1),
      [{ ...model, outcome: undefined }, pay],
      "the journal of the folded superstep",
    );
    assertEqual(await store.effects("t", "main", 2), [early], "the journal of the unfolded superstep");
    await thread.commit({
      checkpoint: createCheckpoint(3, 2),
      effects: [
        createEffect({ step: 2, key: "task", kind: "task", outcome: "5" }),
        createEffect({ step: 2, key: "read", kind: "tool", effect: "pure", outcome: "6" }),
        createEffect({ step: 2, key: "send", kind: "tool", effect: "once", outcome: "7" }),
      ],
    });
    assertEqual(
      (await store.effects("t", "main", 2)).map(({ key, outcome }) => [key, outcome ?? null]),
      [
        ["early", null],
        ["read", null],
        ["send", "7"],
      ],
      "the effects committed together with the checkpoint that folds their superstep",
    );
  }),

  defineStoreTest("the journal of each of many supersteps can be read by its superstep", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(0);
    const expected: EffectRow[] = [];
    let id = 1;
    for (let step = 1; step <= 20; step++) {
      const at = { step: step - 1, task: `${step - 1}:0` };
      const slow = step % 5 === 0 ? [createEffect({ ...at, key: "slow", effect: "pure", outcome: "1" })] : [];
      if (slow.length > 0) await thread.commit({ effects: slow });
      const quick = createEffect({ ...at, key: "quick", effect: step % 3 === 0 ? "once" : "pure", outcome: "2" });
      const named = createEffect({
        ...at,
        key: "named",
        effect: "idempotent",
        outcome: "3",
        idempotencyKey: `own-${step}`,
      });
      const effects = step % 4 === 0 ? [] : [quick, named];
      await thread.commit({ checkpoint: createCheckpoint(++id, id - 1, { step }), effects });
      for (const row of [...slow, ...effects])
        expected.push(row.effect === "once" ? row : { ...row, outcome: undefined });
      if (step === 10) await thread.commit({ checkpoint: createCheckpoint(++id, id - 1, { step }) });
    }
    assertEqual(await store.effects("t", "main"), expected, "the complete journal");
    for (let step = -1; step <= 21; step++)
      assertEqual(
        await store.effects("t", "main", step),
        expected.filter((row) => row.step === step),
        `step ${step}`,
      );
  }),

  defineStoreTest("pruning keeps the journal of supersteps after the oldest retained checkpoint", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(0);
    const expected: EffectRow[] = [];
    for (let step = 0; step < 6; step++) {
      const row = createEffect({
        step,
        key: "quick",
        effect: "pure",
        ...(step === 3 ? { idempotencyKey: "own" } : {}),
      });
      await thread.commit({ checkpoint: createCheckpoint(step + 2, step + 1, { step: step + 1 }), effects: [row] });
      if (step > 0) expected.push({ ...row, outcome: undefined });
    }
    await thread.commit({ release: true });
    await forkThread(store, { branch: "b", from: 2 });
    const removed = await store.prune({ thread: "t", keepLast: 1, merge: (rows) => rows });
    assertEqual(removed, 5, "the number of checkpoints pruned on both sides of the fork point");
    assertEqual(await store.effects("t", "main"), expected, "the journal");
    for (const row of expected) assertEqual(await store.effects("t", "main", row.step), [row], `step ${row.step}`);
    assertEqual(await store.effects("t", "main", 0), [], "the journal of the pruned superstep");
  }),

  defineStoreTest(
    "the last of two effects with the same step, task and key in one commit is stored",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(1);
      const rows = ["started", "ok"].map((state) => createEffect({ step: 1, state: state as EffectRow["state"] }));
      await thread.commit({ checkpoint: createCheckpoint(2, 1, { step: 2 }), effects: rows });
      assertEqual(
        (await store.effects("t", "main")).map(({ state }) => state),
        ["ok"],
        "the journal",
      );
    },
  ),

  defineStoreTest(
    "a checkpoint of the same superstep as the previous checkpoint does not fold the journal",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(0);
      const journal = [
        createEffect({ step: 0, key: "", kind: "task", outcome: "1" }),
        createEffect({ step: 0, outcome: "2" }),
      ];
      await thread.commit({ effects: journal });
      await thread.writeStep(0, [createDelta("a", "replace", "1")]);
      assertEqual(await store.effects("t", "main"), journal, "the journal of the unfinished superstep");
      await thread.writeStep(1);
      assertEqual(
        await store.effects("t", "main"),
        [createEffect({ step: 0, outcome: undefined })],
        "the journal of the finished superstep",
      );
    },
  ),

  defineStoreTest(
    "writtenBy of a checkpoint returns the version that wrote the checkpoint, independent of later claims",
    async ({ store }) => {
      const first = await startThread(store, "t");
      await first.writeStep(0);
      await first.commit({ release: true });
      const second = await startThread(store, "t", { version: 2, shape: "s2" });
      assertEqual(await store.writtenBy("t", 1), { graph: "g", version: 1, shape: "s1" }, "the first");
      await second.writeStep(1);
      assertEqual(await store.writtenBy("t", 1), { graph: "g", version: 1, shape: "s1" }, "the first, later");
      assertEqual(await store.writtenBy("t", 2), { graph: "g", version: 2, shape: "s2" }, "the second");
      assertEqual(await store.writtenBy("t", 3), undefined, "the writer of an unknown checkpoint");
      assertEqual(await store.writtenBy("u", 1), undefined, "the writer of a checkpoint of an unknown thread");
    },
  ),

  defineStoreTest("folding does not change the journals of other branches and threads", async ({ store }) => {
    const [one, two] = [await startThread(store, "t"), await startThread(store, "u")];
    for (const thread of [one, two]) {
      await thread.writeStep(1);
      await thread.commit({ effects: [createEffect({ step: 1, outcome: "1" })] });
    }
    await one.commit({ release: true });
    await forkThread(store, { branch: "b", from: 1 });
    const branch = await startThread(store, "t", { branch: "b" });
    await branch.commit({ checkpoint: createCheckpoint(3, 2, { step: 2 }) });
    assertEqual((await store.effects("t", "main")).length, 1, "the number of journal rows of the original branch");
    assertEqual((await store.effects("u", "main")).length, 1, "the number of journal rows of another thread");
  }),

  defineStoreTest("an effect is identified by step, task and key", async ({ store }) => {
    const thread = await startThread(store, "t");
    const started = createEffect({ step: 0, task: "0:0", key: "a", effect: "once", state: "started" });
    const others = [
      createEffect({ step: 0, task: "0:1", key: "a" }),
      createEffect({ step: 0, task: "0:0", key: "b" }),
      createEffect({ step: 1, task: "0:0", key: "a" }),
    ];
    await thread.commit({ effects: [started, ...others] });
    const done = { ...started, state: "ok", attempts: 2, endedAt: 300, outcome: "1", stage: "answered" } as const;
    await thread.commit({ effects: [done] });
    assertEqual(await store.effects("t", "main"), [done, ...others], "the journal");
    assertEqual((await store.effects("t", "main", 0)).length, 3, "the number of effects of one superstep");
  }),

  defineStoreTest("an answered interrupt keeps its position in the list of interrupts", async ({ store }) => {
    const thread = await startThread(store, "t");
    const [first, second] = [createInterrupt({ id: "z" }), createInterrupt({ id: "a" })];
    await thread.commit({ interrupts: [first, second] });
    const answered = { ...first, answer: '{"ok":true}', answeredAt: 400 };
    await thread.commit({ interrupts: [answered] });
    assertEqual(await store.interrupts("t", "main"), [answered, second], "the interrupts");
  }),

  defineSharedStoreTest(
    "a timer is stored with its due time and generation, and due timers of all threads are one list [E39]",
    async ({ store, crash }) => {
      const [one, two] = [await startThread(store, "t"), await startThread(store, "u")];
      const [late, soon] = [createTimer({ id: "late", dueAt: 3_000 }), createTimer({ id: "soon", dueAt: 1_000 })];
      const [middle, alike] = [
        createTimer({ id: "b", dueAt: 2_000, generation: 7 }),
        createTimer({ id: "a", dueAt: 2_000 }),
      ];
      await one.commit({ checkpoint: createCheckpoint(1, undefined), timers: [{ arm: late }, { arm: middle }] });
      await two.commit({ checkpoint: createCheckpoint(1, undefined), timers: [{ arm: soon }, { arm: alike }] });
      const createRow = (thread: string, row: typeof late) => ({ ...row, thread, branch: "main" });
      const all = [createRow("u", soon), createRow("u", alike), createRow("t", middle), createRow("t", late)];
      const next = await crash();
      assertEqual(await next.timers(), all, "all timers after the crash of their owner");
      assertEqual(await next.timers({ dueBy: 1_999 }), all.slice(0, 1), "the timers due before a time");
      assertEqual(await next.timers({ dueBy: 2_000 }), all.slice(0, 3), "the timers due at a time");
      assertEqual(await next.timers({ dueBy: 2_000, limit: 2 }), all.slice(0, 2), "a page of due timers");
      assertEqual(await next.timers({ thread: "t" }), all.slice(2), "the timers of a thread");
      assertEqual(
        await next.timers({ thread: "t", dueBy: 2_500, limit: 5 }),
        all.slice(2, 3),
        "the due timers of a thread",
      );
    },
  ),

  defineStoreTest("changes with an older generation do not affect a timer [E39]", async ({ store }) => {
    const thread = await startThread(store, "t");
    const listTimers = async () => (await store.timers()).map(({ id, generation, dueAt }) => [id, generation, dueAt]);
    await thread.commit({ timers: [{ arm: createTimer({ generation: 3, dueAt: 300 }) }] });
    await thread.commit({ timers: [{ arm: createTimer({ generation: 5, dueAt: 500 }) }] });
    assertEqual(await listTimers(), [["id", 5, 500]], "a timer armed twice");
    await thread.commit({ timers: [{ drop: { id: "id", generation: 3 } }] });
    await thread.commit({ timers: [{ arm: createTimer({ generation: 4, dueAt: 400 }) }] });
    assertEqual(await listTimers(), [["id", 5, 500]], "the timer after changes with an older generation");
    await thread.commit({
      timers: [
        { drop: { id: "id", generation: 5 } },
        { arm: createTimer({ id: "other" }) },
        { arm: createTimer({ dueAt: 600 }) },
      ],
    });
    assertEqual(
      await listTimers(),
      [
        ["id", 1, 600],
        ["other", 1, 1_000],
      ],
      "the timers after a drop and a new timer with the same id",
    );
    await thread.commit({ timers: [{ drop: { id: "id", generation: 1 } }, { drop: { id: "none", generation: 9 } }] });
    assertEqual(await listTimers(), [["other", 1, 1_000]], "the timers after the timer was dropped");
  }),

  defineStoreTest("timers are written with their commit or not at all, each on its own branch", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(1);
    const gap = { checkpoint: createCheckpoint(9, 7), timers: [{ arm: createTimer({ id: "lost" }) }] };
    await assertRejected(thread.commit(gap), "store_failed", "a commit with a wrong parent checkpoint");
    assertEqual(await store.timers(), [], "the timers of a refused commit");
    await thread.commit({ timers: [{ arm: createTimer({ dueAt: 100 }) }], release: true });
    await assertRejected(thread.commit({ timers: [{ drop: { id: "id", generation: 1 } }] }), "fenced", "a late commit");
    await forkThread(store, { branch: "b", from: 1 });
    const listTimers = async () => (await store.timers()).map(({ branch, dueAt }) => `${branch} ${dueAt}`);
    assertEqual(await listTimers(), ["main 100"], "the timers after a fork");
    const branch = await startThread(store, "t", { branch: "b" });
    await branch.commit({ timers: [{ arm: createTimer({ dueAt: 200 }) }] });
    assertEqual(await listTimers(), ["main 100", "b 200"], "the timers of both branches");
    await branch.commit({ timers: [{ drop: { id: "id", generation: 1 } }] });
    assertEqual(await listTimers(), ["main 100"], "the timers after a drop on one branch");
  }),

  defineStoreTest("timers with the same due time are ordered by id, for any text as id", async ({ store }) => {
    const ids = ["\ufffd", "\u{1d11e}", "z", "__proto__", "a/b", "ä", "a'b\"c", ""];
    const thread = await startThread(store, "t");
    const times = [1_763_000_000_000, 2 ** 53 - 1];
    for (const dueAt of times) {
      const timers = ids.map((id) => ({ arm: createTimer({ id: `${id} ${dueAt}`, about: id, dueAt }) }));
      await thread.commit({ timers });
    }
    const sorted = ["", "__proto__", "a'b\"c", "a/b", "z", "ä", "\ufffd", "\u{1d11e}"];
    assertEqual(
      (await store.timers()).map(({ about, dueAt }) => [about, dueAt]),
      times.flatMap((dueAt) => sorted.map((id) => [id, dueAt])),
      "the timers",
    );
  }),

  defineStoreTest("a claim returns the newest run of its branch", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(1);
    await thread.commit({ run: { ...createRun("r1"), status: "crashed", endedAt: 200 } });
    await thread.commit({ run: { ...createRun("r2"), startedAt: 300 } });
    await thread.commit({ run: { ...createRun("r1"), status: "failed", endedAt: 200 }, release: true });
    assertEqual(await store.thread("t").then((row) => row?.status), "crashed", "the status of the released thread");
    await forkThread(store, { branch: "b", from: 1 });
    const branch = await startThread(store, "t", { branch: "b", run: false });
    assertEqual(branch.claim.run, undefined, "the run of a new branch");
    await branch.commit({ run: { ...createRun("r3"), branch: "b", startedAt: 400, status: "done" }, release: true });
    const again = await store.claim(createClaimRequest("t"));
    assertEqual([again.run?.id, again.run?.status], ["r2", "running"], "the run of the original branch");
    assertEqual(
      (await store.runs({ thread: "t" })).map(({ id, status }) => [id, status]),
      [
        ["r3", "done"],
        ["r2", "crashed"],
        ["r1", "failed"],
      ],
      "the runs",
    );
  }),

  defineStoreTest(
    "runs and threads are listed newest first, by graph and by status, up to a limit",
    async ({ store }) => {
      for (const [index, id] of ["a", "b", "c", "d"].entries()) {
        const thread = await startThread(store, id, {
          graph: index % 2 === 0 ? "even" : "odd",
          at: 100 + index,
          run: false,
        });
        const status = index < 2 ? "waiting" : "failed";
        await thread.commit({
          run: { ...createRun(`r${index}`), thread: id, graph: thread.request.graph, status, startedAt: 200 + index },
        });
      }
      const touched = await startThread(store, "e", { graph: "even", at: 150, run: false });
      await touched.commit({ checkpoint: createCheckpoint(1, undefined, { at: 900 }) });
      const ids = async (filter?: Parameters<Store["threads"]>[0]) =>
        (await store.threads(filter)).map(({ id }) => id).join("");
      assertEqual(await ids(), "edcba", "all threads");
      assertEqual(await ids({ graph: "even" }), "eca", "the threads of a graph");
      assertEqual(await ids({ status: "waiting" }), "ba", "the waiting threads");
      assertEqual(await ids({ status: "failed", graph: "odd", limit: 1 }), "d", "a page with a status and a graph");
      assertEqual(await ids({ limit: 2 }), "ed", "a page");
      const listRuns = async (filter?: Parameters<Store["runs"]>[0]) =>
        (await store.runs(filter)).map(({ id }) => id).join("");
      assertEqual(await listRuns(), "r3r2r1r0", "all runs");
      assertEqual(await listRuns({ status: "waiting" }), "r1r0", "the waiting runs");
      assertEqual(await listRuns({ status: "waiting", limit: 1 }), "r1", "a page of waiting runs");
      assertEqual(await listRuns({ thread: "c" }), "r2", "the runs of a thread");
      assertEqual(await listRuns({ thread: "c", status: "waiting" }), "", "the waiting runs of a thread");
    },
  ),

  defineStoreTest(
    "a clock that is set back does not change the order of checkpoints and runs or the newest run [F7]",
    async ({ store }) => {
      const [one, two] = [await startThread(store, "t", { at: 900 }), await startThread(store, "u", { at: 500 })];
      await one.commit({ checkpoint: createCheckpoint(1, undefined, { at: 900 }) });
      await one.commit({ run: { ...createRun("r1"), startedAt: 900, status: "done", endedAt: 950 } });
      await two.commit({ run: { ...createRun("r2"), thread: "u", startedAt: 50 } });
      await one.commit({
        run: { ...createRun("r3"), startedAt: 100 },
        checkpoint: createCheckpoint(2, 1, { at: 100 }),
      });
      await one.commit({ run: { ...createRun("r3"), startedAt: 100, status: "waiting" }, release: true });
      const listRunIds = async (filter?: Parameters<Store["runs"]>[0]) =>
        (await store.runs(filter)).map((row) => `${row.thread} ${row.id}`);
      assertEqual(await listRunIds(), ["t r3", "u r2", "u r1", "t r1"], "the runs");
      assertEqual(await listRunIds({ thread: "t" }), ["t r3", "t r1"], "the runs of a thread");
      assertEqual(await listRunIds({ status: "running" }), ["u r2", "u r1"], "the runs with one status");
      assertEqual((await store.thread("t"))?.status, "waiting", "the status of the thread");
      assertEqual(
        (await store.history("t", { limit: 9 })).map(({ id }) => id),
        [2, 1],
        "the history",
      );
      assertEqual((await store.claim(createClaimRequest("t"))).run?.id, "r3", "the newest run");
    },
  ),

  defineStoreTest(
    "a claim returns the version that wrote the head of its branch, not the version of the last claim",
    async ({ store }) => {
      const first = await startThread(store, "t");
      await first.writeStep(1);
      await first.commit({ release: true });
      const second = await startThread(store, "t", { version: 2, shape: "s2", run: false });
      assertEqual(second.claim.writtenBy.shape, "s1", "the writer at the first claim of a new version");
      await second.commit({ run: { ...createRun("r9"), status: "parked" }, release: true });
      const third = await startThread(store, "t", { version: 2, shape: "s2", run: false });
      assertEqual(
        third.claim.writtenBy,
        { graph: "g", version: 1, shape: "s1" },
        "the writer after a claim without a checkpoint",
      );
      await third.writeStep(2);
      await third.commit({ release: true });
      await forkThread(store, { branch: "old", from: 1 });
      await forkThread(store, { branch: "new", from: 2 });
      const getWriterShape = async (branch: string) => {
        const claim = await store.claim({ ...createClaimRequest("t"), version: 3, shape: "s3", branch });
        await releaseThread(store, "t", claim);
        return claim.writtenBy.shape;
      };
      assertEqual(
        [await getWriterShape("main"), await getWriterShape("old"), await getWriterShape("new")],
        ["s2", "s1", "s2"],
        "by branch",
      );
      assertEqual((await store.thread("t"))?.version, 2, "the version of the thread row");
    },
  ),

  defineStoreTest(
    "the callback of a commit is called once per commit, in commit order and never synchronously",
    async ({ store }) => {
      const [one, two] = [await store.claim(createClaimRequest("t")), await store.claim(createClaimRequest("u"))];
      const calls: string[] = [];
      await new Promise<void>((resolve) => {
        for (let index = 0; index < 10; index++) {
          const [thread, { epoch }] = index % 2 === 0 ? ["t", one] : ["u", two];
          const stale = index === 4;
          store.commit(
            {
              thread,
              branch: "main",
              epoch: stale ? 0 : epoch,
              seq: index,
              effects: [createEffect({ step: 0, key: String(index) })],
            },
            (failure) => {
              calls.push(`${index}${failure === undefined ? "" : ` ${failure.code}`}`);
              if (index === 9) resolve();
            },
          );
        }
        assertEqual(calls, [], "callbacks called synchronously");
      });
      assertEqual(calls, ["0", "1", "2", "3", "4 fenced", "5", "6", "7", "8", "9"], "the calls of the callbacks");
      assertEqual(
        (await store.effects("t", "main")).map(({ key }) => key),
        ["0", "2", "6", "8"],
        "the effects of the thread with a refused commit",
      );
      assertEqual(
        (await store.effects("u", "main")).map(({ key }) => key),
        ["1", "3", "5", "7", "9"],
        "the effects of the other thread",
      );
    },
  ),

  defineStoreTest("the callback of a commit can commit again", async ({ store }) => {
    const { epoch } = await store.claim(createClaimRequest("t"));
    await new Promise<void>((resolve) => {
      const next = (seq: number): void => {
        store.commit(
          { thread: "t", branch: "main", epoch, seq, effects: [createEffect({ step: 0, key: String(seq) })] },
          () => (seq === 5 ? resolve() : next(seq + 1)),
        );
      };
      next(1);
    });
    assertEqual((await store.effects("t", "main")).length, 5, "the effects");
  }),

  defineSharedStoreTest(
    "a commit is durable when its callback runs, even with a crash inside the callback [I8]",
    async ({ store, crash }) => {
      const { epoch } = await store.claim(createClaimRequest("t"));
      const next = await new Promise<Store>((resolve) => {
        store.commit(
          {
            thread: "t",
            branch: "main",
            epoch,
            seq: 3,
            run: createRun("r1"),
            checkpoint: createCheckpoint(1, undefined),
          },
          () => resolve(crash()),
        );
      });
      const claim = await next.claim(createClaimRequest("t"));
      assertEqual(
        [claim.previousOwner, claim.nextSeq, claim.head?.id, claim.run?.id],
        ["dead", 4, 1, "r1"],
        "the claim after the crash",
      );
    },
  ),

  defineStoreTest(
    "a checkpoint that does not continue its branch is refused with its complete commit",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(1);
      const refusals = {
        "another parent": createCheckpoint(2, undefined),
        "an unknown parent": createCheckpoint(2, 7),
        "a used checkpoint id": createCheckpoint(1, 1),
      };
      for (const [what, write] of Object.entries(refusals)) {
        await assertRejected(
          thread.commit({ checkpoint: write, effects: [createEffect({ step: 1 })], run: createRun("r7") }),
          "store_failed",
          what,
        );
      }
      assertEqual(
        [(await store.head("t"))?.id, await store.effects("t", "main"), (await store.runs()).length],
        [1, [], 1],
        "the head, the effects and the number of runs",
      );
      await thread.writeStep(2);
      assertEqual((await store.head("t"))?.id, 2, "the head after a valid commit");
    },
  ),

  defineStoreTest("rows whose keys have lone surrogates are refused [R4, FX63]", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(1);
    const { claim } = thread;
    const at = { thread: "t", branch: claim.branch, epoch: claim.epoch, seq: claim.nextSeq + 2 };
    const writes: Readonly<Record<string, Parameters<typeof thread.commit>[0]>> = {
      "key of an effect": { effects: [createEffect({ step: 1, key: "\ud800" })] },
      "task of an effect": { effects: [createEffect({ step: 1, task: "\udc00" })] },
      "id of an interrupt": { interrupts: [createInterrupt({ id: "\ud800" })] },
      "subject of a timer": { timers: [{ arm: createTimer({ about: "\ud800" }) }] },
    };
    for (const [what, write] of Object.entries(writes))
      await assertRejected(commitWrite(store, { ...at, ...write }), "invalid_id", `the ${what}`);
    await commitWrite(store, { ...at, effects: [createEffect({ step: 1, key: "😀" })] });
  }),

  defineStoreTest("ids outside the grammar are refused, not rewritten [R4]", async ({ store }) => {
    const bad = ["", "a b", "a/b", "a\n", "ä", "\ud800", "a'b", "__proto__", "constructor", "x".repeat(129)];
    for (const id of bad) {
      await assertRejected(store.claim(createClaimRequest(id)), "invalid_id", `the thread id ${JSON.stringify(id)}`);
      await assertRejected(
        store.claim({ ...createClaimRequest("t"), branch: id }),
        "invalid_id",
        `the branch name ${JSON.stringify(id)}`,
      );
    }
    assertEqual(await store.threads(), [], "the threads");
    const thread = await startThread(store, "x".repeat(128));
    await thread.writeStep(1);
    for (const id of bad)
      await assertRejected(thread.commit({ run: createRun(id) }), "invalid_id", `the run id ${JSON.stringify(id)}`);
    await thread.commit({ release: true });
    for (const id of bad)
      await assertRejected(
        forkThread(store, { thread: "x".repeat(128), branch: id, from: 1 }),
        "invalid_id",
        `the fork name ${JSON.stringify(id)}`,
      );
    assertEqual((await store.branches("x".repeat(128))).length, 1, "the branches");
  }),

  defineStoreTest("a list with an unknown filter key or an invalid limit is refused [R3]", async ({ store }) => {
    const wrong = { grahp: "g" } as object;
    await assertRejected(store.threads(wrong), "invalid_option", "threads");
    await assertRejected(store.runs(wrong), "invalid_option", "runs");
    await assertRejected(store.timers(wrong), "invalid_option", "timers");
    await assertRejected(store.history("t", { ...wrong, limit: 1 }), "invalid_option", "history");
    for (const limit of [0, -1, 1.5, Number.NaN]) {
      await assertRejected(store.threads({ limit }), "invalid_option", `threads, limit ${limit}`);
      await assertRejected(store.runs({ limit }), "invalid_option", `runs, limit ${limit}`);
      await assertRejected(store.timers({ limit }), "invalid_option", `timers, limit ${limit}`);
      await assertRejected(store.history("t", { limit }), "invalid_option", `history, limit ${limit}`);
    }
  }),

  defineStoreTest("reads of unknown threads, branches and runs return empty results", async ({ store }) => {
    for (const thread of ["none", "t"]) {
      assertEqual(
        [await store.head(thread), await store.checkpoint(thread, 1), await store.history(thread, { limit: 1 })],
        [null, null, []],
        "checkpoints",
      );
      assertEqual(
        [await store.effects(thread, "main"), await store.interrupts(thread, "main"), await store.runs({ thread })],
        [[], [], []],
        "the journal",
      );
      assertEqual(await store.timers({ thread }), [], "the timers");
      assertEqual(await store.head(thread, "none"), undefined, "the head of an unknown branch");
      assertEqual(await store.history(thread, { branch: "none", limit: 1 }), [], "the history of an unknown branch");
      await assertRejected(store.state(thread, 1), "unknown_checkpoint", "the state");
      if (thread === "none") await store.claim(createClaimRequest("t"));
    }
    assertEqual([await store.thread("none"), await store.branches("none")], [null, []], "the thread");
  }),

  defineStoreTest("threads do not share state", async ({ store }) => {
    const threads = await Promise.all(Array.from({ length: 20 }, (_, index) => startThread(store, `t${index}`)));
    for (let id = 1; id <= 3; id++)
      await Promise.all(
        threads.map((thread, index) => thread.writeStep(id, [createDelta("n", "append", `[${index}]`)])),
      );
    for (const [index, thread] of threads.entries()) {
      assertEqual(
        await readState(store, thread.request.thread, 3),
        { n: Array.from({ length: 3 }, () => `append [${index}]`) },
        `the state of thread ${index}`,
      );
    }
  }),

  defineSharedStoreTest(
    "closing a store writes pending commits, releases every thread and refuses later calls [PK9]",
    async ({ store, peer }) => {
      const next = await peer();
      const thread = await startThread(store, "t");
      const last = thread.writeStep(1);
      const closed = store.close();
      await assertRejected(store.threads(), "store_closed", "a read during the close");
      await closed;
      await store.close();
      await last;
      await assertRejected(store.claim(createClaimRequest("u")), "store_closed", "claim");
      await assertRejected(thread.commit({}), "store_closed", "commit");
      await assertRejected(forkThread(store, { branch: "b", from: 1 }), "store_closed", "branch");
      await assertRejected(store.threads(), "store_closed", "threads");
      await assertRejected(store.head("t"), "store_closed", "head");
      const claim = await next.claim(createClaimRequest("t"));
      assertEqual([claim.previousOwner, claim.head?.id], ["released", 1], "the claim after the close");
    },
  ),
];
