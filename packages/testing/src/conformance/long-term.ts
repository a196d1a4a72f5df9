/** What every store must do with its long-term side: rows by namespace and key, their ends, and words. */
import type { LongTermPlace, LongTermQuery, LongTermRow, LongTermRows, LongTermWord, Store } from "@statewright/core";
import { refused, same } from "./assert.ts";
import { checkpoint, release, request, run, start, tell } from "./store-rows.ts";
import { type StoreTest, sharedTest, storeTest } from "./store-test.ts";

type Put = Omit<LongTermRow, "createdAt">;

function row(key: string, more: Partial<Put> = {}): Put {
  return { namespace: "users/u1/", key, value: `"${key}"`, updatedAt: 100, ...more };
}

function put({ longTerm }: Store, ...rows: readonly Put[]): Promise<void> {
  return longTerm.write(
    rows.map((each) => ({ put: each })),
    0,
  );
}

function placesIn(longTerm: LongTermRows, more: Partial<LongTermQuery> = {}): Promise<readonly string[]> {
  const query = { namespace: "", deep: true, at: 500, limit: 100, ...more };
  return longTerm.page(query).then((rows) => rows.map(({ namespace, key }) => namespace + key));
}

const diet: LongTermPlace = { namespace: "users/u1/", key: "diet" };

