/** Conformance tests of complete threads: delete, export, import, copy and prune. */

import { memoryStore, type Store } from "@statewright/core";
import { copyThread, deleteThread, exportThread, importThread, pruneThread } from "@statewright/core/inspect";
import { applyDelta, type Delta, type PruneWrite, plainCodec } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import {
  commitWrite,
  createCheckpoint,
  createClaimRequest,
  createDelta,
  createEffect,
  createRun,
  forkThread,
  readState,
  releaseThread,
  startThread,
} from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";
import { filledNamespaces, fillThread, readThreadSnapshot } from "./thread-snapshot.ts";

export const threadMoveTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "the outline of a graph version is saved with its first claim, survives the owner, and moves with a thread [ND7]",
    async ({ store, peer }) => {
      const [first, second] = [
        { graph: "g", version: 1, shape: "s1" },
        { graph: "g", version: 2, shape: "s2" },
      ];
      const plain = await startThread(store, "plain");
      await plain.writeStep(1);
      assertEqual(await store.outline(first), undefined, "the outline of a version whose claims had none");
      const claimed = await startThread(store, "t", { outline: '{"nodes":[],"edges":[]}' });
      await claimed.writeStep(1);
      await claimed.commit({ release: true });
      await startThread(store, "later", { outline: '{"nodes":[{}],"edges":[]}' });
      assertEqual(
        await (await peer()).outline(first),
        '{"nodes":[],"edges":[]}',
        "the outline of the first claim that had one",
      );
      const deferred = await startThread(store, "t", { ...second, outline: "[2]", startsRun: true });
      await deferred.writeStep(2);
      await deferred.commit({ release: true });
      assertEqual(await (await peer()).outline(second), "[2]", "the outline of a claim that starts a run");
      assertEqual(await store.outline({ ...second, shape: "other" }), undefined, "the outline of another shape");
      const exported = await store.exportThread("t");
      assertEqual(
        exported.outlines?.map(({ version, outline }) => [version, outline]).sort(),
        [
          [1, '{"nodes":[],"edges":[]}'],
          [2, "[2]"],
        ],
        "the outlines of the export",
      );
      const outlines = [{ graph: "other", version: 9, shape: "s9", outline: "[9]" }];
      const runs = exported.runs.map((run) => ({ ...run, thread: "copy" }));
      await store.importThread({ ...exported, id: "copy", runs, outlines });
      assertEqual(
        await (await peer()).outline({ graph: "other", version: 9, shape: "s9" }),
        "[9]",
        "an imported outline",
      );
    },
  ),

  defineSharedStoreTest(
    "the random part of the idempotency keys stays with its thread: after a release, in a fork, in an export and in a copy [FX75]",
    async ({ store, peer }) => {
      const held = await startThread(store, "t", { keySalt: "first" });
      await held.writeStep(1);
      await held.commit({ release: true });
      await forkThread(store, { branch: "b", from: 1 });
      const readSalt = async (reader: Store, thread: string, branch?: string): Promise<string> => {
        const claim = await reader.claim(createClaimRequest(thread, { branch, keySalt: "other" }));
        await releaseThread(reader, thread, claim);
        return claim.keySalt;
      };
      assertEqual(await readSalt(await peer(), "t"), "first", "the next claim");
      assertEqual(await readSalt(store, "t", "b"), "first", "the claim of a fork");
      const exported = await store.exportThread("t");
      assertEqual(exported.keySalt, "first", "the export");
      await store.importThread({
        ...exported,
        id: "copy",
        runs: exported.runs.map((run) => ({ ...run, thread: "copy" })),
      });
      assertEqual(await readSalt(store, "copy"), "first", "the claim of a copy");
      await store.delete("t");
      assertEqual(await readSalt(store, "t"), "other", "the claim of a new thread of the same id");
    },
  ),

  defineStoreTest("a deleted thread leaves no row behind, and other threads are unchanged [E46]", async ({ store }) => {
    await fillThread(store, "t");
    await fillThread(store, "u");
    const other = await readThreadSnapshot(store, "u");
    await deleteThread(store, "t");
    const emptySnapshot = {
      row: {},
      branches: [],
      requests: [],
      runs: [],
      namespaces: filledNamespaces.map((namespace) => ({
        namespace,
        history: [],
        effects: [],
        interrupts: [],
        inbox: [],
      })),
      states: {},
      openInterrupts: [],
      timers: [],
      events: [],
      artifacts: [],
    };
    assertEqual(await readThreadSnapshot(store, "t"), emptySnapshot, "the rows of the deleted thread");
    assertEqual(
      (await store.threads()).map(({ id }) => id),
      ["u"],
      "the threads",
    );
    assertEqual(
      (await store.runs()).filter(({ thread }) => thread === "t"),
      [],
      "the runs",
    );
    assertEqual(
      (await store.timers()).filter(({ thread }) => thread === "t"),
      [],
      "the timers",
    );
    assertEqual(await readThreadSnapshot(store, "u"), other, "the rows of the other thread");
    await assertRejected(deleteThread(store, "t"), "unknown_thread", "a delete of an unknown thread");
    const { nextSeq, nextCheckpoint, head } = await store.claim(createClaimRequest("t"));
    assertEqual([nextSeq, nextCheckpoint, head], [1, 1, undefined], "the claim of a new thread with the same name");
  }),

  defineSharedStoreTest(
    "a thread claimed by a live owner cannot be deleted, and a thread of a crashed owner can [E46]",
    async (under) => {
      const { store, peer, crash } = under;
      const held = await startThread(store, "t");
      await held.writeStep(1);
      await assertRejected(deleteThread(store, "t"), "thread_busy", "a thread claimed by this store");
      await assertRejected(deleteThread(await peer(), "t"), "thread_busy", "a thread claimed by another store");
      const next = await crash();
      await deleteThread(next, "t");
      assertEqual(await next.thread("t"), undefined, "the thread");
    },
  ),

  defineStoreTest("an exported thread is identical after its import into any store [E46]", async ({ store }) => {
    await fillThread(store, "t");
    const before = await readThreadSnapshot(store, "t");
    const text = await exportThread(store, "t");
    await assertRejected(importThread(store, text), "thread_exists", "an import of an existing thread");
    assertEqual(await importThread(store, text, { as: "copy" }), "copy", "the id");
    assertEqual(await readThreadSnapshot(store, "copy"), before, "the thread under another id");
    const otherStore = memoryStore();
    assertEqual(await importThread(otherStore, text), "t", "the id");
    assertEqual(await readThreadSnapshot(otherStore, "t"), before, "the thread in another store");
    const back = await exportThread(otherStore, "t");
    await deleteThread(store, "t");
    await importThread(store, back);
    assertEqual(await readThreadSnapshot(store, "t"), before, "the thread imported back");
    assertEqual(await exportThread(store, "t"), text, "its text");
  }),

  defineStoreTest("a copied thread continues from the head of its original [E46]", async ({ store }) => {
    await fillThread(store, "t");
    await copyThread(store, "t", "copy");
    const [one, other] = [await store.claim(createClaimRequest("t")), await store.claim(createClaimRequest("copy"))];
    assertEqual(
      { ...other, epoch: 0, at: 0, run: { ...other.run, thread: "t" } },
      { ...one, epoch: 0, at: 0 },
      "the claim of the copy",
    );
    const id = other.nextCheckpoint;
    const step = createCheckpoint(id, other.head?.id, { step: 7, seq: other.nextSeq, run: "r2" }, [
      createDelta("list", "append", '["d"]'),
    ]);
    await commitWrite(store, {
      thread: "copy",
      branch: "main",
      epoch: other.epoch,
      seq: other.nextSeq,
      checkpoint: step,
    });
    assertEqual((await readState(store, "copy", id))["list"]?.at(-1), 'append ["d"]', "the state of the copy");
    assertEqual((await store.head("t"))?.id, one.head?.id, "the head of the original");
    await assertRejected(copyThread(store, "t", "copy"), "thread_exists", "a copy to an existing thread");
    await assertRejected(copyThread(store, "unknown", "v"), "unknown_thread", "a copy of an unknown thread");
    await assertRejected(copyThread(store, "t", "a/b"), "invalid_id", "a copy to an invalid id");
  }),

  defineStoreTest("pruning does not change the state at the retained checkpoints", async ({ store }) => {
    const thread = await startThread(store, "t");
    for (let id = 1; id <= 30; id++) {
      await thread.writeStep(id, [
        id === 11 ? createDelta("list", "replace", '["from here"]') : createDelta("list", "append", `["i${id}"]`),
        ...(id % 7 === 0 ? [createDelta("last", "replace", `"${id}"`)] : []),
        ...(id % 3 === 0 ? [createDelta("map", "patch", `[{"op":"add","path":["k${id}"],"value":${id}}]`)] : []),
      ]);
      await thread.commit({ effects: [createEffect({ step: id, key: "pay", effect: "once", outcome: `"${id}"` })] });
    }
    await thread.commit({ run: { ...createRun("r1"), status: "done" }, release: true });
    await forkThread(store, { branch: "b", from: 9 });
    const retainedIds = [9, 26, 27, 28, 29, 30, 31];
    const before = await Promise.all(retainedIds.map((id) => readValues(store, "t", id)));
    const rows = await Promise.all(retainedIds.map((id) => store.checkpoint("t", id)));
    const history = (await store.history("t", { limit: 100 })).filter(({ id }) => retainedIds.includes(id));
    assertEqual(await pruneThread(store, { thread: "t", keepLast: 5 }), { threads: 1, checkpoints: 24 }, "what went");
    assertEqual(
      (await store.history("t", { limit: 100 })).map(({ id }) => id),
      [30, 29, 28, 27, 26, 9],
      "the history",
    );
    assertEqual(await store.history("t", { limit: 100 }), history, "the entries of the history");
    assertEqual(await Promise.all(retainedIds.map((id) => readValues(store, "t", id))), before, "the states");
    assertEqual(await Promise.all(retainedIds.map((id) => store.checkpoint("t", id))), rows, "the checkpoints");
    await assertRejected(store.state("t", 8), "unknown_checkpoint", "the state of a deleted checkpoint");
    assertEqual(
      (await store.effects("t", "main")).map(({ step }) => step),
      Array.from({ length: 22 }, (_, at) => at + 9),
      "the journal",
    );
    assertEqual(
      await pruneThread(store, { thread: "t", keepLast: 5 }),
      { threads: 1, checkpoints: 0 },
      "the report of the second prune",
    );
    const next = await startThread(store, "t");
    await next.writeStep(31, [createDelta("list", "append", '["next"]')]);
    await next.commit({ release: true });
    assertEqual(
      await pruneThread(store, { keepLast: 1 }),
      { threads: 1, checkpoints: 5 },
      "the report of the third prune",
    );
    assertEqual(
      (await store.history("t", { limit: 100 })).map(({ id }) => id),
      [32, 9],
      "the history",
    );
    assertEqual((await readValues(store, "t", 32))["list"]?.at(-1), "next", "the newest state");
    assertEqual(await readValues(store, "t", 31), before.at(-1), "the state of the fork");
  }),

  defineStoreTest(
    "pruning keeps recent checkpoints and checkpoints that a fork, a run or a persistent subgraph needs",
    async ({ store }) => {
      await fillThread(store, "t");
      const before = (await readThreadSnapshot(store, "t")) as { readonly states: Readonly<Record<string, object>> };
      await store.prune({ ...createPruneWrite("t"), since: 107 });
      assertEqual(
        await listCheckpointIds(store, "main"),
        [9, 8, 7, 2],
        "the branch: recent checkpoints and the start of the fork",
      );
      assertEqual(await listCheckpointIds(store, "b"), [10, 2], "the fork");
      await store.prune({ ...createPruneWrite("t"), keepLast: 1 });
      assertEqual(
        await listCheckpointIds(store, "main"),
        [9, 8, 7, 2],
        "the branch: the waiting run can still be reverted to checkpoint 7",
      );
      assertEqual(await listCheckpointIds(store, "main/2:0"), [3], "an inner run whose outer checkpoint is retained");
      assertEqual(await listCheckpointIds(store, "main/memory"), [6], "the newest checkpoint of a persistent subgraph");
      const after = (await readThreadSnapshot(store, "t")) as { readonly states: Readonly<Record<string, object>> };
      for (const [id, state] of Object.entries(after.states))
        assertEqual(state, before.states[id], `the state at checkpoint ${id}`);
      assertEqual(
        (await store.interrupts("t", "main")).map(({ id }) => id),
        ["6:0"],
        "the interrupts",
      );
      assertEqual((await store.openInterrupts({ thread: "t" })).length, 1, "the number of open interrupts");
      const claim = await store.claim(createClaimRequest("t"));
      await commitWrite(store, {
        thread: "t",
        branch: "main",
        epoch: claim.epoch,
        seq: claim.nextSeq,
        run: { ...createRun("r2"), status: "done" },
        release: true,
      });
      await store.prune({ ...createPruneWrite("t"), keepLast: 1 });
      assertEqual(await listCheckpointIds(store, "main"), [9, 2], "the branch after its run is finished");
    },
  ),

  defineStoreTest(
    "the start checkpoint of a finished run is pruned, before the pruned range or together with it",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      const writeStep = (id: number): Promise<void> => {
        const source = id === 1 ? "input" : "step";
        const deltas = [createDelta("list", "append", `["i${id}"]`), createDelta("last", "replace", `"${id}"`)];
        const row = createCheckpoint(id, id === 1 ? undefined : id - 1, { step: id, source }, deltas);
        return thread.commit({ checkpoint: row });
      };
      for (let id = 1; id <= 4; id++) await writeStep(id);
      await pruneThread(store, { thread: "t", keepLast: 1 });
      assertEqual(await listCheckpointIds(store, "main"), [4, 1], "the branch while the run can be reverted");
      for (let id = 5; id <= 7; id++) await writeStep(id);
      await thread.commit({ run: { ...createRun("r1"), status: "done" }, release: true });
      await copyThread(store, "t", "u");
      const before = await readValues(store, "t", 7);
      await pruneThread(store, { thread: "t", keepLast: 4 });
      assertEqual(
        await listCheckpointIds(store, "main"),
        [7, 6, 5, 4],
        "the branch after the checkpoints before the pruned range were deleted",
      );
      await pruneThread(store, { thread: "u", keepLast: 1 });
      assertEqual(
        await readValues(store, "u", 7),
        before,
        "the state after both sides of the pruned range were deleted",
      );
      await importThread(store, await exportThread(store, "t"), { as: "v" });
      for (const each of ["t", "v"]) {
        assertEqual(await readValues(store, each, 7), before, `the state of thread ${each}`);
        await pruneThread(store, { thread: each, keepLast: 1 });
        assertEqual(
          await readValues(store, each, 7),
          before,
          `the state of thread ${each} with only the newest checkpoint left`,
        );
      }
    },
  ),

  defineSharedStoreTest(
    "pruning in small batches works while another owner writes to the thread",
    async ({ store, peer }) => {
      const held = await startThread(store, "t");
      const other = await peer();
      for (let id = 1; id <= 40; id++) {
        await held.writeStep(id, [createDelta("list", "append", `["i${id}"]`)]);
        await held.commit({ effects: [createEffect({ step: id, key: "pay", effect: "once", outcome: "1" })] });
        if (id % 4 === 0) await other.prune({ ...createPruneWrite("t"), keepLast: 2, limit: 3 });
      }
      while ((await other.prune({ ...createPruneWrite("t"), keepLast: 2, limit: 3 })) > 0);
      await held.writeStep(41, [createDelta("list", "append", '["i41"]')]);
      assertEqual(await listCheckpointIds(store, "main"), [41, 40, 39], "the branch");
      const list = (await readValues(store, "t", 41))["list"];
      assertEqual(
        list,
        Array.from({ length: 41 }, (_, at) => `i${at + 1}`),
        "the list",
      );
      assertEqual((await store.effects("t", "main", 40)).length, 1, "the journal of the active superstep");
    },
  ),

  defineStoreTest(
    "pruning with a limit deletes the oldest checkpoints first, independent of namespace names",
    async ({ store }) => {
      const held = await startThread(store, "t");
      for (const step of [1, 2]) await held.writeStep(step);
      await held.commit({
        checkpoint: createCheckpoint(3, undefined, { branch: "main/2:0", step: 1 }),
        branch: "main/2:0",
      });
      await held.commit({ checkpoint: createCheckpoint(4, 3, { branch: "main/2:0", step: 2 }), branch: "main/2:0" });
      await held.commit({ release: true });
      for (const branch of ["b", "z", "a"]) {
        await forkThread(store, { branch, from: 1 });
        const other = await startThread(store, "t", { branch, run: false });
        for (const step of [1, 2]) await other.writeStep(step);
        await other.commit({ release: true });
      }
      const listRemaining = async (): Promise<readonly number[]> =>
        (
          await Promise.all(["main", "main/2:0", "b", "z", "a"].map((namespace) => listCheckpointIds(store, namespace)))
        ).flat();
      const deleted: number[] = [];
      for (
        let before = await listRemaining();
        (await store.prune({ ...createPruneWrite("t"), keepLast: 1, limit: 1 })) > 0;
      ) {
        const after = await listRemaining();
        deleted.push(...before.filter((id) => !after.includes(id)));
        before = after;
      }
      assertEqual(deleted, [3, 5, 6, 8, 9, 11, 12], "the deleted checkpoints, in order");
    },
  ),

  defineStoreTest("a pruned thread can be copied and exported with its remaining rows", async ({ store }) => {
    await fillThread(store, "t");
    await pruneThread(store, { thread: "t", keepLast: 1 });
    const before = await readThreadSnapshot(store, "t");
    const otherStore = memoryStore();
    await importThread(otherStore, await exportThread(store, "t"));
    assertEqual(await readThreadSnapshot(otherStore, "t"), before, "the thread in another store");
    await importThread(store, await exportThread(otherStore, "t"), { as: "copy" });
    assertEqual(await readThreadSnapshot(store, "copy"), before, "the thread imported back");
    await pruneThread(store, { keepLast: 1 });
    assertEqual(await readThreadSnapshot(store, "copy"), before, "the copy, pruned");
    await releaseThread(store, "copy", await store.claim(createClaimRequest("copy")));
  }),

  defineStoreTest("pruning an unknown thread, or without a retention option, is refused", async ({ store }) => {
    await assertRejected(pruneThread(store, { thread: "t", keepLast: 1 }), "unknown_thread", "no thread");
    await assertRejected(pruneThread(store, {}), "invalid_option", "no retention option");
    await assertRejected(pruneThread(store, { keepLast: 0 }), "invalid_option", "a `keepLast` of 0");
    assertEqual(
      await pruneThread(store, { olderThanMs: 5 }),
      { threads: 0, checkpoints: 0 },
      "the report of pruning an empty store",
    );
    await store.vacuum();
  }),
];

function createPruneWrite(thread: string): PruneWrite {
  return { thread, limit: 1_000, merge: (rows) => rows };
}

async function listCheckpointIds(store: Store, namespace: string): Promise<readonly number[]> {
  return (await store.history("t", { branch: namespace, limit: 1_000 })).map(({ id }) => id);
}

/** Computes the channel values at a checkpoint, for channels without an initial value. */
async function readValues(store: Store, thread: string, checkpoint: number): Promise<Record<string, unknown[]>> {
  const rows = await store.state(thread, checkpoint);
  return Object.fromEntries(
    rows.map(({ channel, deltas }) => [
      channel,
      deltas.map(toDelta).reduce<unknown>(applyDelta, undefined) as unknown[],
    ]),
  );
}

function toDelta({ kind, text }: { readonly kind: Delta["kind"]; readonly text: string }): Delta {
  const data = plainCodec.decode(text);
  switch (kind) {
    case "append":
      return { kind, items: data as readonly unknown[] };
    case "patch":
      return { kind, patches: data as Extract<Delta, { kind: "patch" }>["patches"] };
    case "replace":
      return { kind, value: data };
    case "clear":
      return { kind };
  }
}
