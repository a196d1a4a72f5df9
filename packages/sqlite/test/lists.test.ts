/** Lists of runs and threads in a file with many of them. */
import { join } from "node:path";
import type { RunStatus } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { createCuts } from "../src/cuts.ts";
import { createEffectRows } from "../src/effect-rows.ts";
import { createReader } from "../src/reader.ts";
import { createRetention } from "../src/retention.ts";
import { knowRowSums } from "../src/row-sums.ts";
import { createEraser } from "../src/thread-tables.ts";
import { running, tell } from "./support/rows.ts";
import { folder } from "./support/stores.ts";

test("of many runs, those of a status, of a graph, of a time, of a key and of a thread are found", async () => {
  const home = folder();
  const file = join(home.path, "agent.db");
  const store = sqliteStore(file, { durability: "normal" });
  const statuses: readonly RunStatus[] = ["done", "done", "done", "waiting"];
  await Promise.all(
    Array.from({ length: 2_000 }, async (_, nth) => {
      const [thread, graph] = [`t${nth}`, nth % 100 === 0 ? "rare" : "common"];
      const { epoch, branch } = await store.claim({ thread, graph, version: 1, shape: "s", at: nth });
      const run = { ...running(`r${nth}`, thread), graph, startedAt: nth, key: `k${nth}`, status: statuses[nth % 4] };
      await tell(store, { thread, branch, epoch, seq: 1, run: run as ReturnType<typeof running>, release: true });
    }),
  );
  expect(await store.runs({ status: "waiting", limit: 5 })).toHaveLength(5);
  expect(await store.runs({ graph: "rare" })).toHaveLength(20);
  expect(await store.runs({ graph: "rare", since: 1_000, status: "done" })).toHaveLength(10);
  expect(await store.runs({ thread: "t7", key: "k7" })).toHaveLength(1);
  expect(await store.threads({ status: "waiting", limit: 3 })).toHaveLength(3);
  store.close();
  home.remove();
});

test("E66 E62 lists by metadata, the looks of an engine and retention find their rows by an index: no plan scans a table, and runs of a thread are not sorted", () => {
  const home = folder();
  const file = join(home.path, "agent.db");
  sqliteStore(file, { durability: "normal" }).close();
  const db = new Sqlite(file);
  knowRowSums(db);
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
  createRetention(watched, {
    reader,
    cuts: createCuts(watched),
    eraser: createEraser(watched),
    effects: createEffectRows(watched),
  });
  const inOrder = ["runs_of_thread", "unfinished_runs"];
  const concerned = [
    ...["run_metadata", "threads_with_queue", "r.status = @stored", "once_effects", "branches_by_origin"],
    ...inOrder,
  ];
  for (const part of concerned) {
    const found = asked.filter((sql) => sql.includes(part));
    expect([part, found.length > 0]).toEqual([part, true]);
    for (const sql of found) {
      const statement = sql.replaceAll(/[@:]\w+/g, "1").replaceAll("?", "1");
      const steps = db.prepare(`EXPLAIN QUERY PLAN ${statement}`).all() as readonly { readonly detail: string }[];
      const scans = steps
        .map(({ detail }) => detail)
        .filter((detail) =>
          /^SCAN (?!.*(VIRTUAL TABLE|CONSTANT|USING INDEX threads_with_queue|\(subquery))/.test(detail),
        );
      expect([sql, scans]).toEqual([sql, []]);
      const sorts = steps.filter(({ detail }) => detail.includes("TEMP B-TREE"));
      if (inOrder.includes(part)) expect([sql, sorts]).toEqual([sql, []]);
    }
  }
  db.close();
  home.remove();
});
