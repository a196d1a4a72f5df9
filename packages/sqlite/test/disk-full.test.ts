import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { StatewrightError } from "@statewright/core";
import { resume, run } from "@statewright/core";
import type { Commit } from "@statewright/core/store";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createGrowingGraph, first, listEffects, listRounds } from "./support/growing-graph.ts";
import { append, createCheckpoint, createRunRow, createSuperstep, graph, saveCommit } from "./support/rows.ts";
import { runLimited } from "./support/run-limited.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let diary: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  diary = join(home.path, "diary.txt");
});

afterEach(() => home.remove());

/** A system program. */
function command(name: string, ...words: readonly string[]): ReturnType<typeof spawnSync> {
  return spawnSync(name, words);
}

/** Returns true if this process may mount a file system. */
function canMount(): boolean {
  const probe = createFolder();
  try {
    const isMounted = command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", probe.path).status === 0;
    if (isMounted) command("umount", probe.path);
    return isMounted;
  } finally {
    probe.remove();
  }
}

/** A thread that occupies space until it is deleted. */
async function fill(store: ReturnType<typeof sqliteStore>, bytes: number): Promise<void> {
  const claim = await store.claim({ ...graph, thread: "ballast" });
  const text = JSON.stringify("x".repeat(bytes));
  const deltas = [{ channel: "big", kind: "replace", base: true, text }] as const;
  await saveCommit(store, {
    ...createSuperstep("ballast", claim, 1),
    checkpoint: createCheckpoint(1, deltas),
    release: true,
  });
}

describe("a run on a full disk", () => {
  test("a run on a full disk pauses with the cause and continues in the same process once there is room, with finished results [F3]", async () => {
    const store = sqliteStore(file, { maxBytes: 1_200_000 });
    await fill(store, 600_000);
    const rounds = 6;
    const big = createGrowingGraph(diary, 60_000, rounds);
    const result = await run(big, { store, thread: "t", input: first }).result;
    expect(result).toMatchObject({ status: "paused", cause: { code: "store_full" } });
    const before = listEffects(diary);
    expect(before.length).toBeGreaterThan(1);
    expect(before.length).toBeLessThan(rounds);
    // The pause row was written with the reserved space.
    const peer = sqliteStore(file);
    expect(await peer.runs({ thread: "t" })).toMatchObject([{ status: "paused", error: { code: "store_full" } }]);
    // Without space no run starts, however often it is tried.
    for (let time = 0; time < 3; time++) {
      const again = await resume(big, { store, thread: "t" }).result.catch((error: StatewrightError) => error);
      expect("status" in again ? again : { status: "paused", cause: again }).toMatchObject({
        status: "paused",
        cause: { code: "store_full" },
      });
    }
    expect(listEffects(diary)).toEqual(before);
    await peer.close();
    await store.delete("ballast");
    expect(await resume(big, { store, thread: "t" }).result).toMatchObject({
      status: "done",
      state: { round: rounds },
    });
    expect(listEffects(diary)).toEqual(listRounds(rounds));
    await store.close();
  });

  /** Run whose first effect returns more than all free space, including the reserve. */
  async function overflowing(store: ReturnType<typeof sqliteStore>) {
    await fill(store, 1_600_000);
    const big = createGrowingGraph(diary, 400_000, 1);
    expect(await run(big, { store, thread: "t", input: first }).result).toMatchObject({ status: "paused" });
    expect(await store.effects("t", "main")).toMatchObject([{ effect: "once", state: "started" }]);
    return big;
  }

  test("a result too large for the disk reserve is kept in memory", async () => {
    const store = sqliteStore(file, { maxBytes: 2_000_000 });
    const big = await overflowing(store);
    await expect(resume(big, { store, thread: "t" }).result).rejects.toMatchObject({ code: "store_full" });
    await store.delete("ballast");
    expect((await resume(big, { store, thread: "t" }).result).status).toBe("done");
    expect(listEffects(diary)).toEqual([0]);
    await store.close();
  });

  test("a result kept in memory is dropped after another process claimed the thread, and its effect is in doubt", async () => {
    const store = sqliteStore(file, { maxBytes: 2_000_000 });
    const big = await overflowing(store);
    await store.delete("ballast");
    const peer = sqliteStore(file);
    const claim = await peer.claim({ ...graph, graph: "growing", thread: "t" });
    await saveCommit(peer, { thread: "t", branch: "main", epoch: claim.epoch, seq: claim.nextSeq - 1, release: true });
    await peer.close();
    expect(await resume(big, { store, thread: "t" }).result).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "in_doubt" }],
    });
    expect(listEffects(diary)).toEqual([0]);
    await store.close();
  });

  test("a real file size limit pauses the run in the file, and the run completes without the limit", async () => {
    const rounds = 120;
    const ended = await runLimited("./processes/growing-process.ts", [file, diary, "5000", String(rounds)], {
      fileBlocks: 4_000,
    });
    expect([ended.code, ended.signal, ended.complaints]).toEqual([0, null, ""]);
    expect(JSON.parse(ended.said)).toEqual({
      status: "paused",
      code: "store_full",
      row: "paused",
      cause: "store_full",
    });
    expect(listEffects(diary).length).toBeLessThan(rounds);
    const store = sqliteStore(file);
    const big = createGrowingGraph(diary, 5_000, rounds);
    expect(await resume(big, { store, thread: "t" }).result).toMatchObject({
      status: "done",
      state: { round: rounds },
    });
    expect(listEffects(diary)).toEqual(listRounds(rounds));
    await store.close();
  });

  // Without the right to mount, the test of a file size limit is the only one of a real limit.
  test.runIf(canMount())(
    "a full real file system pauses the run, and the run completes on a larger one [FX82]",
    async () => {
      const disk = join(home.path, "disk");
      mkdirSync(disk);
      expect(command("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk).status).toBe(0);
      const store = sqliteStore(join(disk, "agent.db"));
      try {
        const rounds = 60;
        const big = createGrowingGraph(diary, 60_000, rounds);
        await fill(store, 500_000);
        expect(await run(big, { store, thread: "t", input: first }).result).toMatchObject({
          status: "paused",
          cause: { code: "store_full" },
        });
        const before = listEffects(diary);
        expect(await store.runs({ thread: "t" })).toMatchObject([{ status: "paused" }]);
        await Promise.allSettled([resume(big, { store, thread: "t" }).result]);
        expect(listEffects(diary)).toEqual(before);
        expect(command("mount", "-o", "remount,size=40m", disk).status).toBe(0);
        expect((await resume(big, { store, thread: "t" }).result).status).toBe("done");
        expect(listEffects(diary)).toEqual(listRounds(rounds));
      } finally {
        await store.close();
        command("umount", disk);
      }
    },
  );
});

