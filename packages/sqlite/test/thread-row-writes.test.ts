/** Thread rows: supersteps do not write the row of their thread, and its reads are complete nevertheless. */
import { join } from "node:path";
import type { Claim } from "@statewright/core/store";
import { type SqliteStore, sqliteStore } from "@statewright/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { change } from "./support/database-file.ts";
import {
  append,
  createCheckpoint,
  createEffectRow,
  createInterruptRow,
  createRunRow,
  createSuperstep,
  graph,
  saveCommit,
} from "./support/rows.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let store: SqliteStore;
let claim: Claim;

beforeEach(async () => {
  home = createFolder();
  file = join(home.path, "agent.db");
  store = sqliteStore(file, { durability: "normal" });
  claim = await store.claim({ ...graph, thread: "t" });
  await saveCommit(store, { ...createSuperstep("t", claim, 1), run: createRunRow("r", "t") });
  for (let id = 2; id <= 5; id++) await saveCommit(store, createSuperstep("t", claim, id));
});

afterEach(async () => {
  await store.close();
  home.remove();
});

function readThreadRow(path: string): unknown {
  return change(path, (db) => db.prepare("SELECT seq, checkpoint, updated FROM threads WHERE id = 't'").get());
}

/** Copies the file as a kill would leave it now. */
async function killed<Value>(then: (left: SqliteStore) => Promise<Value>): Promise<Value> {
  const copy = join(home.path, "left.db");
  await store.backup(copy, { overwrite: true });
  const left = sqliteStore(copy);
  try {
    return await then(left);
  } finally {
    await left.close();
  }
}

test("a superstep does not write its thread row, and lists still show its time", async () => {
  const other = await store.claim({ ...graph, thread: "u", at: 1_003 });
  expect(readThreadRow(file)).toEqual({ seq: 1, checkpoint: 1, updated: 1_001 });
  expect((await store.threads()).map(({ id, updatedAt }) => [id, updatedAt])).toEqual([
    ["t", 1_005],
    ["u", 1_003],
  ]);
  expect(await store.threads({ since: 1_005 })).toHaveLength(1);
  expect(await store.threads({ before: { id: "t", updatedAt: 1_005 } })).toMatchObject([{ id: "u" }]);
  expect(await store.exportThread("t")).toMatchObject({ seq: 5, checkpoint: 5, updatedAt: 1_005 });
  await saveCommit(store, { thread: "u", branch: "main", epoch: other.epoch, seq: 0, release: true });
  expect(await store.verify()).toMatchObject({ threads: 2, faults: [] });
});

test("without an active run the thread row records each change", async () => {
  const by = await store.claim({ ...graph, thread: "u" });
  for (let id = 1; id <= 3; id++) {
    await saveCommit(store, createSuperstep("u", by, id));
    expect((await store.threads({ limit: 1, since: 1_000 + id, until: 1_005 })).map(({ id }) => id)).toEqual(["u"]);
  }
});

test("the thread row is complete after the thread is released by its run or by closing the store", async () => {
  await killed(async () => undefined);
  await saveCommit(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: 5, release: true });
  expect(readThreadRow(file)).toEqual({ seq: 5, checkpoint: 5, updated: 1_005 });
  expect(readThreadRow(join(home.path, "left.db"))).toEqual({ seq: 1, checkpoint: 1, updated: 1_001 });

  const again = await store.claim({ ...graph, thread: "t" });
  for (let id = 6; id <= 8; id++) await saveCommit(store, createSuperstep("t", again, id));
  await store.close();
  expect(readThreadRow(file)).toEqual({ seq: 8, checkpoint: 8, updated: 1_008 });
});

test("claiming or forking a dead owner's thread continues after its last checkpoint", async () => {
  expect(await killed((left) => left.claim({ ...graph, thread: "t" }))).toMatchObject({
    previousOwner: "dead",
    nextSeq: 6,
    nextCheckpoint: 6,
    head: { id: 5 },
  });
  const fork = { thread: "t", branch: "b", from: 3, checkpoint: createCheckpoint(3), interrupts: [] };
  expect(await killed((left) => left.branch(fork))).toMatchObject({ id: 6, seq: 6, parent: 3 });
});

