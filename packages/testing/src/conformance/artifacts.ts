/** Conformance tests of artifacts, for stores and for custom artifact stores. */

import { type ArtifactStore, deleteThread, memoryStore, type Store } from "@statewright/core";
import { getArtifactHandle } from "@statewright/core/adapter";
import { copyThread, exportThread, importThread } from "@statewright/core/inspect";
import type { ArtifactRow, ArtifactWrite, StoredArtifacts } from "@statewright/core/store";
import { assertEqual, assertRejected, assertTrue } from "./assert.ts";
import { createArtifact, createCheckpoint, createEffect, forkThread, startThread } from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

/**
 * One test of the suite. `run` throws when the artifact store violates `name`; `open` returns a fresh, empty artifact
 * store.
 */
export interface ArtifactTest {
  readonly name: string;
  run(open: () => ArtifactStore | Promise<ArtifactStore>): Promise<void>;
}

/** Tests for every artifact store. */
export const artifactConformance: readonly ArtifactTest[] = [
  ...createReadTests().map(
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
  ...createReadTests().map(({ name, body }) =>
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
      const next = crash();
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
      await forkThread(store, "t", "b", 2, []);
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
    const elsewhere = memoryStore();
    await importThread(elsewhere, text);
    await copyThread(store, "t", "copy");
    await deleteThread(store, "t");
    assertEqual(await store.artifacts.list("t"), [], "the rows of the deleted thread");
    assertEqual(await store.artifacts.read("t", one.row.key), undefined, "a body of the deleted thread");
    for (const [at, id] of [
      [store, "copy"],
      [elsewhere, "t"],
    ] as const) {
      assertEqual(await at.artifacts.list(id), rows, `the artifact rows of thread "${id}"`);
      assertTrue(
        hasSameBytes(await at.artifacts.read(id, other.row.key), other.body),
        `the artifact body differs in thread "${id}"`,
      );
    }
    await importThread(store, await exportThread(elsewhere, "t"));
    assertEqual(await store.artifacts.list("t"), rows, "the rows of the imported thread");
    assertEqual(await exportThread(store, "t"), text, "its text");
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
      const bare: Store = { ...store, exportThread: async () => ({ ...image, artifacts: [{ row: given.row }] }) };
      await assertRejected(importThread(memoryStore(), await exportThread(bare, "t")), "invalid_export", "no body");
    },
  ),
];

interface ReadTest {
  readonly name: string;
  body(
    artifacts: StoredArtifacts,
    put: (thread: string, writes: readonly ArtifactWrite[]) => Promise<void>,
  ): Promise<void>;
}

/** Creates the tests shared by stores and custom artifact stores. */
function createReadTests(): readonly ReadTest[] {
  return [
    {
      name: "an artifact is readable completely and in byte ranges, in its own thread only",
      body: async (artifacts, put) => {
        const body = Uint8Array.from({ length: 150_000 }, (_, index) => (index * 31) % 251);
        const { row } = await createArtifact(body, { text: false });
        await put("t", [{ row, body }]);
        await put("u", [await createArtifact("of another thread")]);
        assertTrue(hasSameBytes(await artifacts.read("t", row.key), body), "the whole");
        for (const [offset, limit] of [
          [0, 1],
          [0, 65_536],
          [65_535, 2],
          [65_536, 65_536],
          [131_071, 40_000],
          [149_999, 5],
          [1_000, 148_000],
        ] as const) {
          const part = await artifacts.read("t", row.key, { offset, limit });
          assertTrue(
            hasSameBytes(part, body.subarray(offset, offset + limit)),
            `the ${limit} bytes from offset ${offset} differ`,
          );
        }
        assertEqual(
          (await artifacts.read("t", row.key, { offset: 150_000, limit: 9 }))?.length,
          0,
          "the length of a range beyond the end",
        );
        assertEqual(await artifacts.read("u", row.key), undefined, "the body read from another thread");
        assertEqual(await artifacts.read("nobody", row.key), undefined, "the body read from an unknown thread");
        await assertRejected(
          artifacts.read("t", row.key, { offset: -1, limit: 5 }),
          "invalid_option",
          "a range with a negative offset",
        );
        await assertRejected(
          artifacts.read("t", row.key, { offset: 0, limit: 0 }),
          "invalid_option",
          "a range of 0 bytes",
        );
      },
    },
    {
      name: "artifacts are listed in insertion order and can be filtered by run, key and handle",
      body: async (kept, put) => {
        const [one, other, third] = [
          await createArtifact("one", { name: "ä\u2028.txt" }),
          await createArtifact("other", { run: "r2", redaction: "skipped" }),
          await createArtifact("one", { run: "r2", call: "c2" }),
        ];
        await put("t", [one, other]);
        await put("t", [third]);
        await put("u", [await createArtifact("elsewhere")]);
        assertEqual(await kept.list("t"), [one.row, other.row, third.row], "all");
        assertEqual(await kept.list("t", { limit: 1 }), [one.row], "the first");
        assertEqual(await kept.list("t", { run: "r2" }), [other.row, third.row], "the artifacts of one run");
        assertEqual(await kept.list("t", { key: one.row.key }), [one.row, third.row], "the artifacts with one key");
        assertEqual(
          await kept.list("t", { key: getArtifactHandle(other.row.key) }),
          [other.row],
          "the artifacts with one handle",
        );
        assertEqual(
          await kept.list("t", { key: other.row.key.slice(0, 15) }),
          [],
          "the artifacts with a part of a handle",
        );
        assertEqual(await kept.list("u", { key: one.row.key }), [], "the artifacts with the key of another thread");
        assertEqual(await kept.list("nobody"), [], "the artifacts of an unknown thread");
      },
    },
    {
      name: "identical bodies of several tool calls are stored once and deleted with all their rows",
      body: async (kept, put) => {
        const [one, again] = [await createArtifact("same"), await createArtifact("same", { call: "c2", run: "r2" })];
        const other = await createArtifact("other");
        await put("t", [one, again, other]);
        await put("u", [one]);
        assertEqual(await kept.delete("t", one.row.key), true, "the result of the first delete");
        assertEqual(await kept.delete("t", one.row.key), false, "the result of the second delete");
        assertEqual(await kept.list("t"), [other.row], "the remaining rows");
        assertEqual(await kept.read("t", one.row.key), undefined, "the body");
        assertEqual(decodeText(await kept.read("t", other.row.key)), "other", "the body of the other artifact");
        assertEqual(decodeText(await kept.read("u", one.row.key)), "same", "the body in another thread");
        await put("t", [again]);
        assertEqual(decodeText(await kept.read("t", one.row.key)), "same", "the body after a second put");
      },
    },
    {
      name: "an artifact with an empty body can be stored and read",
      body: async (kept, put) => {
        const empty = await createArtifact("");
        await put("t", [empty]);
        assertEqual((await kept.read("t", empty.row.key))?.length, 0, "the body");
        assertEqual(await kept.list("t"), [empty.row], "the row");
      },
    },
  ];
}

function listKeys(rows: readonly ArtifactRow[]): readonly string[] {
  return rows.map(({ key }) => key);
}

function decodeText(body: Uint8Array | undefined): string | undefined {
  return body === undefined ? undefined : new TextDecoder().decode(body);
}

function hasSameBytes(bytes: Uint8Array | undefined, expected: Uint8Array): boolean {
  return bytes?.length === expected.length && bytes.every((byte, index) => byte === expected[index]);
}
