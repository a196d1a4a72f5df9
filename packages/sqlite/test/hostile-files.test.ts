import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isStatewrightError, resume, run } from "@statewright/core";
import type { SqliteStore } from "@statewright/sqlite";
import type Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../src/file/open-database.ts";
import { change } from "./support/database-file.ts";
import { createGrowingGraph, first } from "./support/growing-graph.ts";
import { createInterruptRow, createRunRow, createSuperstep, graph, saveCommit } from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(async () => {
  home = createFolder();
  file = join(home.path, "agent.db");
  const store = sqliteStore(file);
  const claim = await store.claim({ ...graph, thread: "t" });
  await saveCommit(store, { ...createSuperstep("t", claim, 1), run: createRunRow("r1", "t") });
  const { answer: _, answeredAt: _at, ...open } = createInterruptRow("q1", "");
  await saveCommit(store, {
    thread: "t",
    branch: "main",
    epoch: claim.epoch,
    seq: 1,
    run: { ...createRunRow("r1", "t"), status: "waiting" },
    interrupts: [open],
    timers: [{ arm: { id: "wait", kind: "after", generation: 1, dueAt: 5, about: "x" } }],
    release: true,
  });
  await store.close();
});

afterEach(() => home.remove());

/** Changes the file with every permission that SQLite grants. */
function forge(work: (db: Database.Database) => void): void {
  change(file, (db) => {
    db.unsafeMode(true);
    db.pragma("writable_schema = ON");
    work(db);
  });
}

/** Triggers, views and other changes of a forged file; none of them may run before the refusal. */
const refused: Readonly<Record<string, (db: Database.Database) => unknown>> = {
  "a trigger that empties a table": (db) =>
    db.exec("CREATE TRIGGER spy AFTER INSERT ON deltas BEGIN DELETE FROM effects; END"),
  "a trigger that copies written rows": (db) =>
    db.exec(
      "CREATE TABLE copies (text); CREATE TRIGGER spy AFTER INSERT ON deltas BEGIN INSERT INTO copies VALUES (new.text); END",
    ),
  "a trigger on the table of owners": (db) =>
    db.exec("CREATE TRIGGER spy BEFORE INSERT ON owners BEGIN UPDATE threads SET owner = NULL; END"),
  "a trigger with a forged text that attaches a file": (db) =>
    db.exec(
      "CREATE TRIGGER spy AFTER INSERT ON deltas BEGIN SELECT 1; END; UPDATE sqlite_master SET sql = 'CREATE TRIGGER spy AFTER INSERT ON deltas BEGIN ATTACH ''/tmp/x'' AS x; END' WHERE name = 'spy'",
    ),
  "a view": (db) => db.exec("CREATE VIEW spy AS SELECT * FROM deltas"),
  "a view in the place of a table": (db) =>
    db.exec("ALTER TABLE deltas RENAME TO kept; CREATE VIEW deltas AS SELECT * FROM kept"),
  "a view with an INSTEAD OF trigger": (db) =>
    db.exec(
      "ALTER TABLE timers RENAME TO kept; CREATE VIEW timers AS SELECT * FROM kept; CREATE TRIGGER spy INSTEAD OF INSERT ON timers BEGIN SELECT 1; END",
    ),
  "a view that never ends": (db) =>
    db.exec("CREATE VIEW spy AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"),
  "another view of history": (db) => db.exec("DROP VIEW history; CREATE VIEW history AS SELECT 1 AS thread"),
  "a view that reads itself": (db) =>
    db.exec("UPDATE sqlite_master SET sql = 'CREATE VIEW history AS SELECT * FROM history' WHERE name = 'history'"),
  "a virtual table": (db) => db.exec("CREATE VIRTUAL TABLE spy USING fts5(text)"),
  "a virtual table in the place of a table": (db) =>
    db.exec("DROP TABLE events; CREATE VIRTUAL TABLE events USING fts5(thread, seq, branch, at, sum, text)"),
  "a generated column": (db) =>
    db.exec("ALTER TABLE deltas ADD COLUMN spy TEXT GENERATED ALWAYS AS (upper(text)) VIRTUAL"),
  "a column with a default": (db) => db.exec("ALTER TABLE runs ADD COLUMN spy TEXT DEFAULT 'x'"),
  "a check that calls a function": (db) =>
    db.exec(
      "UPDATE sqlite_master SET sql = replace(sql, 'kind TEXT NOT NULL', 'kind TEXT NOT NULL CHECK (load_extension(kind))') WHERE name = 'deltas'",
    ),
  "an index over an expression": (db) => db.exec("CREATE INDEX spy ON deltas (json(text))"),
  "a partial index": (db) => db.exec("CREATE INDEX spy ON deltas (kind) WHERE length(kind) > 3"),
  "a table without STRICT": (db) =>
    db.exec("UPDATE sqlite_master SET sql = replace(sql, ') STRICT', ')') WHERE name = 'deltas'"),
  "columns in another order": (db) =>
    db.exec(
      "UPDATE sqlite_master SET sql = replace(sql, 'kind TEXT NOT NULL,\n  base INTEGER NOT NULL', 'base INTEGER NOT NULL,\n  kind TEXT NOT NULL') WHERE name = 'deltas'",
    ),
  "a missing table": (db) => db.exec("DROP TABLE interrupts"),
  "a missing index": (db) => db.exec("DROP INDEX timers_by_due"),
  "one more table": (db) => db.exec("CREATE TABLE spy (a)"),
  "a table that poses as statistics": (db) =>
    db.exec(
      "CREATE TABLE spy (a); UPDATE sqlite_master SET name = 'sqlite_stat9', tbl_name = 'sqlite_stat9', sql = 'CREATE TABLE sqlite_stat9 (a)' WHERE name = 'spy'",
    ),
  "a trigger that poses as statistics": (db) =>
    db.exec(
      "CREATE TRIGGER spy AFTER INSERT ON deltas BEGIN DELETE FROM effects; END; UPDATE sqlite_master SET name = 'sqlite_stat1', sql = 'CREATE TRIGGER sqlite_stat1 AFTER INSERT ON deltas BEGIN DELETE FROM effects; END' WHERE name = 'spy'",
    ),
  "another table's root": (db) =>
    db.exec(
      "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'effects') WHERE name = 'threads'",
    ),
  "a root beyond the end": (db) => db.exec("UPDATE sqlite_master SET rootpage = 999999 WHERE name = 'threads'"),
  "a schema of garbage": (db) => db.exec("UPDATE sqlite_master SET sql = 'CREATE TABLE (((' WHERE name = 'deltas'"),
  "another program's mark": (db) => db.pragma("application_id = 1"),
  "no mark": (db) => db.pragma("application_id = 0"),
  "a newer version": (db) => db.pragma("user_version = 99"),
  "a version of before the first": (db) => db.pragma("user_version = 0"),
  "a version below all": (db) => db.pragma("user_version = -1"),
};

