/** The long-term store in a file: indexes, text search, damage, encryption. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { isStatewrightError, type LongTerm, longTermStore } from "@statewright/core";
import { type Encryption, encryptStore, type SqliteStore } from "@statewright/sqlite";
import type Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { longTermQueries } from "../../src/write/long-term-rows.ts";
import { change, readBytes } from "../support/database-file.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let opened: SqliteStore[];

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  opened = [];
});

afterEach(async () => {
  for (const each of opened) await each.close();
  home.remove();
});

function open(encryption?: Encryption): SqliteStore {
  const store = sqliteStore(file, { durability: "normal", ...(encryption === undefined ? {} : { encryption }) });
  opened.push(store);
  return store;
}

function plan(db: Database.Database, sql: string, given: readonly unknown[]): string {
  const rows = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...given) as readonly { readonly detail: string }[];
  return rows.map(({ detail }) => detail).join("; ");
}

async function getCode(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: unknown) => (isStatewrightError(error) ? error.code : String(error)),
  );
}

test("a get, a page and a sweep of 100,000 items use an index", async () => {
  const store = open();
  for (let from = 0; from < 100_000; from += 10_000) {
    const changes = Array.from({ length: 10_000 }, (_, index) => {
      const n = from + index;
      const row = { namespace: `users/u${n % 1_000}/`, key: `k${n}`, value: `${n}`, updatedAt: 1 };
      return { put: n % 100 === 0 ? { ...row, expiresAt: 1_000_000 + n } : row };
    });
    await store.longTerm.write(changes, 0);
  }
  expect((await store.longTerm.get({ namespace: "users/u77/", key: "k5077" }, 5))?.value).toBe("5077");
  expect(await store.longTerm.page({ namespace: "users/u77/", deep: true, at: 5, limit: 200 })).toHaveLength(100);
  await store.close();
  const range = { namespace: "a/", id: "b", at: 1, from: "a/", after: "", end: "a0", limit: 9, words: '"x"' };
  const plans = change(file, (db) => {
    db.exec("ANALYZE");
    const asked = [range];
    return {
      get: plan(db, longTermQueries.get, asked),
      page: plan(db, longTermQueries.page, asked),
      search: plan(db, longTermQueries.search, asked),
      over: plan(db, longTermQueries.over, [1, 1]),
    };
  });
  expect(plans.get).toMatch(/^SEARCH l USING INDEX \S+ \(namespace=\? AND id=\?\)$/);
  expect(plans.page).toMatch(/^SEARCH l USING INDEX \S+ \(\(namespace,id\)>\(\?,\?\) AND namespace<\?\)$/);
  expect(plans.search).toMatch(/^SCAN w VIRTUAL TABLE .*SEARCH l USING INTEGER PRIMARY KEY \(rowid=\?\)/);
  expect(plans.over).toBe("SEARCH l USING INDEX long_term_by_end (expires<?)");
});

test("long-term values are bound parameters, and text that resembles SQL is stored as text", async () => {
  const notes = longTermStore(open()).under("notes");
  const hostile = `x'); DROP TABLE long_term; -- " OR 1=1 * NEAR( ^`;
  await notes.put("k", { text: hostile, [hostile]: 1 });
  expect((await notes.get("k"))?.value).toEqual({ text: hostile, [hostile]: 1 });
  expect((await notes.search({ filter: { text: hostile } })).length).toBe(1);
  expect((await notes.search({ text: hostile })).length).toBe(1);
  expect((await notes.search({ text: `${hostile} elsewhere` })).length).toBe(0);
});

test("a deleted, expired or replaced item leaves no word and no text in the file", async () => {
  const store = open();
  const root = longTermStore(store);
  const notes = root.under("notes");
  for (let n = 0; n < 50; n++) await notes.put(`other${n}`, `filler${n} common`);
  await notes.put("deleted", "sentineldeleted");
  await notes.put("replaced", "sentinelreplaced");
  await notes.delete("deleted");
  await notes.put("replaced", "short");
  await store.vacuum();
  await store.close();
  const bytes = readBytes(file);
  expect(bytes).toContain("filler49");
  expect(bytes).not.toMatch(/sentinel/);
});

test("a changed long-term row is reported by a read and by verify, and other rows are readable", async () => {
  const store = open();
  const notes = longTermStore(store).under("notes");
  for (const key of ["a", "b", "c", "d"]) await notes.put(key, `word ${key}`);
  expect((await store.verify()).faults).toEqual([]);
  await store.close();
  change(file, (db) => {
    db.prepare("UPDATE long_term SET value = '\"other\"' WHERE id = 'a'").run();
    db.prepare("UPDATE long_term SET expires = 9e15 WHERE id = 'b'").run();
    db.prepare("UPDATE long_term SET namespace = 'else/' WHERE id = 'c'").run();
  });
  const again = open();
  const read = longTermStore(again);
  expect(await getCode(read.under("notes").get("a"))).toBe("store_corrupt");
  expect(await getCode(read.under("notes").get("b"))).toBe("store_corrupt");
  expect(await getCode(read.under("else").get("c"))).toBe("store_corrupt");
  expect((await read.under("notes").get("d"))?.value).toBe("word d");
  expect((await again.verify()).faults).toHaveLength(3);
});

test("a backup contains long-term items and finds them by words", async () => {
  const store = open();
  await longTermStore(store).under("notes").put("k", "a word");
  const copy = join(home.path, "copy.db");
  await store.backup(copy);
  const restored = sqliteStore(copy, { durability: "normal" });
  opened.push(restored);
  expect((await longTermStore(restored).search({ text: "wor*" })).map(({ key }) => key)).toEqual(["k"]);
});

describe("encrypted long-term items", () => {
  const [old, newest] = ["k1", "k2"].map((id) => ({ id, key: randomBytes(32) }));
  const both: Encryption = { keys: () => [newest!, old!], longTerm: () => [newest!, old!] };
  const before: Encryption = { keys: () => [old!], longTerm: () => [old!] };

  async function fill(notes: LongTerm): Promise<void> {
    await notes.put("a", { text: "sentinel one", n: 1 });
    await notes.put("b", { text: "sentinel two", n: 2 });
  }

  test("an encrypted store seals long-term items in every byte of the file, and filters still work [E49]", async () => {
    const store = open(both);
    const notes = longTermStore(store).under("notes");
    await fill(notes);
    expect((await notes.search({ filter: { n: { gt: 1 } } })).map(({ value }) => value)).toEqual([
      { text: "sentinel two", n: 2 },
    ]);
    expect((await store.verify()).faults).toEqual([]);
    expect(readBytes(file)).not.toContain("sentinel");
    await store.close();
    expect(readBytes(file)).not.toContain("sentinel");
  });

  test("an encrypted store keeps no search words of items and refuses word search [E49]", async () => {
    const notes = longTermStore(open(both)).under("notes");
    await fill(notes);
    const refusal = await notes.search({ text: "sentinel" }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "invalid_option", message: expect.stringContaining("no") });
    expect(
      change(file, (db) => db.prepare("SELECT count(*) FROM long_term WHERE words IS NOT NULL").pluck().get()),
    ).toBe(0);
  });

  test("an encrypted store requests long-term keys by namespace, and keys of another namespace decrypt nothing", async () => {
    const getKey = (ids: readonly string[]) => [{ id: `k-${ids[0]}`, key: Buffer.alloc(32, ids[0]) }];
    const store = open({ keys: () => [old!], longTerm: getKey });
    const root = longTermStore(store);
    await root.under("ann").put("k", "hers");
    await root.under("bob").put("k", "his");
    expect((await root.under("ann").get("k"))?.value).toBe("hers");
    await store.close();
    expect(
      await getCode(
        longTermStore(open({ keys: () => [old!] }))
          .under("ann")
          .get("k"),
      ),
    ).toBe("missing_key");
    change(file, (db) => {
      const { value } = db.prepare("SELECT value FROM long_term WHERE namespace = 'bob/'").get() as { value: Buffer };
      db.prepare("UPDATE long_term SET value = ? WHERE namespace = 'ann/'").run(value);
    });
    const one = open({ keys: () => [old!], longTerm: () => [...getKey(["ann"]), ...getKey(["bob"])] });
    expect(await getCode(longTermStore(one).under("ann").get("k"))).toBe("store_corrupt");
  });

  test("an encrypted store rotates long-term keys during use", async () => {
    const first = open(before);
    await fill(longTermStore(first).under("notes"));
    await first.close();
    const second = open(both);
    await longTermStore(second).under("notes").put("c", { text: "new", n: 3 });
    expect(await second.rotate()).toBe(2);
    expect(await second.rotate()).toBe(0);
    await second.close();
    const third = open({ keys: () => [newest!], longTerm: () => [newest!] });
    expect((await longTermStore(third).under("notes").list()).map(({ key }) => key)).toEqual(["a", "b", "c"]);
  });

  test("a plain store is encrypted with its items, and a store with items does not open without their keys", async () => {
    const plain = open();
    await fill(longTermStore(plain).under("notes"));
    await plain.close();
    expect(() => open(both)).toThrow(expect.objectContaining({ code: "invalid_option" }));
    expect(() => encryptStore(file, { keys: () => [old!] })).toThrow(expect.objectContaining({ code: "missing_key" }));
    const still = open();
    expect(await longTermStore(still).search({ text: "sentinel" })).toHaveLength(2);
    await still.close();
    encryptStore(file, both);
    expect(readBytes(file)).not.toContain("sentinel");
    const sealed = open(both);
    expect((await longTermStore(sealed).under("notes").list()).map(({ key }) => key)).toEqual(["a", "b"]);
    expect((await sealed.verify()).faults).toEqual([]);
    await longTermStore(sealed).under("notes").delete("a");
    expect(await longTermStore(sealed).under("notes").get("a")).toBeUndefined();
  });
});
