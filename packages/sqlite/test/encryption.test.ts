/** E49: thread data is encrypted; changed, swapped or plain values are refused; keys rotate during writes. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { memoryStore, type Store } from "@statewright/core";
import { copyThread, deleteThread, exportThread, importThread, pruneThread } from "@statewright/core/inspect";
import { type EncryptionKey, encryptStore, type SqliteStore } from "@statewright/sqlite";
import { fillThread, readThreadSnapshot, storeConformance } from "@statewright/testing/conformance";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { change, readBytes, readText } from "./support/database-file.ts";
import {
  append,
  createArtifactWrite,
  createCheckpoint,
  createEffectRow,
  createInterruptRow,
  createRunRow,
  createSuperstep,
  graph,
  readItems,
  saveCommit,
} from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createMemoryFolder, openFile } from "./support/stores.ts";

const old: EncryptionKey = { id: "k1", key: randomBytes(32) };
const newest: EncryptionKey = { id: "k2", key: randomBytes(32) };
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

function open(...keys: EncryptionKey[]): SqliteStore {
  return openWith(() => keys);
}

function openWith(keys: (thread: string) => readonly EncryptionKey[], path: string = file): SqliteStore {
  const store = sqliteStore(path, { durability: "normal", encryption: { keys } });
  opened.push(store);
  return store;
}

function openPlain(): SqliteStore {
  const store = sqliteStore(file, { durability: "normal" });
  opened.push(store);
  return store;
}

/** Thread with the sentinel in every place that takes user data. */
async function fillSentinel(store: Store, thread: string): Promise<void> {
  const said = JSON.stringify(sentinel);
  const claim = await store.claim({ ...graph, thread });
  const { epoch, branch } = claim;
  const failed = { ...createRunRow("r1", thread), error: { name: "Error", message: sentinel }, reason: sentinel };
  await saveCommit(store, { thread, branch, epoch, seq: 1, run: { ...failed, status: "failed" } });
  const { row } = createCheckpoint(1);
  const deltas = [append("items", [sentinel]), { channel: "last", kind: "replace", base: true, text: said } as const];
  await saveCommit(store, { thread, branch, epoch, seq: 2, checkpoint: { row: { ...row, control: said }, deltas } });
  await saveCommit(store, {
    thread,
    branch,
    epoch,
    seq: 3,
    effects: [{ ...createEffectRow(1, "once", sentinel), args: sentinel }],
    interrupts: [{ ...createInterruptRow("q", sentinel), payload: said, onExpire: said, answeredBy: sentinel }],
    events: [{ seq: 3, branch, at: 5, text: said }],
    artifacts: [
      await createArtifactWrite(sentinel, sentinel),
      await createArtifactWrite(`${sentinel} once more`, sentinel),
    ],
    release: true,
  });
  const queued = { ...createRunRow("r2", thread), status: "queued", input: said, queuedAt: 9 } as const;
  await store.enqueue({ thread, run: queued });
  await store.dequeue(thread, "r2", { at: 10, reason: sentinel });
  await store.enqueue({ thread, run: { ...queued, id: `r3-${thread}` } });
}

describe("an encrypted store", () => {
  const options = {
    durability: "normal",
    encryption: { keys: () => [newest, old], longTerm: () => [newest, old], schedules: () => [newest, old] },
  } as const;
  for (const { name, run } of storeConformance) test(name, () => run(() => openFile(options)));
});

test("no table, file byte or log byte of an encrypted store contains values of a thread [E49]", async () => {
  const plain = sqliteStore(join(home.path, "plain.db"), { durability: "normal" });
  opened.push(plain);
  await fillSentinel(plain, "t");
  const places = readText(join(home.path, "plain.db")).split(sentinel).length - 1;
  expect(places).toBeGreaterThanOrEqual(13);

  const store = open(newest);
  await fillSentinel(store, "t");
  expect(readText(file)).not.toContain(sentinel);
  expect(readBytes(file)).not.toContain(sentinel);
  expect(readBytes(file)).not.toContain(Buffer.from(newest.key).toString("latin1"));
  expect(await exportThread(store, "t")).toBe(await exportThread(plain, "t"));
  await store.close();
  expect(readBytes(file)).not.toContain(sentinel);
});

