/** Lists of runs and threads in a large file. */
import { join } from "node:path";
import { memoryStore, type RunStatus, type Store } from "@statewright/core";
import type { ListedRunRow, RunFilter, ThreadFilter, ThreadRow } from "@statewright/core/store";
import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { createReader } from "../../src/read/reader.ts";
import { createEffectRows } from "../../src/rows/effect-rows.ts";
import { registerRowSums } from "../../src/rows/row-sums.ts";
import { createEraser } from "../../src/rows/thread-tables.ts";
import { PrunedRanges } from "../../src/write/pruned-ranges.ts";
import { Retention } from "../../src/write/retention.ts";
import { createCheckpoint, createRunRow, saveCommit } from "../support/rows.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createFolder, createMemoryFolder } from "../support/stores.ts";

test("paged lists of many runs and threads equal those of a full scan, for any filter", async () => {
  const home = createMemoryFolder();
  const stores = [sqliteStore(join(home.path, "agent.db"), { durability: "normal" }), memoryStore()];
  const statuses: readonly RunStatus[] = ["done", "waiting", "waiting", "done", "failed"];
  for (const store of stores)
    for (let nth = 0; nth < 2_600; nth++) {
      const [thread, graph] = [`t${nth}`, nth % 100 === 0 ? "rare" : "common"];
      const parties = nth % 2 === 0 ? { tenant: "acme", owner: `u${nth % 40}` } : nth % 3 === 0 ? { owner: "u1" } : {};
      const labels = { kind: nth % 4 === 0 ? "a" : "b", nth: nth % 50 };
      if (nth % 5 !== 0) await store.createThread({ thread, at: nth, title: `T${nth}`, metadata: labels, ...parties });
      if (nth % 500 === 1) continue;
      const { epoch, branch } = await store.claim({ thread, graph, version: 1, shape: "s", at: nth, ...parties });
      const isAtWork = nth % 130 === 7;
      const about = { key: `k${nth % 9}`, metadata: { app: "x", user: nth % 300 }, ...parties };
      const run = { ...createRunRow(`r${nth}`, thread), ...about, graph, startedAt: (nth * 7) % 2_600 };
      const status = isAtWork ? "running" : statuses[nth % statuses.length];
      const saved = isAtWork
        ? { ...createCheckpoint(1), row: { ...createCheckpoint(1).row, at: 3_000 - nth, seq: 1 } }
        : undefined;
      const commit = { thread, branch, epoch, seq: 1, run: { ...run, ...(status === undefined ? {} : { status }) } };
      await saveCommit(store, { ...commit, ...(saved === undefined ? { release: true } : { checkpoint: saved }) });
    }
  const ofBoth = [
    {},
    { status: "waiting" },
    { status: ["failed", "running"] },
    { status: ["done", "failed"] },
  ] as const;
  const more = [
    { graph: "rare" },
    { metadata: { app: "x" } },
    { metadata: { app: "x", user: 7 } },
    { since: 2_500 },
  ] as const;
  const windows = [
    { until: 90 },
    { since: 300, until: 2_000, status: "failed" },
    { until: 2_000, graph: "rare" },
  ] as const;
  const parties: readonly RunFilter[] = [
    { tenant: "acme" },
    { owner: "u2" },
    { owner: "u1" },
    { tenant: "acme", owner: "u2" },
    { tenant: "acme", status: ["failed", "running"] },
    { tenant: "acme", metadata: { app: "x" } },
    { tenant: "acme", metadata: { user: 8 } },
    { tenant: "none" },
  ];
  for (const filter of [
    ...[...ofBoth, ...more, ...windows, ...parties],
    ...[
      { key: "k3", since: 100 },
      { key: "k3", graph: "rare" },
    ],
  ]) {
    const [found, wanted] = await Promise.all(stores.map((store) => pages(store, filter)));
    expect([filter, found]).toEqual([filter, wanted]);
  }
  const ofThreads: readonly ThreadFilter[] = [
    { metadata: { kind: "a" } },
    { metadata: { nth: 6 } },
    { metadata: { kind: "a", nth: 6 }, tenant: "acme" },
    { metadata: { kind: "b" }, tenant: "acme", status: "waiting" },
    { metadata: { kind: "b" }, owner: "u1", until: 2_000 },
    ...["t12", "a", "7", "common", "rare", "b", "t"].map((search) => ({ search })),
    { search: "t1", tenant: "acme" },
  ];
  for (const filter of ofThreads) {
    const [found, wanted] = await Promise.all(stores.map((store) => listThreadPages(store, filter)));
    expect([filter, found]).toEqual([filter, wanted]);
    const { status: _, ...counted } = filter;
    const [count, wantedCount] = await Promise.all(stores.map((store) => store.countThreads(counted)));
    expect([counted, count]).toEqual([counted, wantedCount]);
  }
  for (const { status: _, ...filter } of [{}, ...more, ...parties] as readonly RunFilter[]) {
    const [count, wantedCount] = await Promise.all(stores.map((store) => store.countRuns(filter)));
    expect([filter, count]).toEqual([filter, wantedCount]);
  }
  for (const store of stores) await store.close();
  home.remove();
});

