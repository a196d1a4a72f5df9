/** Schedules and delayed runs in a file: encryption, damaged rows, and stores that only read. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { defineGraph, defineState, END, engine, memoryStore, run, type Schema, START, submit } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import type { ScheduleWrite } from "@statewright/core/store";
import { type EncryptionKey, encryptStore, type SqliteStore, type SqliteStoreOptions } from "@statewright/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { change, readBytes, readText } from "../support/database-file.ts";
import { createRunRow } from "../support/rows.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createMemoryFolder } from "../support/stores.ts";

const [old, newest] = ["k1", "k2"].map((id): EncryptionKey => ({ id, key: randomBytes(32) })) as [
  EncryptionKey,
  EncryptionKey,
];
const sentinel = "sentinel-5c1f";

let home: ReturnType<typeof createMemoryFolder>;
let file: string;
let opened: SqliteStore[];

beforeEach(() => {
  home = createMemoryFolder();
  file = join(home.path, "agent.db");
  opened = [];
});

afterEach(async () => {
  for (const each of opened) await each.close();
  home.remove();
});

function open(options: SqliteStoreOptions = {}): SqliteStore {
  const store = sqliteStore(file, { durability: "normal", ...options });
  opened.push(store);
  return store;
}

const encryption = (...keys: EncryptionKey[]) => ({ encryption: { keys: () => keys, schedules: () => keys } });

const createRow = (id: string): ScheduleWrite["row"] => ({
  ...{ id, graph: "g", version: 1, shape: "s", outline: "{}", everyMs: 1_000, anchorAt: 0, missed: "last" },
  ...{ input: JSON.stringify(sentinel), metadata: { text: sentinel }, createdAt: 1, updatedAt: 1, dueAt: 1_000 },
});

const creates = { graph: "g", version: 1, shape: "s", at: 1 };

/** Adds two schedules and a delayed run with the sentinel in all values. */
async function fill(store: SqliteStore): Promise<void> {
  for (const id of ["one", "two"]) await store.schedules.put({ row: createRow(id), revision: 0 });
  const queued = { ...createRunRow("later", "t"), status: "queued", input: sentinel, startAt: 5_000 } as const;
  await store.enqueue({ thread: "t", creates, run: queued });
}

const readAll = async (store: SqliteStore) => ({
  schedules: await store.schedules.list({ dueBy: 1_000 }),
  runs: (await store.runs()).map(({ input, startAt, status }) => [input, startAt, status]),
});

test("no table, file byte or log byte of an encrypted store contains values of a schedule or a delayed run [E49, Y7, Y8]", async () => {
  const store = open(encryption(newest));
  await fill(store);
  expect((await readAll(store)).schedules.map(({ input }) => input)).toEqual([1, 2].map(() => `"${sentinel}"`));
  expect(readText(file)).not.toContain(sentinel);
  expect(readBytes(file)).not.toContain(sentinel);
  await store.enqueueDue({ at: 5_000, limit: 9 });
  expect(readBytes(file)).not.toContain(sentinel);
  expect((await store.runs())[0]?.input).toBe(sentinel);
});

test("schedules of a plain file are encrypted with it, and rotated to the newest key [E49, Y7]", async () => {
  const plain = open();
  await fill(plain);
  const before = await readAll(plain);
  await plain.close();
  encryptStore(file, encryption(old).encryption);
  expect(readBytes(file)).not.toContain(sentinel);
  const rotating = open(encryption(newest, old));
  expect(await readAll(rotating)).toEqual(before);
  expect(await rotating.rotate()).toBeGreaterThanOrEqual(3);
  await rotating.close();
  const rotated = open(encryption(newest));
  expect(await readAll(rotated)).toEqual(before);
  expect((await rotated.verify()).faults).toEqual([]);
});

test("an encrypted store without keys for schedules refuses them, and its threads work [E49, Y7]", async () => {
  const store = open({ encryption: { keys: () => [newest] } });
  await expect(store.schedules.put({ row: createRow("one"), revision: 0 })).rejects.toMatchObject({
    code: "missing_key",
    message: expect.stringContaining('schedule "one"'),
  });
  expect(await store.schedules.list()).toEqual([]);
  expect((await store.claim({ ...creates, thread: "t" })).epoch).toBe(1);
});

test("a damaged schedule is reported by verify, and a list leaves it out with a line in the log [F6, Y7]", async () => {
  const lines: unknown[] = [];
  const world = systemWorld({ log: (...line) => void lines.push(line) });
  const store = open({ world });
  await fill(store);
  change(file, (db) => db.exec("UPDATE schedules SET due = due - 1 WHERE id = 'one'"));
  expect((await store.schedules.list({ dueBy: 2_000 })).map(({ id }) => id)).toEqual(["two"]);
  expect(lines).toEqual([["error", "a list skipped a damaged row", expect.anything()]]);
  await expect(store.schedules.get("one")).rejects.toMatchObject({ code: "store_corrupt" });
  expect((await store.verify()).faults).toEqual([{ what: expect.stringContaining('schedule "one"') }]);
});

