/** Artifact bodies outside of the file: order of put and commit, sweep, encryption, export, and kills. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { open as openHandle } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { type ArtifactBodies, folderArtifactBodies, type SqliteStoreOptions, sqliteStore } from "@statewright/sqlite";
import { storeConformance } from "@statewright/testing/conformance";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { countRows } from "../support/database-file.ts";
import { createArtifactWrite, createSuperstep, graph, readItems, saveCommit } from "../support/rows.ts";
import { createFolder, openFile } from "../support/stores.ts";

const artifactProcess = fileURLToPath(new URL("../support/processes/artifact-process.ts", import.meta.url));
const day = 24 * 3_600_000;

let home: ReturnType<typeof createFolder>;
let file: string;
let folder: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  folder = join(home.path, "bodies");
});

afterEach(() => home.remove());

function open(options: SqliteStoreOptions = {}, path: string = file) {
  const store = sqliteStore(path, { artifactBodies: folderArtifactBodies(folder), ...options });
  onTestFinished(() => store.close());
  return store;
}

/** Bodies in memory, with a log of the calls. */
function createMapBodies() {
  const bodies = new Map<string, Uint8Array>();
  const calls: string[] = [];
  const port: ArtifactBodies = {
    put: async (key, body) => {
      calls.push("put");
      bodies.set(key, body);
    },
    read: async (key) => bodies.get(key),
    delete: async (key) => {
      calls.push("delete");
      bodies.delete(key);
    },
  };
  return { port, bodies, calls };
}

function listFiles(): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8", withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  );
}

async function saveBody(store: ReturnType<typeof open>, body: Uint8Array, thread = "t"): Promise<string> {
  const claim = await store.claim({ ...graph, thread });
  const artifact = await createArtifactWrite(body);
  await saveCommit(store, {
    ...createSuperstep(thread, claim, claim.nextCheckpoint),
    artifacts: [artifact],
    release: true,
  });
  return artifact.row.key;
}

/** The world of the system with a clock that a test moves forward. */
function createShiftedWorld(): { readonly world: World; advance(ms: number): void } {
  const system = systemWorld();
  let offset = 0;
  const clock = { ...system.clock, now: () => 1_000_000 + offset };
  return {
    world: { ...system, clock },
    advance: (ms) => {
      offset += ms;
    },
  };
}

/** A promise that a test resolves. */
function createGate(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: () => resolve() };
}

const body = (text: string): Uint8Array => new TextEncoder().encode(text.repeat(20_000));

describe("a store whose artifact bodies are in a map passes the conformance suite [PK13]", () => {
  for (const { name, run } of storeConformance.filter(({ name: title }) =>
    /artifact|export|delete|copy|prune/i.test(title),
  ))
    test(name, () => run(() => openFile({ durability: "normal", artifactBodies: createMapBodies().port })));
});

test("bodies are files of a folder, read by range, verified, exported and imported [PK13]", async () => {
  const store = open();
  const key = await saveBody(store, body("abcd"));
  expect(listFiles()).toEqual([join(folder, key.slice(0, 2), key.slice(2))]);
  expect(countRows(file)).toMatchObject({ artifacts: 1, artifact_pieces: 0, artifact_bodies: 1 });
  expect(await store.artifacts.read("t", key, { offset: 2, limit: 3 })).toEqual(new TextEncoder().encode("cda"));
  expect(await store.verify()).toMatchObject({ artifacts: 1, faults: [] });
  const exported = await store.exportThread("t");
  expect(exported.artifacts.map((artifact) => artifact.body)).toEqual([body("abcd")]);
  const inside = open({ artifactBodies: createMapBodies().port }, join(home.path, "other.db"));
  await inside.importThread(exported);
  expect(await inside.artifacts.read("t", key)).toEqual(body("abcd"));
  expect(countRows(join(home.path, "other.db"))).toMatchObject({ artifact_pieces: 0, artifact_bodies: 1 });
});

test("a body is put before the commit that names it, and a failed put refuses the commit [PK13]", async () => {
  const { port, calls } = createMapBodies();
  let isBroken = false;
  const put: ArtifactBodies["put"] = async (key, bytes) => {
    if (isBroken) throw new Error("no connection");
    await port.put(key, bytes);
  };
  const store = open({ artifactBodies: { ...port, put } });
  const claim = await store.claim({ ...graph, thread: "t" });
  const saving = saveCommit(store, {
    ...createSuperstep("t", claim, 1),
    artifacts: [await createArtifactWrite(body("a"))],
  });
  // The next commit of the thread waits too.
  const next = saveCommit(store, createSuperstep("t", claim, 2)).then(() => calls.push("second"));
  await saving.then(() => calls.push("first"));
  await next;
  expect(calls).toEqual(["put", "first", "second"]);
  isBroken = true;
  await expect(
    saveCommit(store, { ...createSuperstep("t", claim, 3), artifacts: [await createArtifactWrite(body("b"))] }),
  ).rejects.toMatchObject({
    code: "store_failed",
    message: expect.stringContaining("artifactBodies.put failed: no connection"),
  });
  expect([await readItems(store, "t"), (await store.artifacts.list("t")).length]).toEqual([["1", "2"], 1]);
});

