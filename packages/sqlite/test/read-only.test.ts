/** Stores that only read: real files, permissions and processes. */
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { defineGraph, defineState, END, getState, run, START } from "@statewright/core";
import type { SqliteStore, SqliteStoreOptions } from "@statewright/sqlite";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { driverNames } from "../src/driver/choose-driver.ts";
import { startChild } from "./support/child-process.ts";
import { createOpenSchema } from "./support/growing-graph.ts";
import { createArtifactWrite, createRunRow, createSuperstep, graph, readItems, saveCommit } from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

const readerProcess = fileURLToPath(new URL("./support/processes/reader-process.ts", import.meta.url));

/** A user without rights on the files of this user: tests of permissions need a process of root. */
const otherUser = 65_534;
const fileOwner = 1_000;
const canChangeUser = process.getuid?.() === 0;

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createFolder();
  chmodSync(home.path, 0o755);
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

function open(options: SqliteStoreOptions = {}, path: string = file): SqliteStore {
  const store = sqliteStore(path, options);
  onTestFinished(() => store.close());
  return store;
}

async function saveSteps(store: SqliteStore, count: number, thread = "t"): Promise<void> {
  const claim = await store.claim({ ...graph, thread });
  for (let step = 0; step < count; step++)
    await saveCommit(store, createSuperstep(thread, claim, claim.nextCheckpoint + step));
}

/** Hash and size of the database and its log; an empty log counts as none. */
function hashFiles(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    ["", "-wal"]
      .filter((suffix) => existsSync(file + suffix) && statSync(file + suffix).size > 0)
      .map((suffix) => [
        suffix,
        createHash("sha256")
          .update(readFileSync(file + suffix))
          .digest("hex"),
      ]),
  );
}

/** Reads thread "t" in another process. */
function readInProcess({ user, driver = "default" }: { readonly user?: number; readonly driver?: string } = {}): {
  readonly items?: string[];
  readonly code?: string;
  readonly message?: string;
} {
  const args = [readerProcess, file, driver, ...(user === undefined ? [] : [String(user)])];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" }));
}

/** Makes the files old enough for a read without locks. */
function makeOld(): void {
  const past = new Date(2_020, 1, 1);
  for (const name of readdirSync(home.path)) utimesSync(join(home.path, name), past, past);
}

