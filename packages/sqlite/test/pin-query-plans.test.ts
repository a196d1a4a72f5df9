import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { pinQueryPlan, pinQueryPlans } from "../src/file/pin-query-plans.ts";

test("each parameter of a query becomes an expression that SQLite does not replan, and literals and writes stay unchanged", () => {
  const query = "SELECT n FROM t WHERE id = ? AND kind = 'what?' AND at > @at LIMIT ?";
  expect(pinQueryPlan(query)).toBe("SELECT n FROM t WHERE id = +? AND kind = 'what?' AND at > +@at LIMIT +?");
  expect(pinQueryPlan("\n  with a as (SELECT ?) SELECT * FROM a")).toBe("\n  with a as (SELECT +?) SELECT * FROM a");
  for (const other of ["INSERT INTO t VALUES (?, 'it''s ?')", "UPDATE t SET n = ? WHERE id = @id", "BEGIN IMMEDIATE"])
    expect(pinQueryPlan(other)).toBe(other);
});

test("a parameter with a unary plus finds the same rows by the same index for every type", () => {
  const db = new Database(":memory:");
  pinQueryPlans(db);
  db.exec("CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER, data BLOB) STRICT, WITHOUT ROWID");
  const data = Buffer.from([1, 2, 3]);
  db.prepare("INSERT INTO t VALUES (?, ?, ?)").run("a", 7, data);
  expect(db.prepare("SELECT n FROM t WHERE id = ? AND n = ? AND data = ?").pluck().get("a", 7, data)).toBe(7);
  expect(db.prepare("SELECT n FROM t WHERE id = @id LIMIT @most").pluck().all({ id: "a", most: 5 })).toEqual([7]);
  const [step] = db.prepare("EXPLAIN QUERY PLAN SELECT n FROM t WHERE id = +?").all("a");
  expect(step).toMatchObject({ detail: "SEARCH t USING PRIMARY KEY (id=?)" });
  db.close();
});
