/** Conformance tests of the long-term side of a store: rows by namespace and key, expiry and word search. */

import type { Store } from "@statewright/core";
import type { LongTermLocation, LongTermQuery, LongTermRow, LongTermRows, LongTermWord } from "@statewright/core/store";
import { assertEqual, assertRejected } from "./assert.ts";
import {
  commitWrite,
  createCheckpoint,
  createClaimRequest,
  createRun,
  releaseThread,
  startThread,
} from "./store-rows.ts";
import { defineSharedStoreTest, defineStoreTest, type StoreTest } from "./store-test.ts";

type LongTermInput = Omit<LongTermRow, "createdAt">;

function createRow(key: string, more: Partial<LongTermInput> = {}): LongTermInput {
  return { namespace: "users/u1/", key, value: `"${key}"`, updatedAt: 100, ...more };
}

function putRows({ longTerm }: Store, ...rows: readonly LongTermInput[]): Promise<void> {
  return longTerm.write(
    rows.map((each) => ({ put: each })),
    0,
  );
}

function listPlaces(longTerm: LongTermRows, more: Partial<LongTermQuery> = {}): Promise<readonly string[]> {
  const query = { namespace: "", deep: true, at: 500, limit: 100, ...more };
  return longTerm.page(query).then((rows) => rows.map(({ namespace, key }) => namespace + key));
}

const diet: LongTermLocation = { namespace: "users/u1/", key: "diet" };