describe.each(driverNames)("a store that only reads, on %s", (driver) => {
  const options = { readOnly: true, driver };

  test("reads a closed file and changes none of its bytes [ND6]", async () => {
    const writer = open({ driver });
    await saveSteps(writer, 3);
    await writer.close();
    const before = hashFiles();
    const store = open(options);
    expect(await readItems(store, "t")).toEqual(["1", "2", "3"]);
    expect((await store.verify()).faults).toEqual([]);
    await store.close();
    expect([hashFiles(), Object.keys(before)]).toEqual([before, [""]]);
    expect(readdirSync(home.path).filter((name) => /owner|reserve/.test(name))).toEqual([]);
  });

  test("reads the log of a killed process, and changes no byte of the log [ND6]", async () => {
    const child = await startChild(file);
    const { epoch } = await child.claim("t");
    for (const id of [1, 2]) await child.ask({ do: "step", thread: "t", epoch, id });
    await child.kill();
    const before = hashFiles();
    expect(Object.keys(before)).toEqual(["", "-wal"]);
    const store = open(options);
    expect(await readItems(store, "t")).toEqual(["1", "2"]);
    await store.close();
    expect(hashFiles()).toEqual(before);
    const peer = open({ driver });
    expect(await peer.claim({ ...graph, thread: "t" })).toMatchObject({ previousOwner: "dead" });
  });

  test("reads beside an owner in another process, which writes on [ND6]", async () => {
    const child = await startChild(file);
    onTestFinished(() => child.kill());
    const { epoch } = await child.claim("t");
    await child.ask({ do: "step", thread: "t", epoch, id: 1 });
    const store = open(options);
    expect(await readItems(store, "t")).toEqual(["1"]);
    await child.ask({ do: "step", thread: "t", epoch, id: 2 });
    expect(await readItems(store, "t")).toEqual(["1", "2"]);
    await store.close();
    await child.ask({ do: "step", thread: "t", epoch, id: 3 });
    expect(readInProcess().items).toEqual(["1", "2", "3"]);
  });

  test("reads beside a store of its process, which keeps its locks [ND6, FX60]", async () => {
    const writer = open({ driver });
    await saveSteps(writer, 2);
    const store = open({ readOnly: true });
    expect(await readItems(store, "t")).toEqual(["1", "2"]);
    await store.close();
    await saveSteps(writer, 1, "u");
    expect(await readItems(writer, "u")).toEqual(["1"]);
  });

  test("reads several rows as of one moment [ND6]", async () => {
    const writer = open({ driver });
    await saveSteps(writer, 2);
    const store = open(options);
    const items = await store.snapshot?.(async (rows) => {
      await saveSteps(writer, 1, "u");
      return [await rows.thread("u"), (await rows.head("t"))?.id];
    });
    expect([items, (await store.thread("u"))?.id]).toEqual([[undefined, 2], "u"]);
  });

  test("refuses each write with store_read_only [ND6]", async () => {
    const writer = open({ driver });
    await saveSteps(writer, 1);
    const exported = await writer.exportThread("t");
    await writer.close();
    const before = hashFiles();
    const store = open(options);
    const claim = { epoch: 1, branch: "main" };
    const writes: Readonly<Record<string, () => Promise<unknown>>> = {
      createThread: () => store.createThread({ thread: "v", at: 0 }),
      updateThread: () => store.updateThread("t", { title: "x", at: 0 }),
      claim: () => store.claim({ ...graph, thread: "t" }),
      commit: () => saveCommit(store, createSuperstep("t", claim, 2)),
      branch: () =>
        store.branch({
          thread: "t",
          branch: "b",
          from: 1,
          checkpoint: { row: { ...exported.namespaces[0]!.checkpoints[0]!.row, id: 2 }, deltas: [] },
          interrupts: [],
        }),
      enqueue: () => store.enqueue({ thread: "t", run: { ...createRunRow("r2", "t"), status: "queued", input: "{}" } }),
      dequeue: () => store.dequeue("t", "r1", { at: 0, reason: "no" }),
      delete: () => store.delete("t"),
      importThread: () => store.importThread({ ...exported, id: "v" }),
      prune: () => store.prune({ thread: "t", keepLast: 1, merge: (rows) => rows }),
      vacuum: () => store.vacuum(),
      rotate: () => store.rotate(),
      "longTerm.write": () => store.longTerm.write([], 0),
      "longTerm.sweep": () => store.longTerm.sweep(0, 1),
      "artifacts.delete": () => store.artifacts.delete("t", "k"),
    };
    const codes = await Promise.all(
      Object.entries(writes).map(async ([name, write]) => [
        name,
        await write().then(
          () => "done",
          (error: { code?: unknown }) => error.code,
        ),
      ]),
    );
    expect(Object.fromEntries(codes)).toEqual(
      Object.fromEntries(Object.keys(writes).map((name) => [name, "store_read_only"])),
    );
    expect(hashFiles()).toEqual(before);
  });

  test("backs up, exports and reads artifacts and long-term items [ND6]", async () => {
    const writer = open({ driver });
    const claim = await writer.claim({ ...graph, thread: "t" });
    const artifact = await createArtifactWrite(new Uint8Array(100_000).fill(7));
    await saveCommit(writer, { ...createSuperstep("t", claim, 1), artifacts: [artifact] });
    await writer.close();
    const store = open(options);
    expect(await store.artifacts.read("t", artifact.row.key)).toEqual(artifact.body);
    expect((await store.exportThread("t")).artifacts).toHaveLength(1);
    const memory = open({ driver }, join(home.path, "import.db"));
    await memory.importThread(await store.exportThread("t"));
    expect(await readItems(memory, "t")).toEqual(["1"]);
    await store.backup(join(home.path, "copy.db"));
    expect(await readItems(open({ driver }, join(home.path, "copy.db")), "t")).toEqual(["1"]);
  });

  test.runIf(canChangeUser)("reads a closed file in a folder that the user cannot write [ND6]", async () => {
    const writer = open();
    await saveSteps(writer, 2);
    await writer.close();
    makeOld();
    const before = hashFiles();
    expect(readInProcess({ user: otherUser })).toEqual({ items: ["1", "2"] });
    expect(readInProcess({ user: otherUser, driver })).toEqual({ items: ["1", "2"] });
    expect([hashFiles(), readdirSync(home.path)]).toEqual([before, ["agent.db"]]);
  });

  test.runIf(canChangeUser)(
    "creates no file that would keep the owner of the database from writing [ND6]",
    async () => {
      const writer = open();
      await saveSteps(writer, 2);
      await writer.close();
      makeOld();
      chmodSync(home.path, 0o777);
      const read = (mode: number) => {
        chownSync(file, fileOwner, fileOwner);
        chmodSync(file, mode);
        const result = readInProcess({ user: otherUser, driver });
        return [result, readdirSync(home.path)];
      };
      expect(read(0o644)).toEqual([{ items: ["1", "2"] }, ["agent.db"]]);
      // The owner can write files with the mode of this database, whoever created them.
      expect(read(0o666)).toEqual([{ items: ["1", "2"] }, ["agent.db", "agent.db-shm", "agent.db-wal"]]);
    },
  );

  test("that shows a running run of a dead process shows it as crashed, without a write [ND6]", async () => {
    const child = await startChild(file);
    const { epoch } = await child.claim("t");
    await child.ask({ do: "run", thread: "t", epoch });
    const store = open(options);
    expect(await store.runs({ thread: "t" })).toMatchObject([{ status: "running" }]);
    await child.kill();
    const before = hashFiles();
    expect(await store.runs({ thread: "t" })).toMatchObject([{ status: "crashed" }]);
    expect(hashFiles()).toEqual(before);
  });
});