/** What holds also where nothing is kept by words. */
export const longTermTests: readonly StoreTest[] = [
  sharedTest("an item comes back as it was put, for every owner and after a crash", async ({ store, peer, crash }) => {
    const value = JSON.stringify({ text: "ä\n\u2028 \u{1F600} '\"\\", nested: [[], {}, null], $: 1 });
    await put(store, row("diet", { value, expiresAt: 9_000, refreshMs: 50 }), row("bare"));
    const wanted = { ...diet, value, createdAt: 100, updatedAt: 100, expiresAt: 9_000, refreshMs: 50 };
    same(await store.longTerm.get(diet, 500), wanted, "the item");
    same(await peer().longTerm.get(diet, 500), wanted, "the item in another store");
    same(await crash().longTerm.get({ ...diet, key: "bare" }, 500), { ...row("bare"), createdAt: 100 }, "a bare item");
  }),

  storeTest("what was never put, or lies elsewhere, is not there", async ({ store }) => {
    await put(store, row("diet"));
    same(await store.longTerm.get({ ...diet, key: "die" }, 0), undefined, "another key");
    same(await store.longTerm.get({ namespace: "users/", key: "diet" }, 0), undefined, "the namespace above");
    same(await store.longTerm.get({ namespace: "users/u1/a/", key: "diet" }, 0), undefined, "a namespace below");
    same(await placesIn(store.longTerm, { namespace: "users/u/" }), [], "a namespace that is a part of a name");
    await store.longTerm.write([{ drop: { ...diet, key: "none" } }], 0);
    same(await placesIn(store.longTerm), ["users/u1/diet"], "what is left");
  }),

  storeTest(
    "a second put takes the place of the first and keeps the time at which the item came",
    async ({ store }) => {
      await put(store, row("diet", { expiresAt: 400, refreshMs: 5 }));
      await put(store, row("diet", { value: "2", updatedAt: 200 }));
      same(await store.longTerm.get(diet, 500), { ...diet, value: "2", createdAt: 100, updatedAt: 200 }, "the item");
      same(await placesIn(store.longTerm), ["users/u1/diet"], "the items");
    },
  ),

  storeTest("what was deleted is gone, and comes anew when it is put again", async ({ store }) => {
    await put(store, row("diet"), row("job"));
    await store.longTerm.write([{ drop: diet }], 0);
    same(await store.longTerm.get(diet, 500), undefined, "the deleted item");
    same(await placesIn(store.longTerm), ["users/u1/job"], "the other");
    await put(store, row("diet", { updatedAt: 300 }));
    same((await store.longTerm.get(diet, 500))?.createdAt, 300, "when it came");
  }),

  storeTest("changes of one write are made in their order", async ({ store }) => {
    await store.longTerm.write(
      [{ put: row("a") }, { drop: row("a") }, { put: row("b", { value: "1" }) }, { put: row("b", { value: "2" }) }],
      0,
    );
    same(
      (await store.longTerm.page(all)).map(({ key, value }) => [key, value]),
      [["b", "2"]],
      "the items",
    );
  }),

  storeTest("pages go by namespace, then by key, and a namespace is a prefix of those below it", async ({ store }) => {
    const places = ["a/1", "a/b/", "a/b/c/2", "a-b/3", "B/x", "a/b/z", "users/u1/Z", "users/u1/a", "users/u10/a"];
    const rows = places
      .filter((each) => !each.endsWith("/"))
      .map((each) => {
        const at = each.lastIndexOf("/") + 1;
        return row(each.slice(at), { namespace: each.slice(0, at) });
      });
    await put(store, ...rows);
    const order = ["B/x", "a-b/3", "a/1", "a/b/z", "a/b/c/2", "users/u1/Z", "users/u1/a", "users/u10/a"];
    same(await placesIn(store.longTerm), order, "all of them");
    same(await placesIn(store.longTerm, { namespace: "a/" }), ["a/1", "a/b/z", "a/b/c/2"], "those below a");
    same(await placesIn(store.longTerm, { namespace: "a/", deep: false }), ["a/1"], "those of a");
    same(await placesIn(store.longTerm, { namespace: "users/u1/" }), ["users/u1/Z", "users/u1/a"], "those of u1");
    for (let from = 0; from < order.length; from++) {
      const before = order[from] as string;
      const at = before.lastIndexOf("/") + 1;
      const after = { namespace: before.slice(0, at), key: before.slice(at) };
      same(await placesIn(store.longTerm, { after, limit: 2 }), order.slice(from + 1, from + 3), `after ${before}`);
    }
    same(
      await placesIn(store.longTerm, { namespace: "a/", after: { namespace: "B/", key: "x" }, limit: 1 }),
      ["a/1"],
      "after one that lies before",
    );
    same(
      await placesIn(store.longTerm, { namespace: "a/", after: { namespace: "b/", key: "x" } }),
      [],
      "after one that lies behind",
    );
    same(
      await placesIn(store.longTerm, { after: { namespace: "a/b/~", key: "" }, limit: 1 }),
      ["users/u1/Z"],
      "after a namespace and all below it",
    );
  }),

  storeTest("an item whose end has come is not there for whoever reads then", async ({ store }) => {
    await put(store, row("diet", { expiresAt: 300 }), row("job"));
    same((await store.longTerm.get(diet, 299))?.expiresAt, 300, "before its end");
    same(await store.longTerm.get(diet, 300), undefined, "at its end");
    same(await placesIn(store.longTerm, { at: 299 }), ["users/u1/diet", "users/u1/job"], "a page before");
    same(await placesIn(store.longTerm, { at: 300, limit: 1 }), ["users/u1/job"], "a page at its end");
    await put(store, row("diet", { updatedAt: 300 }));
    same(
      await store.longTerm.get(diet, 500),
      { ...row("diet", { updatedAt: 300 }), createdAt: 300 },
      "put after its end",
    );
  }),

  storeTest(
    "a touch lets an item end later, never earlier, and makes none that is over or has no end",
    async ({ store }) => {
      await put(store, row("diet", { expiresAt: 300, refreshMs: 100 }), row("job"));
      const touch = (key: string, at: number, expiresAt: number) =>
        store.longTerm.write([{ touch: { ...diet, key, at, expiresAt } }], 0);
      await touch("diet", 250, 350);
      await touch("diet", 240, 340);
      await touch("job", 250, 350);
      await touch("none", 250, 350);
      same((await store.longTerm.get(diet, 349))?.expiresAt, 350, "the end of what was touched");
      same(await placesIn(store.longTerm), ["users/u1/job"], "what has no end");
      await touch("diet", 350, 450);
      same(await store.longTerm.get(diet, 400), undefined, "what was over when it was touched");
    },
  ),

  storeTest(
    "a refresh says of each item whether it still is there, and lets it live longer at once",
    async ({ store }) => {
      await put(store, row("diet", { expiresAt: 300, refreshMs: 100 }), row("job"), row("over", { expiresAt: 250 }));
      const touches = ["diet", "job", "over", "none"].map((key) => ({ ...diet, key, at: 260, expiresAt: 360 }));
      same(await store.longTerm.refresh(touches), ["kept", "kept", "gone", "gone"], "what became of them");
      same((await store.longTerm.get(diet, 359))?.expiresAt, 360, "the new end");
      await store.longTerm.sweep(400, 10);
      same(await store.longTerm.refresh(touches.slice(0, 1)), ["gone"], "one that was swept");
    },
  ),

  storeTest("a sweep removes what is over and nothing else, and so does a write, some at a time", async ({ store }) => {
    const rows = Array.from({ length: 100 }, (_, index) => row(`k${index}`, { expiresAt: 200 + index }));
    await put(store, ...rows, row("stays"));
    same(await store.longTerm.sweep(209, 4), 4, "of ten that are over, four");
    same(await store.longTerm.sweep(209, 100), 6, "the others");
    same(await store.longTerm.sweep(209, 100), 0, "and no more");
    same((await placesIn(store.longTerm, { at: 0 })).length, 91, "what is left");
    await store.longTerm.write([{ put: row("other") }], 1_000);
    const left = (await placesIn(store.longTerm, { at: 0 })).length;
    same(left > 2 && left < 92, true, "a write has removed some of them");
    same((await store.longTerm.sweep(1_000, 1_000)) + 2, left, "a sweep removes the rest");
    same(await placesIn(store.longTerm, { at: 0 }), ["users/u1/other", "users/u1/stays"], "what has no end");
  }),

  sharedTest("changes in a commit become true with it, and for nobody before", async ({ store, peer }) => {
    const other = peer();
    const thread = await start(store, "t");
    const write = checkpoint(1, undefined, { seq: 2 });
    const told = thread.commit({ seq: 2, checkpoint: write, longTerm: [{ put: row("diet") }, { drop: row("job") }] });
    same(await other.longTerm.get(diet, 500), undefined, "before it is durable");
    await told;
    same((await other.longTerm.get(diet, 500))?.value, '"diet"', "when it is");
  }),

  sharedTest("a commit that is refused changes nothing of it", async ({ store, crash }) => {
    const claim = await store.claim(request("t"));
    await tell(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: 1, run: run("r1") });
    await put(store, row("job"));
    const next = crash();
    const taken = await next.claim(request("t"));
    const changes = [{ put: row("diet") }, { drop: row("job") }];
    const stale = { thread: "t", branch: "main", epoch: claim.epoch, seq: 2, longTerm: changes };
    await refused(tell(next, stale), "fenced", "the commit");
    const unfit = checkpoint(7, 3, { seq: 2 });
    await refused(tell(next, { ...stale, epoch: taken.epoch, checkpoint: unfit }), "store_failed", "an unfit one");
    same(await placesIn(next.longTerm), ["users/u1/job"], "the items");
  }),

  storeTest("no thread owns an item: moving, forking and deleting threads leave it", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    await thread.commit({ longTerm: [{ put: row("diet") }] });
    await release(store, "t", { ...thread.claim, nextSeq: 9 });
    const image = await store.image("t");
    await store.longTerm.write([{ put: row("diet", { value: "2", updatedAt: 200 }) }], 0);
    await store.delete("t");
    await store.insert(image);
    same((await store.longTerm.get(diet, 500))?.value, "2", "the item");
  }),

  sharedTest("a closed store refuses the long-term side too", async ({ store }) => {
    store.close();
    await refused(store.longTerm.get(diet, 0), "store_closed", "get");
    await refused(store.longTerm.page(all), "store_closed", "page");
    await refused(store.longTerm.write([{ drop: diet }], 0), "store_closed", "write");
    await refused(store.longTerm.sweep(0, 1), "store_closed", "sweep");
  }),
];