test("a damaged delayed run does not keep the others from their start [F6, Y8]", async () => {
  const store = open();
  await fill(store);
  const sound = { ...createRunRow("sound", "u"), status: "queued", input: "1", startAt: 5_000 } as const;
  await store.enqueue({ thread: "u", creates, run: sound });
  change(file, (db) => db.exec("UPDATE runs SET input = 'x' WHERE id = 'later'"));
  expect((await store.enqueueDue({ at: 5_000, limit: 9 })).map(({ id }) => id)).toEqual(["sound"]);
  expect(await store.enqueueDue({ at: 5_000, limit: 9 })).toEqual([]);
});

const text: Schema<string, string> = {
  "~standard": { version: 1, vendor: "test", validate: (value) => ({ value: String(value) }) },
};

test("a start or an expiry after the latest possible date is saved as that date [Y8]", async () => {
  const store = open();
  const ask = defineGraph({
    ...{ name: "ask", version: 1, state: defineState({ word: text }) },
    interrupts: { ok: { answer: text, expiresMs: Number.MAX_VALUE } },
  })
    .nodes({
      say: async (_, { interrupt }) => {
        await interrupt("ok");
      },
    })
    .edges({ [START]: "say", say: END });
  const input = { word: "w" };
  await submit(ask, { store, thread: "late", input, debounce: { key: "k", ms: 8.64e15 } });
  expect(await run(ask, { store, thread: "asks", input }).result).toMatchObject({ status: "waiting" });
  expect((await store.timers({ kinds: ["start", "expiry"] })).map(({ thread, dueAt }) => [thread, dueAt])).toEqual([
    ["asks", 8.64e15],
    ["late", 8.64e15],
  ]);
});

test("a damaged thread does not keep the delayed runs of other threads from their start [F6, Y8]", async () => {
  const store = open();
  const base = { status: "queued", input: "1" } as const;
  for (const thread of ["bad", "sound"]) {
    const queue = (id: string, more: object) =>
      store.enqueue({ thread, creates, run: { ...createRunRow(`${id}-${thread}`, thread), ...base, ...more } });
    await queue("first", {});
    await queue("later", { startAt: 5_000, onBusy: "reject" });
  }
  change(file, (db) => db.exec("UPDATE runs SET attempt = 7 WHERE id = 'first-bad'"));
  const moved = await store.enqueueDue({ at: 5_000, limit: 9 });
  expect(moved.map(({ id, status }) => [id, status])).toEqual([["later-sound", "cancelled"]]);
  expect((await store.timers({ kinds: ["start"] })).map(({ thread }) => thread)).toEqual(["bad"]);
});

test("a damaged run with a due timer does not keep an engine from the timers and runs of other threads [F6, PK8]", async () => {
  const lines: string[] = [];
  const world = systemWorld({ log: (_, message) => void lines.push(message) });
  const store = open({ world });
  const ask = defineGraph({
    ...{ name: "ask", version: 1, state: defineState({ word: text }) },
    interrupts: { ok: { answer: text, expiresMs: 1, onExpire: "late" } },
  })
    .nodes({ say: async (_, { interrupt }) => ({ word: await interrupt("ok") }) })
    .edges({ [START]: "say", say: END });
  const input = { word: "w" };
  for (const thread of ["bad", "sound"]) await run(ask, { store, world, thread, input }).result;
  change(file, (db) =>
    db.exec("UPDATE runs SET attempt = 7 WHERE thread = (SELECT key FROM threads WHERE id = 'bad')"),
  );
  let report: (run: { readonly thread: string }) => void = () => undefined;
  const started = new Promise<{ readonly thread: string }>((resolve) => {
    report = resolve;
  });
  const host = engine({ store, graphs: [ask], world, onRun: (each) => report(each) });
  await host.start();
  expect((await started).thread).toBe("sound");
  expect(lines).toContain("a damaged thread is skipped");
  await host.stop();
});

test("a store that only reads lists schedules and delayed runs, and refuses their writes [Y7, Y8]", async () => {
  const writer = open();
  await fill(writer);
  const before = await readAll(writer);
  const reader = open({ readOnly: true });
  expect(await readAll(reader)).toEqual(before);
  for (const write of [
    () => reader.schedules.put({ row: createRow("three"), revision: 0 }),
    () => reader.schedules.delete("one"),
    () => reader.enqueueDue({ at: 5_000, limit: 9 }),
  ])
    await expect(write()).rejects.toMatchObject({ code: "store_read_only" });
  expect(await readAll(writer)).toEqual(before);
});

test("a delayed run moves from a file to a memory store with its time, and back [Y8]", async () => {
  const store = open();
  await fill(store);
  const other = memoryStore();
  await other.importThread(await store.exportThread("t"));
  await store.delete("t");
  expect((await other.timers()).map(({ kind, dueAt }) => [kind, dueAt])).toEqual([["start", 5_000]]);
  await store.importThread(await other.exportThread("t"));
  expect((await store.enqueueDue({ at: 5_000, limit: 9 })).map(({ id, input }) => [id, input])).toEqual([
    ["later", sentinel],
  ]);
});