test("checkpoint numbers of a deleted subgraph namespace are not reused", async () => {
  const { row } = createCheckpoint(6);
  const inner = { ...row, branch: "main/5:0", parent: undefined };
  const at = { thread: "t", branch: "main/5:0", epoch: claim.epoch };
  await saveCommit(store, { ...at, seq: 6, checkpoint: { row: inner, deltas: [append("items", ["6"])] } });
  await saveCommit(store, {
    ...at,
    seq: 7,
    checkpoint: { row: { ...inner, id: 7, seq: 7, parent: 6, step: 7 }, deltas: [] },
  });
  expect(readThreadRow(file)).toMatchObject({ seq: 1, checkpoint: 1 });
  expect(await killed((left) => left.claim({ ...graph, thread: "t" }))).toMatchObject({
    nextSeq: 8,
    nextCheckpoint: 8,
  });
  await killed(async (left) => {
    await left.prune({ thread: "t", keepLast: 1, limit: 100, merge: (rows) => rows });
    expect(await left.branches("t")).toHaveLength(1);
    expect(await left.claim({ ...graph, thread: "t" })).toMatchObject({ nextSeq: 8, nextCheckpoint: 8 });
  });
});

test("journal rows alone do not write the thread row, and changes without a checkpoint write it at once", async () => {
  const at = { thread: "t", branch: "main", epoch: claim.epoch };
  await saveCommit(store, { ...at, seq: 5, effects: [{ ...createEffectRow(5), endedAt: 2_000 }] });
  expect(readThreadRow(file)).toEqual({ seq: 1, checkpoint: 1, updated: 1_001 });
  expect(await store.thread("t")).toMatchObject({ updatedAt: 1_005 });
  await saveCommit(store, { ...at, seq: 5, interrupts: [{ ...createInterruptRow("q", "yes"), answeredAt: 2_000 }] });
  expect(readThreadRow(file)).toEqual({ seq: 5, checkpoint: 5, updated: 2_000 });
  await saveCommit(store, createSuperstep("t", claim, 6));
  expect(await store.thread("t")).toMatchObject({ updatedAt: 2_000 });
  await saveCommit(store, { ...at, seq: 7, events: [{ seq: 7, branch: "main", at: 2_100, text: "{}" }] });
  expect(readThreadRow(file)).toMatchObject({ seq: 7, checkpoint: 6 });
  await saveCommit(store, { ...at, seq: 7, run: createRunRow("r1", "t") });
  const { row } = createCheckpoint(7);
  await saveCommit(store, { ...at, seq: 8, checkpoint: { row: { ...row, seq: 8 }, deltas: [] } });
  const events = await store.events("t", { after: 6, limit: 9 });
  expect(events).toMatchObject([{ durableEvent: { seq: 7 } }, { checkpoint: { id: 7, seq: 8 } }]);
});

test("a failed write leaves a gap that is refused, and its changes do not count", async () => {
  const wrong = { ...createSuperstep("t", claim, 6), branch: "main", checkpoint: createCheckpoint(9) };
  const next = { ...createSuperstep("t", claim, 7), after: 6 };
  const observed = await Promise.allSettled([saveCommit(store, wrong), saveCommit(store, next)]);
  expect(observed.map((each) => (each.status === "rejected" ? each.reason.code : "kept"))).toEqual([
    "store_failed",
    "store_failed",
  ]);
  await saveCommit(store, { ...createSuperstep("t", claim, 6), after: 5 });
  await saveCommit(store, { ...createSuperstep("t", claim, 7), after: 6 });
  expect(await killed((left) => left.claim({ ...graph, thread: "t" }))).toMatchObject({
    nextSeq: 8,
    nextCheckpoint: 8,
  });
});
