/** Snapshots: readers see one moment, change no byte, and leave no connection. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  memoryStore,
  resume,
  route,
  run,
  START,
  type Store,
} from "@statewright/core";
import {
  blame,
  compareBranches,
  diffStates,
  getBranchTree,
  getStateAt,
  getSuperstep,
  isSuperstep,
  listNamespaces,
  listSupersteps,
  previewFork,
} from "@statewright/core/inspect";
import type { ThreadExport } from "@statewright/core/store";
import type { SqliteStoreOptions } from "@statewright/sqlite";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { driverNames } from "../../src/driver/choose-driver.ts";
import { openDatabase } from "../../src/file/open-database.ts";
import { NamespaceReader } from "../../src/read/namespace-reader.ts";
import { SuperstepReader } from "../../src/read/superstep-reader.ts";
import { ThreadCiphers } from "../../src/read/thread-ciphers.ts";
import { createOpenSchema } from "../support/growing-graph.ts";
import { pageEncryption } from "../support/page-encryption.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createFolder } from "../support/stores.ts";

const steps = 60;

/** Graph with an invariant: both counters and the length of the list are equal after every superstep. */
const counting = defineGraph({
  name: "counting",
  state: defineState({
    a: createOpenSchema<number>(),
    b: createOpenSchema<number>(),
    list: channel.list(createOpenSchema<number>()),
    record: channel.record(createOpenSchema<number>()),
  }),
})
  .nodes({ count: ({ a, b }) => ({ a: a + 1, b: b + 1, list: [a], record: { [`k${a}`]: a } }) })
  .edges({ [START]: "count", count: route(["count", END], ({ a }) => (a < steps ? "count" : END)) });

const input = { a: 0, b: 0, list: [], record: {} };

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0).reverse()) cleanUp();
});

function createFile(): string {
  const folder = createFolder();
  cleanUps.push(folder.remove);
  return join(folder.path, "agent.db");
}

function openStore(...[file, options]: Parameters<typeof sqliteStore>): Store {
  const store = sqliteStore(file, options);
  cleanUps.push(() => void store.close());
  return store;
}

/** Store whose readers all read within one snapshot. */
function freeze(store: Store, reads: Parameters<Parameters<NonNullable<Store["snapshot"]>>[0]>[0]): Store {
  const frozen: Store = { ...store, ...reads, snapshot: (read) => read(reads) };
  return frozen;
}

interface Counted {
  readonly a: number;
  readonly b: number;
  readonly list: readonly number[];
  readonly record: Readonly<Record<string, number>>;
}

/** Reads a thread within one moment in several ways, and throws for a torn state. */
async function checkMoment(store: Store): Promise<number> {
  const value = (await getStateAt(store, { thread: "t" })).value as Counted;
  expectWhole(value);
  await store.snapshot?.(async (reads) => {
    const frozen = freeze(store, reads);
    const head = await reads.head("t");
    const newest = (await listSupersteps(frozen, { thread: "t" })).find(isSuperstep);
    const [main] = await getBranchTree(frozen, { thread: "t" });
    const state = (await getStateAt(frozen, { thread: "t" })).value as Counted;
    const detail = await getSuperstep(frozen, { thread: "t", checkpoint: newest?.id ?? 0 });
    const history = await reads.history("t", { limit: 1_000 });
    expectWhole(state);
    expect([newest?.id, main?.head, main?.supersteps]).toEqual([head?.id, head?.id, state.a + 1]);
    expect(history).toHaveLength(state.a + 1);
    expect(detail?.seq).toBe(newest?.seq);
    const [write] = await blame(frozen, { thread: "t", path: "/a", limit: 1 });
    expect(write?.superstep.id).toBe(head?.id);
  });
  return value.a;
}

function expectWhole({ a, b, list, record }: Counted): void {
  expect([b, list.length, Object.keys(record).length]).toEqual([a, a, a]);
}