test("a store that is closed meanwhile writes the commits that wait for their bodies first [PK13]", async () => {
  const store = open();
  const claim = await store.claim({ ...graph, thread: "t" });
  const saving = saveCommit(store, {
    ...createSuperstep("t", claim, 1),
    artifacts: [await createArtifactWrite(body("a"))],
  });
  await store.close();
  await saving;
  expect(await readItems(open(), "t")).toEqual(["1"]);
});

test("a body is swept a day after its last artifact was deleted, and not before [PK13]", async () => {
  const { world, advance } = createShiftedWorld();
  const store = open({ world });
  const shared = await saveBody(store, body("shared"));
  await saveBody(store, body("shared"), "u");
  const own = await saveBody(store, body("own"));
  const paths = (): readonly string[] => listFiles().map((path) => path.slice(folder.length + 1).replace("/", ""));
  expect(paths().toSorted()).toEqual([shared, own].toSorted());
  await store.delete("t");
  advance(day - 1);
  await store.vacuum();
  expect(paths().toSorted()).toEqual([shared, own].toSorted());
  advance(1);
  await store.vacuum();
  expect(paths()).toEqual([shared]);
  expect(await store.artifacts.read("u", shared)).toEqual(body("shared"));
  expect(await store.artifacts.delete("u", shared)).toBe(true);
  advance(day);
  await store.vacuum();
  expect([paths(), countRows(file)["artifact_bodies"]]).toEqual([[], 0]);
});

test("a body whose commit never came is swept a day later [PK13]", async () => {
  const { world, advance } = createShiftedWorld();
  const store = open({ world });
  const claim = await store.claim({ ...graph, thread: "t" });
  await saveCommit(store, { ...createSuperstep("t", claim, 1), release: true });
  await expect(
    saveCommit(store, { ...createSuperstep("t", claim, 2), artifacts: [await createArtifactWrite(body("lost"))] }),
  ).rejects.toMatchObject({ code: "fenced" });
  expect(listFiles()).toHaveLength(1);
  advance(day);
  await store.vacuum();
  expect(listFiles()).toEqual([]);
});

test("a sweep of a body removes what a killed process left of the body [PK13]", async () => {
  const { world, advance } = createShiftedWorld();
  const store = open({ world });
  const [swept, kept] = [await saveBody(store, body("swept")), await saveBody(store, body("kept"), "u")];
  const toPath = (key: string): string => join(folder, key.slice(0, 2), key.slice(2));
  for (const key of [swept, kept]) writeFileSync(`${toPath(key)}-partial-77-0-1`, "sw");
  await store.delete("t");
  advance(day);
  await store.vacuum();
  expect(listFiles().toSorted()).toEqual([toPath(kept), `${toPath(kept)}-partial-77-0-1`]);
});

test("a commit that names a body while the body is swept waits, and has its body [PK13]", async () => {
  const { world, advance } = createShiftedWorld();
  const { port, bodies } = createMapBodies();
  const held = createGate();
  const begun = createGate();
  const slow: ArtifactBodies = {
    ...port,
    delete: async (key) => {
      begun.resolve();
      await held.promise;
      await port.delete(key);
    },
  };
  const sweeper = open({ world, artifactBodies: slow });
  const key = await saveBody(sweeper, body("again"));
  await sweeper.delete("t");
  advance(day);
  const sweeping = sweeper.vacuum();
  await begun.promise;
  const saving = saveBody(open({ artifactBodies: port }), body("again"), "u");
  held.resolve();
  await sweeping;
  expect(await saving).toBe(key);
  expect([...bodies.keys()]).toEqual([key]);
});

test("two sweeps of a store at once delete a body once [PK13]", async () => {
  const { world, advance } = createShiftedWorld();
  const { port, calls } = createMapBodies();
  const store = open({ world, artifactBodies: port });
  await saveBody(store, body("once"));
  await store.delete("t");
  advance(day);
  await Promise.all([store.vacuum(), store.vacuum()]);
  expect(calls).toEqual(["put", "delete"]);
});

test("a store that is closed meanwhile ends its deletion of a body first [PK13]", async () => {
  const { world, advance } = createShiftedWorld();
  const { port } = createMapBodies();
  const [held, begun] = [createGate(), createGate()];
  const order: string[] = [];
  const slow: ArtifactBodies = {
    ...port,
    delete: async (key) => {
      begun.resolve();
      await held.promise;
      await port.delete(key);
      order.push("deleted");
    },
  };
  const store = open({ world, artifactBodies: slow });
  await saveBody(store, body("late"));
  await store.delete("t");
  advance(day);
  const sweeping = Promise.allSettled([store.vacuum()]);
  await begun.promise;
  const closing = store.close().then(() => order.push("closed"));
  held.resolve();
  await Promise.all([sweeping, closing]);
  expect(order).toEqual(["deleted", "closed"]);
});

