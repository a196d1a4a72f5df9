import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { refuseOldNode } from "../../src/driver/better-sqlite-driver.ts";
import { refuseOldSqlite } from "../../src/file/open-database.ts";
import { createSuperstep, graph, readItems, saveCommit } from "../support/rows.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

async function written(): Promise<void> {
  const store = sqliteStore(file);
  const claim = await store.claim({ ...graph, thread: "t" });
  await saveCommit(store, createSuperstep("t", claim, 1));
  await store.close();
}

function raw(work: (db: Database.Database) => void): void {
  const db = new Database(file);
  work(db);
  db.close();
}

/** Checks that the file is refused, unchanged, and without new files next to it. */
function expectRefusal(code: string, says: string): void {
  const before = readFileSync(file);
  const fileNames = readdirSync(home.path);
  expect(() => sqliteStore(file)).toThrow(expect.objectContaining({ code, message: expect.stringContaining(says) }));
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(home.path)).toEqual(fileNames);
}

describe("refused files", () => {
  test("a file of a newer version is refused with the next step", async () => {
    await written();
    raw((db) => db.pragma("user_version = 99"));
    expectRefusal("store_newer", "Update Statewright");
  });

  test("a database of another program is refused", () => {
    raw((db) => db.exec("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')"));
    expectRefusal("store_corrupt", "another application");
  });

  test("a database of another program in WAL mode is refused, and its log is kept", () => {
    raw((db) => {
      db.pragma("journal_mode = WAL");
      db.exec("CREATE TABLE notes (text TEXT)");
    });
    expectRefusal("store_corrupt", "another application");
  });

  test("a file that is not a database is refused", () => {
    writeFileSync(
      file,
      "a text that is long enough to be looked at as the header of a database file, and some more of it",
    );
    expectRefusal("store_corrupt", "not a database");
  });

  const planted = {
    "a trigger": "CREATE TRIGGER spy AFTER INSERT ON deltas BEGIN DELETE FROM effects; END",
    "a view": "CREATE VIEW spy AS SELECT * FROM deltas",
    "a table": "CREATE TABLE spy (a)",
    "an index": "CREATE INDEX spy ON deltas (kind)",
    "a changed table": "ALTER TABLE deltas ADD COLUMN spy TEXT",
    "a missing table": "DROP TABLE interrupts",
  };
  for (const [what, sql] of Object.entries(planted)) {
    test(`a database file with a foreign change is refused: ${what}`, async () => {
      await written();
      raw((db) => db.exec(sql));
      expectRefusal("store_corrupt", "differs from the schema of Statewright");
    });
  }

  test("a file of a development version is refused with the next step", () => {
    raw((db) => {
      db.exec("CREATE TABLE threads (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT");
      db.exec("CREATE TABLE facts (thread INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (thread, seq)) STRICT");
      db.pragma("application_id = 1398239860");
      db.pragma("user_version = 1");
    });
    expectRefusal(
      "store_failed",
      `was made by a development version. Start a new file, or export it with that version`,
    );
  });

  test("a file with our application id and without our tables is refused", () => {
    raw((db) => db.pragma("application_id = 1398239860"));
    raw((db) => db.pragma("user_version = 1"));
    expectRefusal("store_corrupt", "");
  });

  test("a truncated file is refused when it is read", async () => {
    await written();
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.subarray(0, bytes.length - 6_000));
    expect(() => sqliteStore(file)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
  });

  test("a missing folder is named in the error", () => {
    expect(() => sqliteStore(join(home.path, "none", "agent.db"))).toThrow(
      expect.objectContaining({
        code: "store_failed",
        message: expect.stringContaining(`folder "${join(home.path, "none")}" does not exist`),
      }),
    );
  });
});

