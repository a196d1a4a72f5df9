/** What opening a store costs: statements are prepared at their first use, and the check of a file is bounded. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineGraph, defineState, END, run, START } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { maxCheckedRows } from "../../src/file/check-catalogue.ts";
import { getExpectedFingerprint, hashSchema } from "../../src/file/open-database.ts";
import { prepareOnUse } from "../../src/file/prepare-on-use.ts";
import { migrations, pageBytes, schemaHash } from "../../src/file/schema.ts";
import { createOpenSchema } from "../support/growing-graph.ts";
import { createSuperstep, graph, saveCommit } from "../support/rows.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

let prepared = 0;
/** Texts of the prepared statements. */
const statements: string[] = [];
const { prepare } = Database.prototype;

beforeEach(() => {
  statements.length = 0;
  Database.prototype.prepare = function count(this: Database.Database, sql: string) {
    prepared += 1;
    statements.push(sql);
    return prepare.call(this, sql);
  } as typeof prepare;
  home = createFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => {
  Database.prototype.prepare = prepare;
  home.remove();
});

/** Number of statements that SQLite prepared while `work` ran. */
async function countPrepared(work: () => unknown): Promise<number> {
  const before = prepared;
  await work();
  return prepared - before;
}

const counter = defineGraph({ name: "counter", state: defineState({ n: createOpenSchema<number>() }) })
  .nodes({ count: ({ n }) => ({ n: n + 1 }) })
  .edges({ [START]: "count", count: END });

test("opening a store prepares at most 9 statements, and a first run at most 40 more [FX99]", async () => {
  await sqliteStore(file).close();
  let store = sqliteStore(file);
  expect(await countPrepared(() => store.close())).toBeLessThanOrEqual(4);
  expect(
    await countPrepared(() => {
      store = sqliteStore(file);
    }),
  ).toBeLessThanOrEqual(9);
  const runs = (thread: string) => () => run(counter, { store, thread, input: { n: 0 } }).result;
  expect(await countPrepared(runs("a"))).toBeLessThanOrEqual(40);
  // The first run registers the owner before its claim; later runs claim their thread with their first commit.
  expect(await countPrepared(runs("b"))).toBeLessThanOrEqual(2);
  expect(await countPrepared(runs("c"))).toBe(0);
  await store.close();
});

test("the tables of a new store are not compared with their indexes, and those of an existing one are [FX99]", async () => {
  const listCompared = () =>
    statements.splice(0).filter((sql) => /^SELECT max\(key\) FROM (threads|graphs|branches|channels)$/.test(sql));
  await sqliteStore(file).close();
  expect(listCompared()).toEqual([]);
  await sqliteStore(file).close();
  expect(listCompared()).toHaveLength(4);
});

test("a statement is prepared once, at its first use, with the mode that was set before [FX99]", async () => {
  const db = new Database(":memory:");
  db.exec("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (7), (8)");
  prepareOnUse(db);
  const query = db.prepare<[number], number>("SELECT n FROM t WHERE n > ?").pluck();
  const rows = db.prepare("SELECT n FROM t").raw();
  const broken = db.prepare("SELECT n FROM missing");
  expect(await countPrepared(() => [query.get(7), query.all(0), [...query.iterate(7)]])).toBe(1);
  expect(query.all(0)).toEqual([7, 8]);
  expect(rows.all()).toEqual([[7], [8]]);
  expect(rows.raw(false).get()).toEqual({ n: 7 });
  expect(() => broken.get()).toThrow("no such table");
  db.close();
});

test("the hash of the schema is that of the tables of a new file [FX99]", () => {
  expect(schemaHash).toBe(hashSchema(getExpectedFingerprint(migrations)));
});

/** Creates a file with threads `thread-000001` and on. */
async function createThreads(count: number): Promise<void> {
  const store = sqliteStore(file);
  const claim = await store.claim({ ...graph, thread: "t" });
  await saveCommit(store, createSuperstep("t", claim, 1));
  await store.close();
  const db = new Database(file);
  const names = db.prepare<[], string>("SELECT name FROM pragma_table_info('threads')").pluck().all();
  const columns = names.filter((name) => name !== "key" && name !== "id").join(", ");
  db.exec(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})
INSERT INTO threads (id, ${columns}) SELECT printf('thread-%06d', n), ${columns} FROM numbers, threads WHERE id = 't'`,
  );
  db.close();
}

/** Changes the id of a thread in its row, and not in the index. */
function changeRow(id: string): void {
  const bytes = readFileSync(file);
  for (let at = bytes.indexOf(id); at >= 0; at = bytes.indexOf(id, at + 1)) {
    const page = Math.floor(at / pageBytes) * pageBytes;
    const tableLeaf = 0x0d;
    if (bytes[page === 0 ? 100 : page] === tableLeaf) bytes.write("X", at);
  }
  writeFileSync(file, bytes);
}

test.each([maxCheckedRows - 2, maxCheckedRows + 500])(
  "a new thread that its index does not have is found when a file of %i threads is opened [FX99]",
  async (count) => {
    await createThreads(count);
    await sqliteStore(file).close();
    changeRow(`thread-${String(count).padStart(6, "0")}`);
    expect(() => sqliteStore(file)).toThrow(
      expect.objectContaining({ code: "store_corrupt", message: expect.stringContaining("the table threads") }),
    );
  },
);

test("an old thread that its index does not have is found by verify, in a file with more threads than an opening checks [FX99]", async () => {
  await createThreads(maxCheckedRows + 500);
  changeRow("thread-000007");
  const store = sqliteStore(file);
  expect(JSON.stringify((await store.verify()).faults)).toContain("missing from index");
  await store.close();
});
