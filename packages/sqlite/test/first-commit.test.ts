/** A starting run claims its thread in its first commit, in one write. */
import { join } from "node:path";
import type { Claim } from "@statewright/core/store";
import type { SqliteStore } from "@statewright/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { rowsPerPiece } from "../src/write/removed-threads.ts";
import { createCheckpoint, createRunRow, createSuperstep, graph, saveCommit } from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let store: SqliteStore;
let other: SqliteStore;

beforeEach(async () => {
  home = createFolder();
  store = sqliteStore(join(home.path, "agent.db"), { durability: "normal" });
  other = sqliteStore(join(home.path, "agent.db"), { durability: "normal" });
  // The owner row is written by the first claim of the owner.
  await store.claim({ ...graph, thread: "first" });
});

afterEach(async () => {
  await store.close();
  await other.close();
  home.remove();
});

function claimForRun(thread: string): Promise<Claim> {
  return store.claim({ ...graph, thread, startsRun: true });
}

function letGo(thread: string, { epoch, branch }: Claim, seq: number): Promise<void> {
  return saveCommit(store, { thread, branch, epoch, seq, release: true });
}

test("a run that is released before its first commit leaves no trace", async () => {
  await letGo("t", await claimForRun("t"), 0);
  expect((await other.threads()).map(({ id }) => id)).toEqual(["first"]);

  await saveCommit(store, { ...createSuperstep("t", await claimForRun("t"), 1), release: true });
  const before = await other.exportThread("t");
  await letGo("t", await claimForRun("t"), 1);
  expect(await other.exportThread("t")).toEqual(before);
});

test("a first commit is refused after changes by others on the thread, and those changes stay", async () => {
  await saveCommit(store, { ...createSuperstep("t", await claimForRun("t"), 1), release: true });
  const meanwhile = {
    run: async () =>
      saveCommit(other, { ...createSuperstep("t", await other.claim({ ...graph, thread: "t" }), 2), release: true }),
    fork: () => other.branch({ thread: "t", branch: "b", from: 1, checkpoint: createCheckpoint(1), interrupts: [] }),
    remove: () => other.delete("t"),
  };
  for (const [what, does] of Object.entries(meanwhile)) {
    const late = await claimForRun("t");
    await does();
    const now = what === "remove" ? undefined : await other.exportThread("t");
    await expect(saveCommit(store, createSuperstep("t", late, late.nextCheckpoint)), what).rejects.toMatchObject({
      code: "fenced",
    });
    if (now !== undefined) expect(await other.exportThread("t"), what).toEqual(now);
  }
  expect((await other.threads()).map(({ id }) => id)).toEqual(["first"]);
  expect(await store.verify()).toMatchObject({ faults: [] });
});

test("changes allowed next to an active run are allowed before its first commit, which follows them", async () => {
  const keys = { now: ["a"] };
  const encryption = { keys: () => keys.now.map((id) => ({ id, key: new Uint8Array(32).fill(id.charCodeAt(0)) })) };
  const path = join(home.path, "sealed.db");
  const [one, two] = [sqliteStore(path, { encryption }), sqliteStore(path, { encryption })];
  const first = await one.claim({ ...graph, thread: "t" });
  for (const id of [1, 2, 3]) await saveCommit(one, { ...createSuperstep("t", first, id), release: id === 3 });
  const claim = await one.claim({ ...graph, thread: "t", startsRun: true });
  keys.now = ["b", "a"];
  expect(await two.rotate("t")).toBeGreaterThan(0);
  expect(await two.prune({ thread: "t", keepLast: 1, merge: (rows) => rows })).toBe(2);
  keys.now = ["b"];
  await saveCommit(one, createSuperstep("t", claim, 4));
  await expect(two.claim({ ...graph, thread: "t" })).rejects.toMatchObject({ code: "thread_busy" });
  expect(await two.state("t", 4)).toMatchObject([{ channel: "items", deltas: { length: 4 } }]);
  expect(await two.verify()).toMatchObject({ faults: [] });
  await one.close();
  await two.close();
});

test("a thread imported from an image is not confused with another that replaced it since", async () => {
  for (const thread of ["x", "t"])
    await saveCommit(store, { ...createSuperstep(thread, await claimForRun(thread), 1), release: true });
  const image = await store.exportThread("t");
  await store.delete("t");
  await store.importThread(image);
  const late = await claimForRun("t");
  // The rows reuse the rowids of the deleted ones, except those of its branch, which another thread has by now.
  const writeOtherThreads = async (): Promise<void> => {
    await other.delete("t");
    await other.branch({ thread: "x", branch: "b", from: 1, checkpoint: createCheckpoint(1), interrupts: [] });
    await other.importThread(image);
  };
  await expect(writeOtherThreads()).rejects.toMatchObject({ code: "thread_busy" });
  await saveCommit(store, createSuperstep("t", late, 2));
  expect((await other.head("t"))?.id).toBe(2);
  expect(await store.verify()).toMatchObject({ faults: [] });
});

test("a first run on a new thread gets no row of the newest thread while that one is being deleted [FX77]", async () => {
  const old = await store.claim({ ...graph, thread: "old" });
  const steps = Array.from({ length: rowsPerPiece }, (_, nth) => createSuperstep("old", old, nth + 1));
  await Promise.all(steps.map((commit, nth) => saveCommit(store, { ...commit, release: nth + 1 === steps.length })));
  const claim = await claimForRun("t");
  const deletion = store.delete("old");
  await saveCommit(store, { ...createSuperstep("t", claim, 1), run: createRunRow("r1", "t"), release: true });
  await deletion;
  expect(await store.state("t", 1)).toMatchObject([{ channel: "items" }]);
  expect((await store.threads()).map(({ id }) => id)).toEqual(["t", "first"]);
  expect(await store.verify()).toMatchObject({ faults: [] });
});

test("a failed first commit leaves the thread to be claimed by the next one", async () => {
  const claim = await claimForRun("t");
  const unfit = { ...createSuperstep("t", claim, 1), after: 7 };
  await expect(saveCommit(store, unfit)).rejects.toMatchObject({ code: "store_failed" });
  expect((await other.threads()).map(({ id }) => id)).toEqual(["first"]);
  await saveCommit(store, createSuperstep("t", claim, 1));
  await expect(other.claim({ ...graph, thread: "t" })).rejects.toMatchObject({ code: "thread_busy" });
});

test("a row queued next to a starting run finds its thread and is followed by the first commit", async () => {
  const queued = { id: "q", graph: "g", version: 1, status: "queued", attempt: 1, startedAt: 1, queuedAt: 1 } as const;
  const claim = await claimForRun("t");
  await expect(store.enqueue({ thread: "t", branch: "b", run: queued })).rejects.toMatchObject({
    code: "unknown_branch",
  });
  expect((await other.threads()).map(({ id }) => id)).toEqual(["first"]);
  await store.post({ thread: "t", id: "l", kind: "steer", messages: "[]", at: 1 });
  await store.enqueue({ thread: "t", run: queued });
  await expect(other.claim({ ...graph, thread: "t" })).rejects.toMatchObject({ code: "thread_busy" });
  await saveCommit(store, { ...createSuperstep("t", claim, 1), release: true });
  expect((await other.claim({ ...graph, thread: "t" })).queued).toBe(1);
  expect(await other.inbox("t", "main")).toHaveLength(1);
});