/** Reads the first pages of the runs of a filter and, without a key, of its threads. */
async function pages(store: Store, filter: Omit<RunFilter, "before">): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  for (let before: ListedRunRow | undefined, nth = 0; nth < 4; nth++) {
    const page = await store.runs({ ...filter, limit: 13, before });
    found.push(...page.map(({ id, status }) => `${id} ${status}`));
    before = page.at(-1);
  }
  const { key, metadata: runMetadata, ...rest } = filter;
  const ofThreads = runMetadata === undefined ? rest : { ...rest, runMetadata };
  return key === undefined ? [...found, ...(await listThreadPages(store, ofThreads))] : found;
}

/** Reads the first pages of the threads of a filter. */
async function listThreadPages(store: Store, filter: ThreadFilter): Promise<readonly string[]> {
  const found: string[] = [];
  for (let before: ThreadRow | undefined, nth = 0; nth < 4; nth++) {
    const page = await store.threads({ ...filter, limit: 13, before });
    found.push(...page.map(({ id, status, updatedAt, title }) => `${id} ${status} ${updatedAt} ${title}`));
    before = page.at(-1);
  }
  return found;
}

test("lists by metadata, engine polls and retention use an index: no plan scans a table or sorts an ordered list [E66, E62]", async () => {
  const home = createFolder();
  const file = join(home.path, "agent.db");
  await sqliteStore(file, { durability: "normal" }).close();
  const db = new Sqlite(file);
  registerRowSums(db);
  const asked: string[] = [];
  const watched = new Proxy(db, {
    get: (of, name) => {
      if (name !== "prepare") return Reflect.get(of, name);
      return (sql: string) => {
        asked.push(sql);
        return of.prepare(sql);
      };
    },
  });
  const reader = createReader(watched, undefined, () => undefined);
  new Retention(watched, {
    reader,
    prunedRanges: new PrunedRanges(watched),
    eraser: createEraser(watched),
    effects: createEffectRows(watched),
  });
  const inOrder = [
    ...["runs_of_thread", "unfinished_runs", "runs_by_graph", "r.status = @stored", "INDEXED BY threads_by_change"],
    ...["FROM runs r NOT INDEXED", "GROUP BY m.branch", "INDEXED BY threads_by_tenant", "INDEXED BY runs_by_tenant"],
    ...["t.user = @user AND t.tenant = @tenant", "r.user IS NOT NULL AND r.tenant = @tenant"],
    "r.tenant IS NOT NULL AND r.status = @stored",
  ];
  const concerned = [
    ...["run_metadata", "threads_with_queue", "runs_by_status", "runs_by_start", "once_effects", "branches_by_origin"],
    ...["undelivered_events", "threads_by_metadata", "threads_by_user", "threads_by_status", "runs_by_user"],
    ...["runs_of_tenant_by_status", "runs_by_id"],
    ...inOrder,
  ];
  // A count by other parts of a filter than the tenant reads all rows that it counts.
  const listed = asked.filter((sql) => !(sql.includes("count(*)") && sql.includes("@graph")));
  for (const part of concerned) {
    const found = listed.filter((sql) => sql.includes(part));
    expect([part, found.length > 0]).toEqual([part, true]);
    for (const sql of found) {
      const statement = sql.replaceAll(/[@:]\w+/g, "1").replaceAll("?", "1");
      const steps = db.prepare(`EXPLAIN QUERY PLAN ${statement}`).all() as readonly { readonly detail: string }[];
      const scans = steps
        .map(({ detail }) => detail)
        .filter((detail) =>
          /^SCAN (?!.*(VIRTUAL TABLE|CONSTANT|active|USING INDEX threads_with_queue|USING (COVERING )?INDEX threads_by_status|USING COVERING INDEX|\(subquery|found))/.test(
            detail,
          ),
        );
      expect([sql, scans]).toEqual([sql, []]);
      const sorts = steps.filter(({ detail }) => detail.includes("TEMP B-TREE"));
      if (inOrder.includes(part) && sql.includes("ORDER BY")) expect([sql, sorts]).toEqual([sql, []]);
    }
  }
  db.close();
  home.remove();
});