/** Runs the graph, and starts readers at its supersteps; returns the counters that they saw. */
async function readBesideEngine(store: Store, readers: readonly number[]): Promise<readonly number[]> {
  const reading: Promise<number>[] = [];
  const handle = run(counting, { store, thread: "t", input });
  let committed = 0;
  handle.on((event) => {
    if (event.type !== "step.committed") return;
    for (const each of readers) if (each === committed) reading.push(checkMoment(store));
    committed += 1;
  });
  await handle.result;
  expect(reading).toHaveLength(readers.length);
  return await Promise.all(reading);
}

const readers = fc.array(fc.nat(steps), { minLength: 200, maxLength: 200 });

describe("200 readers beside an engine at work", () => {
  test("find no torn state in a store in memory [ND3, ND4]", async () => {
    await fc.assert(
      fc.asyncProperty(readers, async (starts) => {
        const seen = await readBesideEngine(memoryStore(), starts);
        expect(new Set(seen).size).toBeGreaterThan(10);
      }),
      { numRuns: process.env["STATEWRIGHT_WHOLE"] === "1" ? 3 : 1, seed: 20_26 },
    );
  }, 120_000);

  test.each(driverNames)(
    "find no torn state in a file, with %s [ND3, ND4]",
    async (driver) => {
      await fc.assert(
        fc.asyncProperty(readers, async (starts) => {
          const seen = await readBesideEngine(openStore(createFile(), { durability: "normal", driver }), starts);
          expect(new Set(seen).size).toBeGreaterThan(10);
        }),
        { numRuns: process.env["STATEWRIGHT_WHOLE"] === "1" ? 2 : 1, seed: 20_26 },
      );
    },
    120_000,
  );
});

describe.each(["memory", ...driverNames] as const)("a snapshot of a store: %s", (kind) => {
  const open = (): Store => (kind === "memory" ? memoryStore() : openStore(createFile(), { driver: kind }));

  test("sees one moment across writes, deletions and forks that follow [ND3]", async () => {
    const store = open();
    await run(counting, { store, thread: "t", input: { ...input, a: steps - 3, b: steps - 3 } }).result;
    const readAll = async (reads: Store) => [
      await reads.thread("t"),
      await reads.branches("t"),
      await reads.runs({ thread: "t" }),
      await listSupersteps(reads, { thread: "t" }),
      await getStateAt(reads, { thread: "t" }),
      (await reads.threads()).map(({ id }) => id),
    ];
    await store.snapshot?.(async (reads) => {
      const frozen = freeze(store, reads);
      const before = await readAll(frozen);
      await fork(counting, { store, thread: "t", at: 2, name: "other" });
      await resume(counting, { store, thread: "t", branch: "other" }).result;
      await run(counting, { store, thread: "u", input }).result;
      expect(await readAll(frozen)).toEqual(before);
      await store.delete("t");
      expect(await readAll(frozen)).toEqual(before);
    });
    expect(await store.thread("t")).toBeUndefined();
  });

  test("is over when its reader has ended, with or without an error, and when its store is closed [ND3]", async () => {
    const store = open();
    await run(counting, { store, thread: "t", input: { ...input, a: steps - 3, b: steps - 3 } }).result;
    const ended = await store.snapshot?.(async (reads) => reads);
    await expect(ended?.head("t")).rejects.toMatchObject({ code: "store_closed" });
    await expect(store.snapshot?.(() => Promise.reject(new Error("reader failed")))).rejects.toThrow("reader failed");
    const failure = store.snapshot?.(async (reads) => {
      await store.close();
      return await reads.head("t");
    });
    await expect(failure).rejects.toMatchObject({ code: "store_closed" });
    await expect(store.snapshot?.(async () => 1)).rejects.toMatchObject({ code: "store_closed" });
  });
});

test.each(driverNames)("a private store in memory has snapshots too, with %s [ND3]", async (driver) => {
  const store = openStore(":memory:", { driver });
  await run(counting, { store, thread: "t", input }).result;
  expect(await checkMoment(store)).toBe(steps);
});

