/** Notifications and acts on a file, across processes that are killed. */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bulk, defineGraph, defineState, END, engine, type Notification, run, START, submit } from "@statewright/core";
import { countRuns, createThread, deleteThread, listNotifications, listThreads } from "@statewright/core/inspect";
import { type SqliteStore, sqliteStore } from "@statewright/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readBytes } from "../support/database-file.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
const children: ChildProcess[] = [];
const stores: SqliteStore[] = [];

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
});

afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  for (const store of stores.splice(0)) await store.close();
  home.remove();
});

const failing = defineGraph({ name: "failing", state: defineState({}) })
  .nodes({
    work: () => {
      throw new Error("no stock");
    },
  })
  .edges({ [START]: "work", work: END });

/** The program `failing` after its repair. */
const repaired = defineGraph({ name: "failing", state: defineState({}) })
  .nodes({ work: () => ({}) })
  .edges({ [START]: "work", work: END });

function open(options: Parameters<typeof sqliteStore>[1] = {}): SqliteStore {
  const store = sqliteStore(file, { durability: "normal", ...options });
  stores.push(store);
  return store;
}

function startProcess(role: string, thread = "t"): ChildProcess {
  const child = fork(
    fileURLToPath(new URL("../support/processes/notify-process.ts", import.meta.url)),
    [file, role, thread],
    {
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    },
  );
  children.push(child);
  return child;
}

/** Resolves with the first message that `select` accepts. */
function waitForMessage<Value>(child: ChildProcess, select: (message: unknown) => Value | undefined): Promise<Value> {
  return new Promise((resolve, reject) => {
    child.on("message", (message) => {
      const selected = select(message);
      if (selected !== undefined) resolve(selected);
    });
    child.once("exit", (code) => reject(new Error(`the process ended with code ${code}`)));
  });
}

const toNotification = (message: unknown): Notification | undefined =>
  typeof message === "object" && message !== null && "kind" in message ? (message as Notification) : undefined;

function kill(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", () => resolve());
    child.kill("SIGKILL");
  });
}

async function fail(store: SqliteStore, thread: string): Promise<void> {
  await run(failing, { store, thread }).result.catch(() => undefined);
}

const subscription = { consumer: "notify", topics: ["run.failed"] };

describe("notifications on a file", () => {
  test("a failure whose process was killed after its commit is delivered by another process, and again under the same id after a kill in the delivery [Y35, SE8]", async () => {
    await open().outbox.subscribe(subscription);
    const failed = startProcess("fail");
    await waitForMessage(failed, (message) => (message === "failed" ? true : undefined));
    await kill(failed);
    const dying = startProcess("die");
    const first = await waitForMessage(dying, toNotification);
    await kill(dying);
    const second = await waitForMessage(startProcess("deliver"), toNotification);
    expect([first.kind, first.thread, second]).toEqual(["run.failed", "t", first]);
  });

  test("notifications of forty threads are delivered once each by two processes on one file [Y35, SE8]", async () => {
    const store = open();
    await store.outbox.subscribe(subscription);
    for (let nth = 0; nth < 40; nth++) await fail(store, `t${nth}`);
    const delivered: string[] = [];
    await new Promise<void>((resolve, reject) => {
      for (const child of [startProcess("deliver"), startProcess("deliver")]) {
        child.once("exit", (code) => reject(new Error(`the process ended with code ${code}`)));
        child.on("message", (message) => {
          delivered.push(toNotification(message)?.id ?? "");
          if (delivered.length === 40) resolve();
        });
      }
    });
    expect(new Set(delivered).size).toBe(40);
  });

  test("a notification is encrypted in the file, verified, and readable after a rotation of its key [SE8]", async () => {
    const [oldKey, newKey] = ["old", "new"].map((id, nth) => ({ id, key: new Uint8Array(32).fill(nth + 1) }));
    if (oldKey === undefined || newKey === undefined) throw new Error("two keys");
    const before = open({ encryption: { keys: () => [oldKey] } });
    await before.outbox.subscribe(subscription);
    await fail(before, "t");
    const [row] = await before.outbox.claim({ consumer: "notify", at: Date.now(), limit: 1 });
    await before.outbox.finish(row?.position ?? 0, { kind: "given_up", error: "refused by acme", at: 1 });
    expect(readBytes(file)).not.toContain("no stock");
    await before.close();
    const after = open({ encryption: { keys: () => [newKey, oldKey] } });
    expect(await after.rotate?.("t")).toBeGreaterThan(0);
    expect((await after.verify?.("t"))?.faults).toEqual([]);
    await after.close();
    const rotated = open({ encryption: { keys: () => [newKey] } });
    expect(await listNotifications(rotated)).toMatchObject([
      { kind: "run.failed", error: { message: expect.stringContaining("no stock") }, lastError: "refused by acme" },
    ]);
    await deleteThread(rotated, "t");
    expect(await listNotifications(rotated)).toEqual([]);
  });

  test("a store that only reads lists notifications and refuses to change them [Y35]", async () => {
    const store = open();
    await store.outbox.subscribe(subscription);
    await fail(store, "t");
    const reader = open({ readOnly: true });
    expect((await listNotifications(reader)).map(({ thread }) => thread)).toEqual(["t"]);
    await expect(reader.outbox.retry(1, 0)).rejects.toMatchObject({ code: "store_read_only" });
    const host = engine({ store: reader, graphs: [], notify: () => undefined });
    await expect(host.start()).rejects.toMatchObject({ code: "store_read_only" });
  });
});