describe("opened files", () => {
  test("a store is created in an empty file", async () => {
    writeFileSync(file, "");
    await written();
    const store = sqliteStore(file);
    expect(await readItems(store, "t")).toEqual(["1"]);
    await store.close();
  });

  test("opening reads the file in one snapshot, unaffected by concurrent changes of another process", async () => {
    writeFileSync(file, "");
    const look = Database.prototype.pragma;
    let others = 0;
    const spy = vi.spyOn(Database.prototype, "pragma").mockImplementation(function (this: Database.Database, ...asked) {
      const found: unknown = look.apply(this, asked);
      if (asked[0] !== "application_id" || others++ > 0) return found;
      const other = new Database(file, { timeout: 0 });
      expect(() => other.exec("CREATE TABLE threads (id TEXT)")).toThrow("locked");
      other.close();
      return found;
    });
    await written();
    expect(others).toBeGreaterThan(0);
    spy.mockRestore();
  });

  test("opening a file repeatedly does not change the file", async () => {
    await written();
    const before = readFileSync(file);
    for (let time = 0; time < 3; time++) await sqliteStore(file).close();
    expect(readFileSync(file).equals(before)).toBe(true);
    expect(readdirSync(home.path)).toEqual(["agent.db"]);
  });

  test("statistics added by ANALYZE do not block opening", async () => {
    await written();
    raw((db) => db.exec("ANALYZE"));
    await sqliteStore(file).close();
  });

  test("a store has closed its file and released its threads when close returns, before the promise resolves [PK9]", async () => {
    const store = sqliteStore(file);
    const claim = await store.claim({ ...graph, thread: "t" });
    const saved = saveCommit(store, createSuperstep("t", claim, 1));
    const closed = store.close();
    expect(readdirSync(home.path)).toEqual(["agent.db"]);
    await Promise.all([closed, saved]);
    const next = sqliteStore(file);
    expect(await next.claim({ ...graph, thread: "t" })).toMatchObject({ previousOwner: "released", head: { id: 1 } });
    await next.close();
  });

  test("a file uses write-ahead logging", async () => {
    const store = sqliteStore(file);
    raw((db) => expect(db.pragma("journal_mode", { simple: true })).toBe("wal"));
    await store.close();
  });

  test("unknown and invalid options of sqliteStore are refused [R3]", () => {
    const wrong: readonly object[] = [
      { durabilty: "full" },
      { durability: "off" },
      { maxBytes: 10 },
      { maxBytes: 1.5e6 + 0.5 },
    ];
    for (const options of wrong)
      expect(() => sqliteStore(file, options)).toThrow(expect.objectContaining({ code: "invalid_option" }));
    for (const path of ["", " ", "file:agent.db?mode=memory", "a\0b"]) {
      expect(() => sqliteStore(path)).toThrow(expect.objectContaining({ code: "invalid_option" }));
    }
    expect(readdirSync(home.path)).toEqual([]);
  });

  test("a file is readable with any SQLite shell", async () => {
    await written();
    raw((db) => {
      expect(db.prepare("SELECT thread, branch, id, nodes, at, changes FROM history").get()).toEqual({
        thread: "t",
        branch: "main",
        id: 1,
        nodes: '["node"]',
        at: "1970-01-01 00:00:01",
        changes: "items append",
      });
    });
  });
});

test("no SQL text of the store is built from values [R2]", () => {
  const folder = new URL("../../src/", import.meta.url);
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".ts"),
  )) {
    const text = readFileSync(new URL(name, folder), "utf8");
    expect(text, name).not.toMatch(/\b(?:prepare|exec|pragma)\s*(?:<[^(]*>)?\(\s*`/);
    expect(text, name).not.toMatch(/`[^`]*\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE)\b[^`]*\$\{/);
  }
});

test("SQLite older than 3.51.3 is refused, and versions are compared numerically", () => {
  for (const old of ["3.51.2", "3.50.99", "3.9.0", "2.99.99"])
    expect(() => refuseOldSqlite(old), old).toThrow(/has a bug in its write-ahead log.*3\.51\.3 or newer/);
  for (const fit of ["3.51.3", "3.51.10", "3.52.0", "4.0.0"]) expect(() => refuseOldSqlite(fit), fit).not.toThrow();
});

test("a Node version that would crash on the bundled SQLite fails with the required version", () => {
  expect(() => refuseOldNode({ napi: "9", node: "22.12.0" })).toThrow(/Node 22\.12\.0 .* Use Node 22\.14 or newer/);
  expect(() => refuseOldNode(process.versions)).not.toThrow();
});

test("a file whose creator was killed before the first commit is rolled back and created again", async () => {
  const half = join(home.path, "half.db");
  const maker = new Database(half);
  maker.pragma("cache_size = 5");
  maker.exec("BEGIN; CREATE TABLE begun (text TEXT) STRICT;");
  const insert = maker.prepare("INSERT INTO begun VALUES (?)");
  for (let row = 0; row < 200; row++) insert.run("x".repeat(2_000));
  // State after a kill: pages in the file, and the journal that rolls them back.
  copyFileSync(half, file);
  copyFileSync(`${half}-journal`, `${file}-journal`);
  maker.close();
  expect(() => new Database(file, { readonly: true }).pragma("user_version")).toThrow(
    expect.objectContaining({ code: "SQLITE_READONLY_ROLLBACK" }),
  );
  await written();
  const store = sqliteStore(file);
  expect(await store.thread("t")).toMatchObject({ id: "t" });
  await store.close();
});
