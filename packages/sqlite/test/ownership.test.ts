import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "@statewright/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Child, startChild as spawnChild } from "./support/child-process.ts";
import { createSuperstep, graph, readItems, saveCommit } from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let children: Child[];
let stores: Store[];

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  children = [];
  stores = [];
});

afterEach(async () => {
  for (const store of stores) await store.close();
  await Promise.all(children.map((child) => child.kill()));
  home.remove();
});

async function startChild(): Promise<Child> {
  const started = await spawnChild(file);
  children.push(started);
  return started;
}

function open(): Store {
  const store = sqliteStore(file);
  stores.push(store);
  return store;
}

function lockFiles(): readonly string[] {
  return readdirSync(home.path).filter((name) => name.includes("-owner-"));
}

describe("thread ownership", () => {
  test("of two processes on one thread one works and the other is refused at once with the owner [F15]", async () => {
    const owner = await startChild();
    const claim = await owner.claim("t");
    await expect(open().claim({ ...graph, thread: "t" })).rejects.toMatchObject({
      code: "thread_busy",
      message: expect.stringContaining(`process ${owner.pid}`),
    });
    await owner.ask({ do: "step", thread: "t", epoch: claim.epoch, id: 1 });
    expect(await readItems(open(), "t")).toEqual(["1"]);
  });

  test("the thread of a killed process is free at once and reported as recovered", async () => {
    const owner = await startChild();
    const claim = await owner.claim("t");
    await owner.ask({ do: "run", thread: "t", epoch: claim.epoch });
    await owner.ask({ do: "step", thread: "t", epoch: claim.epoch, id: 1 });
    await owner.kill();
    const next = await open().claim({ ...graph, thread: "t" });
    expect(next).toMatchObject({
      previousOwner: "dead",
      epoch: claim.epoch + 1,
      nextCheckpoint: 2,
      head: { id: 1 },
      run: { id: "r1", status: "running" },
    });
  });

  test("the thread of a process that closed its store is free and not reported as recovered", async () => {
    const owner = await startChild();
    await owner.claim("t");
    await owner.ask({ do: "close" });
    expect(await open().claim({ ...graph, thread: "t" })).toMatchObject({ previousOwner: "released", epoch: 2 });
  });

  test("the thread of a stopped process cannot be claimed, and the process continues when resumed [F10, F16]", async () => {
    const owner = await startChild();
    const claim = await owner.claim("t");
    owner.signal("SIGSTOP");
    await expect(open().claim({ ...graph, thread: "t" })).rejects.toMatchObject({ code: "thread_busy" });
    owner.signal("SIGCONT");
    await owner.ask({ do: "step", thread: "t", epoch: claim.epoch, id: 1 });
    expect(await readItems(open(), "t")).toEqual(["1"]);
  });

  test("the run of a stopped process reads as running, and that of a killed process as crashed [E35]", async () => {
    const owner = await startChild();
    const claim = await owner.claim("t");
    await owner.ask({ do: "run", thread: "t", epoch: claim.epoch });
    const store = open();
    const statuses = async () => [
      (await store.runs()).map(({ status }) => status),
      (await store.runs({ status: "crashed" })).length,
      (await store.thread("t"))?.status,
      (await store.threads({ status: "crashed" })).length,
    ];
    owner.signal("SIGSTOP");
    expect(await statuses()).toEqual([["running"], 0, "running", 0]);
    await owner.kill();
    expect(await statuses()).toEqual([["crashed"], 1, "crashed", 1]);
    // A read claims nothing: the next owner sees the crash.
    expect(await open().claim({ ...graph, thread: "t" })).toMatchObject({
      previousOwner: "dead",
      run: { status: "running" },
    });
  });

  test("a list that checks live owners does not block a claim", async () => {
    const owner = await startChild();
    for (const thread of ["t", "u"]) {
      const claim = await owner.claim(thread);
      await owner.ask({ do: "run", thread, epoch: claim.epoch });
    }
    await owner.kill();
    const [one, other] = [open(), open()];
    const [rows, claimed] = await Promise.all([
      one.runs({ status: "crashed" }),
      other.claim({ ...graph, thread: "t" }),
    ]);
    expect(rows.length).toBeGreaterThanOrEqual(1);
    expect(claimed.previousOwner).toBe("dead");
  });

  test("of many processes that claim a dead owner's thread at once exactly one succeeds [I9]", async () => {
    const rivals = await Promise.all(Array.from({ length: 6 }, () => startChild()));
    let epoch = 0;
    let owner = await startChild();
    await owner.claim("t");
    for (let round = 0; round < 4; round++) {
      await owner.kill();
      const living = rivals.filter((rival) => rival !== owner);
      const settled = await Promise.allSettled(living.map((rival) => rival.claim("t")));
      const won = settled.flatMap((each, index) => (each.status === "fulfilled" ? [{ claim: each.value, index }] : []));
      const lost = settled.flatMap((each) => (each.status === "rejected" ? [each.reason.message] : []));
      expect(won).toHaveLength(1);
      expect(new Set(lost)).toEqual(new Set(["thread_busy"]));
      expect(won[0]?.claim).toMatchObject({ previousOwner: "dead", epoch: round + 2 });
      epoch = won[0]?.claim.epoch ?? 0;
      owner = living[won[0]?.index ?? 0] as Child;
      rivals.splice(rivals.indexOf(owner), 1);
    }
    expect(epoch).toBe(5);
  });

  test("a live writer whose lock file was removed keeps its thread and refuses to write [E36, FX60]", async () => {
    const stale = await startChild();
    const claim = await stale.claim("t");
    for (const name of lockFiles()) rmSync(join(home.path, name));
    await expect(open().claim({ ...graph, thread: "t" })).rejects.toMatchObject({ code: "thread_busy" });
    await expect(stale.ask({ do: "step", thread: "t", epoch: claim.epoch, id: 1 })).rejects.toThrow("store_failed");
    await stale.kill();
    const store = open();
    const next = await store.claim({ ...graph, thread: "t" });
    expect(next.previousOwner).toBe("dead");
    await saveCommit(store, createSuperstep("t", next, 1, "mine"));
    expect(await readItems(store, "t")).toEqual(["mine"]);
  });

  test("1,000 threads of a killed process are recovered by one process", async () => {
    const owner = await startChild();
    const names = Array.from({ length: 1_000 }, (_, index) => `t${index}`);
    const claims = await Promise.all(names.map((thread) => owner.claim(thread)));
    await Promise.all(
      names.map((thread, index) => owner.ask({ do: "step", thread, epoch: claims[index]?.epoch ?? 0, id: 1 })),
    );
    await owner.kill();
    const store = open();
    const recovered = await Promise.all(names.map((thread) => store.claim({ ...graph, thread })));
    expect(
      recovered.filter((claim) => claim.previousOwner === "dead" && claim.epoch === 2 && claim.head?.id === 1),
    ).toHaveLength(1_000);
    await Promise.all(
      names.map((thread, index) =>
        saveCommit(store, createSuperstep(thread, recovered[index] as { epoch: number; branch: string }, 2)),
      ),
    );
    expect(await readItems(store, "t999")).toEqual(["1", "2"]);
  });
});

