/** Retention reads and deletes in pieces of bounded work; the thread is complete after each piece. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { PruneWrite } from "@statewright/core/store";
import { type SqliteStore, sqliteStore } from "@statewright/sqlite";
import { fillThread } from "@statewright/testing/conformance";
import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createReader } from "../../src/read/reader.ts";
import { createEffectRows } from "../../src/rows/effect-rows.ts";
import { registerRowSums } from "../../src/rows/row-sums.ts";
import { createEraser } from "../../src/rows/thread-tables.ts";
import { PrunedRanges } from "../../src/write/pruned-ranges.ts";
import { Retention } from "../../src/write/retention.ts";
import type { PruneStep } from "../../src/write/retention-plan-rows.ts";
import {
  append,
  createCheckpoint,
  createRunRow,
  createSuperstep,
  graph,
  readItems,
  saveCommit,
} from "../support/rows.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let store: SqliteStore;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  store = sqliteStore(file, { durability: "normal" });
});

afterEach(async () => {
  await store.close();
  home.remove();
});

/** Thread with a long branch and subgraph calls, the first of them long too. */
async function fill(steps: number): Promise<void> {
  const claim = await store.claim({ ...graph, thread: "t" });
  const { epoch } = claim;
  let id = 0;
  const inner = (line: string, count: number): Promise<unknown>[] =>
    Array.from({ length: count }, (_, step) => {
      id += 1;
      const { row } = createCheckpoint(id);
      const parent = step === 0 ? undefined : id - 1;
      const write = { row: { ...row, branch: line, step, parent }, deltas: [append("inner", [String(id)])] };
      return saveCommit(store, { thread: "t", branch: line, epoch, seq: id, checkpoint: write });
    });
  const writes: Promise<unknown>[] = [];
  let parent: number | undefined;
  for (let step = 0; step < steps; step++) {
    id += 1;
    const { checkpoint: write, ...rest } = createSuperstep("t", claim, id);
    if (write !== undefined)
      writes.push(saveCommit(store, { ...rest, checkpoint: { ...write, row: { ...write.row, step, parent } } }));
    parent = id;
    if (step === 3) writes.push(...inner(`main/${step}:0`, steps));
    else if (step % 10 === 0) writes.push(...inner(`main/${step}:0`, 2));
  }
  await Promise.all(writes);
  await saveCommit(store, { thread: "t", branch: "main", epoch, seq: id, release: true });
}

/** Appended items of a channel in one row. */
const merge: PruneWrite["merge"] = (rows) => {
  const last = rows.at(-1);
  const items = rows.flatMap(({ text }) => JSON.parse(text) as unknown[]);
  return last === undefined ? [] : [{ ...last, text: JSON.stringify(items) }];
};

const keepTen: PruneWrite = { thread: "t", keepLast: 10, merge };

/** Runs the pieces on a separate connection; returns the rows that each piece reads and changes. */
function pieces(path: string, write: PruneWrite) {
  const db = new Sqlite(path);
  registerRowSums(db);
  let rows = 0;
  const counting = new Proxy(db, {
    get: (of, name) => (name === "prepare" ? (sql: string) => counted(of.prepare(sql)) : Reflect.get(of, name)),
  });
  const counted = (statement: object): object => {
    const proxy: object = new Proxy(statement, {
      get: (of, name) => {
        const method: unknown = Reflect.get(of, name);
        if (typeof method !== "function") return method;
        return (...given: unknown[]) => {
          const result: unknown = method.apply(of, given);
          rows += listRows(name, result);
          return result === of ? proxy : result;
        };
      },
    });
    return proxy;
  };
  const reader = createReader(counting, undefined, () => undefined);
  const retention = new Retention(counting, {
    reader,
    prunedRanges: new PrunedRanges(counting),
    eraser: createEraser(counting),
    effects: createEffectRows(counting),
  });
  const prune = retention.prune(write);
  return {
    next: (): { readonly piece: PruneStep; readonly rows: number } | undefined => {
      rows = 0;
      const next = prune.next();
      if (next.done === true) return undefined;
      if (next.value.kind === "plans") next.value.run();
      else db.transaction(next.value.run)();
      return { piece: next.value, rows };
    },
    close: () => db.close(),
  };
}

function listRows(method: string | symbol, result: unknown): number {
  if (method === "all") return (result as readonly unknown[]).length;
  if (method === "get") return result === undefined ? 0 : 1;
  return method === "run" ? (result as { readonly changes: number }).changes : 0;
}

async function listPieces(steps: number) {
  await fill(steps);
  const all = pieces(file, keepTen);
  const counts: { readonly does: PruneStep["kind"]; readonly rows: number }[] = [];
  for (let next = all.next(); next !== undefined; next = all.next())
    counts.push({ does: next.piece.kind, rows: next.rows });
  all.close();
  const getLargestStep = (does: PruneStep["kind"]) =>
    Math.max(...counts.filter((each) => each.does === does).map(({ rows }) => rows));
  const total = counts.reduce((sum, { rows }) => sum + rows, 0);
  return { pieces: counts.length, reads: getLargestStep("reads"), writes: getLargestStep("writes"), total };
}

