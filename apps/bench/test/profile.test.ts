import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { getStatementKind, nameStatements } from "../src/profile/named-statements.ts";
import { type CpuProfile, listHottest, sumTimeByPart } from "../src/profile/parts.ts";
import { profilePaths, toMarkdown } from "../src/profile/run-profile.ts";

/** A profile of frames, each with its caller by index and the microseconds that it took itself. */
function getProfile(
  frames: readonly (readonly [functionName: string, url: string, caller: number, us: number])[],
): CpuProfile {
  return {
    nodes: frames.map(([functionName, url], id) => ({
      id,
      callFrame: { functionName, url },
      children: frames.flatMap(([, , caller], child) => (caller === id && child !== id ? [child] : [])),
    })),
    samples: frames.map((_, id) => id),
    timeDeltas: frames.map(([, , , us]) => us),
  };
}

const named = "file:///repo/apps/bench/src/profile/named-statements.ts";
const profile = getProfile([
  ["(root)", "", 0, 0],
  ["(garbage collector)", "", 0, 7],
  ["(idle)", "", 0, 1_000],
  ["runSupersteps", "file:///repo/packages/core/src/run/loop/run-supersteps.ts", 0, 20],
  ["encode", "file:///repo/packages/core/src/state/codec.ts", 3, 5],
  ["finish", "file:///repo/packages/sqlite/src/write/committer.ts", 3, 2],
  ["transaction", named, 5, 1],
  ["", "", 6, 30],
  ["change", named, 5, 1],
  ["", "", 8, 9],
  ["hashCheckpoint", "file:///repo/packages/sqlite/src/rows/rows.ts", 3, 1],
  ["hash", "node:internal/crypto/hash", 10, 3],
  ["oneShotDigest", "", 11, 4],
  ["nodeBody", "file:///repo/node_modules/unknown/index.js", 3, 6],
  ["runToolCall", "file:///repo/packages/core/src/run/tool-call/tool-call.ts", 3, 8],
  ["step", "file:///repo/packages/core/src/run/kernel/get-kernel.ts", 3, 11],
  ["processTicksAndRejections", "node:internal/process/task_queues", 0, 12],
  ["post", "node:inspector", 0, 500],
  ["", "", 17, 500],
]);

test("profile time of a frame counts for the part of its file, native time for the part of its caller, and idle time nowhere", () => {
  expect(Object.fromEntries(sumTimeByPart(profile))).toEqual({
    rest: 0,
    collector: 7,
    "supersteps and tasks": 26,
    "encoding and copies": 5,
    "the store": 2,
    "SQLite: begin and commit": 31,
    "SQLite: writing rows": 10,
    "sums and hashes": 8,
    "tools and agents": 8,
    machines: 11,
    "event loop and timers": 12,
  });
});

test("the functions with the most self time are named, each with its share of active time", () => {
  expect(listHottest(profile, 2)).toEqual([
    { name: "runSupersteps (loop/run-supersteps.ts)", share: 20 / 120 },
    { name: "processTicksAndRejections (process/task_queues)", share: 12 / 120 },
  ]);
});

test("the profile table has a row for each part with at least half a percent", () => {
  const found = {
    name: "commit",
    title: "B2: a commit",
    times: sumTimeByPart(profile),
    hottest: listHottest(profile, 1),
  };
  const text = toMarkdown([found]);
  expect(text).toContain("|  | commit |\n| --- | ---: |\n| SQLite: begin and commit | 26 |");
  expect(text).not.toContain("| schemas |");
  expect(text).toContain("- commit (B2: a commit): `runSupersteps (loop/run-supersteps.ts)` 16.7 %.");
});

test("SQL statements return the same results when they run under the name of their kind", () => {
  expect(
    ["BEGIN IMMEDIATE", "\n  insert INTO t VALUES (1)", "SELECT 1", "WITH x AS (SELECT 1) SELECT 1"].map(
      getStatementKind,
    ),
  ).toEqual(["transaction", "change", "query", "query"]);
  nameStatements();
  const db = new Database(":memory:");
  db.exec("CREATE TABLE t (n INTEGER)");
  expect(db.prepare("INSERT INTO t VALUES (?)").run(7).changes).toBe(1);
  const select = db.prepare("SELECT n FROM t").pluck();
  expect(select.get()).toBe(7);
  expect(select.all()).toEqual([7]);
  expect(select.get.name).toBe("query");
  db.close();
});

test("profilePaths profiles a small path", async () => {
  const [found] = await profilePaths(1, ["superstep"], 100);
  expect(found?.name).toBe("superstep");
  expect([...(found?.times.values() ?? [])].every((us) => us >= 0)).toBe(true);
});
