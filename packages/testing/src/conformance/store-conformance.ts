/** What every store must do: run each test against a store of your own. */
import type { CutDelta, EffectRow, Store } from "@statewright/core";
import { artifactTests } from "./artifacts.ts";
import { refused, same } from "./assert.ts";
import { childLineTests } from "./child-namespaces.ts";
import { claimableTests } from "./claimable.ts";
import { eventTests } from "./events.ts";
import { inboxTests } from "./inbox.ts";
import { questionTests } from "./interrupts.ts";
import { longTermTests } from "./long-term.ts";
import { queueTests } from "./queue.ts";
import {
  checkpoint,
  delta,
  effect,
  fork,
  interrupt,
  release,
  request,
  run,
  start,
  stateOf,
  tell,
  timer,
} from "./store-rows.ts";
import { type StoreTest, sharedTest, storeTest } from "./store-test.ts";
import { movingTests } from "./thread-moves.ts";

/** The tests that every store must pass. */
export const storeConformance: readonly StoreTest[] = [
  storeTest("a new thread starts with nothing", async ({ store }) => {
    const claim = await store.claim(request("t"));
    same(
      claim,
      {
        epoch: 1,
        branch: "main",
        nextSeq: 1,
        nextCheckpoint: 1,
        writtenBy: { graph: "g", version: 1, shape: "s1" },
        recovered: false,
        queued: 0,
      },
      "the claim",
    );
    same(
      await store.thread("t"),
      { id: "t", graph: "g", version: 1, createdAt: 100, updatedAt: 100, headBranch: "main" },
      "the thread",
    );
    same(await store.branches("t"), [{ name: "main" }], "the branches");
  }),

  storeTest("a claim that must exist refuses what is not there and makes nothing", async ({ store }) => {
    await refused(store.claim({ ...request("t"), mustExist: true }), "unknown_thread", "the thread");
    same(await store.thread("t"), undefined, "the thread");
    await release(store, "t", await store.claim(request("t")));
    await refused(store.claim({ ...request("t"), branch: "other", mustExist: true }), "unknown_branch", "the branch");
    same(await store.branches("t"), [{ name: "main" }], "the branches");
    same(
      (await store.claim({ ...request("t"), mustExist: true })).epoch,
      2,
      "the epoch after a claim that was refused",
    );
  }),

  sharedTest(
    "a thread that is held is busy, for the store that holds it and for any other",
    async ({ store, peer }) => {
      await store.claim(request("t"));
      await refused(store.claim(request("t")), "thread_busy", "the same store");
      await refused(peer().claim(request("t")), "thread_busy", "another store");
      await refused(peer().claim({ ...request("t"), branch: "other" }), "thread_busy", "another branch");
      same((await peer().claim(request("u"))).epoch, 1, "another thread");
    },
  ),

  sharedTest("the claim of a run that begins holds until its first commit, or is refused with that", async (under) => {
    const { store } = under;
    await start(store, "busy");
    const begins = (thread: string) => start(store, thread, { begins: true, run: false });

    const first = await begins("t");
    await refused(begins("t"), "thread_busy", "the same store, before the first commit");
    await refused(store.claim(request("t")), "thread_busy", "the same, by a claim as any other");
    await first.step(1);
    await refused(under.peer().claim(request("t")), "thread_busy", "another store, after the first commit");
    await first.commit({ release: true });

    const idle = await begins("t");
    same([idle.claim.epoch, idle.claim.head?.id, idle.claim.recovered], [2, 1, false], "the next claim");
    await release(store, "t", idle.claim);

    for (const thread of ["t", "new"]) {
      const late = await begins(thread);
      const peer = under.peer();
      const [taken] = await Promise.allSettled([peer.claim(request(thread))]);
      if (taken.status === "rejected") {
        await refused(Promise.reject(taken.reason), "thread_busy", "another store, before the first commit");
        await late.commit({ release: true });
        continue;
      }
      const claim = taken.value;
      await refused(late.step(2), "fenced", "the first commit, after another store has taken the thread");
      await release(peer, thread, claim);
      same((await begins(thread)).claim.epoch, claim.epoch + 1, "the epoch of the claim after that");
    }
  }),

  storeTest("a thread that a run is about to begin on is held already", async ({ store }) => {
    const before = await start(store, "t");
    await before.step(1);
    await before.step(2);
    await before.commit({ run: { ...run("r1"), status: "done" }, release: true });
    const image = await store.image("t");
    for (const thread of ["t", "new"]) {
      const held = await start(store, thread, { begins: true, run: false });
      await refused(store.delete(thread), "thread_busy", `removing ${thread}`);
      await refused(fork(store, thread, "b", 1, []), "thread_busy", `a fork of ${thread}`);
      await refused(store.insert({ ...image, id: thread }), "thread_exists", `taking ${thread} in`);
      if (thread === "t") {
        const { thread: _, branch: __, ...row } = run("q1");
        await store.enqueue({ thread, run: { ...row, status: "queued", queuedAt: 300, input: "{}" } });
        same(await store.dequeue(thread, "q1", { at: 400, reason: "no" }), true, "taking out of the queue");
        const merge = (rows: readonly CutDelta[]): readonly CutDelta[] => rows;
        same(await store.prune({ thread, keepLast: 1, merge }), 1, "pruning beside it");
      }
      await held.step(3, [delta("last", "replace", '"on"')]);
      await held.commit({ release: true });
      same((await store.head(thread))?.step, 3, `the first checkpoint of the run on ${thread}`);
      same((await store.claim(request(thread))).queued, 0, `the queue of ${thread}`);
    }
  }),

  sharedTest("of many claims at the same moment exactly one wins", async ({ store, peer }) => {
    const stores = [store, peer(), peer()];
    const claims = Array.from({ length: 30 }, (_, index) => (stores[index % 3] as Store).claim(request("t")));
    const settled = await Promise.allSettled(claims);
    same(settled.filter(({ status }) => status === "fulfilled").length, 1, "the claims that won");
  }),

  sharedTest("a thread that was released goes on where it stood", async ({ store, peer }) => {
    const first = await start(store, "t");
    await first.step(1);
    await first.commit({ seq: 9, release: true });
    const next = peer();
    const claim = await next.claim(request("t"));
    same(
      { ...claim, head: claim.head?.id, run: claim.run?.id },
      {
        epoch: 2,
        branch: "main",
        nextSeq: 10,
        nextCheckpoint: 2,
        writtenBy: { graph: "g", version: 1, shape: "s1" },
        head: 1,
        run: "r1",
        recovered: false,
        queued: 0,
      },
      "the claim",
    );
    same(await next.head("t"), first.rows[0], "the head");
  }),

  sharedTest("the thread of an owner that died is taken over, and told to be recovered", async ({ store, crash }) => {
    const first = await start(store, "t");
    await first.step(1);
    const next = crash();
    const claim = await next.claim(request("t"));
    same(
      [claim.epoch, claim.recovered, claim.head, claim.run?.status],
      [2, true, first.rows[0], "running"],
      "the claim",
    );
    await refused(next.claim(request("t")), "thread_busy", "the thread after it was taken over");
    await release(next, "t", claim);
    same((await next.claim(request("t"))).recovered, false, "recovered, after the new owner let go");
  }),

  storeTest(
    "a write whose number does not follow is refused whole: the one before it has failed",
    async ({ store }) => {
      const first = await start(store, "t");
      await first.step(1);
      const place = { thread: "t", branch: "main", epoch: first.claim.epoch };
      const { seq = 0 } = (await store.head("t")) ?? {};
      const ahead = { ...place, after: seq + 1, seq: seq + 2, effects: [effect({ step: 1 })] };
      await refused(tell(store, ahead), "store_failed", "a write that leaves a gap");
      same(await store.effects("t", "main"), [], "the effects");
      await tell(store, { ...place, after: seq, seq: seq + 1 });
      await tell(store, ahead);
      same((await store.effects("t", "main")).length, 1, "the effects, when the number has come");
    },
  ),

  sharedTest(
    "E36 a writer that is not the owner any more is refused, and nothing of its commit is written",
    async ({ store, peer }) => {
      const stale = await start(store, "t");
      await stale.step(1);
      await stale.commit({ release: true });
      const next = peer();
      await next.claim(request("t"));
      const write = {
        seq: 50,
        run: run("r2"),
        effects: [effect({ step: 1 })],
        checkpoint: checkpoint(2, 1),
        interrupts: [interrupt({})],
      };
      await refused(stale.commit(write), "fenced", "the stale commit");
      const fresh = await next.claim(request("u"));
      await refused(
        tell(next, { thread: "t", branch: "main", epoch: 1, seq: 51 }),
        "fenced",
        "an old epoch in the store of the new owner",
      );
      await refused(
        tell(store, { thread: "u", branch: "main", epoch: fresh.epoch, seq: 51 }),
        "fenced",
        "a store that never held the thread",
      );
      await refused(
        tell(store, { thread: "none", branch: "main", epoch: 1, seq: 1 }),
        "fenced",
        "a thread that is not there",
      );
      same((await next.head("t"))?.id, 1, "the head");
      same(await next.effects("t", "main"), [], "the effects");
      same(await next.interrupts("t", "main"), [], "the questions");
      same(
        (await next.runs()).map(({ id }) => id),
        ["r1"],
        "the runs",
      );
    },
  ),

  storeTest("a commit after the release is refused, also in the same moment", async ({ store }) => {
    const thread = await start(store, "t");
    const releasing = thread.commit({ release: true });
    const late = thread.commit({ effects: [effect({ step: 0 })] });
    await releasing;
    await refused(late, "fenced", "the late commit");
    await refused(thread.commit({ run: run("r2") }), "fenced", "a later one");
    same(await store.effects("t", "main"), [], "the effects");
  }),

  sharedTest("rows come back as they were written", async ({ store, peer }) => {
    const claim = await store.claim(request("t"));
    const first = checkpoint(
      1,
      undefined,
      { source: "input", nodes: [], control: '{"machine":"ä𝄞\\u0000","tasks":[]}', durationMs: 0.25, bytes: 12 },
      [delta("messages", "append", '[{"id":"m1"}]', false), delta("cart", "patch", "[]", true)],
    );
    const second = checkpoint(2, 1, { source: "step", nodes: ["model", "tools"], run: "r1" }, []);
    const error = { name: "Error", message: "no", code: "x", cause: { name: "Error", message: "why" } };
    const failed = { ...run("r1"), status: "failed", attempt: 3, endedAt: 900, error } as const;
    const effects = [
      effect({
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
      effect({ step: 1, task: "1:1", key: "model", kind: "model" }),
    ];
    const questions = [
      interrupt({ id: "i2", schema: { type: "object", properties: { ok: { type: "boolean" } } } }),
      interrupt({ id: "i1", answer: "true", answeredAt: 140 }),
    ];
    await tell(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: 1, run: failed, checkpoint: first });
    await tell(store, {
      thread: "t",
      branch: "main",
      epoch: claim.epoch,
      seq: 2,
      checkpoint: second,
      interrupts: questions,
    });
    await tell(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: 3, effects });
    const other = peer();
    same(await other.checkpoint("t", 1), first.row, "the first checkpoint");
    same(await other.head("t"), second.row, "the head");
    same(
      await other.history("t", { limit: 9 }),
      [
        { ...second.row, deltas: [] },
        { ...first.row, deltas: first.deltas },
      ],
      "the history",
    );
    same(await other.runs(), [failed], "the run");
    same(await other.effects("t", "main", 1), effects, "the effects");
    same(await other.interrupts("t", "main"), questions, "the questions");
  }),

  storeTest("long texts and odd names are data", async ({ store }) => {
    const claim = await store.claim(request("t"));
    const names = ["__proto__", "constructor", "a'b\"c", "😀", "toString", "%", "a\u0000b"];
    const long = JSON.stringify("ß".repeat(300_000));
    const write = checkpoint(
      1,
      undefined,
      { nodes: names, control: long },
      names.map((name) => delta(name, "replace", long)),
    );
    const effects = names.map((key) => effect({ step: 1, key, outcome: long, effect: "once" }));
    await tell(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: 1, checkpoint: write, effects });
    same(await store.head("t"), write.row, "the head");
    same(
      await store.state("t", 1),
      names.map((channel) => ({ channel, deltas: [{ kind: "replace", text: long }] })),
      "the state",
    );
    same(await store.effects("t", "main"), effects, "the effects");
  }),

  storeTest("the state of a checkpoint is every channel's latest base and what came after it", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1, [
      delta("list", "append", "[1]"),
      delta("last", "replace", "1"),
      delta("draft", "patch", "[0]"),
    ]);
    await thread.step(2, [delta("list", "append", "[2]"), delta("last", "replace", "2")]);
    await thread.step(3, [delta("list", "append", "[1,2,3]", true), delta("gone", "replace", "3")]);
    await thread.step(4, [delta("list", "append", "[4]"), delta("gone", "clear", "")]);
    await thread.step(5, []);
    same(
      await stateOf(store, "t", 1),
      { draft: ["patch [0]"], last: ["replace 1"], list: ["append [1]"] },
      "the state at 1",
    );
    same(
      await stateOf(store, "t", 2),
      { draft: ["patch [0]"], last: ["replace 2"], list: ["append [1]", "append [2]"] },
      "the state at 2",
    );
    const after = {
      draft: ["patch [0]"],
      gone: ["clear "],
      last: ["replace 2"],
      list: ["append [1,2,3]", "append [4]"],
    };
    same(await stateOf(store, "t", 4), after, "the state at 4");
    same(await stateOf(store, "t", 5), after, "the state at 5");
    await refused(store.state("t", 6), "unknown_checkpoint", "a checkpoint that is not there");
  }),

  storeTest("a value that replaces the one before is a base, whatever its writer says", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1, [
      delta("a", "replace", "1", false),
      delta("b", "clear", "", false),
      delta("c", "append", "[1]", false),
    ]);
    const [entry] = await store.history("t", { limit: 1 });
    same(
      entry?.deltas.map(({ base }) => base),
      [true, true, false],
      "the bases",
    );
  }),

  storeTest("a branch goes on from its origin and sees nothing that came later there", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1, [delta("list", "append", "[0,1]", true), delta("x", "replace", "1")]);
    await thread.step(2, [delta("list", "append", "[2]")]);
    await thread.step(3, [delta("list", "append", "[3]"), delta("x", "replace", "3"), delta("late", "replace", "3")]);
    await thread.commit({ release: true });
    const before = await store.history("t", { limit: 99 });
    const made = await fork(store, "t", "b", 2, [delta("list", "append", "[9]")]);
    same([made.id, made.branch, made.parent], [4, "b", 2], "the branch's first checkpoint");
    same(await store.head("t", "b"), made, "the head of the branch");
    same(
      await stateOf(store, "t", 4),
      { list: ["append [0,1]", "append [2]", "append [9]"], x: ["replace 1"] },
      "the state of the branch",
    );
    same(
      (await store.history("t", { branch: "b", limit: 99 })).map(({ id }) => id),
      [4, 2, 1],
      "the history of the branch",
    );
    same(await store.history("t", { limit: 99 }), before, "the history of the origin");
    const deeper = await fork(store, "t", "c", 4, [delta("x", "replace", "5")]);
    same(
      await stateOf(store, "t", deeper.id),
      { list: ["append [0,1]", "append [2]", "append [9]"], x: ["replace 5"] },
      "a branch of the branch",
    );
    const from = await fork(store, "t", "d", 1, []);
    same(
      await stateOf(store, "t", from.id),
      { list: ["append [0,1]"], x: ["replace 1"] },
      "a branch from the first checkpoint",
    );
    same(
      await store.branches("t"),
      [
        { name: "main", head: 3 },
        { name: "b", from: 2, head: 4 },
        { name: "c", from: 4, head: 5 },
        { name: "d", from: 1, head: 6 },
      ],
      "the branches",
    );
    same((await store.thread("t"))?.headBranch, "main", "the head branch");
  }),

  storeTest("each branch is written on its own, with ids that no other branch of the thread has", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1, [delta("x", "replace", "1")]);
    await thread.commit({ release: true });
    await fork(store, "t", "b", 1, []);
    const other = await start(store, "t", { branch: "b" });
    same([other.claim.nextCheckpoint, other.claim.nextSeq, other.claim.head?.id], [3, 5, 2], "the claim of the branch");
    await other.step(2, [delta("x", "replace", "2")]);
    await other.commit({ release: true });
    const again = await start(store, "t");
    same([again.claim.nextCheckpoint, again.claim.head?.id], [4, 1], "the claim of the origin");
    await again.step(2, []);
    same(await stateOf(store, "t", 3), { x: ["replace 2"] }, "the state of the branch");
    same(await stateOf(store, "t", 4), { x: ["replace 1"] }, "the state of the origin");
  }),

  sharedTest(
    "a branch is refused from nowhere, under a name that is taken, and while the thread is written",
    async ({ store, peer }) => {
      await refused(fork(store, "t", "b", 1, []), "unknown_thread", "an unknown thread");
      const thread = await start(store, "t");
      await thread.step(1);
      await refused(fork(store, "t", "b", 1, []), "thread_busy", "a thread that this store writes");
      await refused(fork(peer(), "t", "b", 1, []), "thread_busy", "a thread that another store writes");
      await thread.commit({ release: true });
      await refused(fork(store, "t", "b", 7, []), "unknown_checkpoint", "an unknown checkpoint");
      await refused(fork(store, "t", "main", 1, []), "thread_exists", "a name that is taken");
      same(await store.branches("t"), [{ name: "main", head: 1 }], "the branches");
    },
  ),

  storeTest("a branch takes over the answers that it is given", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    await thread.commit({ interrupts: [interrupt({ id: "i1", answer: "1", answeredAt: 5 })], release: true });
    const answered = await store.interrupts("t", "main");
    await fork(store, "t", "b", 1, [], answered);
    same(
      await store.interrupts("t", "b"),
      answered.map((each) => ({ ...each, branch: "b" })),
      "the questions of the branch",
    );
    same(await store.interrupts("t", "main"), answered, "the questions of the origin");
  }),

  ...childLineTests,

  ...questionTests,
  ...claimableTests,
  ...queueTests,
  ...longTermTests,
  ...inboxTests,
  ...eventTests,
  ...movingTests,
  ...artifactTests,

  storeTest("history comes in pages, newest first", async ({ store }) => {
    const thread = await start(store, "t");
    for (let id = 1; id <= 7; id++) await thread.step(id, [delta("n", "replace", String(id))]);
    await thread.commit({ release: true });
    await fork(store, "t", "b", 4, [delta("n", "replace", "8")]);
    const pages: number[][] = [];
    for (let before: number | undefined; ; before = pages.at(-1)?.at(-1)) {
      const page = await store.history("t", { branch: "b", before, limit: 2 });
      if (page.length === 0) break;
      pages.push(page.map(({ id }) => id));
    }
    same(pages, [[8, 4], [3, 2], [1]], "the pages");
    const [entry] = await store.history("t", { before: 3, limit: 1 });
    same(entry?.deltas, [delta("n", "replace", "2")], "what a checkpoint changed");
  }),

  storeTest("a checkpoint folds the journal of the step before it, and no other", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    const journal = [
      effect({ step: 1, key: "task", kind: "task", effect: "pure", outcome: "1" }),
      effect({ step: 1, key: "model", kind: "model", effect: "idempotent", outcome: "2" }),
      effect({ step: 1, key: "pay", kind: "tool", effect: "once", outcome: "3" }),
      effect({ step: 2, key: "early", kind: "step", effect: "pure", outcome: "4" }),
    ];
    await thread.commit({ effects: journal });
    same(await store.effects("t", "main"), journal, "the journal before the checkpoint");
    await thread.step(2);
    const [, model, pay, early] = journal as [EffectRow, EffectRow, EffectRow, EffectRow];
    same(await store.effects("t", "main", 1), [{ ...model, outcome: undefined }, pay], "the folded step");
    same(await store.effects("t", "main", 2), [early], "the step that is not folded yet");
    await thread.commit({
      checkpoint: checkpoint(3, 2),
      effects: [
        effect({ step: 2, key: "task", kind: "task", outcome: "5" }),
        effect({ step: 2, key: "read", kind: "tool", effect: "pure", outcome: "6" }),
        effect({ step: 2, key: "send", kind: "tool", effect: "once", outcome: "7" }),
      ],
    });
    same(
      (await store.effects("t", "main", 2)).map(({ key, outcome }) => [key, outcome ?? null]),
      [
        ["early", null],
        ["read", null],
        ["send", "7"],
      ],
      "effects that came with the checkpoint that folds them",
    );
  }),

  storeTest("the journal of each of many steps is found by its step", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(0);
    const expected: EffectRow[] = [];
    let id = 1;
    for (let step = 1; step <= 20; step++) {
      const at = { step: step - 1, task: `${step - 1}:0` };
      const slow = step % 5 === 0 ? [effect({ ...at, key: "slow", effect: "pure", outcome: "1" })] : [];
      if (slow.length > 0) await thread.commit({ effects: slow });
      const quick = effect({ ...at, key: "quick", effect: step % 3 === 0 ? "once" : "pure", outcome: "2" });
      const named = effect({ ...at, key: "named", effect: "idempotent", outcome: "3", idempotencyKey: `own-${step}` });
      const effects = step % 4 === 0 ? [] : [quick, named];
      await thread.commit({ checkpoint: checkpoint(++id, id - 1, { step }), effects });
      for (const row of [...slow, ...effects])
        expected.push(row.effect === "once" ? row : { ...row, outcome: undefined });
      if (step === 10) await thread.commit({ checkpoint: checkpoint(++id, id - 1, { step }) });
    }
    same(await store.effects("t", "main"), expected, "the whole journal");
    for (let step = -1; step <= 21; step++)
      same(
        await store.effects("t", "main", step),
        expected.filter((row) => row.step === step),
        `step ${step}`,
      );
  }),

  storeTest("prune leaves the journal of steps after the oldest checkpoint that stays", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(0);
    const expected: EffectRow[] = [];
    for (let step = 0; step < 6; step++) {
      const row = effect({ step, key: "quick", effect: "pure", ...(step === 3 ? { idempotencyKey: "own" } : {}) });
      await thread.commit({ checkpoint: checkpoint(step + 2, step + 1, { step: step + 1 }), effects: [row] });
      if (step > 0) expected.push({ ...row, outcome: undefined });
    }
    await thread.commit({ release: true });
    await fork(store, "t", "b", 2, []);
    const removed = await store.prune({ thread: "t", keepLast: 1, merge: (rows) => rows });
    same(removed, 5, "what went on both sides of the checkpoint that a fork holds");
    same(await store.effects("t", "main"), expected, "the journal");
    for (const row of expected) same(await store.effects("t", "main", row.step), [row], `step ${row.step}`);
    same(await store.effects("t", "main", 0), [], "the step before");
  }),

  storeTest("of two effects of one place in one commit the last counts", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    const rows = ["started", "ok"].map((state) => effect({ step: 1, state: state as EffectRow["state"] }));
    await thread.commit({ checkpoint: checkpoint(2, 1, { step: 2 }), effects: rows });
    same(
      (await store.effects("t", "main")).map(({ state }) => state),
      ["ok"],
      "the journal",
    );
  }),

  storeTest("a checkpoint of the same step as the one before it leaves the journal as it is", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(0);
    const journal = [effect({ step: 0, key: "", kind: "task", outcome: "1" }), effect({ step: 0, outcome: "2" })];
    await thread.commit({ effects: journal });
    await thread.step(0, [delta("a", "replace", "1")]);
    same(await store.effects("t", "main"), journal, "the journal of the step that goes on");
    await thread.step(1);
    same(
      await store.effects("t", "main"),
      [effect({ step: 0, outcome: undefined })],
      "the journal when the step has ended",
    );
  }),

  storeTest("a checkpoint is known by what wrote it, whoever has claimed the thread since", async ({ store }) => {
    const first = await start(store, "t");
    await first.step(0);
    await first.commit({ release: true });
    const second = await start(store, "t", { version: 2, shape: "s2" });
    same(await store.writtenBy("t", 1), { graph: "g", version: 1, shape: "s1" }, "the first");
    await second.step(1);
    same(await store.writtenBy("t", 1), { graph: "g", version: 1, shape: "s1" }, "the first, later");
    same(await store.writtenBy("t", 2), { graph: "g", version: 2, shape: "s2" }, "the second");
    same(await store.writtenBy("t", 3), undefined, "one that is not there");
    same(await store.writtenBy("u", 1), undefined, "one of a thread that is not there");
  }),

  storeTest("folding leaves the journals of other branches and threads alone", async ({ store }) => {
    const [one, two] = [await start(store, "t"), await start(store, "u")];
    for (const thread of [one, two]) {
      await thread.step(1);
      await thread.commit({ effects: [effect({ step: 1, outcome: "1" })] });
    }
    await one.commit({ release: true });
    await fork(store, "t", "b", 1, []);
    const branch = await start(store, "t", { branch: "b" });
    await branch.commit({ checkpoint: checkpoint(3, 2, { step: 2 }) });
    same((await store.effects("t", "main")).length, 1, "the journal of the origin");
    same((await store.effects("u", "main")).length, 1, "the journal of another thread");
  }),

  storeTest("an effect is known by step, task and key", async ({ store }) => {
    const thread = await start(store, "t");
    const started = effect({ step: 0, task: "0:0", key: "a", effect: "once", state: "started" });
    const others = [
      effect({ step: 0, task: "0:1", key: "a" }),
      effect({ step: 0, task: "0:0", key: "b" }),
      effect({ step: 1, task: "0:0", key: "a" }),
    ];
    await thread.commit({ effects: [started, ...others] });
    const done = { ...started, state: "ok", attempts: 2, endedAt: 300, outcome: "1", stage: "answered" } as const;
    await thread.commit({ effects: [done] });
    same(await store.effects("t", "main"), [done, ...others], "the journal");
    same((await store.effects("t", "main", 0)).length, 3, "one step of it");
  }),

  storeTest("a question keeps its place when it is answered", async ({ store }) => {
    const thread = await start(store, "t");
    const [first, second] = [interrupt({ id: "z" }), interrupt({ id: "a" })];
    await thread.commit({ interrupts: [first, second] });
    const answered = { ...first, answer: '{"ok":true}', answeredAt: 400 };
    await thread.commit({ interrupts: [answered] });
    same(await store.interrupts("t", "main"), [answered, second], "the questions");
  }),

  sharedTest(
    "E39 a timer is a row with its time and generation, and one list tells what is due in all threads",
    async ({ store, crash }) => {
      const [one, two] = [await start(store, "t"), await start(store, "u")];
      const [late, soon] = [timer({ id: "late", dueAt: 3_000 }), timer({ id: "soon", dueAt: 1_000 })];
      const [middle, alike] = [timer({ id: "b", dueAt: 2_000, generation: 7 }), timer({ id: "a", dueAt: 2_000 })];
      await one.commit({ checkpoint: checkpoint(1, undefined), timers: [{ arm: late }, { arm: middle }] });
      await two.commit({ checkpoint: checkpoint(1, undefined), timers: [{ arm: soon }, { arm: alike }] });
      const of = (thread: string, row: typeof late) => ({ ...row, thread, branch: "main" });
      const all = [of("u", soon), of("u", alike), of("t", middle), of("t", late)];
      const next = crash();
      same(await next.timers(), all, "all timers, after their owner has died");
      same(await next.timers({ dueBy: 1_999 }), all.slice(0, 1), "what is due before a time");
      same(await next.timers({ dueBy: 2_000 }), all.slice(0, 3), "what is due at that time too");
      same(await next.timers({ dueBy: 2_000, limit: 2 }), all.slice(0, 2), "a page of them");
      same(await next.timers({ thread: "t" }), all.slice(2), "those of a thread");
      same(await next.timers({ thread: "t", dueBy: 2_500, limit: 5 }), all.slice(2, 3), "what is due in a thread");
    },
  ),

  storeTest("E39 what is meant for an older timer of the same id changes nothing", async ({ store }) => {
    const thread = await start(store, "t");
    const ids = async () => (await store.timers()).map(({ id, generation, dueAt }) => [id, generation, dueAt]);
    await thread.commit({ timers: [{ arm: timer({ generation: 3, dueAt: 300 }) }] });
    await thread.commit({ timers: [{ arm: timer({ generation: 5, dueAt: 500 }) }] });
    same(await ids(), [["id", 5, 500]], "a timer that was armed again");
    await thread.commit({ timers: [{ drop: { id: "id", generation: 3 } }] });
    await thread.commit({ timers: [{ arm: timer({ generation: 4, dueAt: 400 }) }] });
    same(await ids(), [["id", 5, 500]], "after what was meant for the older one");
    await thread.commit({
      timers: [{ drop: { id: "id", generation: 5 } }, { arm: timer({ id: "other" }) }, { arm: timer({ dueAt: 600 }) }],
    });
    same(
      await ids(),
      [
        ["id", 1, 600],
        ["other", 1, 1_000],
      ],
      "after it was cancelled and set anew",
    );
    await thread.commit({ timers: [{ drop: { id: "id", generation: 1 } }, { drop: { id: "none", generation: 9 } }] });
    same(await ids(), [["other", 1, 1_000]], "after it has fired");
  }),

  storeTest("timers land with their commit or not at all, each on its own branch", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    const gap = { checkpoint: checkpoint(9, 7), timers: [{ arm: timer({ id: "lost" }) }] };
    await refused(thread.commit(gap), "store_failed", "a commit with a checkpoint that does not follow");
    same(await store.timers(), [], "the timers of a refused commit");
    await thread.commit({ timers: [{ arm: timer({ dueAt: 100 }) }], release: true });
    await refused(thread.commit({ timers: [{ drop: { id: "id", generation: 1 } }] }), "fenced", "a late commit");
    await fork(store, "t", "b", 1, []);
    const places = async () => (await store.timers()).map(({ branch, dueAt }) => `${branch} ${dueAt}`);
    same(await places(), ["main 100"], "the timers after a fork that was not run");
    const branch = await start(store, "t", { branch: "b" });
    await branch.commit({ timers: [{ arm: timer({ dueAt: 200 }) }] });
    same(await places(), ["main 100", "b 200"], "the timers of both branches");
    await branch.commit({ timers: [{ drop: { id: "id", generation: 1 } }] });
    same(await places(), ["main 100"], "the timers after one was dropped on its branch");
  }),

  storeTest("timers that are due together come by id, whatever text that is", async ({ store }) => {
    const ids = ["\ufffd", "\u{1d11e}", "z", "__proto__", "a/b", "ä", "a'b\"c", ""];
    const thread = await start(store, "t");
    const times = [1_763_000_000_000, 2 ** 53 - 1];
    for (const dueAt of times) {
      const timers = ids.map((id) => ({ arm: timer({ id: `${id} ${dueAt}`, about: id, dueAt }) }));
      await thread.commit({ timers });
    }
    const sorted = ["", "__proto__", "a'b\"c", "a/b", "z", "ä", "\ufffd", "\u{1d11e}"];
    same(
      (await store.timers()).map(({ about, dueAt }) => [about, dueAt]),
      times.flatMap((dueAt) => sorted.map((id) => [id, dueAt])),
      "the timers",
    );
  }),

  storeTest("a claim finds the newest run of its branch", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    await thread.commit({ run: { ...run("r1"), status: "crashed", endedAt: 200 } });
    await thread.commit({ run: { ...run("r2"), startedAt: 300 } });
    await thread.commit({ run: { ...run("r1"), status: "failed", endedAt: 200 }, release: true });
    same(await store.thread("t").then((row) => row?.status), "crashed", "the status of the thread that was let go");
    await fork(store, "t", "b", 1, []);
    const branch = await start(store, "t", { branch: "b", run: false });
    same(branch.claim.run, undefined, "the run of a new branch");
    await branch.commit({ run: { ...run("r3"), branch: "b", startedAt: 400, status: "done" }, release: true });
    const again = await store.claim(request("t"));
    same([again.run?.id, again.run?.status], ["r2", "running"], "the run of the origin");
    same(
      (await store.runs({ thread: "t" })).map(({ id, status }) => [id, status]),
      [
        ["r3", "done"],
        ["r2", "crashed"],
        ["r1", "failed"],
      ],
      "the runs",
    );
  }),

  storeTest("runs and threads are listed newest first, by graph, by status, up to a limit", async ({ store }) => {
    for (const [index, id] of ["a", "b", "c", "d"].entries()) {
      const thread = await start(store, id, { graph: index % 2 === 0 ? "even" : "odd", at: 100 + index, run: false });
      const status = index < 2 ? "waiting" : "failed";
      await thread.commit({
        run: { ...run(`r${index}`), thread: id, graph: thread.request.graph, status, startedAt: 200 + index },
      });
    }
    const touched = await start(store, "e", { graph: "even", at: 150, run: false });
    await touched.commit({ checkpoint: checkpoint(1, undefined, { at: 900 }) });
    const ids = async (filter?: Parameters<Store["threads"]>[0]) =>
      (await store.threads(filter)).map(({ id }) => id).join("");
    same(await ids(), "edcba", "all threads");
    same(await ids({ graph: "even" }), "eca", "the threads of a graph");
    same(await ids({ status: "waiting" }), "ba", "the waiting threads");
    same(await ids({ status: "failed", graph: "odd", limit: 1 }), "d", "a page of both");
    same(await ids({ limit: 2 }), "ed", "a page");
    const runs = async (filter?: Parameters<Store["runs"]>[0]) =>
      (await store.runs(filter)).map(({ id }) => id).join("");
    same(await runs(), "r3r2r1r0", "all runs");
    same(await runs({ status: "waiting" }), "r1r0", "the waiting runs");
    same(await runs({ status: "waiting", limit: 1 }), "r1", "a page of them");
    same(await runs({ thread: "c" }), "r2", "the runs of a thread");
    same(await runs({ thread: "c", status: "waiting" }), "", "the waiting runs of a thread");
  }),

  storeTest(
    "F7 a clock that was set back changes no order: of checkpoints, of runs, of the newest run",
    async ({ store }) => {
      const [one, two] = [await start(store, "t", { at: 900 }), await start(store, "u", { at: 500 })];
      await one.commit({ checkpoint: checkpoint(1, undefined, { at: 900 }) });
      await one.commit({ run: { ...run("r1"), startedAt: 900, status: "done", endedAt: 950 } });
      await two.commit({ run: { ...run("r2"), thread: "u", startedAt: 50 } });
      await one.commit({ run: { ...run("r3"), startedAt: 100 }, checkpoint: checkpoint(2, 1, { at: 100 }) });
      await one.commit({ run: { ...run("r3"), startedAt: 100, status: "waiting" }, release: true });
      const listed = async (filter?: Parameters<Store["runs"]>[0]) =>
        (await store.runs(filter)).map((row) => `${row.thread} ${row.id}`);
      same(await listed(), ["t r3", "u r2", "u r1", "t r1"], "the runs");
      same(await listed({ thread: "t" }), ["t r3", "t r1"], "the runs of a thread");
      same(await listed({ status: "running" }), ["u r2", "u r1"], "the runs of one status");
      same((await store.thread("t"))?.status, "waiting", "the status of the thread");
      same(
        (await store.history("t", { limit: 9 })).map(({ id }) => id),
        [2, 1],
        "the history",
      );
      same((await store.claim(request("t"))).run?.id, "r3", "the newest run");
    },
  ),

  storeTest("a claim says what wrote the head of its branch, not what was claimed since", async ({ store }) => {
    const first = await start(store, "t");
    await first.step(1);
    await first.commit({ release: true });
    const second = await start(store, "t", { version: 2, shape: "s2", run: false });
    same(second.claim.writtenBy.shape, "s1", "at the first claim of a new version");
    await second.commit({ run: { ...run("r9"), status: "parked" }, release: true });
    const third = await start(store, "t", { version: 2, shape: "s2", run: false });
    same(third.claim.writtenBy, { graph: "g", version: 1, shape: "s1" }, "after a claim that wrote no checkpoint");
    await third.step(2);
    await third.commit({ release: true });
    await fork(store, "t", "old", 1, []);
    await fork(store, "t", "new", 2, []);
    const shape = async (branch: string) => {
      const claim = await store.claim({ ...request("t"), version: 3, shape: "s3", branch });
      await release(store, "t", claim);
      return claim.writtenBy.shape;
    };
    same([await shape("main"), await shape("old"), await shape("new")], ["s2", "s1", "s2"], "by branch");
    same((await store.thread("t"))?.version, 2, "the version in the list");
  }),

  storeTest("told is called once for each commit, in their order, and never inside the call", async ({ store }) => {
    const [one, two] = [await store.claim(request("t")), await store.claim(request("u"))];
    const told: string[] = [];
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
            effects: [effect({ step: 0, key: String(index) })],
          },
          (failure) => {
            told.push(`${index}${failure === undefined ? "" : ` ${failure.code}`}`);
            if (index === 9) resolve();
          },
        );
      }
      same(told, [], "told inside the call");
    });
    same(told, ["0", "1", "2", "3", "4 fenced", "5", "6", "7", "8", "9"], "told");
    same(
      (await store.effects("t", "main")).map(({ key }) => key),
      ["0", "2", "6", "8"],
      "the effects of the thread with a refused commit",
    );
    same(
      (await store.effects("u", "main")).map(({ key }) => key),
      ["1", "3", "5", "7", "9"],
      "the effects of the other",
    );
  }),

  storeTest("a listener may commit again", async ({ store }) => {
    const { epoch } = await store.claim(request("t"));
    await new Promise<void>((resolve) => {
      const next = (seq: number): void => {
        store.commit(
          { thread: "t", branch: "main", epoch, seq, effects: [effect({ step: 0, key: String(seq) })] },
          () => (seq === 5 ? resolve() : next(seq + 1)),
        );
      };
      next(1);
    });
    same((await store.effects("t", "main")).length, 5, "the effects");
  }),

  sharedTest("I8 what was told is there after a crash at that very moment", async ({ store, crash }) => {
    const { epoch } = await store.claim(request("t"));
    const next = await new Promise<Store>((resolve) => {
      store.commit(
        { thread: "t", branch: "main", epoch, seq: 3, run: run("r1"), checkpoint: checkpoint(1, undefined) },
        () => {
          resolve(crash());
        },
      );
    });
    const claim = await next.claim(request("t"));
    same(
      [claim.recovered, claim.nextSeq, claim.head?.id, claim.run?.id],
      [true, 4, 1, "r1"],
      "the thread after the crash",
    );
  }),

  storeTest("a checkpoint that does not continue its branch is refused whole", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    const refusals = {
      "another parent": checkpoint(2, undefined),
      "a parent to come": checkpoint(2, 7),
      "the same id": checkpoint(1, 1),
    };
    for (const [what, write] of Object.entries(refusals)) {
      await refused(
        thread.commit({ checkpoint: write, effects: [effect({ step: 1 })], run: run("r7") }),
        "store_failed",
        what,
      );
    }
    same(
      [(await store.head("t"))?.id, await store.effects("t", "main"), (await store.runs()).length],
      [1, [], 1],
      "what is kept",
    );
    await thread.step(2);
    same((await store.head("t"))?.id, 2, "the head after a right one");
  }),

  storeTest("R4 ids outside the grammar are refused, not changed", async ({ store }) => {
    const bad = ["", "a b", "a/b", "a\n", "ä", "\ud800", "a'b", "__proto__", "constructor", "x".repeat(129)];
    for (const id of bad) {
      await refused(store.claim(request(id)), "invalid_id", `the thread ${JSON.stringify(id)}`);
      await refused(store.claim({ ...request("t"), branch: id }), "invalid_id", `the branch ${JSON.stringify(id)}`);
    }
    same(await store.threads(), [], "the threads");
    const thread = await start(store, "x".repeat(128));
    await thread.step(1);
    for (const id of bad) await refused(thread.commit({ run: run(id) }), "invalid_id", `the run ${JSON.stringify(id)}`);
    await thread.commit({ release: true });
    for (const id of bad)
      await refused(fork(store, "x".repeat(128), id, 1, []), "invalid_id", `the fork ${JSON.stringify(id)}`);
    same((await store.branches("x".repeat(128))).length, 1, "the branches");
  }),

  storeTest("R3 an unknown key of a filter, or a limit that is none, is refused", async ({ store }) => {
    const wrong = { grahp: "g" } as object;
    await refused(store.threads(wrong), "invalid_option", "threads");
    await refused(store.runs(wrong), "invalid_option", "runs");
    await refused(store.timers(wrong), "invalid_option", "timers");
    await refused(store.history("t", { ...wrong, limit: 1 }), "invalid_option", "history");
    for (const limit of [0, -1, 1.5, Number.NaN]) {
      await refused(store.threads({ limit }), "invalid_option", `threads, limit ${limit}`);
      await refused(store.runs({ limit }), "invalid_option", `runs, limit ${limit}`);
      await refused(store.timers({ limit }), "invalid_option", `timers, limit ${limit}`);
      await refused(store.history("t", { limit }), "invalid_option", `history, limit ${limit}`);
    }
  }),

  storeTest("what is not there reads as nothing", async ({ store }) => {
    for (const thread of ["none", "t"]) {
      same(
        [await store.head(thread), await store.checkpoint(thread, 1), await store.history(thread, { limit: 1 })],
        [null, null, []],
        "checkpoints",
      );
      same(
        [await store.effects(thread, "main"), await store.interrupts(thread, "main"), await store.runs({ thread })],
        [[], [], []],
        "the journal",
      );
      same(await store.timers({ thread }), [], "the timers");
      same(await store.head(thread, "none"), undefined, "the head of a branch");
      same(await store.history(thread, { branch: "none", limit: 1 }), [], "the history of a branch");
      await refused(store.state(thread, 1), "unknown_checkpoint", "the state");
      if (thread === "none") await store.claim(request("t"));
    }
    same([await store.thread("none"), await store.branches("none")], [null, []], "the thread");
  }),

  storeTest("threads do not see one another", async ({ store }) => {
    const threads = await Promise.all(Array.from({ length: 20 }, (_, index) => start(store, `t${index}`)));
    for (let id = 1; id <= 3; id++)
      await Promise.all(threads.map((thread, index) => thread.step(id, [delta("n", "append", `[${index}]`)])));
    for (const [index, thread] of threads.entries()) {
      same(
        await stateOf(store, thread.request.thread, 3),
        { n: Array.from({ length: 3 }, () => `append [${index}]`) },
        `the state of thread ${index}`,
      );
    }
  }),

  sharedTest("closing writes what waits, lets every thread go, and ends the store", async ({ store, peer }) => {
    const next = peer();
    const thread = await start(store, "t");
    const last = thread.step(1);
    store.close();
    store.close();
    await last;
    await refused(store.claim(request("u")), "store_closed", "claim");
    await refused(thread.commit({}), "store_closed", "commit");
    await refused(fork(store, "t", "b", 1, []), "store_closed", "branch");
    await refused(store.threads(), "store_closed", "threads");
    await refused(store.head("t"), "store_closed", "head");
    const claim = await next.claim(request("t"));
    same([claim.recovered, claim.head?.id], [false, 1], "the thread afterwards");
  }),
];
