/** Lists, counts and single rows of a file with very many threads: results, number of statements, and their plans. */
import { join } from "node:path";
import process from "node:process";
import { countRuns, countThreads, listThreads } from "@statewright/core/inspect";
import Sqlite from "better-sqlite3";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createReader, type Reader } from "../../src/read/reader.ts";
import { registerRowSums } from "../../src/rows/row-sums.ts";
import { addManyThreads } from "../support/many-threads.ts";
import { explainPlan, watchStatements } from "../support/query-plans.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createMemoryFolder } from "../support/stores.ts";

/** A share of the threads; all of them with STATEWRIGHT_WHOLE=1. */
const count = process.env["STATEWRIGHT_WHOLE"] === "1" ? 100_000 : 5_000;

let home: ReturnType<typeof createMemoryFolder>;
let file: string;

beforeAll(() => {
  home = createMemoryFolder();
  file = join(home.path, "agent.db");
  sqliteStore(file, { durability: "normal" }).close();
  addManyThreads(file, { count, tenants: 20 });
}, 60_000);

afterAll(() => home.remove());

test("lists and counts of very many threads have the right rows, of the whole store and of a tenant [SE4, SE10]", async () => {
  const store = sqliteStore(file, { durability: "normal" });
  const page = await listThreads(store, { tenant: "tenant-3", metadata: { project: "p1" }, limit: 20 });
  const wanted = Array.from({ length: count }, (_, index) => count - index)
    .filter((n) => Math.floor(n / 10) % 20 === 3 && n % 2 === 1)
    .slice(0, 20);
  expect(page.map(({ id }) => id)).toEqual(wanted.map((n) => `t${n}`));
  const next = await listThreads(store, {
    tenant: "tenant-3",
    metadata: { project: "p1" },
    limit: 1,
    before: page[9]?.cursor,
  });
  expect(next[0]?.id).toBe(page[10]?.id);
  const tenth = count / 10;
  const statuses = { waiting: tenth, failed: tenth, cancelled: tenth, paused: tenth, done: 5 * tenth };
  const counts = await countThreads(store);
  expect(counts).toEqual({ total: count, byStatus: expect.objectContaining(statuses), withoutRun: tenth });
  const ofTenant = await countThreads(store, { tenant: "tenant-3" });
  const part = count / 200;
  expect([ofTenant.total, ofTenant.byStatus.waiting, ofTenant.byStatus.done, ofTenant.withoutRun]).toEqual([
    count / 20,
    part,
    5 * part,
    part,
  ]);
  expect((await countRuns(store)).total).toBe(9 * tenth);
  expect((await countRuns(store, { tenant: "tenant-3" })).byStatus.failed).toBe(part);
  await store.close();
});

/** Reads of a page, of counts and of single rows, each with its maximum of statements and the indexes of its plans. */
const reads: readonly [name: string, read: (reader: Reader) => unknown, statements: number, indexes: string[]][] = [
  [
    "first page by tenant and a rare metadata value",
    ({ threads }) => threads.list({ tenant: "tenant-3", metadata: { order: 33 }, limit: 20 }, undefined, []),
    2,
    ["threads_by_metadata"],
  ],
  [
    "first page by tenant and a frequent metadata value",
    ({ threads }) => threads.list({ tenant: "tenant-0", metadata: { project: "p1" }, limit: 20 }, undefined, []),
    3,
    ["threads_by_metadata", "threads_by_tenant", "runs_by_status"],
  ],
  [
    "first page by tenant",
    ({ threads }) => threads.list({ tenant: "tenant-3", limit: 20 }, undefined, []),
    2,
    ["threads_by_tenant", "runs_by_status"],
  ],
  [
    "counts by status",
    ({ counts }) => counts.countThreads(undefined, []),
    3,
    ["threads_by_status", "runs_by_status", "threads_by_change"],
  ],
  [
    "counts by status of a tenant",
    ({ counts }) => counts.countThreads("tenant-3", []),
    3,
    ["threads_by_status", "runs_of_tenant_by_status", "threads_by_tenant"],
  ],
  ["counts of runs", ({ counts }) => counts.countRuns(undefined, []), 3, ["runs_by_status", "runs_of_thread"]],
  [
    "counts of runs of a tenant",
    ({ counts }) => counts.countRuns("tenant-3", []),
    3,
    ["runs_of_tenant_by_status", "runs_by_tenant"],
  ],
  ["run by id", ({ runs }) => runs.find({ id: "r77" }, []), 1, ["runs_by_id"]],
  ["row of a thread", ({ threads }) => threads.get("t77", []), 1, ["sqlite_autoindex_threads_1"]],
  ["head of a thread", ({ checkpoints }) => checkpoints.getHead("t77"), 2, ["sqlite_autoindex_threads_1"]],
];

test("pages, counts, the head of a thread and a run by its id take few statements, each by an index, in a file of very many threads [SE3, SE4, SE10]", () => {
  // A metadata value that more threads of the tenant have than a page sorts.
  const ofOneTenant = join(home.path, "tenant.db");
  sqliteStore(ofOneTenant, { durability: "normal" }).close();
  addManyThreads(ofOneTenant, { count: count / 2, tenants: 1 });
  for (const [path, frequent] of [
    [file, false],
    [ofOneTenant, true],
  ] as const)
    checkReads(
      path,
      reads.filter(([name]) => name.includes("frequent") === frequent),
    );
});

/** Checks the statements of the reads and their plans. */
function checkReads(path: string, expected: typeof reads): void {
  const db = new Sqlite(path);
  registerRowSums(db);
  const executed: string[] = [];
  const reader = createReader(watchStatements(db, executed), undefined, (fault) => {
    throw fault;
  });
  for (const [name, read, statements, indexes] of expected) {
    executed.length = 0;
    read(reader);
    const plans = executed.map((sql) => explainPlan(db, sql));
    expect([name, executed.length <= statements && executed.length > 0]).toEqual([name, true]);
    for (const index of indexes)
      expect([name, index, plans.flat().some((step) => step.includes(`INDEX ${index}`))]).toEqual([name, index, true]);
    const scans = plans
      .flat()
      .filter((step) => /^SCAN (?!.*(USING (COVERING )?INDEX|VIRTUAL TABLE|active|\(subquery))/.test(step));
    expect([name, scans]).toEqual([name, []]);
  }
  db.close();
}