/** Lists the open descriptors of a file and of its log. */
function listDescriptors(file: string): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(file) ? [path] : [];
    } catch {
      // The descriptor of this listing is closed by now.
      return [];
    }
  });
}

function hashFile(path: string): string | undefined {
  return existsSync(path) ? createHash("sha256").update(readFileSync(path)).digest("hex") : undefined;
}

/** Calls every reader. */
async function readEverything(store: Store): Promise<void> {
  const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
  for (const { id } of rows.slice(0, 5)) await getSuperstep(store, { thread: "t", checkpoint: id });
  const [newest, oldest] = [rows[0]?.id ?? 0, rows.at(-1)?.id ?? 0];
  await getStateAt(store, { thread: "t" });
  await diffStates(store, { thread: "t", from: oldest, to: newest });
  await blame(store, { thread: "t", path: "/list/0" });
  await getBranchTree(store, { thread: "t" });
  await compareBranches(store, { thread: "t", a: "main", b: "other" });
  await listNamespaces(store, { thread: "t" });
  await previewFork(store, { thread: "t", at: oldest, graph: counting });
}

test.each(driverNames)(
  "readers take no thread and change no byte of the file or of its log, with %s [ND2, ND3, ND4]",
  async (driver) => {
    const file = createFile();
    const store = openStore(file, { driver });
    await run(counting, { store, thread: "t", input }).result;
    await fork(counting, { store, thread: "t", at: 5, name: "other" });
    // SQLite keeps the descriptor of a closed connection for the next one, because a close would release its locks.
    await readEverything(store);
    const descriptors = listDescriptors(file);
    const before = [hashFile(file), hashFile(`${file}-wal`)];
    await readEverything(store);
    expect([hashFile(file), hashFile(`${file}-wal`)]).toEqual(before);
    expect(before[1]).toBeDefined();
    if (process.platform === "linux") expect(listDescriptors(file)).toHaveLength(descriptors.length);
    await resume(counting, { store, thread: "t", branch: "other" }).result;
  },
);

test("readers of a second store on the file read a thread whose owner is at work, and take nothing from the owner [ND3]", async () => {
  const file = createFile();
  const store = openStore(file);
  const other = openStore(file);
  const handle = run(counting, { store, thread: "t", input });
  const seen: Promise<number>[] = [];
  handle.on((event) => {
    if (event.type === "step.committed" && event.step % 20 === 0) seen.push(checkMoment(other));
  });
  expect((await handle.result).status).toBe("done");
  expect((await Promise.all(seen)).length).toBeGreaterThan(2);
});

test("an encrypted store is read like a plain one [ND2, ND3, ND4]", async () => {
  const [plain, encrypted] = [openStore(createFile()), openStore(createFile(), { encryption: pageEncryption })];
  for (const store of [plain, encrypted]) await run(counting, { store, thread: "t", input }).result;
  const readValues = async (store: Store) => [
    (await getStateAt(store, { thread: "t" })).value,
    (await getSuperstep(store, { thread: "t", checkpoint: 9 }))?.patch,
    (await listSupersteps(store, { thread: "t" }))
      .filter(isSuperstep)
      .map(({ step, nodes, changes }) => [
        step,
        nodes,
        changes.map(({ channel: name, kind, count, bytes }) => [name, kind, count, bytes]),
      ]),
  ];
  expect(await readValues(encrypted)).toEqual(await readValues(plain));
  expect((await listSupersteps(encrypted, { thread: "t" })).find(isSuperstep)?.changes[0]?.bytes).toBeGreaterThan(0);
});