test("equal values and equal states are not recognizable as equal in an encrypted file [E49]", async () => {
  const store = open(newest);
  await fillSentinel(store, "t");
  await copyThread(store, "t", "u");
  await store.close();
  const seen = change(file, (db) => [
    ...(db.prepare("SELECT hash FROM checkpoints").pluck().all() as unknown[]),
    ...(db.prepare("SELECT hex(text) FROM deltas").pluck().all() as unknown[]),
    ...(db.prepare("SELECT hex(control) FROM checkpoints").pluck().all() as unknown[]),
  ]);
  expect(new Set(seen).size).toBe(seen.length);
});

const sealedColumns = [
  ["checkpoints", "control"],
  ["deltas", "text"],
  ["effects", "outcome"],
  ["effects", "args"],
  ["interrupts", "payload"],
  ["interrupts", "answer"],
  ["interrupts", "more"],
  ["runs", "error"],
  ["runs", "input"],
  ["runs", "more"],
  ["events", "text"],
  ["artifacts", "about"],
  ["artifact_pieces", "data"],
  ["threads", "secret"],
] as const;

/** Reads all data of a thread, like a program. */
async function readAll(store: Store, thread: string): Promise<void> {
  await readThreadSnapshot(store, thread);
  await store.exportThread(thread);
}