/** Byte-level changes of the file. */
const garbled: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  "no header": (bytes) => bytes.fill(0, 0, 16),
  "an odd size of pages": (bytes) => bytes.fill(1, 16, 18),
  "a write version of the future": (bytes) => bytes.fill(9, 18, 20),
  "a schema page of noise": (bytes) => bytes.fill(0xa5, 100, 2_000),
  "half of the file": (bytes) => bytes.subarray(0, bytes.length / 2),
  "a header alone": (bytes) => bytes.subarray(0, 100),
  "another kind of file": () =>
    Buffer.from("PK\u0003\u0004 this is an archive, and no database, and some more text to be long enough"),
};

/** Checks that the file is refused, unchanged, and without new files next to it. */
async function expectRefused(): Promise<void> {
  const before = readFileSync(file);
  const fileNames = readdirSync(home.path);
  let thrown: unknown;
  try {
    await sqliteStore(file).close();
  } catch (error) {
    thrown = error;
  }
  expect(isStatewrightError(thrown) && ["store_corrupt", "store_newer"].includes(thrown.code), String(thrown)).toBe(
    true,
  );
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(home.path)).toEqual(fileNames);
}

describe("a forged file", () => {
  for (const [what, work] of Object.entries(refused))
    test(`a forged file with ${what} is refused before anything is written`, async () => {
      forge(work);
      await expectRefused();
    });

  for (const [what, work] of Object.entries(garbled))
    test(`a file of changed bytes with ${what} is refused before anything is written`, async () => {
      writeFileSync(file, work(readFileSync(file)));
      await expectRefused();
    });
});