test("each statement of a page, and of the lists of namespaces, searches by a key [ND2, ND9]", () => {
  const { db } = openDatabase(":memory:");
  cleanUps.push(() => void db.close());
  const statements: string[] = [];
  const prepare = db.prepare;
  db.prepare = ((sql: string) => {
    statements.push(sql);
    return prepare.call(db, sql);
  }) as typeof prepare;
  const parts = { ciphers: new ThreadCiphers(db, undefined), namespaces: new NamespaceReader(db) };
  expect(new SuperstepReader(db, parts)).toBeInstanceOf(SuperstepReader);
  db.prepare = prepare;
  expect(statements.length).toBeGreaterThan(15);
  for (const sql of statements) {
    const values = [...sql.matchAll(/\?/g)].map(() => 1);
    const names = Object.fromEntries([...sql.matchAll(/@(\w+)/g)].map(([, name = ""]) => [name, 1]));
    const plan = db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`);
    const details = (sql.includes("@") ? plan.all(names) : plan.all(...values)).map(({ detail }) => detail);
    // `json_each` is the list of rows of a page.
    expect(
      details.filter((detail) => /^SCAN (?!p VIRTUAL)/.test(detail)),
      sql,
    ).toEqual([]);
  }
});

/** Exports a thread of 10,000 supersteps whose supersteps in some places have a change of 50 KB. */
async function exportLongThread(): Promise<ThreadExport> {
  const memory = memoryStore();
  const claim = await memory.claim({ thread: "t", graph: "g", version: 1, shape: "s", at: 1 });
  const big = JSON.stringify(["x".repeat(50_000)]);
  for (let id = 1; id <= 10_000; id++) {
    const isBig = id > 9_960 || (id > 4_960 && id <= 5_000);
    const text = isBig ? big : `["step ${id}"]`;
    const control = JSON.stringify({ machine: { work: "executing" }, tasks: [], inputs: [], joins: {} });
    memory.commit(
      {
        thread: "t",
        branch: "main",
        epoch: claim.epoch,
        seq: id,
        checkpoint: {
          row: {
            id,
            branch: "main",
            step: id - 1,
            parent: id === 1 ? undefined : id - 1,
            source: "step",
            nodes: ["work"],
            control,
            run: "r1",
            at: id,
            durationMs: 1,
            seq: id,
            bytes: text.length,
          },
          deltas: [{ channel: "log", kind: "append", base: false, count: 1, text }],
        },
      },
      () => undefined,
    );
    if (id % 500 === 0) await Promise.resolve();
  }
  return await memory.exportThread("t");
}

async function saveThread(exported: ThreadExport, file: string, options: SqliteStoreOptions): Promise<void> {
  const store = openStore(file, { durability: "normal", ...options });
  await store.importThread(exported);
  await store.close();
}

/** Page as its process read it. */
interface Page {
  readonly rows: number;
  readonly bytes: number;
  readonly mmapBytes: number;
}

test.runIf(process.platform === "linux")(
  "a page of a thread of 10,000 supersteps reads no text of its changes, plain or encrypted, with each driver [ND2]",
  async () => {
    const exported = await exportLongThread();
    const files = { plain: createFile(), encrypted: createFile() };
    await saveThread(exported, files.plain, {});
    await saveThread(exported, files.encrypted, { encryption: pageEncryption });
    const child = fileURLToPath(new URL("../support/processes/page-process.ts", import.meta.url));
    const measure = (what: string, before: number, driver: string, kind: keyof typeof files): Page =>
      JSON.parse(
        execFileSync(process.execPath, [child, files[kind], what, String(before), driver, kind], { encoding: "utf8" }),
      );
    const history = measure("history", 10_001, "better-sqlite3", "plain");
    expect([history.rows, history.bytes > 40 * 50_000]).toEqual([40, true]);
    for (const [before, driver, kind] of [
      [10_001, "better-sqlite3", "plain"],
      [5_001, "node:sqlite", "plain"],
      [10_001, "node:sqlite", "encrypted"],
      [5_001, "better-sqlite3", "encrypted"],
    ] as const) {
      const timeline = measure("timeline", before, driver, kind);
      expect([driver, kind, timeline.rows, timeline.mmapBytes]).toEqual([driver, kind, 40, 0]);
      expect(timeline.bytes, `${driver}, ${kind}`).toBeLessThan(400_000);
    }
  },
  60_000,
);