describe("an act on a file", () => {
  test("bulk.deleteThreads whose process was killed continues with the remaining threads of its filter [Y33]", async () => {
    const store = open();
    for (let nth = 0; nth < 60; nth++) await createThread(store, { thread: `t${nth}` });
    const killed = startProcess("delete and die");
    await new Promise((resolve) => killed.once("exit", resolve));
    expect(killed.signalCode).toBe("SIGKILL");
    const rest = (await listThreads(store)).length;
    expect([rest > 0, rest <= 55]).toEqual([true, true]);
    const next = startProcess("delete");
    await waitForMessage(next, (message) => (message === "ended" ? true : undefined));
    expect(await listThreads(store)).toEqual([]);
  });

  test("bulk.cancelRuns whose process was killed continues with the remaining runs, and each run is cancelled once [Y33]", async () => {
    const store = open();
    for (let nth = 0; nth < 30; nth++) await submit(failing, { store, thread: `t${nth}` });
    const killed = startProcess("cancel and die");
    await new Promise((resolve) => killed.once("exit", resolve));
    expect(killed.signalCode).toBe("SIGKILL");
    const { byStatus } = await countRuns(store);
    expect([byStatus.cancelled >= 5, byStatus.queued > 0]).toEqual([true, true]);
    const rest = await bulk.cancelRuns(store, { filter: {} });
    expect(rest).toMatchObject({ matched: byStatus.queued, done: byStatus.queued, skipped: 0, isComplete: true });
    expect(await countRuns(store)).toMatchObject({ total: 30, byStatus: { cancelled: 30 } });
  });

  for (const [name, act, before] of [
    ["bulk.retryRuns", bulk.retryRuns, "failed"],
    ["bulk.resumeRuns", bulk.resumeRuns, "paused"],
  ] as const)
    test(`${name} whose process was killed continues with the remaining runs, and no run is left [Y33]`, async () => {
      const store = open();
      for (let nth = 0; nth < 30; nth++) {
        if (before === "failed") await fail(store, `t${nth}`);
        else await run(failing, { store, thread: `t${nth}`, breakpoints: { before: ["work"] } }).result;
      }
      expect((await countRuns(store)).byStatus[before]).toBe(30);
      const killed = startProcess(`${before === "failed" ? "retry" : "resume"} and die`);
      await new Promise((resolve) => killed.once("exit", resolve));
      expect(killed.signalCode).toBe("SIGKILL");
      const { byStatus } = await countRuns(store);
      const rest = byStatus[before] + (before === "paused" ? byStatus.crashed : 0);
      expect([byStatus.done >= 5, byStatus[before] >= 20, byStatus.crashed <= 4]).toEqual([true, true, true]);
      const options = { store, graphs: [repaired], filter: {} };
      expect(await act(options)).toMatchObject({ matched: rest, done: rest, failed: 0, isComplete: true });
      expect(await bulk.resumeRuns(options)).toMatchObject({ matched: 30 - byStatus.done - rest, failed: 0 });
      expect(await countRuns(store)).toMatchObject({ total: 30, byStatus: { done: 30 } });
    });
});
