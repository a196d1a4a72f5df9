/** What every store must do with artifacts, and what a place of your own for them must do. */
import {
  type ArtifactRow,
  type ArtifactStore,
  type ArtifactWrite,
  copyThread,
  deleteThread,
  exportThread,
  handleOf,
  importThread,
  type KeptArtifacts,
  memoryStore,
  type Store,
} from "@statewright/core";
import { holds, refused, same } from "./assert.ts";
import { artifact, checkpoint, effect, fork, start } from "./store-rows.ts";
import { type StoreTest, sharedTest, storeTest } from "./store-test.ts";

/** One test of the suite: throws when the place does not do what `name` says. `open` gives a fresh, empty one. */
export interface ArtifactTest {
  readonly name: string;
  run(open: () => ArtifactStore | Promise<ArtifactStore>): Promise<void>;
}

/** The tests that every place for artifacts must pass. */
export const artifactConformance: readonly ArtifactTest[] = [
  ...readingTests().map(
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
  ...readingTests().map(({ name, body }) =>
    storeTest(name, async ({ store }) => {
      const threads = new Map<string, Awaited<ReturnType<typeof start>>>();
      await body(store.artifacts, async (thread, artifacts) => {
        const writer = threads.get(thread) ?? (await start(store, thread));
        threads.set(thread, writer);
        await writer.commit({ artifacts });
      });
    }),
  ),

  sharedTest("an artifact is kept with the outcome of its call, or not at all", async (under) => {
    const { store, crash } = under;
    const thread = await start(store, "t");
    await thread.step(1);
    const [one, other] = [await artifact("one"), await artifact("other")];
    const outcome = effect({ step: 1, key: "c1", kind: "tool", outcome: '"one"' });
    await thread.commit({ effects: [outcome], artifacts: [one] });
    const wrong = checkpoint(9, 7, { seq: 99 });
    await refused(
      thread.commit({ effects: [{ ...outcome, key: "c2" }], artifacts: [other], checkpoint: wrong }),
      "store_failed",
      "a write that does not continue the line",
    );
    const next = crash();
    same(keysOf(await next.artifacts.list("t")), keysOf([one.row]), "the artifacts after the crash");
    same(
      (await next.effects("t", "main")).map(({ key }) => key),
      ["c1"],
      "the calls after the crash",
    );
    same(await next.artifacts.read("t", other.row.key), undefined, "the body of the write that was refused");
    same(textOf(await next.artifacts.read("t", one.row.key)), "one", "the body");
  }),

  storeTest("a writer that does not own the thread any more keeps nothing", async ({ store }) => {
    const { commit, claim } = await start(store, "t");
    await refused(commit({ epoch: claim.epoch - 1, artifacts: [await artifact("late")] }), "fenced", "an old epoch");
    same(await store.artifacts.list("t"), [], "the artifacts");
  }),

  storeTest("the lines of a thread share its artifacts, and retention leaves them", async ({ store }) => {
    const thread = await start(store, "t");
    for (let step = 1; step <= 4; step++) await thread.step(step);
    const given = await artifact("shared");
    await thread.commit({ artifacts: [given], run: undefined, release: true });
    await fork(store, "t", "b", 2, []);
    same(textOf(await store.artifacts.read("t", given.row.key)), "shared", "after the fork");
    await store.prune({ thread: "t", keepLast: 1, limit: 100, merge: (rows) => rows });
    same(textOf(await store.artifacts.read("t", given.row.key)), "shared", "after retention");
  }),

  storeTest("artifacts are deleted with their thread, and move with it", async ({ store }) => {
    const thread = await start(store, "t");
    const [one, other] = [await artifact("one"), await artifact(new Uint8Array(200_000).fill(7), { text: false })];
    const again = { ...one, row: { ...one.row, call: "c2" } };
    await thread.commit({ artifacts: [one, other, again], release: true });
    const rows = await store.artifacts.list("t");
    const text = await exportThread(store, "t");
    const elsewhere = memoryStore();
    await importThread(elsewhere, text);
    await copyThread(store, "t", "copy");
    await deleteThread(store, "t");
    same(await store.artifacts.list("t"), [], "the rows of the deleted thread");
    same(await store.artifacts.read("t", one.row.key), undefined, "a body of the deleted thread");
    for (const [at, id] of [
      [store, "copy"],
      [elsewhere, "t"],
    ] as const) {
      same(await at.artifacts.list(id), rows, `the rows in "${id}"`);
      holds(sameBytes(await at.artifacts.read(id, other.row.key), other.body), `the body in "${id}"`);
    }
    await importThread(store, await exportThread(elsewhere, "t"));
    same(await store.artifacts.list("t"), rows, "the rows of the thread that came back");
    same(await exportThread(store, "t"), text, "its text");
  }),

  storeTest("an export whose artifact is not what its key says is refused", async ({ store }) => {
    const thread = await start(store, "t");
    const given = await artifact("one");
    await thread.commit({ artifacts: [given], release: true });
    const image = await store.image("t");
    const forged: Store = {
      ...store,
      image: async () => ({ ...image, artifacts: [{ row: given.row, body: new TextEncoder().encode("two") }] }),
    };
    await refused(importThread(memoryStore(), await exportThread(forged, "t")), "invalid_export", "another body");
    const bare: Store = { ...store, image: async () => ({ ...image, artifacts: [{ row: given.row }] }) };
    await refused(importThread(memoryStore(), await exportThread(bare, "t")), "invalid_export", "no body");
  }),
];

interface ReadingTest {
  readonly name: string;
  body(kept: KeptArtifacts, put: (thread: string, writes: readonly ArtifactWrite[]) => Promise<void>): Promise<void>;
}

/** What holds wherever artifacts are kept. */
function readingTests(): readonly ReadingTest[] {
  return [
    {
      name: "an artifact is read whole and in part, in its thread only",
      body: async (kept, put) => {
        const body = Uint8Array.from({ length: 150_000 }, (_, index) => (index * 31) % 251);
        const { row } = await artifact(body, { text: false });
        await put("t", [{ row, body }]);
        await put("u", [await artifact("of another thread")]);
        holds(sameBytes(await kept.read("t", row.key), body), "the whole");
        for (const [offset, limit] of [
          [0, 1],
          [0, 65_536],
          [65_535, 2],
          [65_536, 65_536],
          [131_071, 40_000],
          [149_999, 5],
          [1_000, 148_000],
        ] as const) {
          const part = await kept.read("t", row.key, { offset, limit });
          holds(sameBytes(part, body.subarray(offset, offset + limit)), `${limit} bytes from ${offset} on`);
        }
        same((await kept.read("t", row.key, { offset: 150_000, limit: 9 }))?.length, 0, "what is beyond the end");
        same(await kept.read("u", row.key), undefined, "the body in another thread");
        same(await kept.read("nobody", row.key), undefined, "the body in no thread");
        await refused(kept.read("t", row.key, { offset: -1, limit: 5 }), "invalid_option", "a part before the start");
        await refused(kept.read("t", row.key, { offset: 0, limit: 0 }), "invalid_option", "a part without bytes");
      },
    },
    {
      name: "artifacts are listed in their order, by run, key and handle",
      body: async (kept, put) => {
        const [one, other, third] = [
          await artifact("one", { name: "ä\u2028.txt" }),
          await artifact("other", { run: "r2", redaction: "skipped" }),
          await artifact("one", { run: "r2", call: "c2" }),
        ];
        await put("t", [one, other]);
        await put("t", [third]);
        await put("u", [await artifact("elsewhere")]);
        same(await kept.list("t"), [one.row, other.row, third.row], "all");
        same(await kept.list("t", { limit: 1 }), [one.row], "the first");
        same(await kept.list("t", { run: "r2" }), [other.row, third.row], "those of a run");
        same(await kept.list("t", { key: one.row.key }), [one.row, third.row], "those of a key");
        same(await kept.list("t", { key: handleOf(other.row.key) }), [other.row], "those of a handle");
        same(await kept.list("t", { key: other.row.key.slice(0, 15) }), [], "those of a part of a handle");
        same(await kept.list("u", { key: one.row.key }), [], "those of a key of another thread");
        same(await kept.list("nobody"), [], "those of no thread");
      },
    },
    {
      name: "a body that several calls gave is one, and goes with all of its rows",
      body: async (kept, put) => {
        const [one, again] = [await artifact("same"), await artifact("same", { call: "c2", run: "r2" })];
        const other = await artifact("other");
        await put("t", [one, again, other]);
        await put("u", [one]);
        same(await kept.delete("t", one.row.key), true, "the first time");
        same(await kept.delete("t", one.row.key), false, "the second time");
        same(await kept.list("t"), [other.row], "what is left");
        same(await kept.read("t", one.row.key), undefined, "the body");
        same(textOf(await kept.read("t", other.row.key)), "other", "the other body");
        same(textOf(await kept.read("u", one.row.key)), "same", "the body in another thread");
        await put("t", [again]);
        same(textOf(await kept.read("t", one.row.key)), "same", "the body that was put again");
      },
    },
    {
      name: "an empty body is a body",
      body: async (kept, put) => {
        const empty = await artifact("");
        await put("t", [empty]);
        same((await kept.read("t", empty.row.key))?.length, 0, "the body");
        same(await kept.list("t"), [empty.row], "the row");
      },
    },
  ];
}

function keysOf(rows: readonly ArtifactRow[]): readonly string[] {
  return rows.map(({ key }) => key);
}

function textOf(body: Uint8Array | undefined): string | undefined {
  return body === undefined ? undefined : new TextDecoder().decode(body);
}

function sameBytes(one: Uint8Array | undefined, other: Uint8Array): boolean {
  return one?.length === other.length && one.every((byte, index) => byte === other[index]);
}
