/** The long-term store outside of runs: accepted values, queries and refusals. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type LongTermFilter,
  type LongTermPut,
  type LongTermSearch,
  longTermStore,
  memoryStore,
} from "../../src/index.ts";
import { createCodec } from "../../src/store.ts";
import { getFailure } from "../support/failure.ts";
import { createVirtualWorld } from "../support/virtual-world.ts";

function open() {
  const world = createVirtualWorld();
  const store = memoryStore();
  const root = longTermStore(store, { world });
  return { world, store, root, notes: root.under("users", "u1") };
}

test("a long-term item is returned as it was put with its times, and is frozen", async () => {
  const { world, notes } = open();
  const value = { since: new Date(5), big: 7n, tags: new Set(["food"]), nothing: null, zero: -0 };
  await notes.put("diet", value);
  await world.advance(10);
  await notes.put("diet", { ...value, nothing: "now" });
  const item = await notes.get("diet");
  expect(item).toEqual({
    namespace: ["users", "u1"],
    key: "diet",
    value: { ...value, nothing: "now" },
    createdAt: 1_000_000,
    updatedAt: 1_000_010,
  });
  expect(() => Object.assign(item?.value as object, { since: 1 })).toThrow(TypeError);
  expect(await notes.get("none")).toBeUndefined();
});

test("a long-term value mutated after put is stored as it was at put", async () => {
  const { notes } = open();
  const value = { tags: ["food"] };
  const put = notes.put("diet", value);
  value.tags.push("late");
  await put;
  expect((await notes.get("diet"))?.value).toEqual({ tags: ["food"] });
});

test("a long-term list pages over its own namespace, and a search covers all namespaces below", async () => {
  const { root, notes } = open();
  for (const key of ["b", "a", "c"]) await notes.put(key, key);
  await notes.under("work").put("d", "d");
  await root.under("users", "u2").put("e", "e");
  const keys = (items: readonly { readonly key: string }[]) => items.map(({ key }) => key).join("");
  expect(keys(await notes.list())).toBe("abc");
  const first = await notes.list({ limit: 2 });
  expect(keys(first)).toBe("ab");
  expect(keys(await notes.list({ limit: 2, after: first[1] }))).toBe("c");
  expect(keys(await notes.search())).toBe("abcd");
  expect(keys(await root.search({ limit: 3 }))).toBe("abc");
  expect(keys(await root.search({ after: (await root.search({ limit: 3 }))[2] }))).toBe("de");
  await notes.delete("b");
  await notes.delete("never");
  expect(keys(await notes.list())).toBe("ac");
});

test("namespaces with items are listed up to a depth and in pages", async () => {
  const { root } = open();
  for (const ids of [["users", "u1"], ["users", "u1", "work"], ["users", "u10"], ["teams", "t1", "a"], ["users"]])
    await root.under(...ids).put("k", 1);
  const paths = (found: readonly (readonly string[])[]) => found.map((ids) => ids.join("/"));
  expect(paths(await root.namespaces())).toEqual(["teams/t1/a", "users", "users/u1", "users/u1/work", "users/u10"]);
  expect(paths(await root.namespaces({ depth: 1 }))).toEqual(["teams", "users"]);
  expect(paths(await root.namespaces({ depth: 2 }))).toEqual(["teams/t1", "users", "users/u1", "users/u10"]);
  expect(paths(await root.under("users").namespaces({ depth: 1 }))).toEqual(["users", "users/u1", "users/u10"]);
  expect(paths(await root.namespaces({ limit: 2 }))).toEqual(["teams/t1/a", "users"]);
  expect(paths(await root.namespaces({ limit: 2, after: ["users"] }))).toEqual(["users/u1", "users/u1/work"]);
  expect(paths(await root.namespaces({ depth: 2, after: ["users", "u1"] }))).toEqual(["users/u10"]);
});

describe("long-term item with a ttl", () => {
  test("an expired long-term item is returned by no read and is swept later", async () => {
    const { world, root, notes } = open();
    await notes.put("code", "4711", { ttlMs: 1_000 });
    await notes.put("stays", "word");
    expect((await notes.get("code"))?.expiresAt).toBe(1_001_000);
    await world.advance(1_000);
    expect(await notes.get("code")).toBeUndefined();
    expect((await notes.list()).map(({ key }) => key)).toEqual(["stays"]);
    expect(await root.search({ text: "4711" })).toEqual([]);
    expect(await root.sweep()).toBe(1);
    expect(await root.sweep()).toBe(0);
  });

  test("a long-term item with refreshOnRead is extended by get, list and search", async () => {
    const { world, root, notes } = open();
    await notes.put("live", "word", { ttlMs: 1_000, refreshOnRead: true });
    await notes.put("dies", "word", { ttlMs: 1_000 });
    for (const read of [() => notes.get("live"), () => notes.list(), () => root.search({ text: "word" })]) {
      await world.advance(900);
      const found = await read();
      const item = Array.isArray(found) ? found.find(({ key }) => key === "live") : found;
      expect(item?.expiresAt).toBe(world.clock.now() + 1_000);
    }
    await world.advance(999);
    expect((await notes.list()).map(({ key }) => key)).toEqual(["live"]);
    await world.advance(1_000);
    expect(await notes.list()).toEqual([]);
  });

  test("a long-term item swept between read and refresh is expired for the reader, and an unswept item is extended", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const sweeps = async (): Promise<void> => {
      await world.advance(1_000);
      await store.longTerm.sweep(world.clock.now(), 10);
    };
    let between: (() => Promise<void>) | undefined;
    const refresh: typeof store.longTerm.refresh = async (touches) => {
      await between?.();
      return store.longTerm.refresh(touches);
    };
    const root = longTermStore({ longTerm: { ...store.longTerm, refresh } }, { world });
    const notes = root.under("n");
    for (const read of [
      () => notes.get("live"),
      async () => (await notes.list())[0],
      async () => (await root.search())[0],
    ]) {
      between = undefined;
      await notes.put("live", "word", { ttlMs: 1_000, refreshOnRead: true });
      await world.advance(999);
      expect((await read())?.expiresAt).toBe(world.clock.now() + 1_000);
      between = sweeps;
      expect(await read()).toBeUndefined();
    }
  });

  test("a long-term item is swept at its last expiry, after any sequence of puts, reads and deletes", async () => {
    const key = fc.constantFrom("a", "b", "c", "d", "e");
    const change = fc.oneof(
      fc.record({ put: key, ttlMs: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }) }),
      fc.record({ read: key }),
      fc.record({ drop: key }),
      fc.record({ wait: fc.integer({ min: 1, max: 5 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 40 }), async (changes) => {
        const { world, root, notes } = open();
        const ends = new Map<string, { at: number; ttlMs: number }>();
        for (const step of changes) {
          const now = world.clock.now();
          if ("put" in step) {
            const { put, ttlMs } = step;
            await notes.put(put, 1, ttlMs === undefined ? {} : { ttlMs, refreshOnRead: true });
            ends.set(put, ttlMs === undefined ? { at: Infinity, ttlMs: 0 } : { at: now + ttlMs, ttlMs });
          } else if ("read" in step) {
            const end = ends.get(step.read);
            expect((await notes.get(step.read)) !== undefined).toBe(end !== undefined && end.at > now);
            if (end !== undefined && end.at > now && end.ttlMs > 0) end.at = now + end.ttlMs;
          } else if ("drop" in step) {
            await notes.delete(step.drop);
            ends.delete(step.drop);
          } else await world.advance(step.wait);
        }
        const now = world.clock.now();
        const live = [...ends].flatMap(([name, { at }]) => (at > now ? [name] : []));
        await root.sweep();
        expect(await root.sweep()).toBe(0);
        expect((await notes.list()).map(({ key: name }) => name)).toEqual(live.sort());
        // Reads extend the lifetime of items: after the longest time only items without a ttl remain.
        await world.advance(9);
        const left = (await notes.list()).length;
        expect(left).toBe([...ends.values()].filter(({ at }) => at === Infinity).length);
        expect(await root.sweep()).toBe(live.length - left);
      }),
    );
  });
});

describe("long-term filter", () => {
  const values = {
    ann: { name: "Ann", age: 30, tags: ["a", "b"], address: { city: "Oslo" }, active: true, note: null },
    bob: { name: "Bob", age: 41.5, tags: [], address: { city: "Bergen" }, active: false },
    text: "a text has no fields",
    list: [{ name: "Ann" }],
  };

  const found: readonly (readonly [string, LongTermFilter, string])[] = [
    ["a value alone is equality", { name: "Ann" }, "ann"],
    ["a number", { age: 41.5 }, "bob"],
    ["a number is not its text", { age: "30" }, ""],
    ["true is not 1", { active: 1 }, ""],
    ["false", { active: false }, "bob"],
    ["null is a value", { note: null }, "ann"],
    ["a field inside another", { "address.city": "Oslo" }, "ann"],
    ["more than", { age: { gt: 30 } }, "bob"],
    ["at least", { age: { gte: 30 } }, "ann bob"],
    ["between", { age: { gt: 29, lt: 41 } }, "ann"],
    ["texts are compared by their characters", { name: { gte: "B" } }, "bob"],
    ["a text is neither more nor less than a number", { name: { gt: 0 } }, ""],
    ["one of several", { name: { in: ["Bob", "Eve", null] } }, "bob"],
    ["none of an empty list", { name: { in: [] } }, ""],
    ["a list that has it", { tags: { has: "b" } }, "ann"],
    ["another value, or no value", { name: { ne: "Ann" } }, "bob list text"],
    ["all conditions hold", { active: true, age: { lt: 31 } }, "ann"],
    ["no condition", {}, "ann bob list text"],
    ["an inherited property is no field", { toString: { ne: "x" }, "name.length": 3 }, ""],
  ];

  test.each(found)("a long-term filter returns the matching items: %s", async (_, filter, keys) => {
    const { notes } = open();
    for (const [key, value] of Object.entries(values)) await notes.put(key, value);
    expect((await notes.search({ filter })).map(({ key }) => key).join(" ")).toBe(keys);
  });

  test("a long-term filter finds sparse matches over many items in pages", async () => {
    const { notes } = open();
    for (let n = 0; n < 1_200; n++) await notes.put(`k${String(n).padStart(4, "0")}`, { odd: n % 400 === 399 });
    const [first, ...rest] = await notes.search({ filter: { odd: true }, limit: 2 });
    expect([first?.key, rest[0]?.key, rest.length]).toEqual(["k0399", "k0799", 1]);
    expect((await notes.search({ filter: { odd: true }, after: rest[0] })).map(({ key }) => key)).toEqual(["k1199"]);
  });

  const refused: readonly (readonly [string, unknown])[] = [
    ["an unknown operator", { age: { $gt: 1 } }],
    ["an operator like a property of every object", { age: { constructor: 1 } }],
    ["an operator that changes a prototype", { age: JSON.parse('{"__proto__": 1}') }],
    ["a field inside another, not written with a dot", { address: { city: "Oslo" } }],
    ["a field with a quote", { "name') OR 1=1 --": "x" }],
    ["a field with another quote", { 'a"b': "x" }],
    ["a path of a database", { "$.name": "x" }],
    ["a prototype", JSON.parse('{"__proto__": "x"}')],
    ["a prototype inside", { "a.__proto__.b": 1 }],
    ["a constructor", { "constructor.name": "Object" }],
    ["an empty field", { "": 1 }],
    ["a field with an empty part", { "a..b": 1 }],
    ["a condition without an operator", { age: {} }],
    ["a condition that is a list", { age: [30] }],
    ["a condition that is undefined", { age: undefined }],
    ["a function", { age: () => true }],
    ["not a number", { age: Number.NaN }],
    ["an order of truths", { active: { gt: false } }],
    ["an object to be equal to", { address: { eq: { city: "Oslo" } } }],
    ["in without a list", { name: { in: "Ann" } }],
    ["a text instead of a filter", "name = 'Ann'"],
    ["a list instead of a filter", [{ name: "Ann" }]],
    ["null instead of a filter", null],
  ];

  test.each(refused)("a long-term filter with %s is refused", async (_, filter) => {
    const { notes } = open();
    await notes.put("ann", values.ann);
    await getFailure(notes.search({ filter } as LongTermSearch), "invalid_option");
  });
});

describe("long-term text search", () => {
  async function library() {
    const { notes } = open();
    await notes.put("a", { title: "Crème Brûlée", body: { text: "A recipe, e-mailed from OSLO." }, n: 4711 });
    await notes.put("b", ["ﬁne Straße", "東京タワー", "हिन्दी"]);
    await notes.put("c", "oslo's weather; recipes", { index: [] });
    await notes.put("d", { title: "Oslo", secret: "recipe" }, { index: ["title", "none.there"] });
    await notes.put("e", "oslo", { index: false });
    await notes.put("f", `${"x".repeat(64)}one`);
    return async (text: string): Promise<string> => (await notes.search({ text })).map(({ key }) => key).join("");
  }

  test.each([
    ["oslo", "ad", "case does not count"],
    ["OSLO recipe", "a", "all words, in any order"],
    ["recipe", "a", "a word is not the beginning of another"],
    ["rec*", "a", "a beginning"],
    ["creme brulee", "a", "accents do not count"],
    ["CRÈME", "a", "nor in what is looked for"],
    ["e-mailed", "a", "what stands between words does not count"],
    ["e-mail*", "a", "the last word of a term is the beginning"],
    ["4711", "", "numbers are no texts"],
    ["fine straße", "b", "ways of writing one character do not count"],
    ["東京*", "b", "a script without spaces"],
    ["हिन्दी", "b", "marks that make other letters stay"],
    ["हनद", "", "and are not left out"],
    ["AND", "", "no word is an operator"],
    ['"oslo" OR x) --', "", "and no character is one"],
    ["oslo NOT recipe", "", "and neither is a word between"],
    ["***", "", "no word at all"],
    ["", "", "nothing"],
    [`${"X".repeat(64)}two`, "f", "long words are told apart by their beginning"],
  ])("the text search for %s finds the items (%s): %s", async (text, keys) => {
    const find = await library();
    expect(await find(text)).toBe(keys);
  });

  test("a long-term text search can be combined with a filter", async () => {
    const { notes } = open();
    await notes.put("a", { text: "oslo", n: 1 });
    await notes.put("b", { text: "oslo", n: 2 });
    expect((await notes.search({ text: "os*", filter: { n: { gt: 1 } } })).map(({ key }) => key)).toEqual(["b"]);
  });
});

describe("invalid long-term arguments", () => {
  const { notes, root } = open();
  const ids = ["", "a/b", "a b", "~", "../x", "ä", "__proto__", "x".repeat(129), "a\u0000", 7, null, undefined];

  test.each(ids)("the long-term id %j is refused", async (id) => {
    const bad = id as string;
    expect(() => root.under(bad)).toThrow(expect.objectContaining({ code: "invalid_id" }));
    await getFailure(notes.get(bad), "invalid_id");
    await getFailure(notes.put(bad, 1), "invalid_id");
    await getFailure(notes.delete(bad), "invalid_id");
  });

  test.each<readonly [string, unknown]>([
    ["undefined", undefined],
    ["a function", () => 1],
    ["a promise", Promise.resolve(1)],
    ["an instance of a class that the codec does not know", new (class Point {})()],
  ])("a long-term put refuses the value %s", async (name, value) => {
    await getFailure(notes.put("k", value), name === "undefined" ? "invalid_option" : "unencodable_value");
    expect(await notes.get("k")).toBeUndefined();
  });

  test.each<readonly [string, unknown]>([
    ["an unknown option", { ttl: 5 }],
    ["a time in the past", { ttlMs: 0 }],
    ["a time that is not a number", { ttlMs: "5" }],
    ["half a millisecond", { ttlMs: 0.5 }],
    ["an infinite time", { ttlMs: Number.POSITIVE_INFINITY }],
    ["refresh without a ttl", { refreshOnRead: true }],
    ["refresh that is not a boolean", { ttlMs: 5, refreshOnRead: "yes" }],
    ["an index that is not a list", { index: "text" }],
    ["an index of all", { index: true }],
    ["an index of a hostile field", { index: ["__proto__"] }],
    ["null", null],
  ])("a long-term put is refused: %s", async (_, options) => {
    await getFailure(notes.put("k", 1, options as LongTermPut), "invalid_option");
  });

  test.each<readonly [string, unknown]>([
    ["an unknown option", { query: "x" }],
    ["an invalid text", { text: 7 }],
    ["no limit", { limit: 0 }],
    ["a text as limit", { limit: "1; DROP TABLE long_term" }],
    ["a page after an empty value", { after: {} }],
    ["a page after a text", { after: "users/u1" }],
  ])("a long-term search is refused: %s", async (_, query) => {
    await getFailure(notes.search(query as LongTermSearch), "invalid_option");
  });

  test("a long-term item at the root, a depth of zero, and an invalid store are refused", async () => {
    for (const work of [root.put("k", 1), root.get("k"), root.delete("k"), root.list()])
      await getFailure(work, "invalid_option");
    await getFailure(root.namespaces({ depth: 0 }), "invalid_option");
    await getFailure(() => longTermStore({} as never), "invalid_option");
    await getFailure(() => longTermStore(memoryStore(), { codecs: 1 } as never), "invalid_option");
  });
});

test("long-term values of classes are encoded by the given codec and refused by a codec without their class", async () => {
  class Money {
    readonly cents: number;
    constructor(cents: number) {
      this.cents = cents;
    }
  }
  const codec = createCodec([
    {
      tag: "money",
      matches: (value): value is Money => value instanceof Money,
      encode: ({ cents }) => cents,
      decode: (cents) => new Money(cents as number),
    },
  ]);
  const store = memoryStore();
  const purse = longTermStore(store, { codec }).under("purse");
  await purse.put("one", { price: new Money(5) });
  const item = await purse.get("one");
  expect(item?.value).toEqual({ price: expect.any(Money) });
  await getFailure(longTermStore(store).under("purse").get("one"), "store_corrupt");
});