describe("owner lock files", () => {
  test("an owner has no lock file before its first claim, one after it, and none after close", async () => {
    const store = open();
    expect(lockFiles()).toEqual([]);
    await store.claim({ ...graph, thread: "t" });
    await store.claim({ ...graph, thread: "u" });
    expect(lockFiles()).toEqual(["agent.db-owner-1"]);
    await store.close();
    expect(readdirSync(home.path)).toEqual(["agent.db"]);
  });

  test("the lock file of a dead owner is removed by the next owner, and its id is not reused", async () => {
    for (const id of [1, 2]) {
      const owner = await startChild();
      await owner.claim(`t${id}`);
      expect(lockFiles()).toEqual([`agent.db-owner-${id}`]);
      await owner.kill();
    }
    expect(lockFiles()).toEqual(["agent.db-owner-2"]);
    await open().claim({ ...graph, thread: "u" });
    expect(lockFiles()).toEqual(["agent.db-owner-3"]);
  });

  test("a refused claim leaves no lock file", async () => {
    await (await startChild()).claim("t");
    const store = open();
    await expect(store.claim({ ...graph, thread: "t" })).rejects.toMatchObject({ code: "thread_busy" });
    await expect(store.claim({ ...graph, thread: "none", mustExist: true })).rejects.toMatchObject({
      code: "unknown_thread",
    });
    expect(lockFiles()).toEqual(["agent.db-owner-1"]);
  });

  test("a copy of a file is not held by the owner of the original", async () => {
    const store = open();
    await store.claim({ ...graph, thread: "t" });
    await store.close();
    // The file is closed: copying it now releases no lock of this process.
    const { copyFileSync } = await import("node:fs");
    const copy = join(home.path, "copy.db");
    copyFileSync(file, copy);
    const held = open();
    await held.claim({ ...graph, thread: "t" });
    const other = sqliteStore(copy);
    stores.push(other);
    expect(await other.claim({ ...graph, thread: "t" })).toMatchObject({ epoch: 2 });
  });
});
