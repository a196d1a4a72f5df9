/** Claims of runs in a file that several processes use: what they read, and what they wait for. */
import { join } from "node:path";
import type { Store } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import type { RunRow } from "@statewright/core/store";
import { sqliteStore as openStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { betterSqliteDriver } from "../src/driver/better-sqlite-driver.ts";
import type { Statement } from "../src/driver/database.ts";
import { openWith } from "../src/driver/driver.ts";
import { JobTransactions } from "../src/write/job-transactions.ts";
import { startChild } from "./support/child-process.ts";
import { createManualWorld } from "./support/manual-world.ts";
import { createSuperstep, graph, saveCommit } from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

const served = [{ name: "g", version: 1, shape: "s1" }];

async function queueRuns(store: Store, tenants: readonly (string | undefined)[]): Promise<void> {
  const base: Omit<RunRow, "id" | "thread" | "branch"> = {
    ...{ graph: "g", version: 1, status: "queued", attempt: 1, startedAt: 1, queuedAt: 1, input: "1" },
  };
  await Promise.all(
    tenants.map((tenant, nth) =>
      store.enqueue({
        thread: `t${nth}`,
        creates: graph,
        run: { ...base, id: `r${nth}`, ...(tenant === undefined ? {} : { tenant }) },
      }),
    ),
  );
}

test("a claim of runs reads as many runs as it claims, whatever the length of the queue and of the queues of other graphs [PK8]", async () => {
  const store = sqliteStore(file);
  await queueRuns(store, [...Array.from({ length: 600 }, () => "big"), "small"]);
  const seen: string[] = [];
  const isSkipped = ({ thread }: Pick<RunRow, "thread">): boolean => {
    seen.push(thread);
    return false;
  };
  const request = { kinds: ["queued"], limit: 4, at: 5, isSkipped } as const;
  expect(await store.claimRuns?.({ ...request, graphs: [{ name: "other", version: 1, shape: "s" }] })).toEqual([]);
  expect(seen).toEqual([]);
  const claimed = await store.claimRuns?.({ ...request, graphs: served });
  expect(claimed?.map(({ run }) => run.thread)).toEqual(["t0", "t600", "t1", "t2"]);
  // The first look finds a run before the write lock is taken.
  expect(seen).toEqual(["t0", "t0", "t600", "t1", "t2"]);
  await store.close();
});

test("crashed runs are searched when the owners are asked whether they live, and not inside the write of a claim [PK8]", async () => {
  let time = 0;
  const { clock, ...world } = systemWorld();
  const store = sqliteStore(file, { world: { ...world, clock: { ...clock, monotonic: () => time } } });
  await queueRuns(store, [undefined, undefined, undefined, undefined, undefined]);
  const db = new Database(file);
  db.exec("UPDATE runs SET status = 'running', turn = NULL WHERE id = 'r0'");
  db.exec("UPDATE branches SET run = (SELECT key FROM runs WHERE id = 'r0') WHERE thread = 1");
  db.close();
  const seen: string[] = [];
  const isSkipped = ({ id }: Pick<RunRow, "id">): boolean => {
    seen.push(id);
    return id === "r0";
  };
  const request = { kinds: ["crashed", "queued"], limit: 1, at: 5, isSkipped, graphs: served } as const;
  await store.claimRuns?.(request);
  expect(seen.splice(0)).toEqual(["r0", "r1", "r1"]);
  await store.claimRuns?.(request);
  expect(seen.splice(0)).toEqual(["r2"]);
  time = 250;
  await store.claimRuns?.(request);
  expect(seen.splice(0)).toEqual(["r0", "r3", "r3"]);
  // Without enough runs, the owners are asked again.
  await store.claimRuns?.({ ...request, limit: 2 });
  expect(seen).toEqual(["r4", "r0"]);
  await store.close();
});

test("a claim of runs whose second look fails returns the runs of the first look, whose threads are claimed [PK8]", async () => {
  const lines: string[] = [];
  const store = sqliteStore(file, { world: { ...systemWorld(), log: (_, message) => lines.push(message) } });
  await queueRuns(store, [undefined, undefined, undefined]);
  const request = { graphs: served, kinds: ["queued"], at: 5 } as const;
  expect((await store.claimRuns?.({ ...request, limit: 1 }))?.map(({ run }) => run.id)).toEqual(["r0"]);
  let looks = 0;
  const isSkipped = ({ id }: Pick<RunRow, "id">): boolean => {
    looks += id === "r2" ? 1 : 0;
    if (looks > 1) throw new Error("the second look fails");
    return id === "r2";
  };
  const claimed = await store.claimRuns?.({ ...request, limit: 5, isSkipped });
  expect([claimed?.map(({ run }) => run.id), looks]).toEqual([["r1"], 2]);
  expect(lines).toEqual(["further runs could not be claimed"]);
  await store.close();
});

test("a claim of runs that finds none takes no write lock [PK8]", async () => {
  const store = sqliteStore(file);
  await store.claim({ ...graph, thread: "t" });
  const stranger = new Database(file);
  stranger.exec("BEGIN IMMEDIATE");
  const request = { graphs: served, limit: 4 };
  expect(await store.claimRuns?.({ ...request, kinds: ["queued", "crashed", "drained", "notified"], at: 5 })).toEqual(
    [],
  );
  expect(await store.claimTimers?.({ ...request, dueBy: 5, until: 9 })).toEqual([]);
  stranger.exec("ROLLBACK");
  stranger.close();
  await store.close();
});

test("a read of statuses asks whether other owners live without the write lock of the file [PK8, FX60]", async () => {
  const store = sqliteStore(file);
  const other = await startChild(file);
  const { epoch } = await other.claim("t");
  await other.ask({ do: "run", thread: "t", epoch });
  const stranger = new Database(file);
  stranger.exec("BEGIN IMMEDIATE");
  expect((await store.runs({ thread: "t" })).map(({ status }) => status)).toEqual(["running"]);
  await other.kill();
  expect((await store.runs({ thread: "t" })).map(({ status }) => status)).toEqual(["crashed"]);
  stranger.exec("ROLLBACK");
  stranger.close();
  await store.close();
});

test("a claim of a thread that a living process owns is refused, and succeeds when that process is killed [PK8, F15]", async () => {
  const store = sqliteStore(file);
  const other = await startChild(file);
  await other.claim("t");
  await expect(store.claim({ ...graph, thread: "t" })).rejects.toMatchObject({ code: "thread_busy" });
  await other.kill();
  expect((await store.claim({ ...graph, thread: "t" })).previousOwner).toBe("dead");
  await store.close();
});

test("a write to a file that other processes write to is refused at once while the file is locked, and waits outside of SQLite [PK8]", () => {
  const db = openWith(betterSqliteDriver, file, { timeoutMs: 10 });
  db.exec("PRAGMA journal_mode = WAL");
  const executed: string[] = [];
  const { prepare } = db;
  const record = (sql: string): Statement => {
    const statement: Statement = prepare.call(db, sql);
    return new Proxy(statement, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...values: unknown[]): unknown => {
          executed.push(sql);
          return Reflect.apply(value, target, values);
        };
      },
    });
  };
  db.prepare = record as typeof prepare;
  const guard = { checkBeforeCommit: () => undefined, checkAfterCommit: () => undefined };
  const transactions = new JobTransactions(db, { world: createManualWorld(), guard });
  const stranger = new Database(file);
  stranger.exec("BEGIN IMMEDIATE");
  expect(() => transactions.begin()).toThrow("locked");
  expect(() => transactions.begin()).toThrow("locked");
  stranger.exec("ROLLBACK");
  transactions.begin();
  expect(executed).toEqual(["BEGIN IMMEDIATE", ...["PRAGMA busy_timeout = 0", "BEGIN IMMEDIATE", "BEGIN IMMEDIATE"]]);
  transactions.abort();
  transactions.waitIfBusy();
  expect(executed.slice(4)).toEqual(["ROLLBACK", "PRAGMA busy_timeout = 10"]);
  stranger.close();
  db.close();
});