describe("forged rows", () => {
  /** Statements that forge rows, with a value that only an unsafe reader would return. */
  const rows: Readonly<Record<string, string>> = {
    "a blob instead of text": "UPDATE deltas SET text = x'c0ffee'",
    "a huge blob": "UPDATE deltas SET text = zeroblob(30000000)",
    "text that is not JSON": "UPDATE checkpoints SET nodes = '[[['",
    "JSON of another kind": "UPDATE checkpoints SET nodes = '{}'",
    "text of 10,000 levels": "UPDATE deltas SET text = printf('%.*c', 10000, '[') || printf('%.*c', 10000, ']')",
    "a control text with an unknown tag": `UPDATE checkpoints SET control = '{"$":"spy","v":1}'`,
    "a control text that sets a prototype": `UPDATE checkpoints SET control = '{"__proto__":{"polluted":1}}'`,
    "a question that sets a prototype": `UPDATE interrupts SET payload = '{"__proto__":{"polluted":1}}', schema = '{"constructor":{"prototype":{"polluted":1}}}'`,
    "a run that sets a prototype": `UPDATE runs SET metadata = '{"__proto__":{"polluted":1}}', more = '{"__proto__":{"polluted":1}}'`,
    "half a character in a name": "UPDATE branches SET name = CAST(x'eda080' AS TEXT) WHERE name = 'main'",
    "a thread id outside the grammar": "UPDATE threads SET id = '../../etc'",
    "an empty thread id": "UPDATE threads SET id = ''",
    "a negative id": "UPDATE checkpoints SET key = -key",
    "a number beyond all": "UPDATE checkpoints SET seq = 9223372036854775807",
    "an effect of an unknown class": "UPDATE effects SET effect = 'whatever', state = 'maybe'",
    "a line that comes from itself": "UPDATE branches SET parent = key, origin = 1",
    "a run of an unknown thread": "UPDATE threads SET run = 12345",
    "an owner that never was": "UPDATE threads SET owner = 12345",
    "a timer at no time": "UPDATE timers SET due = -9223372036854775808, about = '__proto__'",
    "a channel named as the prototype": "UPDATE channels SET name = '__proto__'",
  };

  /** Runs every read of the thread: each returns values or throws a StatewrightError. */
  async function ask(store: SqliteStore): Promise<void> {
    const graphs = createGrowingGraph(join(home.path, "diary.txt"), 10, 1);
    const asked: readonly (() => Promise<unknown>)[] = [
      () => store.threads(),
      () => store.runs(),
      () => store.openInterrupts(),
      () => store.timers(),
      () => store.thread("t"),
      () => store.branches("t"),
      () => store.head("t"),
      () => store.history("t", { limit: 10 }),
      () => store.state("t", 1),
      () => store.effects("t", "main"),
      () => store.interrupts("t", "main"),
      () => store.events("t", { after: 0, limit: 10 }),
      () => store.exportThread("t"),
      () => store.verify(),
      () => resume(graphs, { store, thread: "t" }).result,
      () => run(graphs, { store, thread: "t", input: first }).result,
    ];
    for (const work of asked) {
      try {
        await work();
      } catch (thrown) {
        expect(isStatewrightError(thrown), `${String(work)}: ${String(thrown)}`).toBe(true);
      }
    }
    expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain("polluted");
  }

  for (const [what, sql] of Object.entries(rows))
    test(`a forged row is read safely or refused: ${what}`, async () => {
      forge((db) => {
        db.pragma("foreign_keys = OFF");
        expect(db.prepare(sql).run().changes).toBeGreaterThan(0);
      });
      let store: SqliteStore;
      try {
        store = sqliteStore(file);
      } catch (thrown) {
        expect(isStatewrightError(thrown, "store_corrupt")).toBe(true);
        return;
      }
      await ask(store);
      await store.close();
    });
});

describe("connections", () => {
  test("a connection is defensive, distrusts the schema, checks cells, and is FULL by default", () => {
    const { db } = openDatabase(file);
    expect(db.pragma("trusted_schema", { simple: true })).toBe(0);
    expect(db.pragma("cell_size_check", { simple: true })).toBe(1);
    expect(db.pragma("synchronous", { simple: true })).toBe(2);
    db.pragma("writable_schema = ON");
    expect(() => db.exec("UPDATE sqlite_master SET sql = 'x'")).toThrow(/may not be modified/);
    expect(() => db.prepare("SELECT load_extension('x')").get()).toThrow(/not authorized|no such function/);
    db.close();
    const normal = openDatabase(file, { durability: "normal" });
    expect(normal.db.pragma("synchronous", { simple: true })).toBe(1);
    normal.db.close();
  });

  test("a connection attaches no database, by our statements or by content of a file", () => {
    const sources = new URL("../src/", import.meta.url);
    for (const name of readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((path) =>
      path.endsWith(".ts"),
    ))
      expect(readFileSync(new URL(name, sources), "utf8")).not.toMatch(/\bATTACH\b/);
    forge((db) => {
      // SQLite itself refuses such a trigger.
      expect(() => db.exec("CREATE TRIGGER spy AFTER INSERT ON deltas BEGIN ATTACH 'x' AS x; END")).toThrow(
        /syntax error/,
      );
    });
  });
});