const all: LongTermQuery = { namespace: "", deep: true, at: 0, limit: 1_000 };

const word = (text: string): LongTermWord => ({ word: text, isPrefix: false });
const prefix = (text: string): LongTermWord => ({ word: text, isPrefix: true });

/** What a store must do that finds items by their words. */
export const wordConformance: readonly StoreTest[] = [
  storeTest("words find the items that have all of them, whole or by their beginning", async ({ store }) => {
    await put(
      store,
      row("a", { words: "meat no oslo" }),
      row("b", { words: "meatball oslo" }),
      row("c", { words: "strasse über 東京 ab12" }),
      row("d"),
    );
    const found = (...words: readonly LongTermWord[]) => placesIn(store.longTerm, { words });
    same(await found(word("meat")), ["users/u1/a"], "a word");
    same(await found(prefix("meat")), ["users/u1/a", "users/u1/b"], "a beginning");
    same(await found(word("oslo"), prefix("me")), ["users/u1/a", "users/u1/b"], "both");
    same(await found(word("oslo"), word("meat")), ["users/u1/a"], "both whole");
    same(await found(word("oslo"), word("none")), [], "one that is nowhere");
    for (const each of ["strasse", "über", "東京", "ab12"]) same(await found(word(each)), ["users/u1/c"], each);
    same(await found(prefix("東")), ["users/u1/c"], "a beginning of one character");
    same(await found(word("東")), [], "a part of a word");
    for (const each of ["and", "or", "not", "near"]) same(await found(word(each)), [], `the word ${each}`);
  }),

  storeTest("words are looked for in a namespace, by pages and before the end of items", async ({ store }) => {
    const names = ["users/u1/", "users/u1/x/", "users/u2/", "usersu1/"];
    for (const namespace of names)
      await put(
        store,
        ...["a", "b", "c"].map((key) =>
          row(key, { namespace, words: "same", ...(key === "b" ? { expiresAt: 300 } : {}) }),
        ),
      );
    const words = [word("same")];
    same(
      await placesIn(store.longTerm, { words, namespace: "users/u1/" }),
      ["users/u1/a", "users/u1/c", "users/u1/x/a", "users/u1/x/c"],
      "a namespace",
    );
    same(
      await placesIn(store.longTerm, { words, namespace: "users/u1/", deep: false }),
      ["users/u1/a", "users/u1/c"],
      "it alone",
    );
    same((await placesIn(store.longTerm, { words, at: 0 })).length, 12, "all");
    const after = { namespace: "users/u1/", key: "c" };
    same(
      await placesIn(store.longTerm, { words, namespace: "users/", after, limit: 2 }),
      ["users/u1/x/a", "users/u1/x/c"],
      "a page",
    );
  }),

  storeTest("what is put again, deleted or swept is found by its words no more", async ({ store }) => {
    await put(
      store,
      row("a", { words: "old" }),
      row("b", { words: "old" }),
      row("c", { words: "old", expiresAt: 200 }),
    );
    await put(store, row("a", { words: "new", updatedAt: 200 }));
    await store.longTerm.write([{ drop: row("b") }], 0);
    await store.longTerm.sweep(500, 10);
    const found = (text: string) => placesIn(store.longTerm, { words: [word(text)], at: 0 });
    same([await found("old"), await found("new")], [[], ["users/u1/a"]], "by the old word, and by the new one");
    await put(store, row("a", { updatedAt: 300 }));
    same(await found("new"), [], "without words");
    await put(store, row("a", { words: "again", updatedAt: 400 }));
    same(await found("again"), ["users/u1/a"], "with words again");
    await put(store, row("a", { words: "again", value: "3", updatedAt: 500 }));
    same(await found("again"), ["users/u1/a"], "the same words, another value");
  }),

  sharedTest("words in a commit are found when it is durable", async ({ store, peer }) => {
    const thread = await start(store, "t");
    await thread.commit({ longTerm: [{ put: row("diet", { words: "meat" }) }] });
    same(await placesIn(peer().longTerm, { words: [word("meat")] }), ["users/u1/diet"], "the item");
  }),
];
