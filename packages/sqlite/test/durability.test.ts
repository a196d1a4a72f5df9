import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startChild } from "./support/child-process.ts";
import {
  append,
  createCheckpoint,
  createInterruptRow,
  createSuperstep,
  graph,
  readItems,
  saveCommit,
} from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

/** Deterministic pseudo-random numbers. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe("a killed process", () => {
  test("commits reported by a killed process are in the file, and unreported ones are complete or absent [I8]", async () => {
    let last = 0;
    for (let kill = 0; kill < 8; kill++) {
      const child = await startChild(file);
      const claim = await child.claim(`t${kill}`);
      let observed = 0;
      await new Promise<void>((resolve) => {
        child.onObserved((step) => {
          observed = Number(step);
          if (observed === 1 + kill * 11) resolve();
        });
        void child.ask({ do: "forever", thread: `t${kill}`, epoch: claim.epoch });
      });
      await child.kill();
      const store = sqliteStore(file);
      const next = await store.claim({ ...graph, thread: `t${kill}` });
      const saved = next.head?.id ?? 0;
      expect(saved).toBeGreaterThanOrEqual(observed);
      expect(next).toMatchObject({ previousOwner: "dead", nextSeq: saved + 1, nextCheckpoint: saved + 1 });
      expect(await readItems(store, `t${kill}`)).toEqual(
        Array.from({ length: saved }, (_, index) => String(index + 1)),
      );
      expect(await store.effects(`t${kill}`, "main")).toHaveLength(saved);
      expect(await store.history(`t${kill}`, { limit: 10_000 })).toHaveLength(saved);
      await saveCommit(store, createSuperstep(`t${kill}`, next, saved + 1));
      await store.close();
      last = saved;
    }
    expect(last).toBeGreaterThan(70);
  });
});

describe("a truncated or damaged log", () => {
  /** Creates a file whose commits are all in its log. */
  async function image(commits: number): Promise<string> {
    const store = sqliteStore(file);
    const claim = await store.claim({ ...graph, thread: "t" });
    for (let id = 1; id <= commits; id++) await saveCommit(store, createSuperstep("t", claim, id));
    const path = join(home.path, "image.db");
    copyFileSync(file, path);
    copyFileSync(`${file}-wal`, `${path}-wal`);
    await store.close();
    return path;
  }

  async function opened(source: string, damage: (log: string) => void): Promise<number> {
    const copy = join(home.path, "damaged.db");
    for (const part of ["", "-wal"]) copyFileSync(source + part, copy + part);
    damage(`${copy}-wal`);
    const store = sqliteStore(copy);
    try {
      const saved = (await store.head("t"))?.id ?? 0;
      expect(await readItems(store, "t")).toEqual(Array.from({ length: saved }, (_, index) => String(index + 1)));
      expect(await store.effects("t", "main")).toHaveLength(saved);
      expect(await store.history("t", { limit: 1_000 })).toHaveLength(saved);
      return saved;
    } finally {
      await store.close();
    }
  }

  test("a torn log holds an exact prefix of the commits, and a longer log never a shorter prefix [F2]", async () => {
    const commits = 60;
    const source = await image(commits);
    const bytes = statSync(`${source}-wal`).size;
    const cuts = process.env["STATEWRIGHT_WHOLE"] === "1" ? 300 : 75;
    let before = 0;
    for (let cut = 0; cut <= cuts; cut++) {
      const saved = await opened(source, (log) => {
        const handle = openSync(log, "r+");
        ftruncateSync(handle, Math.floor((bytes * cut) / cuts));
        closeSync(handle);
      });
      expect(saved).toBeGreaterThanOrEqual(before);
      before = saved;
    }
    expect(before).toBe(commits);
  });

  test("a flipped bit in the log loses no commit before it [FX82, F2]", async () => {
    const source = await image(40);
    const random = seeded(7);
    const bytes = statSync(`${source}-wal`).size;
    let mostKept = 0;
    for (let flip = 0; flip < 100; flip++) {
      const at = Math.floor(random() * bytes);
      const before = await opened(source, (log) => truncateSync(log, at));
      const saved = await opened(source, (log) => flipBit(log, at, Math.floor(random() * 8)));
      expect(saved, `byte ${at}`).toBeGreaterThanOrEqual(before);
      expect(saved).toBeLessThanOrEqual(40);
      mostKept = Math.max(mostKept, before);
    }
    expect(mostKept).toBeGreaterThan(30);
  });
});

