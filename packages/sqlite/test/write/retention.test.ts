/** Retention in a file: the hash chain verifies from the anchor, also with writers of other processes. */
import { join } from "node:path";
import type { Store } from "@statewright/core";
import { pruneThread } from "@statewright/core/inspect";
import type { PruneWrite } from "@statewright/core/store";
import { type SqliteStore, sqliteStore } from "@statewright/sqlite";
import { fillThread } from "@statewright/testing/conformance";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Child, startChild } from "../support/child-process.ts";
import { change, countRows } from "../support/database-file.ts";
import { append, createCheckpoint, createSuperstep, graph, readItems, saveCommit } from "../support/rows.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let store: SqliteStore;
let child: Child | undefined;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  store = sqliteStore(file, { durability: "normal" });
});

afterEach(async () => {
  await store.close();
  await child?.kill();
  child = undefined;
  home.remove();
});

async function steps(count: number, on: Store = store): Promise<void> {
  const claim = await on.claim({ ...graph, thread: "t" });
  for (let id = 1; id <= count; id++) await saveCommit(on, createSuperstep("t", claim, id));
  await saveCommit(on, { thread: "t", branch: "main", epoch: claim.epoch, seq: count, release: true });
}

const keepFive: PruneWrite = { thread: "t", keepLast: 5, limit: 7, merge: (rows) => rows };

test("the hash chain of a pruned thread verifies from its anchor, and one changed row breaks it [I5, E47]", async () => {
  await steps(40);
  expect(await pruneThread(store, { thread: "t", keepLast: 10 })).toEqual({ threads: 1, checkpoints: 30 });
  expect(countRows(file)).toMatchObject({ checkpoints: 10, anchors: 1 });
  expect(await store.verify()).toEqual({ threads: 1, checkpoints: 10, artifacts: 0, faults: [] });
  const changes = [
    "UPDATE anchors SET hash = 'other'",
    "UPDATE anchors SET remaining_hash = 'other'",
    "DELETE FROM anchors",
    "DELETE FROM checkpoints WHERE key & 0xffffff = 35",
    "DELETE FROM checkpoints WHERE key & 0xffffff = 40",
    "DELETE FROM deltas WHERE key & 0xffffff = 30",
    "UPDATE checkpoints SET control = '{}' WHERE key & 0xffffff = 33",
    "UPDATE checkpoints SET parent = 29 WHERE key & 0xffffff = 31",
    `UPDATE deltas SET text = '["x"]' WHERE key & 0xffffff = 34`,
    `UPDATE effects SET outcome = '"x"' WHERE step = 36`,
  ];
  for (const each of changes) {
    const copy = join(home.path, `${changes.indexOf(each)}.db`);
    await store.backup(copy);
    change(copy, (db) => db.exec(each));
    const changed = sqliteStore(copy);
    const { faults } = await changed.verify();
    await changed.close();
    expect([each, faults.length > 0, faults[0]?.thread]).toEqual([each, true, "t"]);
  }
});

test("the remainder of a pruned list is one delta, and the list is complete [E47]", async () => {
  await steps(40);
  await pruneThread(store, { thread: "t", keepLast: 10 });
  expect(countRows(file)).toMatchObject({ deltas: 11, effects: 9 });
  expect(await readItems(store, "t")).toEqual(Array.from({ length: 40 }, (_, at) => String(at + 1)));
  await pruneThread(store, { thread: "t", keepLast: 1 });
  expect(countRows(file)).toMatchObject({ checkpoints: 1, anchors: 1, deltas: 2 });
  expect(await readItems(store, "t")).toHaveLength(40);
  expect((await store.verify()).faults).toEqual([]);
});

test("a process that writes continuously is pruned by another and loses nothing [E47]", async () => {
  child = await startChild(file);
  const { epoch } = await child.claim("t");
  let observed = 0;
  const done = new Promise<void>((resolve) => {
    child?.onObserved((step) => {
      if (typeof step === "string") throw new Error(step);
      observed = step;
      if (step >= 300) resolve();
    });
  });
  await Promise.race([child.ask({ do: "forever", thread: "t", epoch }), Promise.resolve()]);
  let removed = 0;
  let over = false;
  const ended = done.then(() => {
    over = true;
  });
  while (!over) {
    removed += await store.prune(keepFive);
    const items = await readItems(store, "t");
    expect(items).toEqual(Array.from({ length: items.length }, (_, at) => String(at + 1)));
  }
  await ended;
  await child.kill();
  while ((await store.prune(keepFive)) > 0) removed += 1;
  expect(removed).toBeGreaterThan(0);
  expect((await store.history("t", { limit: 100 })).length).toBe(5);
  expect((await readItems(store, "t")).length).toBeGreaterThanOrEqual(observed);
  expect((await store.verify()).faults).toEqual([]);
});

test("a vacuum returns the space of pruned rows to the disk [E47]", async () => {
  const claim = await store.claim({ ...graph, thread: "t" });
  for (let id = 1; id <= 60; id++) {
    const { row } = createCheckpoint(id);
    const value = { channel: "last", kind: "replace", base: true, text: JSON.stringify("x".repeat(20_000)) } as const;
    await saveCommit(store, {
      ...createSuperstep("t", claim, id),
      checkpoint: { row, deltas: [append("items", [String(id)]), value] },
    });
  }
  await store.vacuum();
  const before = change(file, (db) => db.pragma("page_count", { simple: true }) as number);
  await pruneThread(store, { keepLast: 2 });
  await store.vacuum();
  const after = change(file, (db) => db.pragma("page_count", { simple: true }) as number);
  expect(after).toBeLessThan(before / 5);
  await saveCommit(store, createSuperstep("t", claim, 61));
  expect((await readItems(store, "t")).filter((item) => item.length < 3)).toHaveLength(61);
});

test("a pruned thread with forks and subgraphs verifies", async () => {
  await fillThread(store, "t");
  await pruneThread(store, { keepLast: 1 });
  expect((await store.verify()).faults).toEqual([]);
  expect((await store.verify("t")).threads).toBe(1);
  await expect(store.verify("u")).rejects.toMatchObject({ code: "unknown_thread" });
});
