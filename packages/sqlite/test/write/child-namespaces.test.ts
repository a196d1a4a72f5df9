/** Child namespaces in a file: cache, refused writes and external changes. */
import { join } from "node:path";
import type { Store } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import type { CheckpointWrite, Claim, Commit } from "@statewright/core/store";
import { type SqliteStoreOptions, sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { append, createCheckpoint, createEffectRow, graph, saveCommit } from "../support/rows.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let stores: Store[];

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  stores = [];
});

afterEach(async () => {
  for (const store of stores) await store.close();
  home.remove();
});

function open(options: SqliteStoreOptions = { durability: "normal" }): Store {
  const store = sqliteStore(file, options);
  stores.push(store);
  return store;
}

/** Creates the next checkpoint of a namespace: it appends its own id. */
function step({ epoch }: Claim, branch: string, id: number, parent?: number): Commit {
  const { row, deltas } = createCheckpoint(id, [append("items", [String(id)])]);
  return { thread: "t", branch, epoch, seq: id, checkpoint: { row: { ...row, branch, parent }, deltas } };
}

function fill(write: CheckpointWrite | undefined): CheckpointWrite {
  if (write === undefined) throw new Error("there is no checkpoint to fill");
  const text = JSON.stringify("x".repeat(400_000));
  return { ...write, deltas: [{ channel: "big", kind: "replace", base: true, text }] };
}

async function listIds(store: Store, branch: string): Promise<readonly number[]> {
  return (await store.history("t", { branch, limit: 9 })).map(({ id }) => id);
}

describe("child namespaces in a file", () => {
  test("more child namespaces than a store caches are written alternately", async () => {
    const store = open();
    const claim = await store.claim({ ...graph, thread: "t" });
    await saveCommit(store, step(claim, "main", 1));
    const lines = Array.from({ length: 4_200 }, (_, index) => `main/1:${index}`);
    const id = (index: number, round: number) => 2 + round * lines.length + index;
    await Promise.all(lines.map((line, index) => saveCommit(store, step(claim, line, id(index, 0)))));
    await Promise.all(lines.map((line, index) => saveCommit(store, step(claim, line, id(index, 1), id(index, 0)))));
    await saveCommit(store, step(claim, "main", id(0, 2), 1));
    for (const index of [0, 1, 4_095, 4_096, 4_199])
      expect(await listIds(store, `main/1:${index}`)).toEqual([id(index, 1), id(index, 0)]);
    expect(await listIds(store, "main")).toEqual([id(0, 2), 1]);
    expect(await store.branches("t")).toEqual([{ name: "main", head: id(0, 2) }]);
  });

  test("a child namespace refused by a full disk is created by the next commit that fits", async () => {
    const store = open({ maxBytes: 300_000 });
    const claim = await store.claim({ ...graph, thread: "t" });
    await saveCommit(store, step(claim, "main", 1));
    const first = step(claim, "main/1:0", 2);
    const tooMuch = { ...first, checkpoint: fill(first.checkpoint) };
    await expect(saveCommit(store, tooMuch)).rejects.toMatchObject({ code: "store_full" });
    expect(await store.head("t", "main/1:0")).toBeUndefined();
    const inner = step(claim, "main/1:0/0:0", 2);
    await expect(saveCommit(store, inner)).rejects.toMatchObject({ code: "unknown_branch" });
    await saveCommit(store, first);
    await saveCommit(store, step(claim, "main/1:0/0:0", 3));
    await saveCommit(store, step(claim, "main/1:0", 4, 2));
    expect([await listIds(store, "main/1:0"), await listIds(store, "main/1:0/0:0")]).toEqual([[4, 2], [3]]);
  });

  test("child namespaces of a lost transaction are created when the same commits are repeated", async () => {
    const world = systemWorld();
    // Commits of one moment share a transaction on any machine.
    const clock = { now: () => world.clock.now(), monotonic: () => 0 };
    const store = open({ durability: "normal", world: { ...world, clock } });
    const claim = await store.claim({ ...graph, thread: "t" });
    await saveCommit(store, step(claim, "main", 1));
    const raw = new Database(file);
    raw.exec(
      "CREATE TRIGGER losing BEFORE INSERT ON effects WHEN NEW.call = 'lose' BEGIN SELECT RAISE(ROLLBACK, 'lost'); END",
    );
    const losing: Commit = {
      thread: "t",
      branch: "main",
      epoch: claim.epoch,
      seq: 4,
      effects: [{ ...createEffectRow(1), key: "lose" }],
    };
    const moment = [step(claim, "main/1:0", 2), step(claim, "main/1:0/0:0", 3), losing, step(claim, "main", 4, 1)];
    for (const result of await Promise.allSettled(moment.map((commit) => saveCommit(store, commit))))
      expect(result).toMatchObject({ status: "rejected", reason: { code: "store_failed" } });
    expect([await listIds(store, "main"), await listIds(store, "main/1:0")]).toEqual([[1], []]);
    raw.exec("DROP TRIGGER losing");
    raw.close();
    await Promise.all(moment.map((commit) => saveCommit(store, commit)));
    for (const [line, ids] of Object.entries({ main: [4, 1], "main/1:0": [2], "main/1:0/0:0": [3] }))
      expect(await listIds(store, line)).toEqual(ids);
  });

  test("a child namespace that continues from a replaced checkpoint is refused [I5]", async () => {
    const store = open();
    const claim = await store.claim({ ...graph, thread: "t" });
    for (const [id, parent] of [[1], [2, 1], [3, 2]] as const) await saveCommit(store, step(claim, "main", id, parent));
    await saveCommit(store, step(claim, "main/1:0", 4, 2));
    expect(await listIds(store, "main/1:0")).toEqual([4, 2, 1]);
    await store.close();
    const raw = new Database(file);
    raw.exec("UPDATE checkpoints SET hash = (SELECT hash FROM checkpoints WHERE step = 1) WHERE step = 2");
    raw.close();
    const damaged = open();
    await expect(damaged.head("t", "main/1:0")).rejects.toMatchObject({ code: "store_corrupt" });
    await expect(damaged.state("t", 4)).rejects.toMatchObject({ code: "store_corrupt" });
  });
});