describe("a file with flipped bits", () => {
  test("a changed control state, delta, outcome, answer or timer is refused by name, whichever bit changed", async () => {
    const store = sqliteStore(file);
    const claim = await store.claim({ ...graph, shape: "shape-1", thread: "t" });
    for (let id = 1; id <= 3; id++) await saveCommit(store, createSuperstep("t", claim, id, `item-${id}`));
    await saveCommit(store, {
      thread: "t",
      branch: "main",
      epoch: claim.epoch,
      seq: 4,
      interrupts: [createInterruptRow("q1", "answer-1")],
      timers: [{ arm: { id: "wait", kind: "after", generation: 3, dueAt: 9_000, about: "timer-1" } }],
    });
    await saveCommit(store, {
      thread: "t",
      branch: "main",
      epoch: claim.epoch,
      seq: 5,
      checkpoint: createCheckpoint(4, [append("other", ["unread"])]),
    });
    await store.close();
    const reads: Record<
      string,
      { readonly text: string; read(from: ReturnType<typeof sqliteStore>): Promise<unknown> }
    > = {
      "the control state of the head": { text: "control of 4", read: (from) => from.head("t") },
      "the control state before it": { text: "control of 2", read: (from) => from.checkpoint("t", 2) },
      "a delta that leads to the state": { text: '["item-1"]', read: (from) => from.state("t", 4) },
      "a delta in the history": { text: '["item-2"]', read: (from) => from.history("t", { limit: 9 }) },
      "the outcome of a once effect": { text: '"item-3"', read: (from) => from.effects("t", "main") },
      "the answer to a question": { text: "answer-1", read: (from) => from.interrupts("t", "main") },
      "the subject of a timer": { text: "timer-1", read: (from) => from.timers({ thread: "t", limit: 5 }) },
      "the fingerprint of the graph": { text: "shape-1", read: (from) => from.head("t") },
    };
    const clean = readFileSync(file);
    for (const [what, { text, read }] of Object.entries(reads)) {
      const places = listPlaces(clean, text);
      expect(places.length, what).toBeGreaterThan(0);
      for (let index = 0; index < text.length; index++) {
        const copy = join(home.path, "flipped.db");
        writeFileSync(copy, clean);
        for (const place of places) flipBit(copy, place + index, index % 7);
        const damaged = sqliteStore(copy);
        await expect(read(damaged), `${what}, byte ${index}`).rejects.toMatchObject({
          code: "store_corrupt",
          place: { thread: "t" },
        });
        await damaged.close();
      }
    }
  });

  test("a damaged delta that a state does not need does not block reading the state", async () => {
    const store = sqliteStore(file);
    const claim = await store.claim({ ...graph, thread: "t" });
    await saveCommit(store, {
      thread: "t",
      branch: "main",
      epoch: claim.epoch,
      seq: 1,
      checkpoint: createCheckpoint(1, [{ channel: "x", kind: "replace", base: true, text: '"old"' }]),
    });
    await saveCommit(store, {
      thread: "t",
      branch: "main",
      epoch: claim.epoch,
      seq: 2,
      checkpoint: createCheckpoint(2, [{ channel: "x", kind: "replace", base: true, text: '"new"' }]),
    });
    await store.close();
    for (const place of listPlaces(readFileSync(file), '"old"')) flipBit(file, place + 1, 0);
    const damaged = sqliteStore(file);
    expect(await damaged.state("t", 2)).toEqual([{ channel: "x", deltas: [{ kind: "replace", text: '"new"' }] }]);
    await expect(damaged.state("t", 1)).rejects.toMatchObject({
      code: "store_corrupt",
      message: expect.stringContaining("checkpoint 1"),
    });
    await expect(damaged.claim({ ...graph, thread: "t" })).resolves.toMatchObject({ head: { id: 2 } });
    await damaged.close();
  });

  test("a checkpoint replaced by another one breaks the hash chain [I5]", async () => {
    const store = sqliteStore(file);
    const claim = await store.claim({ ...graph, thread: "t" });
    for (let id = 1; id <= 3; id++) await saveCommit(store, createSuperstep("t", claim, id));
    await store.close();
    const { default: Database } = await import("better-sqlite3");
    const raw = new Database(file);
    raw.exec("UPDATE checkpoints SET hash = (SELECT hash FROM checkpoints WHERE step = 1) WHERE step = 2");
    raw.close();
    const damaged = sqliteStore(file);
    await expect(damaged.checkpoint("t", 2)).rejects.toMatchObject({ code: "store_corrupt" });
    await expect(damaged.checkpoint("t", 3)).rejects.toMatchObject({ code: "store_corrupt" });
    expect(await damaged.checkpoint("t", 1)).toMatchObject({ id: 1 });
    await damaged.close();
  });
});

function listPlaces(bytes: Buffer, text: string): readonly number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) places.push(at);
  return places;
}

function flipBit(path: string, at: number, bit: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] as number) ^ (1 << bit);
  writeFileSync(path, bytes);
}