test("a store without artifactBodies keeps a body in the file that another store announced and never put [PK13]", async () => {
  const { port } = createMapBodies();
  const failing: ArtifactBodies = { ...port, put: async () => Promise.reject(new Error("no network")) };
  await expect(saveBody(open({ artifactBodies: failing }), body("lost"))).rejects.toMatchObject({
    code: "store_failed",
  });
  const plain = sqliteStore(file);
  onTestFinished(() => plain.close());
  const key = await saveBody(plain, body("lost"), "u");
  expect(await plain.artifacts.read("u", key)).toEqual(body("lost"));
});

test("an encrypted store encrypts bodies and their names, and a rotation encrypts them again [PK13]", async () => {
  const ring = [{ id: "k1", key: new Uint8Array(32).fill(1) }];
  const encryption = { keys: () => ring };
  const store = open({ encryption });
  const key = await saveBody(store, body("secret"));
  const [path = ""] = listFiles();
  expect([path.includes(key.slice(2)), readFileSync(path, "latin1").includes("secret")]).toEqual([false, false]);
  expect(await store.artifacts.read("t", key)).toEqual(body("secret"));
  ring.unshift({ id: "k2", key: new Uint8Array(32).fill(2) });
  expect(await store.rotate()).toBeGreaterThan(0);
  ring.pop();
  expect(await store.artifacts.read("t", key)).toEqual(body("secret"));
  expect([await store.rotate(), (await store.verify()).faults]).toEqual([0, []]);
  const copy = open({ encryption }, join(home.path, "copy.db"));
  await copy.importThread(await store.exportThread("t"));
  expect(await copy.artifacts.read("t", key)).toEqual(body("secret"));
});

test("a missing or changed body is store_corrupt for a reader and a fault for verify [PK13]", async () => {
  const store = open();
  const key = await saveBody(store, body("kept"));
  const [path = ""] = listFiles();
  for (const damage of [() => writeFileSync(path, "other"), () => rmSync(path)]) {
    damage();
    await expect(store.artifacts.read("t", key)).rejects.toMatchObject({ code: "store_corrupt" });
    expect((await store.verify()).faults).toMatchObject([{ thread: "t", what: expect.stringContaining(key) }]);
  }
});

test("a store without artifactBodies lists the artifacts, and names the option when it reads a body [PK13]", async () => {
  const store = open();
  const key = await saveBody(store, body("outside"));
  await store.close();
  const plain = sqliteStore(file);
  onTestFinished(() => plain.close());
  expect(await plain.artifacts.list("t")).toHaveLength(1);
  await expect(plain.artifacts.read("t", key)).rejects.toMatchObject({
    code: "invalid_option",
    message: expect.stringContaining("artifactBodies"),
  });
  expect(await saveBody(plain, body("inside"))).toHaveLength(64);
  expect(countRows(file)).toMatchObject({ artifact_bodies: 1 });
  expect(await open().artifacts.read("t", key)).toEqual(body("outside"));
});

test("an option without the three methods is refused [PK13]", () => {
  const wrong: Record<string, unknown> = { artifactBodies: { put: async () => undefined } };
  expect(() => open(wrong)).toThrow(expect.objectContaining({ code: "invalid_option" }));
  expect(() => folderArtifactBodies("")).toThrow(expect.objectContaining({ code: "invalid_option" }));
});

test("a file of a body is synced before its name, and its folder after [PK13]", async () => {
  const handle = await openHandle(home.path, "r");
  const prototype = Object.getPrototypeOf(handle);
  const calls: string[] = [];
  const { sync } = prototype;
  vi.spyOn(prototype, "sync").mockImplementation(async function (this: typeof handle) {
    const names = listFiles().map((path) => (path.includes("-partial-") ? "partial" : "named"));
    calls.push(`${(await this.stat()).isDirectory() ? "folder" : "file"} ${names.join()}`);
    await sync.call(this);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  await folderArtifactBodies(folder).put("0".repeat(64), body("x"));
  await handle.close();
  expect(calls).toEqual(["folder ", "folder ", "file partial", "folder named"]);
});

test("no committed artifact lacks its body after its process was killed at any moment [PK13]", async () => {
  for (let round = 0; round < 6; round++) {
    const child = spawn(process.execPath, [artifactProcess, file, folder], { stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    for (let line = 0; line <= round * 3; line++) await lines.next();
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  const store = open();
  const rows = await store.artifacts.list("t", { limit: 10_000 });
  expect(rows.length).toBeGreaterThan(40);
  for (const { key, bytes } of rows) expect((await store.artifacts.read("t", key))?.length).toBe(bytes);
  expect((await store.verify()).faults).toEqual([]);
}, 120_000);
