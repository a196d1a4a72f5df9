/** Vector search: exact, equal in memory, in a file and in an encrypted file, and including the own writes of a run. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import {
  channel,
  defineGraph,
  defineState,
  END,
  type LongTerm,
  longTermStore,
  memoryStore,
  run,
  START,
  type Store,
} from "@statewright/core";
import { virtualClock } from "@statewright/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readBytes } from "./support/database-file.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let opened: Store[] = [];

beforeEach(() => {
  home = createFolder();
});

afterEach(async () => {
  for (const store of opened) await store.close();
  opened = [];
  home.remove();
});

const dimensions = 16;

/** Embeds a text as letter counts: texts with similar letters are near. */
function embed(texts: readonly string[]) {
  return texts.map((text) => {
    const vector = new Array<number>(dimensions).fill(0);
    for (const letter of text)
      vector[(letter.codePointAt(0) ?? 0) % dimensions] = (vector[(letter.codePointAt(0) ?? 0) % dimensions] ?? 0) + 1;
    return vector;
  });
}

const longTerm = { embed, dimensions };
const key = randomBytes(32);

function openStores(): readonly Store[] {
  const encryption = { keys: () => [{ id: "a", key }], longTerm: () => [{ id: "a", key }] };
  opened = [
    memoryStore({ longTerm }),
    sqliteStore(join(home.path, "plain.db"), { durability: "normal", longTerm }),
    sqliteStore(join(home.path, "sealed.db"), { durability: "normal", longTerm, encryption }),
  ];
  return opened;
}

const show = (items: Awaited<ReturnType<LongTerm["search"]>>) =>
  items.map(({ namespace, key: id, score }) => `${namespace.join("/")}/${id} ${score?.toFixed(6)}`);

test("vector search returns the nearest items first, in a namespace tree, with filters, without expired or unindexed items", async () => {
  for (const store of openStores()) {
    const world = virtualClock({ now: 1_000 });
    const words = { index: ["text"] };
    const users = longTermStore(store, { world }).under("users");
    await users.under("ann").put("a", { text: "aaab", kind: "x" }, words);
    await users.under("ann").put("b", { text: "bbbb", kind: "y" }, words);
    await users.under("bob").put("c", { text: "aabb", kind: "x" }, words);
    await users.under("bob").put("gone", { text: "aaaa", kind: "x" }, { ...words, ttlMs: 10 });
    await users.under("bob").put("mute", { text: "aaaa" }, { index: false });
    await users.under("bob").put("number", 7);
    await world.advance(10);
    expect(show(await users.search({ near: "aaaa" }))).toEqual([
      "users/ann/a 0.948683",
      "users/bob/c 0.707107",
      "users/ann/b 0.000000",
    ]);
    expect(show(await users.under("bob").search({ near: "aaaa" }))).toEqual(["users/bob/c 0.707107"]);
    expect(show(await users.search({ near: "b", filter: { kind: "x" }, limit: 1 }))).toEqual(["users/bob/c 0.707107"]);
    expect((await users.under("ann").get("a"))?.score).toBeUndefined();
    await expect(users.search({ near: " " })).rejects.toMatchObject({ code: "invalid_option" });
    const after = { namespace: ["users"], key: "a" };
    await expect(users.search({ near: "a", after })).rejects.toMatchObject({ code: "invalid_option" });
  }
});

test("vector search over many items returns equal items, order and scores in every store", async () => {
  const found: (readonly string[])[] = [];
  for (const store of openStores()) {
    const notes = longTermStore(store).under("notes");
    for (let n = 0; n < 1_200; n++)
      await notes.under(`n${n % 7}`).put(`k${n}`, { text: `${(n * 7919) % 10_007} of ${n % 97}` });
    const all = await Promise.all(["1234 of 5", "7919", "of"].map((near) => notes.search({ near, limit: 50 })));
    found.push(all.flatMap(show));
  }
  expect(found[1]).toEqual(found[0]);
  expect(found[2]).toEqual(found[0]);
  expect(found[0]).toHaveLength(150);
});

test("a vector survives the process, is deleted with its item, and is unreadable in an encrypted file [E49]", async () => {
  const [, plain, sealed] = openStores();
  for (const store of [plain, sealed])
    await longTermStore(store as Store)
      .under("n")
      .put("a", { text: "abcabc" });
  const bare = Buffer.from(Float32Array.from([1 / Math.sqrt(3)]).buffer).toString("latin1");
  for (const store of opened) await store.close();
  expect(readBytes(join(home.path, "plain.db")).includes(bare)).toBe(true);
  expect(readBytes(join(home.path, "sealed.db")).includes(bare)).toBe(false);
  const [, again, opensAgain] = openStores();
  for (const store of [again, opensAgain]) {
    const notes = longTermStore(store as Store).under("n");
    expect(show(await notes.search({ near: "abc" }))).toEqual(["n/a 1.000000"]);
    expect(
      (await (store as typeof again & { verify: () => Promise<{ faults: readonly unknown[] }> }).verify()).faults,
    ).toEqual([]);
    await notes.delete("a");
    expect(await notes.search({ near: "abc" })).toEqual([]);
  }
});

test("a node finds the items that it put itself, and others find them once the superstep is saved", async () => {
  for (const store of openStores()) {
    const outside = longTermStore(store).under("n");
    await outside.put("old", { text: "aabb" });
    const graph = defineGraph({ name: "g", state: defineState({ messages: channel.messages() }) })
      .nodes({
        a: async (_state, { longTerm: open, step }) => {
          const notes = open("n");
          await notes.put("new", { text: "aaaa" });
          const seen = await step("outside", async () => show(await outside.search({ near: "aaa" })));
          const found = [...show(await notes.search({ near: "aaa" })), ...seen];
          return { messages: found.map((text, nth) => ({ role: "system", id: `m${nth}`, content: text })) };
        },
      })
      .edges({ [START]: "a", a: END });
    const { state } = await run(graph, { store, thread: "t" }).result;
    expect(state.messages.map(({ content }) => content)).toEqual([
      "n/new 1.000000",
      "n/old 0.707107",
      "n/old 0.707107",
    ]);
    expect(show(await outside.search({ near: "aaa", limit: 1 }))).toEqual(["n/new 1.000000"]);
  }
});

test("vector search is refused without embeddings, with wrong dimensions, and when embed throws", async () => {
  const bare = memoryStore();
  await longTermStore(bare).under("n").put("a", "text");
  await expect(longTermStore(bare).search({ near: "text" })).rejects.toMatchObject({ code: "invalid_option" });
  expect(() => memoryStore({ longTerm: { embed, dimensions: 0 } })).toThrow(/memoryStore: `longTerm` must be/);
  expect(() => sqliteStore(":memory:", { longTerm: { dimensions: 3 } as never })).toThrow(
    /sqliteStore: `longTerm` must be/,
  );
  const short = longTermStore(memoryStore({ longTerm: { embed, dimensions: 3 } })).under("n");
  await expect(short.put("a", "text")).rejects.toThrow(/3 numbers/);
  const broken = { embed: () => Promise.reject(new Error("no network")), dimensions };
  await expect(
    longTermStore(memoryStore({ longTerm: broken }))
      .under("n")
      .put("a", "text"),
  ).rejects.toThrow("no network");
  expect(
    await longTermStore(memoryStore({ longTerm: broken }))
      .under("n")
      .put("a", 7),
  ).toBeUndefined();
});