/** Tests for every store, including stores without word search. */
export const longTermTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "a long-term item is read back unchanged by every owner and after a crash",
    async ({ store, peer, crash }) => {
      const value = JSON.stringify({ text: "ä\n\u2028 \u{1F600} '\"\\", nested: [[], {}, null], $: 1 });
      await putRows(store, createRow("diet", { value, expiresAt: 9_000, refreshMs: 50 }), createRow("bare"));
      const expected = { ...diet, value, createdAt: 100, updatedAt: 100, expiresAt: 9_000, refreshMs: 50 };
      assertEqual(await store.longTerm.get(diet, 500), expected, "the item");
      assertEqual(await (await peer()).longTerm.get(diet, 500), expected, "the item read by another owner");
      assertEqual(
        await (await crash()).longTerm.get({ ...diet, key: "bare" }, 500),
        { ...createRow("bare"), createdAt: 100 },
        "a bare item",
      );
    },
  ),

  defineStoreTest("an unknown long-term key, or a key in another namespace, is not found", async ({ store }) => {
    await putRows(store, createRow("diet"));
    assertEqual(await store.longTerm.get({ ...diet, key: "die" }, 0), undefined, "another key");
    assertEqual(
      await store.longTerm.get({ namespace: "users/", key: "diet" }, 0),
      undefined,
      "a key in the parent namespace",
    );
    assertEqual(await store.longTerm.get({ namespace: "users/u1/a/", key: "diet" }, 0), undefined, "a namespace below");
    assertEqual(
      await listPlaces(store.longTerm, { namespace: "users/u/" }),
      [],
      "the items of a namespace that is a prefix of a segment",
    );
    await store.longTerm.write([{ drop: { ...diet, key: "none" } }], 0);
    assertEqual(await listPlaces(store.longTerm), ["users/u1/diet"], "the remaining items");
  }),

  defineStoreTest("a second put replaces a long-term item and keeps its creation time", async ({ store }) => {
    await putRows(store, createRow("diet", { expiresAt: 400, refreshMs: 5 }));
    await putRows(store, createRow("diet", { value: "2", updatedAt: 200 }));
    assertEqual(
      await store.longTerm.get(diet, 500),
      { ...diet, value: "2", createdAt: 100, updatedAt: 200 },
      "the item",
    );
    assertEqual(await listPlaces(store.longTerm), ["users/u1/diet"], "the items");
  }),

  defineStoreTest(
    "a deleted long-term item is gone, and a new put creates it with a new creation time",
    async ({ store }) => {
      await putRows(store, createRow("diet"), createRow("job"));
      await store.longTerm.write([{ drop: diet }], 0);
      assertEqual(await store.longTerm.get(diet, 500), undefined, "the deleted item");
      assertEqual(await listPlaces(store.longTerm), ["users/u1/job"], "the other");
      await putRows(store, createRow("diet", { updatedAt: 300 }));
      assertEqual((await store.longTerm.get(diet, 500))?.createdAt, 300, "the creation time");
    },
  ),

  defineStoreTest("the changes of one long-term write are applied in order", async ({ store }) => {
    await store.longTerm.write(
      [
        { put: createRow("a") },
        { drop: createRow("a") },
        { put: createRow("b", { value: "1" }) },
        { put: createRow("b", { value: "2" }) },
      ],
      0,
    );
    assertEqual(
      (await store.longTerm.page(all)).map(({ key, value }) => [key, value]),
      [["b", "2"]],
      "the items",
    );
  }),

  defineStoreTest(
    "long-term pages are ordered by namespace, then by key, and a namespace includes its sub-namespaces",
    async ({ store }) => {
      const places = ["a/1", "a/b/", "a/b/c/2", "a-b/3", "B/x", "a/b/z", "users/u1/Z", "users/u1/a", "users/u10/a"];
      const rows = places
        .filter((each) => !each.endsWith("/"))
        .map((each) => {
          const at = each.lastIndexOf("/") + 1;
          return createRow(each.slice(at), { namespace: each.slice(0, at) });
        });
      await putRows(store, ...rows);
      const order = ["B/x", "a-b/3", "a/1", "a/b/z", "a/b/c/2", "users/u1/Z", "users/u1/a", "users/u10/a"];
      assertEqual(await listPlaces(store.longTerm), order, "all items");
      assertEqual(
        await listPlaces(store.longTerm, { namespace: "a/" }),
        ["a/1", "a/b/z", "a/b/c/2"],
        "the items in a and its sub-namespaces",
      );
      assertEqual(await listPlaces(store.longTerm, { namespace: "a/", deep: false }), ["a/1"], "the items in a only");
      assertEqual(
        await listPlaces(store.longTerm, { namespace: "users/u1/" }),
        ["users/u1/Z", "users/u1/a"],
        "the items in users/u1",
      );
      for (let from = 0; from < order.length; from++) {
        const before = order[from] as string;
        const at = before.lastIndexOf("/") + 1;
        const after = { namespace: before.slice(0, at), key: before.slice(at) };
        assertEqual(
          await listPlaces(store.longTerm, { after, limit: 2 }),
          order.slice(from + 1, from + 3),
          `after ${before}`,
        );
      }
      assertEqual(
        await listPlaces(store.longTerm, { namespace: "a/", after: { namespace: "B/", key: "x" }, limit: 1 }),
        ["a/1"],
        "the items after a position before the namespace",
      );
      assertEqual(
        await listPlaces(store.longTerm, { namespace: "a/", after: { namespace: "b/", key: "x" } }),
        [],
        "the items after a position behind the namespace",
      );
      assertEqual(
        await listPlaces(store.longTerm, { after: { namespace: "a/b/~", key: "" }, limit: 1 }),
        ["users/u1/Z"],
        "the items after a namespace and its sub-namespaces",
      );
    },
  ),

  defineStoreTest("an expired long-term item is not found by a read at or after its expiry time", async ({ store }) => {
    await putRows(store, createRow("diet", { expiresAt: 300 }), createRow("job"));
    assertEqual((await store.longTerm.get(diet, 299))?.expiresAt, 300, "the item before its expiry");
    assertEqual(await store.longTerm.get(diet, 300), undefined, "the item at its expiry");
    assertEqual(await listPlaces(store.longTerm, { at: 299 }), ["users/u1/diet", "users/u1/job"], "a page before");
    assertEqual(await listPlaces(store.longTerm, { at: 300, limit: 1 }), ["users/u1/job"], "a page at the expiry");
    await putRows(store, createRow("diet", { updatedAt: 300 }));
    assertEqual(
      await store.longTerm.get(diet, 500),
      { ...createRow("diet", { updatedAt: 300 }), createdAt: 300 },
      "the item put after its expiry",
    );
  }),

  defineStoreTest(
    "a touch extends the expiry of a long-term item, never shortens it, and ignores expired items and items without expiry",
    async ({ store }) => {
      await putRows(store, createRow("diet", { expiresAt: 300, refreshMs: 100 }), createRow("job"));
      const touchItem = (key: string, at: number, expiresAt: number) =>
        store.longTerm.write([{ touch: { ...diet, key, at, expiresAt } }], 0);
      await touchItem("diet", 250, 350);
      await touchItem("diet", 240, 340);
      await touchItem("job", 250, 350);
      await touchItem("none", 250, 350);
      assertEqual((await store.longTerm.get(diet, 349))?.expiresAt, 350, "the expiry of the touched item");
      assertEqual(await listPlaces(store.longTerm), ["users/u1/job"], "the item without expiry");
      await touchItem("diet", 350, 450);
      assertEqual(await store.longTerm.get(diet, 400), undefined, "the item that was touched after its expiry");
    },
  ),

  defineStoreTest(
    "a refresh reports for each long-term item if it still exists, and extends its expiry in the same step",
    async ({ store }) => {
      await putRows(
        store,
        createRow("diet", { expiresAt: 300, refreshMs: 100 }),
        createRow("job"),
        createRow("over", { expiresAt: 250 }),
      );
      const touches = ["diet", "job", "over", "none"].map((key) => ({ ...diet, key, at: 260, expiresAt: 360 }));
      assertEqual(
        await store.longTerm.refresh(touches),
        ["refreshed", "refreshed", "missing", "missing"],
        "the results of the refresh",
      );
      assertEqual((await store.longTerm.get(diet, 359))?.expiresAt, 360, "the new expiry");
      await store.longTerm.sweep(400, 10);
      assertEqual(await store.longTerm.refresh(touches.slice(0, 1)), ["missing"], "the result for a swept item");
    },
  ),

  defineStoreTest(
    "a sweep removes expired long-term items only, up to its limit, and a write removes some of them",
    async ({ store }) => {
      const rows = Array.from({ length: 100 }, (_, index) => createRow(`k${index}`, { expiresAt: 200 + index }));
      await putRows(store, ...rows, createRow("stays"));
      assertEqual(
        await store.longTerm.sweep(209, 4),
        4,
        "the number removed of ten expired items with a limit of four",
      );
      assertEqual(await store.longTerm.sweep(209, 100), 6, "the others");
      assertEqual(await store.longTerm.sweep(209, 100), 0, "the number removed by a sweep without expired items");
      assertEqual((await listPlaces(store.longTerm, { at: 0 })).length, 91, "the remaining items");
      await store.longTerm.write([{ put: createRow("other") }], 1_000);
      const remaining = (await listPlaces(store.longTerm, { at: 0 })).length;
      assertEqual(remaining > 2 && remaining < 92, true, "a write removes some expired items");
      assertEqual(
        (await store.longTerm.sweep(1_000, 1_000)) + 2,
        remaining,
        "a sweep removes the remaining expired items",
      );
      assertEqual(
        await listPlaces(store.longTerm, { at: 0 }),
        ["users/u1/other", "users/u1/stays"],
        "the items without expiry",
      );
    },
  ),

  defineSharedStoreTest(
    "long-term changes in a commit become visible when the commit is durable, not before",
    async ({ store, peer }) => {
      const other = await peer();
      const thread = await startThread(store, "t");
      const write = createCheckpoint(1, undefined, { seq: 2 });
      const committed = thread.commit({
        seq: 2,
        checkpoint: write,
        longTerm: [{ put: createRow("diet") }, { drop: createRow("job") }],
      });
      assertEqual(await other.longTerm.get(diet, 500), undefined, "the item before the commit is durable");
      await committed;
      assertEqual((await other.longTerm.get(diet, 500))?.value, '"diet"', "the item after the commit is durable");
    },
  ),

  defineSharedStoreTest("a refused commit applies none of its long-term changes", async ({ store, crash }) => {
    const claim = await store.claim(createClaimRequest("t"));
    await commitWrite(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: 1, run: createRun("r1") });
    await putRows(store, createRow("job"));
    const next = await crash();
    const nextClaim = await next.claim(createClaimRequest("t"));
    const changes = [{ put: createRow("diet") }, { drop: createRow("job") }];
    const stale = { thread: "t", branch: "main", epoch: claim.epoch, seq: 2, longTerm: changes };
    await assertRejected(commitWrite(next, stale), "fenced", "the commit");
    const invalid = createCheckpoint(7, 3, { seq: 2 });
    await assertRejected(
      commitWrite(next, { ...stale, epoch: nextClaim.epoch, checkpoint: invalid }),
      "store_failed",
      "a commit with an invalid checkpoint",
    );
    assertEqual(await listPlaces(next.longTerm), ["users/u1/job"], "the items");
  }),

  defineStoreTest("moving and deleting a thread does not change long-term items", async ({ store }) => {
    const thread = await startThread(store, "t");
    await thread.writeStep(1);
    await thread.commit({ longTerm: [{ put: createRow("diet") }] });
    await releaseThread(store, "t", { ...thread.claim, nextSeq: 9 });
    const image = await store.exportThread("t");
    await store.longTerm.write([{ put: createRow("diet", { value: "2", updatedAt: 200 }) }], 0);
    await store.delete("t");
    await store.importThread(image);
    assertEqual((await store.longTerm.get(diet, 500))?.value, "2", "the item");
  }),

  defineSharedStoreTest("a closed store refuses long-term reads and writes", async ({ store }) => {
    await store.close();
    await assertRejected(store.longTerm.get(diet, 0), "store_closed", "get");
    await assertRejected(store.longTerm.page(all), "store_closed", "page");
    await assertRejected(store.longTerm.write([{ drop: diet }], 0), "store_closed", "write");
    await assertRejected(store.longTerm.sweep(0, 1), "store_closed", "sweep");
  }),
];

