/** Conformance tests of artifacts, for stores and for custom artifact stores. */

import { memoryStore, type Store } from "@statewright/core";
import { copyThread, deleteThread, exportThread, importThread, streamThreadExport } from "@statewright/core/inspect";
import type { ArtifactRow, ArtifactStore, ArtifactWrite } from "@statewright/core/store";
import { artifactReadTests, decodeText, hasSameBytes } from "./artifact-reads.ts";
import { assertEqual, assertRejected, assertTrue } from "./assert.ts";
import { createArtifact, createCheckpoint, createEffect, forkThread, startThread } from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

/**
 * A test of the suite. `run` throws when the artifact store violates `name`; `open` returns a fresh, empty artifact
 * store.
 */
export interface ArtifactTest {
  readonly name: string;
  /** Runs the test with fresh instances from `open`. Rejects when the test fails. */
  run(open: () => ArtifactStore | Promise<ArtifactStore>): Promise<void>;
}

/** Tests for every artifact store. */
export const artifactConformance: readonly ArtifactTest[] = [
  ...artifactReadTests.map(
    ({ name, body }): ArtifactTest => ({
      name,
      run: async (open) => {
        const store = await open();
        const put = async (thread: string, writes: readonly ArtifactWrite[]): Promise<void> => {
          for (const write of writes) await store.put(thread, write);
        };
        await body(store, put);
      },
    }),
  ),
];

export const artifactTests: readonly StoreTest[] = [
  ...artifactReadTests.map(({ name, body }) =>
    defineStoreTest(name, async ({ store }) => {
      const threads = new Map<string, Awaited<ReturnType<typeof startThread>>>();
      await body(store.artifacts, async (thread, artifacts) => {
        const writer = threads.get(thread) ?? (await startThread(store, thread));
        threads.set(thread, writer);
        await writer.commit({ artifacts });
      });
    }),
  ),

  defineSharedStoreTest(
    "an artifact is stored in the same commit as the outcome of its tool call, or not at all",
    async (under) => {
      const { store, crash } = under;
      const thread = await startThread(store, "t");
      await thread.writeStep(1);
      const [one, other] = [await createArtifact("one"), await createArtifact("other")];
      const outcome = createEffect({ step: 1, key: "c1", kind: "tool", outcome: '"one"' });
      await thread.commit({ effects: [outcome], artifacts: [one] });
      const wrong = createCheckpoint(9, 7, { seq: 99 });
      await assertRejected(
        thread.commit({ effects: [{ ...outcome, key: "c2" }], artifacts: [other], checkpoint: wrong }),
        "store_failed",
        "a checkpoint with a wrong parent",
      );
      const next = await crash();
      assertEqual(listKeys(await next.artifacts.list("t")), listKeys([one.row]), "the artifacts after the crash");
      assertEqual(
        (await next.effects("t", "main")).map(({ key }) => key),
        ["c1"],
        "the calls after the crash",
      );
      assertEqual(await next.artifacts.read("t", other.row.key), undefined, "the body in the refused commit");
      assertEqual(decodeText(await next.artifacts.read("t", one.row.key)), "one", "the body");
    },
  ),

  defineStoreTest("a writer that lost the thread stores no artifact", async ({ store }) => {
    const { commit, claim } = await startThread(store, "t");
    await assertRejected(
      commit({ epoch: claim.epoch - 1, artifacts: [await createArtifact("late")] }),
      "fenced",
      "a commit with an old epoch",
    );
    assertEqual(await store.artifacts.list("t"), [], "the artifacts");
  }),

  defineStoreTest(
    "all branches of a thread share its artifacts, and pruning does not delete artifacts",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      for (let step = 1; step <= 4; step++) await thread.writeStep(step);
      const given = await createArtifact("shared");
      await thread.commit({ artifacts: [given], run: undefined, release: true });
      await forkThread(store, { branch: "b", from: 2 });
      assertEqual(decodeText(await store.artifacts.read("t", given.row.key)), "shared", "the body after the fork");
      await store.prune({ thread: "t", keepLast: 1, limit: 100, merge: (rows) => rows });
      assertEqual(decodeText(await store.artifacts.read("t", given.row.key)), "shared", "after retention");
    },
  ),

  defineStoreTest("artifacts are deleted, copied and exported with their thread", async ({ store }) => {
    const thread = await startThread(store, "t");
    const [one, other] = [
      await createArtifact("one"),
      await createArtifact(new Uint8Array(200_000).fill(7), { text: false }),
    ];
    const again = { ...one, row: { ...one.row, call: "c2" } };
    await thread.commit({ artifacts: [one, other, again], release: true });
    const rows = await store.artifacts.list("t");
    const text = await exportThread(store, "t");
    const otherStore = memoryStore();
    await importThread(otherStore, text);
    await copyThread(store, "t", "copy");
    await deleteThread(store, "t");
    assertEqual(await store.artifacts.list("t"), [], "the rows of the deleted thread");
    assertEqual(await store.artifacts.read("t", one.row.key), undefined, "a body of the deleted thread");
    for (const [at, id] of [
      [store, "copy"],
      [otherStore, "t"],
    ] as const) {
      assertEqual(await at.artifacts.list(id), rows, `the artifact rows of thread "${id}"`);
      assertTrue(
        hasSameBytes(await at.artifacts.read(id, other.row.key), other.body),
        `the artifact body differs in thread "${id}"`,
      );
    }
    await importThread(store, await exportThread(otherStore, "t"));
    assertEqual(await store.artifacts.list("t"), rows, "the rows of the imported thread");
    assertEqual(await exportThread(store, "t"), text, "its text");
    const chunks: string[] = [];
    for await (const chunk of streamThreadExport(store, "t")) chunks.push(chunk);
    assertEqual(chunks.join(""), text, "the streamed text");
    assertEqual(await importThread(store, chunks, { as: "streamed" }), "streamed", "the id of the streamed thread");
    assertEqual(await store.artifacts.list("streamed"), rows, "the rows of the streamed thread");
  }),

  defineStoreTest(
    "importing an export with a missing artifact body, or one that does not match its key, is refused",
    async ({ store }) => {
      const thread = await startThread(store, "t");
      const given = await createArtifact("one");
      await thread.commit({ artifacts: [given], release: true });
      const image = await store.exportThread("t");
      const forged: Store = {
        ...store,
        exportThread: async () => ({
          ...image,
          artifacts: [{ row: given.row, body: new TextEncoder().encode("two") }],
        }),
      };
      await assertRejected(
        importThread(memoryStore(), await exportThread(forged, "t")),
        "invalid_export",
        "another body",
      );
      const empty: Store = {
        ...store,
        exportThread: async () => ({ ...image, artifacts: [{ row: given.row, body: new Uint8Array(0) }] }),
      };
      await assertRejected(importThread(memoryStore(), await exportThread(empty, "t")), "invalid_export", "no body");
      const bare: Store = { ...store, artifacts: { ...store.artifacts, read: async () => undefined } };
      await assertRejected(exportThread(bare, "t"), "store_failed", "an export of a deleted artifact");
    },
  ),
];

function listKeys(rows: readonly ArtifactRow[]): readonly string[] {
  return rows.map(({ key }) => key);
}
