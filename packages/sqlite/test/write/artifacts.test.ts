/** Artifacts in a file: large bodies in pieces, damage, deletion, encryption, and a full disk. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Message,
  type Model,
  resume,
  route,
  run,
  START,
  toolNode,
} from "@statewright/core";
import { getArtifactHandle, jsonSchemaInput } from "@statewright/core/adapter";
import { encryptStore, type SqliteStoreOptions, sqliteStore } from "@statewright/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pieceBytes } from "../../src/write/artifact-pieces.ts";
import { change, countRows, readBytes } from "../support/database-file.ts";
import { createArtifactWrite, graph, saveCommit } from "../support/rows.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

const keys = { keys: () => [{ id: "k", key: new Uint8Array(32).fill(5) }] };

function open(options: SqliteStoreOptions = {}): ReturnType<typeof sqliteStore> {
  return sqliteStore(file, { durability: "normal", ...options });
}

async function keep(
  store: ReturnType<typeof sqliteStore>,
  ...bodies: readonly (string | Uint8Array)[]
): Promise<readonly string[]> {
  const { epoch, branch } = await store.claim({ ...graph, thread: "t" });
  const artifacts = await Promise.all(bodies.map((body) => createArtifactWrite(body)));
  await saveCommit(store, { thread: "t", branch, epoch, seq: 0, artifacts, release: true });
  return artifacts.map(({ row }) => row.key);
}

function countPieces(): number {
  return countRows(file)["artifact_pieces"] ?? 0;
}

test("a thread with large artifacts is deleted in steps, between which other writes run [FX77]", async () => {
  const store = open();
  await keep(
    store,
    randomBytes(200 * pieceBytes),
    randomBytes(100 * pieceBytes),
    "small",
    randomBytes(10 * pieceBytes),
  );
  const order: string[] = [];
  let isDeleted = false;
  const deleting = store.delete("t").then(() => {
    isDeleted = true;
    order.push("deleted");
  });
  const sizes: number[] = [];
  for (let nth = 0; !isDeleted; nth++) {
    const { epoch, branch } = await store.claim({ ...graph, thread: `other-${nth}` });
    sizes.push(countPieces());
    order.push("claimed");
    await saveCommit(store, { thread: `other-${nth}`, branch, epoch, seq: 0, release: true });
  }
  await deleting;
  expect(order.indexOf("deleted")).toBeGreaterThan(2);
  for (const [nth, size] of sizes.entries()) expect((sizes[nth - 1] ?? size) - size).toBeLessThanOrEqual(2 * 64);
  expect([countPieces(), countRows(file)["artifacts"]]).toEqual([0, 0]);
  expect(await store.thread("t")).toBeUndefined();
  await store.close();
});

test("a large deletion that ends with its store leaves pieces that the next opening deletes, and no thread [FX77]", async () => {
  const store = open();
  await keep(store, randomBytes(200 * pieceBytes), randomBytes(100 * pieceBytes));
  const before = countPieces();
  const deleting = store.delete("t");
  const refused = expect(deleting).rejects.toMatchObject({ code: "store_closed" });
  await store.claim({ ...graph, thread: "other" });
  await store.close();
  await refused;
  const left = countPieces();
  expect([left > 0, left < before]).toEqual([true, true]);
  const next = open();
  expect(await next.thread("t")).toBeUndefined();
  await next.delete("other");
  expect([countPieces(), countRows(file)["artifacts"]]).toEqual([0, 0]);
  await next.close();
});

test("an artifact of many pieces is unchanged, complete and in part, after close, encryption and key rotation", async () => {
  const body = randomBytes(40 * pieceBytes + 17);
  const plain = open();
  const [key = ""] = await keep(plain, body);
  const part = { offset: 3 * pieceBytes - 5, limit: 2 * pieceBytes };
  const check = async (store: ReturnType<typeof sqliteStore>): Promise<void> => {
    expect(Buffer.compare((await store.artifacts.read("t", key)) ?? new Uint8Array(), body)).toBe(0);
    const read = (await store.artifacts.read("t", key, part)) ?? new Uint8Array();
    expect(Buffer.compare(read, body.subarray(part.offset, part.offset + part.limit))).toBe(0);
    expect(await store.artifacts.list("t", { key: getArtifactHandle(key) })).toHaveLength(1);
    expect(await store.verify()).toMatchObject({ threads: 1, artifacts: 1, faults: [] });
  };
  await check(plain);
  await plain.close();
  encryptStore(file, keys);
  const sealed = open({ encryption: keys });
  await check(sealed);
  await sealed.close();
  const fresh = { id: "k2", key: new Uint8Array(32).fill(6) };
  const rotating = open({ encryption: { keys: () => [fresh, ...keys.keys()] } });
  expect(await rotating.rotate()).toBeGreaterThan(40);
  await rotating.close();
  const after = open({ encryption: { keys: () => [fresh] } });
  await check(after);
  await after.close();
});

test("interleaved artifacts of several threads are rekeyed thread by thread, every piece", async () => {
  const sealed = open({ encryption: keys });
  const bodies = [0, 1, 2].map((nth) => randomBytes((7 + nth) * pieceBytes));
  const storedKeys: Record<string, string[]> = { t: [], u: [] };
  for (const [nth, body] of bodies.entries())
    for (const thread of ["t", "u"]) {
      const { epoch, branch, nextSeq } = await sealed.claim({ ...graph, thread });
      // The second artifact has the same body: the thread stores it once.
      const artifacts = [await createArtifactWrite(body), ...(nth === 1 ? [await createArtifactWrite(body)] : [])];
      await saveCommit(sealed, { thread, branch, epoch, seq: nextSeq - 1, artifacts, release: true });
      storedKeys[thread]?.push(artifacts[0]?.row.key ?? "");
    }
  await sealed.close();
  const fresh = { id: "k2", key: new Uint8Array(32).fill(6) };
  const rotating = open({ encryption: { keys: () => [fresh, ...keys.keys()] } });
  expect(await rotating.verify()).toMatchObject({ threads: 2, artifacts: 6, faults: [] });
  const first = await rotating.rotate("t");
  expect(first).toBeGreaterThanOrEqual(24 + 4);
  expect([await rotating.rotate("t"), await rotating.rotate("u"), await rotating.rotate()]).toEqual([0, first, 0]);
  await rotating.close();
  const after = open({ encryption: { keys: () => [fresh] } });
  for (const thread of ["t", "u"])
    for (const [nth, body] of bodies.entries()) {
      const read = await after.artifacts.read(thread, storedKeys[thread]?.[nth] ?? "");
      expect(Buffer.compare(read ?? new Uint8Array(), body)).toBe(0);
    }
  expect(await after.verify()).toMatchObject({ threads: 2, artifacts: 6, faults: [] });
  await after.close();
});

test("an encrypted file does not reveal an artifact by its content hash", async () => {
  const store = open({ encryption: keys });
  const [key = ""] = await keep(store, "yes");
  await store.close();
  expect(readBytes(file)).not.toContain(key.slice(0, 16));
});

test.each([
  [
    "a byte of a body",
    "UPDATE artifact_pieces SET data = CAST('x' || substr(data, 2) AS BLOB) WHERE key & 0xffffff = 1",
  ],
  ["a piece", "DELETE FROM artifact_pieces WHERE key & 0xffffff = 1"],
  ["a row", "UPDATE artifacts SET about = replace(about, 'notes', 'other')"],
  ["the reference of a row", "UPDATE artifacts SET body = 2 WHERE key = 1"],
  ["the length of a body", "UPDATE artifacts SET bytes = bytes - 1"],
])("a changed artifact (%s) is refused, and verify reports the fault [F6]", async (_, sql) => {
  const store = open();
  const [key = ""] = await keep(store, "a".repeat(3 * pieceBytes), "b".repeat(3 * pieceBytes));
  await store.close();
  expect(change(file, (db) => db.prepare(sql).run().changes)).toBeGreaterThan(0);
  const changed = open();
  await expect(changed.artifacts.read("t", key)).rejects.toMatchObject({ code: "store_corrupt" });
  expect((await changed.verify()).faults.length).toBeGreaterThan(0);
  await changed.close();
});

test("verify checks every artifact of a thread above the list page size, and each is sealed", async () => {
  const store = open();
  const storedKeys = await keep(store, ...Array.from({ length: 2_100 }, (_, index) => `body ${index}`));
  await store.artifacts.delete("t", storedKeys[2_000] ?? "");
  await store.close();
  encryptStore(file, keys);
  expect(readBytes(file)).not.toContain("body 1");
  change(file, (db) => db.exec("UPDATE artifacts SET bytes = bytes + 1 WHERE key IN (1, 2050)"));
  const damaged = open({ encryption: keys });
  const { artifacts, faults } = await damaged.verify("t");
  expect(artifacts).toBe(2_099);
  for (const index of [0, 2_049])
    expect(
      faults.filter(({ what }) => what.includes(storedKeys[index] ?? "")),
      String(index),
    ).toHaveLength(1);
  await damaged.close();
});

test("a deleted artifact leaves no row and, after a vacuum, no byte", async () => {
  const store = open();
  const [key = ""] = await keep(store, "confidential".repeat(20_000), "confidential".repeat(20_000), "public");
  expect(countRows(file)).toMatchObject({ artifacts: 3, artifact_pieces: 5 });
  expect(await store.artifacts.delete("t", key)).toBe(true);
  await store.vacuum();
  expect(countRows(file)).toMatchObject({ artifacts: 1, artifact_pieces: 1 });
  expect(readBytes(file)).not.toContain("confidential");
  expect((await store.verify()).faults).toEqual([]);
  await store.close();
});

const Chat = defineState({ messages: channel.messages() });

function agent(body: () => string) {
  const dump = defineTool({
    name: "dump",
    description: "Gives text.",
    input: jsonSchemaInput({ type: "object", properties: {} }),
    effect: "idempotent",
    run: body,
  });
  const node = toolNode<{ readonly messages: readonly Message[] }>({ tools: [dump] });
  const model: Model = {
    id: "scripted",
    respond: async ({ messages }) =>
      messages.some(({ role }) => role === "tool")
        ? { content: [{ type: "text", text: "done" }], finish: "stop" }
        : { content: [{ type: "call", id: "c1", name: "dump", args: {} }], finish: "calls" },
  };
  return defineGraph({ name: "agent", state: Chat })
    .nodes({
      model: async (state, { model: ask }) => ({
        messages: [await ask({ model, request: { messages: state.messages, tools: node.registry.forModel() } })],
      }),
      tools: node,
    })
    .edges({
      [START]: "model",
      model: route(["tools", END], ({ messages }) =>
        messages.at(-1)?.role === "assistant" && messages.length === 2 ? "tools" : END,
      ),
      tools: "model",
    });
}

test("an artifact without disk space is not saved, and neither is its outcome; with space the call is repeated", async () => {
  let made = 0;
  const graphs = agent(() => {
    made += 1;
    return `${made}`.repeat(2_000_000);
  });
  const input = { messages: [{ role: "user", id: "u", content: [{ type: "text", text: "go" }] }] } as const;
  const small = open({ maxBytes: 1_000_000 });
  const paused = await run(graphs, { store: small, thread: "t", input }).result;
  expect(paused).toMatchObject({ status: "paused", cause: { code: "store_full" } });
  expect(await small.artifacts.list("t")).toEqual([]);
  expect((await small.effects("t", "main")).filter(({ kind, state }) => kind === "tool" && state === "ok")).toEqual([]);
  await small.close();
  const large = open();
  expect(await resume(graphs, { store: large, thread: "t" }).result).toMatchObject({ status: "done" });
  expect(made).toBe(2);
  expect(await large.artifacts.list("t")).toMatchObject([{ bytes: 2_000_000, call: "c1" }]);
  expect((await large.verify()).faults).toEqual([]);
  await large.close();
});
