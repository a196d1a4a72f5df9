/** The long-term store equals a plain map after any operations, in memory and in a file. */

import { virtualClock } from "@statewright/testing";
import fc from "fast-check";
import { type LongTerm, type LongTermItem, longTermStore, type World } from "statewright";
import { expect, test } from "vitest";
import { type Place, places } from "../../support/both-stores.ts";

const ids = fc.constantFrom("a", "b", "c", "a-b", "B");
const path = fc.array(ids, { minLength: 1, maxLength: 3 });
const value = fc.record({
  text: fc.constantFrom("red fox", "Red hén", "blue hen", "", "東京 fox"),
  n: fc.integer({ min: 0, max: 3 }),
});
const change = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("put" as const), path, key: ids, value }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("put" as const),
      path,
      key: ids,
      value,
      ttlMs: fc.integer({ min: 1, max: 20 }),
      refreshOnRead: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete" as const), path, key: ids }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("get" as const), path, key: ids }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 10 }) }) },
  { weight: 1, arbitrary: fc.constant({ do: "sweep" as const }) },
);
type Change = typeof change extends fc.Arbitrary<infer Each> ? Each : never;

/** Naive reference implementation of the long-term store. */
function model(now: () => number) {
  const items = new Map<string, LongTermItem & { readonly ttlMs?: number | undefined; readonly refresh: boolean }>();
  const live = () =>
    [...items]
      .filter(([, { expiresAt = Number.POSITIVE_INFINITY }]) => expiresAt > now())
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([, item]) => item);
  const name = (at: readonly string[], key: string) => `${at.map((id) => `${id}/`).join("")} ${key}`;
  return {
    live,
    at: (below: readonly string[]) => live().filter(({ namespace }) => below.every((id, n) => namespace[n] === id)),
    get: (at: readonly string[], key: string) =>
      live().find((item) => name(item.namespace, item.key) === name(at, key)),
    put: (at: readonly string[], key: string, given: unknown, ttlMs: number | undefined, refresh: boolean) => {
      const before = live().find((item) => name(item.namespace, item.key) === name(at, key));
      items.set(name(at, key), {
        ...{ namespace: at, key, value: given, createdAt: before?.createdAt ?? now(), updatedAt: now() },
        ...(ttlMs === undefined ? {} : { expiresAt: now() + ttlMs }),
        ...{ ttlMs, refresh },
      });
    },
    read: (read: readonly LongTermItem[]) => {
      for (const { namespace, key } of read) {
        const item = items.get(name(namespace, key));
        if (item?.refresh === true && item.ttlMs !== undefined)
          items.set(name(namespace, key), { ...item, expiresAt: now() + item.ttlMs });
      }
    },
    remove: (at: readonly string[], key: string) => items.delete(name(at, key)),
  };
}

async function apply(root: LongTerm & { sweep(): Promise<number> }, known: ReturnType<typeof model>, each: Change) {
  switch (each.do) {
    case "put": {
      const { ttlMs, refreshOnRead = false } = each as { ttlMs?: number; refreshOnRead?: boolean };
      const options = ttlMs === undefined ? {} : { ttlMs, refreshOnRead };
      await root.under(...each.path).put(each.key, each.value, options);
      known.put(each.path, each.key, each.value, ttlMs, refreshOnRead);
      return;
    }
    case "delete":
      await root.under(...each.path).delete(each.key);
      known.remove(each.path, each.key);
      return;
    case "get": {
      const wanted = known.get(each.path, each.key);
      if (wanted !== undefined) known.read([wanted]);
      const found = await root.under(...each.path).get(each.key);
      expect(found).toEqual(plain(known.get(each.path, each.key)));
      return;
    }
    case "sweep":
      await root.sweep();
      return;
    default:
  }
}

function plain(item: LongTermItem | undefined): LongTermItem | undefined {
  if (item === undefined) return undefined;
  const { namespace, key, value: held, createdAt, updatedAt, expiresAt } = item;
  return { namespace, key, value: held, createdAt, updatedAt, ...(expiresAt === undefined ? {} : { expiresAt }) };
}

const folded = (text: string): readonly string[] => text.toLowerCase().replaceAll("é", "e").split(" ");

async function compare(changes: readonly Change[], below: readonly string[], place: Place): Promise<void> {
  let now = 1_000;
  const world: World = { ...virtualClock(), clock: { now: () => now, monotonic: () => now } };
  const known = model(() => now);
  const root = longTermStore(place.store, { world });
  for (const each of changes) {
    if (each.do === "wait") now += each.ms;
    else await apply(root, known, each);
  }
  const filterItems = (test: (value: { readonly n: number; readonly text: string }) => boolean) =>
    known.live().filter(({ value: held }) => test(held as { readonly n: number; readonly text: string }));
  const hasWords = ({ text }: { readonly text: string }): boolean => {
    const words = folded(text);
    return words.includes("red") && words.some((word) => word.startsWith("he"));
  };
  const asks: readonly (readonly [() => readonly LongTermItem[], () => Promise<readonly LongTermItem[]>])[] = [
    [known.live, () => longTermStore(place.peer(), { world }).search()],
    [() => known.at(below), () => root.under(...below).search()],
    [
      () => known.at(below).filter(({ namespace }) => namespace.length === below.length),
      () => root.under(...below).list(),
    ],
    [() => known.live().slice(0, 2), () => root.search({ limit: 2 })],
    [() => filterItems(({ n }) => n > 1), () => root.search({ filter: { n: { gt: 1 } } })],
    [() => filterItems(hasWords), () => root.search({ text: "RÉD he*" })],
  ];
  for (const [wanted, ask] of asks) {
    known.read(wanted());
    expect(await ask()).toEqual(wanted().map(plain));
  }
}

test.each(places)("%s the long-term store behaves like a map", async (_, open) => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 30 }), path, async (changes, below) => {
      const place = open();
      try {
        await compare(changes, below, place);
      } finally {
        await place.close();
      }
    }),
    { seed: 11, numRuns: 60 },
  );
});
