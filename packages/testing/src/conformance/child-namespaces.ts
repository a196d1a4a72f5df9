/** Conformance tests of child namespaces: rows of inner graphs, stored in the thread of the outer graph. */

import type { Store } from "@statewright/core";
import type { CheckpointRow, Claim, ClaimRequest, Commit, DeltaRow } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import {
  commitWrite,
  createCheckpoint,
  createClaimRequest,
  createDelta,
  createEffect,
  createInterrupt,
  createRun,
  readState,
} from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

export const childNamespaceTests: readonly StoreTest[] = [
  defineStoreTest("the first checkpoint creates a child namespace, readable like a branch", async ({ store }) => {
    const thread = await startNamespaces(store, "t");
    await thread.writeStep("main", [createDelta("list", "append", "[1]")]);
    const row = createInterrupt({ id: "i1", branch: "main/1:0", step: 1 });
    const first = createCheckpoint(2, undefined, { branch: "main/1:0", step: 1, source: "input" }, [
      createDelta("topic", "replace", '"x"'),
    ]);
    await thread.commit("main/1:0", {
      checkpoint: first,
      effects: [createEffect({ step: 1, outcome: "1" })],
      interrupts: [row],
    });
    assertEqual(await store.head("t", "main/1:0"), first.row, "the head of the namespace");
    assertEqual(await store.checkpoint("t", 2), first.row, "its checkpoint");
    assertEqual(
      await store.history("t", { branch: "main/1:0", limit: 9 }),
      [{ ...first.row, deltas: first.deltas }],
      "its history",
    );
    assertEqual(await readState(store, "t", 2), { topic: ['replace "x"'] }, "its state");
    assertEqual(await store.effects("t", "main/1:0"), [createEffect({ step: 1, outcome: "1" })], "its journal");
    assertEqual(
      await store.effects("t", "main/1:0", 1),
      [createEffect({ step: 1, outcome: "1" })],
      "one superstep of the journal",
    );
    assertEqual(await store.interrupts("t", "main/1:0"), [row], "the interrupts of the namespace");
    assertEqual((await store.head("t"))?.id, 1, "the head of the branch");
    assertEqual(await readState(store, "t", 1), { list: ["append [1]"] }, "the state of the branch");
    assertEqual(
      [await store.effects("t", "main"), await store.interrupts("t", "main")],
      [[], []],
      "the journal and the interrupts of the branch",
    );
  }),

  defineStoreTest(
    "a child namespace with a parent checkpoint inherits state up to that checkpoint and no later writes",
    async ({ store }) => {
      const thread = await startNamespaces(store, "t");
      await thread.writeStep("main", [createDelta("outer", "replace", "1")]);
      await thread.writeStep("main/notes", [
        createDelta("list", "append", "[1]", { base: true }),
        createDelta("x", "replace", "1"),
      ]);
      await thread.writeStep("main/notes", [createDelta("list", "append", "[2]")]);
      await thread.writeStep("main/notes", [createDelta("list", "append", "[3]"), createDelta("late", "replace", "3")]);
      await thread.writeStep("main/1:0", [createDelta("list", "append", "[9]")], { parent: 3 });
      assertEqual(
        await readState(store, "t", 5),
        { list: ["append [1]", "append [2]", "append [9]"], x: ["replace 1"] },
        "the state",
      );
      assertEqual(await listCheckpointIds(store, "main/1:0"), [5, 3, 2], "the history");
      assertEqual(
        (await store.history("t", { branch: "main/1:0", before: 5, limit: 1 }))[0]?.id,
        3,
        "a page of the history",
      );
      await thread.writeStep("main/1:0", [createDelta("x", "clear", "")]);
      assertEqual(
        await readState(store, "t", 6),
        { list: ["append [1]", "append [2]", "append [9]"], x: ["clear "] },
        "the state one checkpoint later",
      );
      assertEqual(
        await readState(store, "t", 4),
        { late: ["replace 3"], list: ["append [1]", "append [2]", "append [3]"], x: ["replace 1"] },
        "the state of the parent namespace",
      );
      assertEqual(await listCheckpointIds(store, "main/notes"), [4, 3, 2], "the history of the parent namespace");
      await thread.writeStep("main/1:0/own", [createDelta("y", "replace", "1")], { parent: 1 });
      assertEqual(
        await readState(store, "t", 7),
        { outer: ["replace 1"], y: ["replace 1"] },
        "the state of a namespace whose parent is a checkpoint of the branch",
      );
    },
  ),

  defineStoreTest(
    "a branch and its child namespaces accept alternating commits, each continuing its own head",
    async ({ store }) => {
      const thread = await startNamespaces(store, "t");
      const namespaces = ["main", "main/1:0", "main/1:1", "main/1:1/0:0"];
      for (let round = 0; round < 3; round++)
        await Promise.all(
          namespaces.map((namespace) =>
            thread.writeStep(namespace, [createDelta("n", "append", `["${namespace} ${round}"]`)]),
          ),
        );
      await thread.writeStep("main/1:0", []);
      assertEqual(
        await Promise.all(namespaces.map((namespace) => listCheckpointIds(store, namespace))),
        [
          [9, 5, 1],
          [13, 10, 6, 2],
          [11, 7, 3],
          [12, 8, 4],
        ],
        "the histories",
      );
      assertEqual(
        await readState(store, "t", 12),
        { n: [0, 1, 2].map((round) => `append ["main/1:1/0:0 ${round}"]`) },
        "the state of the innermost namespace",
      );
      await assertRejected(
        thread.commit("main/1:0", { checkpoint: createCheckpoint(14, 11, { branch: "main/1:0" }) }),
        "store_failed",
        "a checkpoint with the head of a sibling as parent",
      );
      await assertRejected(
        thread.commit("main/1:0", { checkpoint: createCheckpoint(13, 13, { branch: "main/1:0" }) }),
        "store_failed",
        "a checkpoint id used before",
      );
      await assertRejected(
        thread.commit("main/1:1", { checkpoint: createCheckpoint(12, 11, { branch: "main/1:1" }) }),
        "store_failed",
        "a checkpoint id used by a sibling",
      );
      await thread.commit("main/1:0", { release: true });
      const claim = await store.claim(createClaimRequest("t"));
      assertEqual([claim.nextCheckpoint, claim.head?.id, claim.branch], [14, 9, "main"], "the next claim");
      const seqs = await Promise.all(namespaces.map(async (namespace) => (await store.head("t", namespace))?.seq ?? 0));
      assertEqual(
        claim.nextSeq > Math.max(...seqs),
        true,
        "the next sequence number exceeds the numbers of all namespaces",
      );
    },
  ),

  defineStoreTest("a checkpoint in a child namespace folds the journal of that namespace only", async ({ store }) => {
    const thread = await startNamespaces(store, "t");
    const namespaces = ["main", "main/1:0", "main/1:1"];
    const journal = [
      createEffect({ step: 1, key: "task", kind: "task", outcome: "1" }),
      createEffect({ step: 1, key: "model", outcome: "2" }),
      createEffect({ step: 1, key: "pay", kind: "tool", effect: "once", outcome: "3" }),
    ];
    for (const namespace of namespaces) {
      await thread.writeStep(namespace);
      await thread.commit(namespace, { effects: journal });
    }
    await thread.writeStep("main/1:0");
    const listOutcomes = async (namespace: string) =>
      (await store.effects("t", namespace)).map(({ key, outcome }) => `${key} ${outcome ?? "folded"}`);
    const unfolded = ["task 1", "model 2", "pay 3"];
    const folded = ["model folded", "pay 3"];
    assertEqual(
      await Promise.all(namespaces.map(listOutcomes)),
      [unfolded, folded, unfolded],
      "the journals after a checkpoint of one child namespace",
    );
    await thread.writeStep("main");
    assertEqual(
      await Promise.all(namespaces.map(listOutcomes)),
      [folded, folded, unfolded],
      "the journals after a checkpoint of the branch",
    );
    await thread.writeStep("main/2:0", [], { parent: 3 }, { effects: journal });
    assertEqual(
      await listOutcomes("main/2:0"),
      unfolded,
      "the journal rows in the commit of the first checkpoint of a namespace",
    );
    assertEqual(await listOutcomes("main/1:1"), unfolded, "the journal rows of the parent namespace");
  }),

  defineStoreTest(
    "child namespaces appear in no list and change neither the head branch nor the newest run",
    async ({ store }) => {
      const thread = await startNamespaces(store, "t");
      await thread.commit("main", { run: createRun("r1") });
      await thread.writeStep("main");
      await thread.writeStep("main/1:0");
      await thread.writeStep("main/1:0/0:0");
      await thread.commit("main/1:0", { release: true });
      assertEqual(await store.branches("t"), [{ name: "main", head: 1 }], "the branches");
      assertEqual(
        (await store.threads()).map(({ id, headBranch, status }) => [id, headBranch, status]),
        [["t", "main", "crashed"]],
        "the threads",
      );
      assertEqual(
        (await store.runs()).map(({ id, branch }) => [id, branch]),
        [["r1", "main"]],
        "the runs",
      );
      const claim = await store.claim(createClaimRequest("t"));
      assertEqual([claim.branch, claim.head?.id, claim.run?.id], ["main", 1, "r1"], "the next claim");
    },
  ),

  defineStoreTest(
    "a child namespace without a first checkpoint, without a parent namespace or on an unknown branch is refused",
    async ({ store }) => {
      const thread = await startNamespaces(store, "t");
      const before = (await store.thread("t"))?.updatedAt;
      const rows = { effects: [createEffect({ step: 1, startedAt: 900 })], interrupts: [createInterrupt({})] };
      const createWrite = (namespace: string, parent?: number) => ({
        checkpoint: createCheckpoint(1, parent, { branch: namespace }),
        ...rows,
      });
      await assertRejected(thread.commit("main/1:0", rows), "unknown_branch", "a commit without a checkpoint");
      await assertRejected(thread.commit("main/1:0", { release: true }), "unknown_branch", "a release");
      await assertRejected(
        thread.commit("main/1:0", createWrite("main/1:0", 7)),
        "store_failed",
        "an unknown parent checkpoint",
      );
      await assertRejected(
        thread.commit("main/1:0/0:0", createWrite("main/1:0/0:0")),
        "unknown_branch",
        "a namespace with an unknown parent namespace",
      );
      await assertRejected(
        thread.commit("none/1:0", createWrite("none/1:0")),
        "unknown_branch",
        "a child namespace of an unknown branch",
      );
      await assertRejected(thread.commit("none", createWrite("none")), "unknown_branch", "an unknown branch");
      for (const namespace of ["main/1:0", "main/1:0/0:0", "none/1:0", "none"]) {
        assertEqual(
          [
            await store.head("t", namespace),
            await store.effects("t", namespace),
            await store.interrupts("t", namespace),
          ],
          [null, [], []],
          namespace,
        );
      }
      assertEqual(
        [await store.checkpoint("t", 1), (await store.thread("t"))?.updatedAt],
        [null, before],
        "the stored checkpoint and the update time of the thread",
      );
      await thread.writeStep("main/1:0");
      assertEqual((await store.head("t", "main/1:0"))?.id, 1, "the head of the namespace after a valid commit");
    },
  ),

  defineStoreTest("child namespace names outside the grammar are refused, not rewritten [R4]", async ({ store }) => {
    const thread = await startNamespaces(store, "t");
    await thread.writeStep("main");
    const bad = [
      "",
      "a b",
      "a\n",
      "ä",
      "\ud800",
      "a'b",
      "__proto__",
      "constructor",
      "x".repeat(129),
      "/",
      "a//b",
      "a/",
    ];
    for (const segment of bad) {
      const namespace = `main/${segment}`;
      const write = {
        checkpoint: createCheckpoint(2, undefined, { branch: namespace }),
        effects: [createEffect({ step: 1 })],
      };
      await assertRejected(thread.commit(namespace, write), "invalid_id", JSON.stringify(namespace));
      assertEqual(
        [await store.head("t", namespace), await store.effects("t", namespace)],
        [null, []],
        JSON.stringify(namespace),
      );
    }
    await assertRejected(
      thread.commit("/1:0", { checkpoint: createCheckpoint(2, undefined, { branch: "/1:0" }) }),
      "invalid_id",
      "a namespace without a branch",
    );
    assertEqual(await store.checkpoint("t", 2), undefined, "the checkpoint of a refused commit");
    await thread.writeStep(`main/${"x".repeat(128)}`);
    await thread.commit("main", { release: true });
    await assertRejected(
      store.claim(createClaimRequest("t", { branch: "main/1:0" })),
      "invalid_id",
      "a claim of a child namespace",
    );
    for (const segment of bad)
      await assertRejected(
        forkNamespaces(store, "b", 1, { [`b/${segment}`]: 1 }),
        "invalid_id",
        JSON.stringify(segment),
      );
    await assertRejected(forkNamespaces(store, "b/1:0", 1, {}), "invalid_id", "a fork named like a child namespace");
    assertEqual((await store.branches("t")).length, 1, "the branches");
  }),

  defineStoreTest(
    "journal rows of parent namespaces are committed with a child namespace's commit, or not at all",
    async ({ store }) => {
      const thread = await startNamespaces(store, "t");
      await thread.writeStep("main");
      await thread.writeStep("main/1:0");
      const entry = createEffect({ step: 1, task: "1:0/ledger", kind: "task", effect: "idempotent", outcome: "1" });
      const childEntry = createEffect({ step: 2, outcome: "2" });
      const parentRows = [{ namespace: "main", effects: [entry] }];
      const readJournals = async () => [await store.effects("t", "main"), await store.effects("t", "main/1:0")];
      await assertRejected(
        thread.commit("main/1:0", { effects: [childEntry], parentJournals: parentRows, after: 99 }),
        "store_failed",
        "a gap",
      );
      const unknownParentRows = [{ namespace: "main/9:9", effects: [entry] }];
      await assertRejected(
        thread.commit("main/1:0", { effects: [childEntry], parentJournals: unknownParentRows }),
        "unknown_branch",
        "the parent namespace",
      );
      assertEqual(await readJournals(), [[], []], "the journals");
      await thread.commit("main/1:0", { effects: [childEntry], parentJournals: parentRows });
      assertEqual(await readJournals(), [[entry], [childEntry]], "the journals after a valid commit");
      await thread.writeStep(
        "main/1:0",
        [],
        { step: 3 },
        { parentJournals: [{ namespace: "main", effects: [{ ...entry, outcome: "3" }] }] },
      );
      assertEqual(
        (await store.effects("t", "main"))[0]?.outcome,
        "3",
        "the outcome of the journal row, rewritten together with a checkpoint",
      );
      await thread.writeStep("main", [], { step: 2 });
      assertEqual(
        await store.effects("t", "main"),
        [],
        "the journal of the parent namespace after its superstep is folded",
      );
    },
  ),

  defineStoreTest(
    "a fork includes child namespaces, each from its own checkpoint and with its own edit",
    async ({ store }) => {
      const thread = await startNamespaces(store, "t");
      const claim = { version: 2, shape: "s2" };
      await thread.writeStep("main", [createDelta("list", "append", "[1]")]);
      await thread.writeStep("main/1:0", [createDelta("draft", "append", '["a"]')]);
      await thread.writeStep("main/1:0/0:0", [createDelta("deep", "replace", "1")]);
      await thread.writeStep("main/1:0", [createDelta("draft", "append", '["b"]')]);
      await thread.writeStep("main", [createDelta("list", "append", "[2]")]);
      await thread.commit("main", { release: true });
      const namespaces = ["main", "main/1:0", "main/1:0/0:0"];
      const readOriginals = async () =>
        JSON.stringify(await Promise.all(namespaces.map((namespace) => readNamespace(store, namespace))));
      const before = await readOriginals();
      const forked = await forkNamespaces(store, "b", 1, { "b/1:0": 2, "b/1:0/0:0": 3 });
      assertEqual([forked.id, forked.branch, forked.parent], [6, "b", 1], "the first checkpoint of the branch");
      const inner = await store.head("t", "b/1:0");
      assertEqual(
        [inner?.id, inner?.branch, inner?.parent, inner?.seq],
        [7, "b/1:0", 2, forked.seq + 1],
        "the first checkpoint of the child namespace",
      );
      assertEqual((await store.head("t", "b/1:0/0:0"))?.id, 8, "the head of the inner child namespace");
      assertEqual(
        await readState(store, "t", 6),
        { edit: ['replace "b"'], list: ["append [1]"] },
        "the state of the branch",
      );
      assertEqual(
        await readState(store, "t", 7),
        { draft: ['append ["a"]'], edit: ['replace "b/1:0"'] },
        "the state of the child namespace",
      );
      assertEqual(
        await readState(store, "t", 8),
        { deep: ["replace 1"], edit: ['replace "b/1:0/0:0"'] },
        "the state of the inner child namespace",
      );
      assertEqual(await listCheckpointIds(store, "b/1:0"), [7, 2], "the history of the child namespace");
      assertEqual(await readOriginals(), before, "the originals");
      assertEqual(
        await store.branches("t"),
        [
          { name: "main", head: 5 },
          { name: "b", from: 1, head: 6 },
        ],
        "the branches",
      );
      const next = await startNamespaces(store, "t", { ...claim, branch: "b" });
      assertEqual(
        [next.claim.nextCheckpoint, next.claim.nextSeq, next.claim.writtenBy.shape],
        [9, forked.seq + 3, "s1"],
        "the claim",
      );
      await next.writeStep("b/1:0", [createDelta("draft", "append", '["c"]')], { parent: 7 });
      assertEqual(
        await readState(store, "t", 9),
        { draft: ['append ["a"]', 'append ["c"]'], edit: ['replace "b/1:0"'] },
        "the state of the child namespace one checkpoint later",
      );
      assertEqual(await readOriginals(), before, "the original namespaces after a commit on the fork");
    },
  ),

  defineStoreTest("a fork with one invalid child namespace creates nothing", async ({ store }) => {
    const thread = await startNamespaces(store, "t");
    await thread.writeStep("main");
    await thread.writeStep("main/1:0");
    await thread.commit("main", { release: true });
    const before = await readNamespace(store, "main");
    await assertRejected(forkNamespaces(store, "b", 1, { "b/1:0": 2, "b/a b": 2 }), "invalid_id", "a bad name");
    await assertRejected(
      forkNamespaces(store, "b", 1, { "b/1:0": 2, "main/2:0": 2 }),
      "invalid_id",
      "a child namespace of another branch",
    );
    await assertRejected(
      forkNamespaces(store, "b", 1, { "b/1:0": 2, b: 2 }),
      "thread_exists",
      "the branch listed as its own child namespace",
    );
    await assertRejected(
      forkNamespaces(store, "b", 1, { "b/1:0": 2, "b/1:1/0:0": 2 }),
      "unknown_branch",
      "a child namespace without its parent namespace",
    );
    await assertRejected(
      forkNamespaces(store, "b", 1, { "b/1:0": 3 }),
      "unknown_checkpoint",
      "a checkpoint id not yet used",
    );
    assertEqual(
      [await store.branches("t"), await readNamespace(store, "main")],
      [[{ name: "main", head: 1 }], before],
      "the thread",
    );
    assertEqual(
      [await store.head("t", "b/1:0"), await store.checkpoint("t", 3)],
      [null, null],
      "the head and the checkpoint of the refused fork",
    );
    assertEqual((await forkNamespaces(store, "b", 1, { "b/1:0": 2 })).id, 3, "the first checkpoint of a valid fork");
  }),

  defineSharedStoreTest(
    "child namespaces continue under the owner that claims the crashed thread",
    async ({ store, crash }) => {
      const thread = await startNamespaces(store, "t");
      await thread.writeStep("main");
      await thread.writeStep("main/1:0", [createDelta("n", "append", "[1]")]);
      await thread.commit("main/1:0", { effects: [createEffect({ step: 1, effect: "once", state: "started" })] });
      const next = await crash();
      const after = await startNamespaces(next, "t");
      assertEqual(
        [after.claim.previousOwner, after.claim.nextCheckpoint, after.claim.head?.id],
        ["dead", 3, 1],
        "the claim",
      );
      assertEqual((await next.effects("t", "main/1:0")).length, 1, "the journal of the child namespace");
      await after.writeStep("main/1:0", [createDelta("n", "append", "[2]")], { parent: 2 });
      await after.writeStep("main/1:1", [createDelta("n", "append", "[3]")]);
      assertEqual(
        await readState(next, "t", 3),
        { n: ["append [1]", "append [2]"] },
        "the state of the child namespace",
      );
      assertEqual(await listCheckpointIds(next, "main/1:0"), [3, 2], "its history");
      assertEqual(await listCheckpointIds(next, "main/1:1"), [4], "the history of a new child namespace");
    },
  ),

  defineSharedStoreTest("a stale writer is refused in child namespaces too", async ({ store, peer }) => {
    const stale = await startNamespaces(store, "t");
    await stale.writeStep("main");
    await stale.writeStep("main/1:0");
    await stale.commit("main", { release: true });
    const next = await startNamespaces(await peer(), "t");
    await next.writeStep("main/1:0", [], { parent: 2 });
    for (const namespace of ["main/1:0", "main/1:1", "main/1:0/0:0"]) {
      const parent = namespace === "main/1:0" ? 2 : undefined;
      const write = {
        checkpoint: createCheckpoint(4, parent, { branch: namespace }),
        effects: [createEffect({ step: 5 })],
      };
      await assertRejected(stale.commit(namespace, write), "fenced", namespace);
      await assertRejected(
        stale.commit(namespace, { effects: [createEffect({ step: 5 })] }),
        "fenced",
        `${namespace}, without a checkpoint`,
      );
      assertEqual(await store.effects("t", namespace), [], `the journal of ${namespace}`);
    }
    assertEqual(
      [await listCheckpointIds(store, "main/1:0"), await listCheckpointIds(store, "main/1:1")],
      [[3, 2], []],
      "the histories",
    );
  }),

  defineStoreTest("a refused commit in a batch does not affect commits to other namespaces", async ({ store }) => {
    const thread = await startNamespaces(store, "t");
    await thread.writeStep("main");
    const results = await Promise.allSettled([
      thread.commit("main/1:0", { checkpoint: createCheckpoint(2, undefined, { branch: "main/1:0" }) }),
      thread.commit("main/1:1", { checkpoint: createCheckpoint(3, 9, { branch: "main/1:1" }) }),
      thread.commit("main/1:0", { checkpoint: createCheckpoint(3, 2, { branch: "main/1:0" }) }),
      thread.commit("main/1:1", { checkpoint: createCheckpoint(4, undefined, { branch: "main/1:1" }) }),
      thread.commit("main/1:1", { effects: [createEffect({ step: 4 })] }),
      thread.commit("main/1:0", { checkpoint: createCheckpoint(4, 3, { branch: "main/1:0" }) }),
      thread.commit("main", { checkpoint: createCheckpoint(5, 1) }),
    ]);
    assertEqual(
      results.map(({ status }) => status === "fulfilled"),
      [true, false, true, true, true, false, true],
      "the accepted commits",
    );
    assertEqual(
      await Promise.all(["main", "main/1:0", "main/1:1"].map((namespace) => listCheckpointIds(store, namespace))),
      [[5, 1], [3, 2], [4]],
      "the histories",
    );
    assertEqual((await store.effects("t", "main/1:1")).length, 1, "the journal");
  }),
];