describe("disk reserve", () => {
  /** Commits until the disk is full; returns the next checkpoint. */
  async function exhaust(store: ReturnType<typeof sqliteStore>, epoch: number): Promise<number> {
    for (let id = 1; ; id++) {
      const item = "x".repeat(5_000);
      const commit: Commit = {
        ...createSuperstep("t", { epoch, branch: "main" }, id),
        checkpoint: createCheckpoint(id, [append("items", [item])]),
      };
      const failure = await saveCommit(store, commit).then(
        () => undefined,
        (error: StatewrightError) => error,
      );
      if (failure === undefined) continue;
      expect(failure.code).toBe("store_full");
      return id;
    }
  }

  test("the disk reserve serves only the last writes of runs: 100 pausing runs among other writes", async () => {
    const store = sqliteStore(file, { maxBytes: 600_000 });
    const claims = [];
    for (let index = 0; index < 100; index++) claims.push(await store.claim({ ...graph, thread: `u${index}` }));
    const { epoch } = await store.claim({ ...graph, thread: "t" });
    const next = await exhaust(store, epoch);
    const large = { ...createSuperstep("t", { epoch, branch: "main" }, next), effects: [] };
    const text = JSON.stringify("x".repeat(50_000));
    const wanting = saveCommit(store, { ...large, checkpoint: createCheckpoint(next, [append("items", [text])]) });
    const refused = expect(wanting).rejects.toMatchObject({ code: "store_full" });
    await Promise.all(
      claims.map(({ epoch: own }, index) =>
        saveCommit(store, {
          thread: `u${index}`,
          branch: "main",
          epoch: own,
          seq: 0,
          run: {
            ...createRunRow(`r${index}`, `u${index}`),
            status: "paused",
            error: { name: "Error", message: "m".repeat(200) },
          },
          release: true,
        }),
      ),
    );
    await refused;
    expect(await store.runs({ status: "paused" })).toHaveLength(100);
    await store.close();
  });

  test("the disk reserve exists while a thread is held, is removed with the store, and with the lock of a dead owner", async () => {
    const store = sqliteStore(file);
    expect(readdirSync(home.path).filter((name) => name.includes("-reserve-"))).toEqual([]);
    await store.claim({ ...graph, thread: "t" });
    expect(readdirSync(home.path).filter((name) => name.includes("-reserve-"))).toEqual(["agent.db-reserve-1"]);
    await store.close();
    expect(readdirSync(home.path)).toEqual(["agent.db"]);
  });
});