test("a damaged queued run is logged, and the runs behind it are claimed [PK8, F6]", async () => {
  const store = sqliteStore(file);
  await queueRuns(store, [undefined, undefined]);
  await store.close();
  const db = new Database(file);
  db.exec("UPDATE runs SET attempt = 7 WHERE id = 'r0'");
  db.close();
  const lines: string[] = [];
  const next = openStore(file, { world: { ...systemWorld(), log: (_, message) => lines.push(message) } });
  const claimed = await next.claimRuns?.({ graphs: served, kinds: ["queued"], limit: 5, at: 5 });
  expect(claimed?.map(({ run }) => run.id)).toEqual(["r1"]);
  expect(lines).toContain("a damaged run is not claimed");
  await next.close();
});

test("a store whose first claim of runs meets a damaged thread stays the living owner of the threads that it claims [PK8, F15]", async () => {
  const store = sqliteStore(file);
  const claim = await store.claim({ ...graph, thread: "t0" });
  await saveCommit(store, { ...createSuperstep("t0", claim, 1), release: true });
  await queueRuns(store, [undefined, undefined]);
  await store.close();
  const db = new Database(file);
  db.exec("UPDATE checkpoints SET hash = 'damaged'");
  db.close();
  const next = sqliteStore(file);
  const claimed = await next.claimRuns?.({ graphs: served, kinds: ["queued"], limit: 5, at: 5 });
  expect(claimed?.map(({ run }) => run.id)).toEqual(["r1"]);
  const other = sqliteStore(file);
  await expect(other.claim({ ...graph, thread: "t1" })).rejects.toMatchObject({ code: "thread_busy" });
  await other.close();
  await next.close();
});