/** Claims a thread and returns functions that commit to any of the namespaces. */
async function startNamespaces(store: Store, thread: string, options: Partial<ClaimRequest> = {}) {
  const claim: Claim = await store.claim(createClaimRequest(thread, options));
  let { nextSeq: seq, nextCheckpoint: id } = claim;
  const heads = new Map([[claim.branch, claim.head?.id]]);
  const commit = (namespace: string, write: Partial<Commit>): Promise<void> =>
    commitWrite(store, { thread, branch: namespace, epoch: claim.epoch, seq: seq++, ...write });
  return {
    claim,
    commit,
    /** Commits the next checkpoint of a namespace. */
    writeStep: (
      namespace: string,
      deltas: readonly DeltaRow[] = [],
      more: Partial<CheckpointRow> = {},
      rows: Partial<Commit> = {},
    ): Promise<void> => {
      const row = { branch: namespace, step: heads.has(namespace) ? id : 1, seq, ...more };
      const write = createCheckpoint(id++, heads.get(namespace), row, deltas);
      heads.set(namespace, write.row.id);
      return commit(namespace, { checkpoint: write, ...rows });
    },
  };
}

/**
 * Forks the thread `t` with child namespaces from the given checkpoints. Each namespace gets its own name as an edit.
 */
function forkNamespaces(
  store: Store,
  branch: string,
  from: number,
  inner: Readonly<Record<string, number>>,
): Promise<CheckpointRow> {
  const createFirstCheckpoint = (namespace: string, parent: number) =>
    createCheckpoint(0, parent, { branch: namespace, source: "fork" }, [
      createDelta("edit", "replace", JSON.stringify(namespace)),
    ]);
  return store.branch({
    thread: "t",
    branch,
    from,
    checkpoint: createFirstCheckpoint(branch, from),
    interrupts: [],
    inner: Object.entries(inner).map(([namespace, at]) => ({
      namespace,
      from: at,
      checkpoint: createFirstCheckpoint(namespace, at),
    })),
  });
}

async function listCheckpointIds(store: Store, namespace: string): Promise<readonly number[]> {
  return (await store.history("t", { branch: namespace, limit: 99 })).map(({ id }) => id);
}

/** Reads history, states, journal and interrupts of a namespace of the thread `t`. */
async function readNamespace(store: Store, namespace: string): Promise<unknown> {
  const history = await store.history("t", { branch: namespace, limit: 99 });
  return [
    history,
    await Promise.all(history.map(({ id }) => store.state("t", id))),
    await store.effects("t", namespace),
    await store.interrupts("t", namespace),
  ];
}