const all: LongTermQuery = { namespace: "", deep: true, at: 0, limit: 1_000 };

const createWord = (text: string): LongTermWord => ({ word: text, isPrefix: false });
const createPrefix = (text: string): LongTermWord => ({ word: text, isPrefix: true });

/** Tests for stores that find long-term items by words. */
export const wordConformance: readonly StoreTest[] = [
  defineStoreTest(
    "a word search finds the items that contain all words, as complete words or as prefixes",
    async ({ store }) => {
      await putRows(
        store,
        createRow("a", { words: "meat no oslo" }),
        createRow("b", { words: "meatball oslo" }),
        createRow("c", { words: "strasse über 東京 ab12" }),
        createRow("d"),
      );
      const findPlaces = (...words: readonly LongTermWord[]) => listPlaces(store.longTerm, { words });
      assertEqual(await findPlaces(createWord("meat")), ["users/u1/a"], "a word");
      assertEqual(await findPlaces(createPrefix("meat")), ["users/u1/a", "users/u1/b"], "a beginning");
      assertEqual(await findPlaces(createWord("oslo"), createPrefix("me")), ["users/u1/a", "users/u1/b"], "both");
      assertEqual(await findPlaces(createWord("oslo"), createWord("meat")), ["users/u1/a"], "both whole");
      assertEqual(
        await findPlaces(createWord("oslo"), createWord("none")),
        [],
        "the items with a word that no item contains",
      );
      for (const each of ["strasse", "über", "東京", "ab12"])
        assertEqual(await findPlaces(createWord(each)), ["users/u1/c"], each);
      assertEqual(await findPlaces(createPrefix("東")), ["users/u1/c"], "the items with a prefix of one character");
      assertEqual(await findPlaces(createWord("東")), [], "the items with a part of a word");
      for (const each of ["and", "or", "not", "near"])
        assertEqual(await findPlaces(createWord(each)), [], `the items with the word ${each}`);
    },
  ),

  defineStoreTest(
    "a word search is limited to a namespace, returned in pages, and skips expired items",
    async ({ store }) => {
      const names = ["users/u1/", "users/u1/x/", "users/u2/", "usersu1/"];
      for (const namespace of names)
        await putRows(
          store,
          ...["a", "b", "c"].map((key) =>
            createRow(key, { namespace, words: "same", ...(key === "b" ? { expiresAt: 300 } : {}) }),
          ),
        );
      const words = [createWord("same")];
      assertEqual(
        await listPlaces(store.longTerm, { words, namespace: "users/u1/" }),
        ["users/u1/a", "users/u1/c", "users/u1/x/a", "users/u1/x/c"],
        "a namespace",
      );
      assertEqual(
        await listPlaces(store.longTerm, { words, namespace: "users/u1/", deep: false }),
        ["users/u1/a", "users/u1/c"],
        "it alone",
      );
      assertEqual((await listPlaces(store.longTerm, { words, at: 0 })).length, 12, "all");
      const after = { namespace: "users/u1/", key: "c" };
      assertEqual(
        await listPlaces(store.longTerm, { words, namespace: "users/", after, limit: 2 }),
        ["users/u1/x/a", "users/u1/x/c"],
        "a page",
      );
    },
  ),

  defineStoreTest(
    "an item that was replaced, deleted or swept is no longer found by its old words",
    async ({ store }) => {
      await putRows(
        store,
        createRow("a", { words: "old" }),
        createRow("b", { words: "old" }),
        createRow("c", { words: "old", expiresAt: 200 }),
      );
      await putRows(store, createRow("a", { words: "new", updatedAt: 200 }));
      await store.longTerm.write([{ drop: createRow("b") }], 0);
      await store.longTerm.sweep(500, 10);
      const searchWord = (text: string) => listPlaces(store.longTerm, { words: [createWord(text)], at: 0 });
      assertEqual(
        [await searchWord("old"), await searchWord("new")],
        [[], ["users/u1/a"]],
        "the items found by the old word and by the new word",
      );
      await putRows(store, createRow("a", { updatedAt: 300 }));
      assertEqual(await searchWord("new"), [], "without words");
      await putRows(store, createRow("a", { words: "again", updatedAt: 400 }));
      assertEqual(await searchWord("again"), ["users/u1/a"], "the items with words put again");
      await putRows(store, createRow("a", { words: "again", value: "3", updatedAt: 500 }));
      assertEqual(await searchWord("again"), ["users/u1/a"], "the items with the same words and another value");
    },
  ),

  defineSharedStoreTest(
    "an item in a commit is found by its words when the commit is durable",
    async ({ store, peer }) => {
      const thread = await startThread(store, "t");
      await thread.commit({ longTerm: [{ put: createRow("diet", { words: "meat" }) }] });
      assertEqual(
        await listPlaces((await peer()).longTerm, { words: [createWord("meat")] }),
        ["users/u1/diet"],
        "the item",
      );
    },
  ),
];