describe("a read-only folder", () => {
  test.runIf(canChangeUser)("a read-only folder with a store at work is read through its files [ND6]", async () => {
    const writer = open();
    await saveSteps(writer, 2);
    const before = hashFiles();
    expect(readInProcess({ user: otherUser })).toEqual({ items: ["1", "2"] });
    expect(hashFiles()).toEqual(before);
    await saveSteps(writer, 1, "u");
    expect(readInProcess({ user: otherUser })).toEqual({ items: ["1", "2"] });
  });

  test.runIf(canChangeUser)(
    "a read-only folder with a log but without its index is refused, with what to do [ND6]",
    async () => {
      const child = await startChild(file);
      const { epoch } = await child.claim("t");
      await child.ask({ do: "step", thread: "t", epoch, id: 1 });
      await child.kill();
      renameSync(`${file}-shm`, join(home.path, "moved"));
      const before = hashFiles();
      expect(readInProcess({ user: otherUser })).toEqual({
        code: "store_failed",
        message: expect.stringMatching(
          /has commits, and SQLite cannot create .*-shm" in the folder.*write access to the folder/,
        ),
      });
      expect(hashFiles()).toEqual(before);
    },
  );

  test.runIf(canChangeUser)(
    "a read-only folder whose file changes after it was opened ends the reads of the store, none of them torn [ND6]",
    async () => {
      const writer = open();
      await saveSteps(writer, 1);
      await writer.close();
      makeOld();
      const reader = spawn(process.execPath, [readerProcess, file, "default", String(otherUser), "twice"], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      onTestFinished(() => void reader.kill());
      const lines = createInterface(reader.stdout)[Symbol.asyncIterator]();
      expect(JSON.parse((await lines.next()).value ?? "")).toEqual({ items: ["1"] });
      const peer = open();
      await saveSteps(peer, 1);
      reader.stdin.end("\n");
      expect(JSON.parse((await lines.next()).value ?? "")).toEqual({
        code: "store_failed",
        message: expect.stringContaining("changes, and this process cannot use locks in its folder"),
      });
    },
  );

  test.runIf(canChangeUser)(
    "a read-only folder with a file that a process changed just now is refused, not read torn [ND6]",
    async () => {
      const writer = open();
      await saveSteps(writer, 1);
      await writer.close();
      makeOld();
      const future = new Date(Date.UTC(2_100, 1, 1));
      utimesSync(file, future, future);
      expect(readInProcess({ user: otherUser })).toEqual({
        code: "store_failed",
        message: expect.stringContaining("changes, and this process cannot use locks in its folder"),
      });
    },
  );
});

test.runIf(canChangeUser)(
  "a file that the user may not read is named, and so is its log, its index and its folder [ND6]",
  async () => {
    const child = await startChild(file);
    const { epoch } = await child.claim("t");
    await child.ask({ do: "step", thread: "t", epoch, id: 1 });
    await child.kill();
    makeOld();
    for (const [path, mode] of [
      [file, 0o600],
      [`${file}-wal`, 0o600],
      [`${file}-shm`, 0o600],
      [home.path, 0o700],
    ] as const) {
      const before = statSync(path).mode;
      chmodSync(path, mode);
      const refused = path === home.path ? file : path;
      expect(readInProcess({ user: otherUser })).toEqual({
        code: "store_failed",
        message: expect.stringContaining(
          `this process has no right to read "${refused}" (EACCES). Give this process read access`,
        ),
      });
      chmodSync(path, before);
    }
    expect(readInProcess({ user: otherUser })).toEqual({ items: ["1"] });
  },
);

describe("a path without a file", () => {
  test("a path without a file is refused with the names of near files, and no file is made [ND6, FX20]", () => {
    for (const name of ["agents.db", "agent.sqlite", "payments.db", "agnet.db-wal"])
      writeFileSync(join(home.path, name), "");
    for (const options of [{ readOnly: true }, { mustExist: true }, { readOnly: true, mustExist: true }])
      expect(() => open(options, join(home.path, "agnet.db"))).toThrow(
        expect.objectContaining({
          code: "store_missing",
          details: {
            path: join(home.path, "agnet.db"),
            folder: home.path,
            near: [join(home.path, "agent.sqlite"), join(home.path, "agents.db")],
          },
        }),
      );
    expect(readdirSync(home.path)).not.toContain("agnet.db");
  });

  test("the near files of a path have another extension or folder, else are the databases of the folder [ND6, FX20]", () => {
    mkdirSync(join(home.path, "data"));
    for (const name of ["payments.db", "notes.txt", "agent.db", "data/orders.db"])
      writeFileSync(join(home.path, name), "");
    for (const [name, near] of [
      ["payments.sqlite", ["payments.db"]],
      ["orders.db", ["data/orders.db"]],
      ["dta/orders.db", ["data/orders.db"]],
      ["conversations.sqlite3", ["agent.db", "payments.db"]],
    ] as const)
      expect(() => open({ readOnly: true }, join(home.path, name))).toThrow(
        expect.objectContaining({
          code: "store_missing",
          details: expect.objectContaining({ near: near.map((each) => join(home.path, each)) }),
        }),
      );
  });

  test("a path without a file is refused with the nearest existing folder [ND6, FX20]", () => {
    mkdirSync(join(home.path, "data"));
    expect(() => open({ readOnly: true }, join(home.path, "data", "none", "deeper", "agent.db"))).toThrow(
      `the nearest existing folder is "${join(home.path, "data")}"`,
    );
  });

  test("and a folder in its place is refused with its databases [ND6, FX20]", () => {
    mkdirSync(join(home.path, "data"));
    writeFileSync(join(home.path, "data", "agent.db"), "");
    expect(() => open({ readOnly: true }, join(home.path, "data"))).toThrow(
      expect.objectContaining({
        code: "store_missing",
        message: expect.stringContaining(`near files: ${join(home.path, "data", "agent.db")}`),
      }),
    );
  });

  test("a path without a file is created by default, and mustExist opens it then [ND6]", async () => {
    await open().close();
    await saveSteps(open({ mustExist: true }), 1);
    expect(await readItems(open({ mustExist: true }), "t")).toEqual(["1"]);
  });

  test("a read-only store in memory is refused as an option error [ND6]", () => {
    for (const option of ["readOnly", "mustExist"])
      expect(() => open({ [option]: true }, ":memory:")).toThrow(expect.objectContaining({ code: "invalid_option" }));
  });
});

describe("a file that reading cannot serve", () => {
  test("a file that reading cannot serve is refused unchanged: empty, foreign, of an unfinished creation, encrypted [ND6]", async () => {
    writeFileSync(file, "");
    expect(() => open({ readOnly: true })).toThrow(/is empty or has an older format.*without readOnly/);
    writeFileSync(file, "x".repeat(4_096));
    expect(() => open({ readOnly: true })).toThrow(expect.objectContaining({ code: "store_corrupt" }));
    const encrypted = join(home.path, "encrypted.db");
    const keys = () => [{ id: "k", key: new Uint8Array(32) }];
    await open({ encryption: { keys } }, encrypted).close();
    expect(() => open({ readOnly: true }, encrypted)).toThrow(expect.objectContaining({ code: "missing_key" }));
    const plain = join(home.path, "plain.db");
    const writer = open({}, plain);
    await saveSteps(writer, 1);
    await writer.close();
    expect(() => open({ readOnly: true, encryption: { keys } }, plain)).toThrow(
      expect.objectContaining({ code: "invalid_option" }),
    );
  });

  test("a file that reading cannot serve is refused after it was replaced while it was open [ND6]", async () => {
    const writer = open();
    await saveSteps(writer, 1);
    await writer.close();
    const store = open({ readOnly: true });
    copyFileSync(file, join(home.path, "other.db"));
    renameSync(join(home.path, "other.db"), file);
    await expect(readItems(store, "t")).rejects.toThrow(/was deleted, moved or replaced.*open it again/);
  });
});

test("readers of core work on a file that is opened for reading, and run is refused before a node starts [ND6, FX20]", async () => {
  let started = 0;
  const counter = defineGraph({ name: "counter", state: defineState({ n: createOpenSchema<number>() }) })
    .nodes({
      count: ({ n }) => {
        started += 1;
        return { n: n + 1 };
      },
    })
    .edges({ [START]: "count", count: END });
  const writer = open();
  await run(counter, { store: writer, thread: "t", input: { n: 1 } }).result;
  await writer.close();
  const store = open({ readOnly: true });
  expect((await getState(counter, { store, thread: "t" })).state).toEqual({ n: 2 });
  await expect(run(counter, { store, thread: "t", input: { n: 1 } }).result).rejects.toMatchObject({
    code: "store_read_only",
  });
  expect(started).toBe(1);
});
