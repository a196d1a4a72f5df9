/** Conformance tests of reads without values: supersteps, namespaces and snapshots. */
import type { Store } from "@statewright/core";
import type { ChangeRow, StoreReads, TimelineEntry } from "@statewright/core/store";
import { assertEqual, assertRejected, assertTrue } from "./assert.ts";
import { createDelta, createEffect, forkThread, startThread } from "./store-rows.ts";
import { defineStoreTest, type StoreTest } from "./store-test.ts";

export const timelineTests: readonly StoreTest[] = [
  defineStoreTest("the number of items of a delta is stored with its row", async ({ store }) => {
    const thread = await startThread(store, "t");
    const counted = { ...createDelta("list", "append", "[1,2,3]"), count: 3 };
    await thread.writeStep(0, [counted, createDelta("x", "replace", "1")]);
    const [row] = await store.history("t", { limit: 1 });
    assertEqual(
      row?.deltas.toSorted((one, other) => (one.channel < other.channel ? -1 : 1)),
      [counted, createDelta("x", "replace", "1")],
      "the deltas",
    );
  }),

  defineStoreTest(
    "a page of supersteps has the changes without texts, and the effects of the previous step",
    async ({ store }) => {
      if (store.supersteps === undefined) return;
      const thread = await startThread(store, "t");
      await thread.writeStep(0, [{ ...createDelta("list", "append", '["é"]'), count: 1 }]);
      const effect = createEffect({ step: 0, outcome: '"long"', effect: "once" });
      await thread.commit({ effects: [effect] });
      await thread.writeStep(1, [
        createDelta("x", "replace", "1"),
        { ...createDelta("list", "append", "[2,3]"), count: 2 },
      ]);
      const [newest] = await store.supersteps("t", { limit: 1 });
      const superstep = newest !== undefined && "superstep" in newest ? newest.superstep : undefined;
      const { outcome: _outcome, ...summary } = effect;
      assertEqual(superstep?.checkpoint, await store.head("t"), "the checkpoint");
      assertEqual(superstep?.effects, [summary], "the effects");
      assertEqual(
        sortChanges(superstep?.changes).map(({ channel, kind, count }) => [channel, kind, count]),
        [
          ["list", "append", 2],
          ["x", "replace", 1],
        ],
        "the changes",
      );
      const [first] = await store.supersteps("t", { after: 0, limit: 1 });
      const [list] = first !== undefined && "superstep" in first ? first.superstep.changes : [];
      // Encryption adds to the 6 bytes of the text in UTF-8.
      assertTrue((list?.bytes ?? 0) >= 6, "a change has fewer bytes than its text");
      assertTrue((list?.bytes ?? 0) < 200, "a change has many more bytes than its text");
    },
  ),

  defineStoreTest(
    "supersteps are paged by sequence number, of all branches or of one with its ancestors",
    async ({ store }) => {
      if (store.supersteps === undefined) return;
      const thread = await startThread(store, "t");
      for (let step = 0; step < 4; step++) await thread.writeStep(step);
      const { claim } = thread;
      await thread.commit({ release: true });
      await forkThread(store, { from: 2, branch: "b" });
      assertEqual(claim.branch, "main", "the branch of the claim");
      assertEqual(toIds(await store.supersteps("t", { limit: 9 })), [5, 4, 3, 2, 1], "all branches, newest first");
      assertEqual(toIds(await store.supersteps("t", { after: 0, limit: 9 })), [1, 2, 3, 4, 5], "oldest first");
      assertEqual(
        toIds(await store.supersteps("t", { branch: "b", limit: 9 })),
        [5, 2, 1],
        "a branch and its ancestors",
      );
      assertEqual(toIds(await store.supersteps("t", { branch: "main", limit: 2 })), [4, 3], "a limit");
      const seq = (await store.checkpoint("t", 3))?.seq ?? 0;
      assertEqual(toIds(await store.supersteps("t", { before: seq, limit: 9 })), [2, 1], "before a number");
      assertEqual(toIds(await store.supersteps("t", { after: seq, limit: 9 })), [4, 5], "after a number");
      assertEqual(await store.supersteps("t", { branch: "none", limit: 9 }), [], "an unknown branch");
      assertEqual(await store.supersteps("none", { limit: 9 }), [], "an unknown thread");
      await assertRejected(store.supersteps("t", { before: 1, after: 1, limit: 9 }), "invalid_option", "both bounds");
    },
  ),

  defineStoreTest(
    "namespaces have their newest checkpoint, its writer, and the number and bytes of their checkpoints",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      await thread.writeStep(0);
      await thread.writeStep(1);
      const head = await store.head("t");
      const writtenBy = { graph: "g", version: 1, shape: "s1" };
      assertEqual(
        await store.namespaces("t", "branch"),
        [{ name: "main", head, writtenBy, checkpoints: 2, bytes: 20 }],
        "the branches",
      );
      assertEqual(await store.namespaces("t", "child"), [], "the child namespaces");
      assertEqual(await store.namespaces("none", "branch"), [], "an unknown thread");
    },
  ),

  defineStoreTest(
    "a snapshot sees one moment while other writes follow, and ends with its reader",
    async ({ store }) => {
      if (store.snapshot === undefined) return;
      const thread = await startThread(store, "t");
      await thread.writeStep(0, [createDelta("x", "replace", "1")]);
      const before = await readMoment(store);
      const reads = await store.snapshot(async (moment) => {
        assertEqual(await readMoment(moment), before, "the moment");
        await thread.writeStep(1, [createDelta("x", "replace", "2")]);
        assertEqual(await readMoment(moment), before, "the moment after a write");
        return moment;
      });
      assertEqual((await store.head("t"))?.id, 2, "the store after the snapshot");
      await assertRejected(reads.head("t"), "store_closed", "a read after the snapshot");
    },
  ),
];

function sortChanges(changes: readonly ChangeRow[] = []): readonly ChangeRow[] {
  return changes.toSorted((one, other) => (one.channel < other.channel ? -1 : 1));
}

function toIds(entries: readonly TimelineEntry[]): readonly number[] {
  return entries.flatMap((entry) => ("superstep" in entry ? [entry.superstep.checkpoint.id] : []));
}

async function readMoment(reads: Store | StoreReads): Promise<unknown> {
  const head = await reads.head("t");
  return [head, await reads.state("t", head?.id ?? 0), await reads.history("t", { limit: 9 }), await reads.threads()];
}