test("a prune piece reads and removes a bounded number of rows, and the total is proportional to the thread [E47]", async () => {
  const short = await listPieces(1_000);
  await store.close();
  rmSync(home.path, { recursive: true });
  home = createFolder();
  file = join(home.path, "agent.db");
  store = sqliteStore(file, { durability: "normal" });
  const long = await listPieces(4_000);
  expect(long.reads).toBeLessThanOrEqual(2_000);
  // A checkpoint is deleted with its deltas and its journal.
  expect(Math.max(short.writes, long.writes)).toBeLessThanOrEqual(800);
  expect(long.pieces).toBeGreaterThan(short.pieces * 2);
  expect(long.total / short.total).toBeLessThan(5);
});

test("a crash between two prune pieces leaves a complete thread, and the next prune reaches the same end [E47]", async () => {
  await fill(450);
  const items = await readItems(store, "t");
  await store.close();
  const copy = (name: string): string => join(home.path, name);
  const open = new Sqlite(file);
  open.exec(`VACUUM INTO '${copy("whole.db")}'`);
  open.close();
  const ends: unknown[] = [];
  for (let deaths = 0, isOver = false; !isOver; deaths++) {
    const path = copy(`${deaths}.db`);
    const source = new Sqlite(copy("whole.db"));
    source.exec(`VACUUM INTO '${path}'`);
    source.close();
    const cut = pieces(path, keepTen);
    for (let lived = 0; lived < deaths && !isOver; lived++) isOver = cut.next() === undefined;
    cut.close();
    store = sqliteStore(path, { durability: "normal" });
    expect((await store.verify()).faults).toEqual([]);
    expect(await readItems(store, "t")).toEqual(items);
    await store.prune(keepTen);
    expect((await store.verify()).faults).toEqual([]);
    expect(await readItems(store, "t")).toEqual(items);
    const { namespaces } = await store.exportThread("t");
    ends.push(namespaces.map(({ name, checkpoints }) => [name, checkpoints.map(({ row }) => row.id)]));
    await store.close();
  }
  expect(ends.length).toBeGreaterThan(6);
  for (const end of ends) expect(end).toEqual(ends[0]);
  store = sqliteStore(copy("0.db"));
});

test("a fork made between two prune pieces from a checkpoint due for removal stays intact [E47]", async () => {
  await fill(450);
  const before = await store.state("t", 100);
  const prune = pieces(file, keepTen);
  for (let next = prune.next(); next?.piece.kind !== "writes"; next = prune.next()) expect(next).toBeDefined();
  const row = { ...createCheckpoint(0).row, branch: "late", parent: 3, source: "fork" as const };
  const from = (await store.history("t", { branch: "main", limit: 1_000 })).at(-40)?.id ?? 0;
  await store.branch({ thread: "t", branch: "late", from, checkpoint: { row, deltas: [] }, interrupts: [] });
  for (let next = prune.next(); next !== undefined; next = prune.next());
  prune.close();
  expect((await store.verify()).faults).toEqual([]);
  expect((await store.checkpoint("t", from))?.id).toBe(from);
  expect(before.length).toBeGreaterThan(0);
  const forked = await store.head("t", "late");
  expect((await store.state("t", forked?.id ?? 0)).length).toBeGreaterThan(0);
});

test("a run started between two prune pieces can be rolled back to the state before it [E47]", async () => {
  const first = await store.claim({ ...graph, thread: "t" });
  for (let id = 1; id <= 5; id++) await saveCommit(store, createSuperstep("t", first, id));
  await saveCommit(store, { thread: "t", branch: "main", epoch: first.epoch, seq: 5, release: true });
  const prune = pieces(file, { thread: "t", keepLast: 1, merge });
  expect(prune.next()?.piece.kind).toBe("reads");
  const second = await store.claim({ ...graph, thread: "t" });
  for (let id = 6; id <= 8; id++)
    await saveCommit(store, { ...createSuperstep("t", second, id), run: createRunRow("r2", "t") });
  for (let next = prune.next(); next !== undefined; next = prune.next());
  prune.close();
  const left = await store.history("t", { branch: "main", limit: 10 });
  expect(left.map(({ id }) => id)).toEqual([8, 7, 6, 5]);
  expect((await store.verify()).faults).toEqual([]);
});

test("pruning a thread with forks and subgraphs in small pieces ends like pruning at once [E47]", async () => {
  await fillThread(store, "t");
  await fillThread(store, "u");
  const keepOne = { keepLast: 1, merge: (rows: Parameters<PruneWrite["merge"]>[0]) => rows };
  await store.prune({ thread: "t", ...keepOne });
  while ((await store.prune({ thread: "u", limit: 1, ...keepOne })) > 0);
  const listLines = async (thread: string) =>
    (await store.exportThread(thread)).namespaces.map(({ name, checkpoints }) => [
      name,
      checkpoints.map(({ row }) => row.id),
    ]);
  expect(await listLines("u")).toEqual(await listLines("t"));
  expect((await store.verify()).faults).toEqual([]);
  expect(existsSync(file)).toBe(true);
});