test.each(sealedColumns)(
  "an encrypted value of %s.%s that is changed, swapped or plain is refused [E49]",
  async (table, column) => {
    const store = open(newest);
    for (const thread of ["t", "u"]) await fillSentinel(store, thread);
    const claim = await store.claim({ ...graph, thread: "t" });
    const { seq: _, ...again } = createSuperstep("t", claim, 2, "another");
    await saveCommit(store, {
      ...again,
      seq: 4,
      interrupts: [{ ...createInterruptRow("q2", "b"), onExpire: "1" }],
      effects: [{ ...createEffectRow(2, "once", "b"), args: "b" }],
      events: [{ seq: 4, branch: "main", at: 6, text: "2" }],
      release: true,
    });
    const more = { ...createRunRow("r4", "t"), status: "queued", input: '"4"', queuedAt: 9 } as const;
    await store.enqueue({ thread: "t", run: more });
    await store.close();
    const filled = `${column} IS NOT NULL`;
    const key = table === "events" ? "thread * 1000 + seq" : table === "threads" ? "key" : "key";
    const keys = change(
      file,
      (db) => db.prepare(`SELECT ${key} FROM ${table} WHERE ${filled} ORDER BY 1`).pluck().all() as number[],
    );
    const [first, other] = [keys[0], keys.at(-1)];
    expect(other).toBeGreaterThan(first ?? 0);
    const changes = {
      "one bit": (db: Parameters<Parameters<typeof change>[1]>[0]) => {
        const value = db.prepare(`SELECT ${column} FROM ${table} WHERE ${key} = ?`).pluck().get(first) as Buffer;
        value[value.length - 20] = (value[value.length - 20] ?? 0) ^ 1;
        db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${key} = ?`).run(value, first);
      },
      "of another row": (db: Parameters<Parameters<typeof change>[1]>[0]) =>
        db
          .prepare(`UPDATE ${table} SET ${column} = (SELECT ${column} FROM ${table} WHERE ${key} = ?) WHERE ${key} = ?`)
          .run(other, first),
      plain: (db: Parameters<Parameters<typeof change>[1]>[0]) =>
        db
          .prepare(`UPDATE ${table} SET ${column} = ? WHERE ${key} = ?`)
          .run(column === "secret" ? Buffer.from("{}") : "{}", first),
    };
    for (const [what, work] of Object.entries(changes)) {
      const copy = join(home.path, `${what}.db`);
      const source = open(newest);
      await source.backup(copy);
      await source.close();
      change(copy, work);
      const changed = openWith(() => [newest], copy);
      await expect(readAll(changed, "t"), what).rejects.toMatchObject({ code: "store_corrupt" });
      if (table !== "threads") expect((await changed.verify("t")).faults.length, what).toBeGreaterThan(0);
      await changed.close();
    }
  },
);

test("encrypted values do not decrypt as those of another thread or column under the same key [E49]", async () => {
  const store = open(newest);
  for (const thread of ["t", "u"]) await fillSentinel(store, thread);
  await store.close();
  change(file, (db) => {
    for (const [from, to] of [
      ["t", "x"],
      ["u", "t"],
      ["x", "u"],
    ])
      db.prepare("UPDATE threads SET id = ? WHERE id = ?").run(to, from);
  });
  const swapped = open(newest);
  await expect(swapped.head("t")).rejects.toMatchObject({ code: "store_corrupt" });
  await swapped.close();
  change(file, (db) => {
    for (const [from, to] of [
      ["t", "x"],
      ["u", "t"],
      ["x", "u"],
    ])
      db.prepare("UPDATE threads SET id = ? WHERE id = ?").run(to, from);
    db.exec("UPDATE interrupts SET answer = payload");
  });
  await expect(open(newest).interrupts("t", "main")).rejects.toMatchObject({ code: "store_corrupt" });
});

test("keys are rotated while a writer is active, and the old key is no longer needed [E49]", async () => {
  const before = open(old);
  const claim = await before.claim({ ...graph, thread: "t" });
  for (let id = 1; id <= 30; id++) await saveCommit(before, createSuperstep("t", claim, id));
  await fillThread(before, "u");
  const snapshot = await readThreadSnapshot(before, "u");
  const rotating = open(newest, old);
  const work = rotating.rotate();
  for (let id = 31; id <= 60; id++) await saveCommit(before, createSuperstep("t", claim, id));
  expect(await work).toBeGreaterThan(60);
  await saveCommit(before, { thread: "t", branch: "main", epoch: claim.epoch, seq: 60, release: true });
  await before.close();
  await rotating.rotate("t");
  expect(await rotating.rotate()).toBe(0);
  await rotating.close();
  const after = open(newest);
  expect(await readItems(after, "t")).toEqual(Array.from({ length: 60 }, (_, at) => String(at + 1)));
  expect(await readThreadSnapshot(after, "u")).toEqual(snapshot);
  expect((await after.verify()).faults).toEqual([]);
  const next = await after.claim({ ...graph, thread: "t" });
  await saveCommit(after, createSuperstep("t", next, 61));
  expect((await after.verify()).faults).toEqual([]);
});

test("a key rotation and a verify terminate next to a writer that creates threads endlessly", async () => {
  const before = open(old);
  for (let no = 0; no < 10; no++) await before.claim({ ...graph, thread: `before-${no}` });
  await before.close();
  const store = open(newest, old);
  for (const work of [() => store.rotate(), () => store.verify()]) {
    let isOver = false;
    let made = 0;
    const first = (await store.threads()).length;
    const ended = work().finally(() => {
      isOver = true;
    });
    for (; !isOver && made < 500; made++) await store.claim({ ...graph, thread: `thread-${first + made}` });
    await ended;
    expect(made).toBeLessThan(500);
  }
  expect(await store.rotate()).toBe(0);
  await store.close();
});

test("an active writer uses the newest key as soon as it is given [E49]", async () => {
  let ring = [old];
  const store = openWith(() => ring);
  const claim = await store.claim({ ...graph, thread: "t" });
  await saveCommit(store, createSuperstep("t", claim, 1));
  ring = [newest, old];
  await saveCommit(store, createSuperstep("t", claim, 2));
  await store.rotate();
  expect(await store.rotate()).toBe(0);
  ring = [newest];
  await saveCommit(store, createSuperstep("t", claim, 3));
  await store.close();
  const after = open(newest);
  expect(await readItems(after, "t")).toEqual(["1", "2", "3"]);
  expect((await after.verify()).faults).toEqual([]);
});

test("an interrupted key rotation continues at its position [E49]", async () => {
  const store = open(old);
  const claim = await store.claim({ ...graph, thread: "t" });
  for (let id = 1; id <= 900; id++) store.commit(createSuperstep("t", claim, id), () => undefined);
  await saveCommit(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: 900, release: true });
  await store.close();
  const cut = open(newest, old);
  const work = cut.rotate("t");
  const ended = work.then(
    () => "whole",
    (error: { code: string }) => error.code,
  );
  await cut.thread("t");
  await cut.head("t");
  await new Promise(setImmediate);
  await cut.close();
  expect(await ended).toBe("store_closed");
  const next = open(newest, old);
  const left = await next.rotate("t");
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(2_700);
  await next.close();
  expect((await open(newest).verify()).faults).toEqual([]);
});

test("a missing key is named by id and thread and never shown [E49]", async () => {
  await fillSentinel(open(old), "t");
  const store = open(newest);
  const error = await store.head("t").catch((thrown: Error) => thrown);
  expect(error).toMatchObject({ code: "missing_key", details: { thread: "t", key: "k1" } });
  expect(String(error)).not.toContain(Buffer.from(old.key).toString("hex"));
  expect(String(error)).not.toContain(Buffer.from(old.key).toString("base64"));
  await expect(openWith(() => []).claim({ ...graph, thread: "v" })).rejects.toMatchObject({ code: "missing_key" });
  const failing = openWith(() => {
    throw new Error("the vault is down");
  });
  await expect(failing.head("t")).rejects.toMatchObject({
    code: "missing_key",
    cause: { message: "the vault is down" },
  });
  await expect(open({ id: "k1", key: randomBytes(16) }).head("t")).rejects.toMatchObject({ code: "invalid_option" });
});

test("threads may have separate keys, and a lost key blocks only its own thread [E49]", async () => {
  const own = (id: string): EncryptionKey => ({ id, key: randomBytes(32) });
  const keys = new Map(["t", "u"].map((thread) => [thread, [own("first")]]));
  const store = openWith((thread) => keys.get(thread) ?? [newest]);
  for (const thread of ["t", "u"]) await fillSentinel(store, thread);
  keys.delete("t");
  keys.set("u", [own("second"), ...(keys.get("u") ?? [])]);
  await expect(store.exportThread("t")).rejects.toMatchObject({ code: "missing_key", place: { thread: "t" } });
  expect((await store.exportThread("u")).id).toBe("u");
  expect(new Set((await store.runs()).map(({ thread }) => thread))).toEqual(new Set(["u"]));
  const { faults } = await store.verify();
  expect(new Set(faults.map(({ thread }) => thread))).toEqual(new Set(["t"]));
  await expect(store.rotate()).rejects.toMatchObject({ code: "missing_key", details: { thread: "t", key: "first" } });
  expect(await store.rotate("u")).toBe(0);
  await deleteThread(store, "t");
  expect((await store.verify()).faults).toEqual([]);
});

test("an encrypted file does not open without keys, and a plain file does not open with keys [E49]", async () => {
  await fillSentinel(open(newest), "t");
  expect(() => openPlain()).toThrow(expect.objectContaining({ code: "missing_key" }));
  const plain = join(home.path, "plain.db");
  const store = sqliteStore(plain);
  await fillSentinel(store, "t");
  await store.close();
  expect(() => openWith(() => [newest], plain)).toThrow(
    expect.objectContaining({ code: "invalid_option", message: expect.stringContaining("encryptStore") }),
  );
});

test("a plain file is encrypted once by an explicit call, with history, forks and pruned ranges [E49]", async () => {
  const plain = openPlain();
  await fillThread(plain, "t");
  await fillThread(plain, "u");
  await fillSentinel(plain, "v");
  await pruneThread(plain, { thread: "u", keepLast: 1 });
  const before = await Promise.all(["t", "u", "v"].map((thread) => readThreadSnapshot(plain, thread)));
  const keys = (): readonly EncryptionKey[] => [newest];
  expect(() => encryptStore(file, { keys })).toThrow(expect.objectContaining({ code: "store_locked" }));
  await plain.close();
  expect(() =>
    encryptStore(file, {
      keys: (thread) => {
        if (thread === "u") throw new Error("cut short");
        return [newest];
      },
    }),
  ).toThrow(expect.objectContaining({ code: "missing_key" }));
  expect(() => openPlain()).toThrow(expect.objectContaining({ code: "missing_key" }));
  expect(() => open(newest)).toThrow(expect.objectContaining({ code: "missing_key" }));
  encryptStore(file, { keys });
  encryptStore(file, { keys });
  expect(readBytes(file)).not.toContain(sentinel);
  const store = open(newest);
  expect(await Promise.all(["t", "u", "v"].map((thread) => readThreadSnapshot(store, thread)))).toEqual(before);
  expect((await store.verify()).faults).toEqual([]);
  const claim = await store.claim({ ...graph, thread: "t" });
  expect(claim.nextCheckpoint).toBeGreaterThan(1);
});

test("a thread moves as text between a plain and an encrypted store [E49]", async () => {
  const store = open(newest);
  await fillThread(store, "t");
  const memory = memoryStore();
  const text = await exportThread(store, "t");
  await importThread(memory, text);
  expect(await readThreadSnapshot(memory, "t")).toEqual(await readThreadSnapshot(store, "t"));
  await importThread(store, await exportThread(memory, "t"), { as: "back" });
  expect(await readThreadSnapshot(store, "back")).toEqual(await readThreadSnapshot(memory, "t"));
  await pruneThread(store, { keepLast: 1 });
  expect((await store.verify()).faults).toEqual([]);
});
