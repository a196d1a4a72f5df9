/** Parts of a store without a database: sums, chain, encryption, rotation and verification. */
import { readFileSync } from "node:fs";
import { isStatewrightError } from "@statewright/core";
import { type CheckpointRow, type EffectRow, storeRules } from "@statewright/core/store";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  createRowSource,
  createStoreCipher,
  decryptPayload,
  type EncryptionKey,
  type GraphVersion,
  hashCheckpoint,
  type Payload,
  type RowSource,
  readFoldedEffects,
  rotateAll,
  type ThreadCipher,
  toFoldedColumns,
  toStoredStatus,
  verifyStore,
} from "../src/index.ts";

const writer: GraphVersion = { graph: "orders", version: 1, shape: "s" };

const checkpoint: CheckpointRow = {
  id: 2,
  branch: "main",
  step: 1,
  parent: 1,
  source: "step",
  nodes: ["review"],
  control: "{}",
  run: "r1",
  at: 5,
  durationMs: 1,
  seq: 3,
  bytes: 10,
};

function createKey(id: string, fill: number): EncryptionKey {
  return { id, key: new Uint8Array(32).fill(fill) };
}

test("a hash of a checkpoint changes with each of its columns, its deltas and the hash of its parent [PK14]", () => {
  const delta = { channel: "total", kind: "replace", base: true, text: "1" } as const;
  const chain = { parentHash: "p", cipher: undefined };
  const hash = hashCheckpoint(checkpoint, writer, [delta], chain);
  const changes: readonly Partial<CheckpointRow>[] = [
    { id: 3 },
    { step: 2 },
    { parent: 0 },
    { source: "input" },
    { nodes: ["other"] },
    { control: "[]" },
    { run: "r2" },
    { at: 6 },
    { durationMs: 2 },
    { seq: 4 },
    { bytes: 11 },
  ];
  const others = [
    ...changes.map((change) => hashCheckpoint({ ...checkpoint, ...change }, writer, [delta], chain)),
    hashCheckpoint(checkpoint, { ...writer, shape: "t" }, [delta], chain),
    hashCheckpoint(checkpoint, writer, [{ ...delta, text: "2" }], chain),
    hashCheckpoint(checkpoint, writer, [], chain),
    hashCheckpoint(checkpoint, writer, [delta], { ...chain, parentHash: "q" }),
  ];
  expect(new Set([hash, ...others]).size).toBe(others.length + 1);
  expect(hashCheckpoint({ ...checkpoint }, writer, [{ ...delta }], chain)).toBe(hash);
});

test("a value decrypts at its own place only, for any text and place [PK14]", () => {
  const cipher = createStoreCipher({ keys: () => [createKey("k", 1)] });
  const thread = cipher.getThreadCipher("t", cipher.createSecret("t"));
  const place = fc.array(fc.oneof(fc.string(), fc.integer(), fc.constant(null)), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), place, place, (text, at, other) => {
      const value = thread.encrypt(text, at);
      expect(thread.decrypt(value, at)).toBe(text);
      fc.pre(JSON.stringify(at) !== JSON.stringify(other));
      expect(() => thread.decrypt(value, other)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
    }),
    { seed: 14 },
  );
});

test("a changed text of folded effects is refused, and effects without an outcome survive the fold [PK14]", () => {
  const effect: EffectRow = {
    step: 1,
    task: "1:0",
    key: "call",
    kind: "step",
    name: "call",
    effect: "idempotent",
    state: "ok",
    attempts: 1,
    idempotencyKey: "t/salt/main/1:0/call",
    startedAt: 1,
    endedAt: 2,
  };
  const location = { thread: "t", namespace: "main", checkpoint: 2 };
  const columns = toFoldedColumns(location, 1, [effect]);
  expect(readFoldedEffects(location, columns)).toEqual([effect]);
  expect(() => readFoldedEffects({ ...location, checkpoint: 3 }, columns)).toThrow(
    expect.objectContaining({ code: "store_corrupt" }),
  );
});

test("the stored status of a run at rest tells runs that an engine resumes by itself from others [PK14]", () => {
  const run = { id: "r", thread: "t", branch: "main", graph: "g", version: 1, attempt: 1, startedAt: 0 } as const;
  const parked = { name: "StatewrightError", code: "needs_migration", message: "m" } as const;
  expect(toStoredStatus({ ...run, status: "paused" })).toBe("paused");
  expect(toStoredStatus({ ...run, status: "parked", error: parked })).toBe("incompatible");
});

/** Threads of encrypted values in memory: a store of another database. */
function createThreads(ids: readonly string[], count: number) {
  const keys: EncryptionKey[] = [createKey("old", 1)];
  const storeCipher = createStoreCipher({ keys: () => keys });
  const secrets = new Map<string, Uint8Array>(ids.map((id) => [id, storeCipher.createSecret(id)]));
  const getCipher = (id: string): ThreadCipher | undefined => {
    const secret = secrets.get(id);
    return secret && storeCipher.getThreadCipher(id, secret);
  };
  const rows = new Map(
    ids.map((id) => [
      id,
      Array.from({ length: count }, (_, key) => ({
        key,
        value: getCipher(id)?.encrypt(`${id} ${key}`, [key]) as Payload,
      })),
    ]),
  );
  const listRowSources = (thread: string): readonly RowSource[] => [
    createRowSource(
      (after, limit) =>
        rows
          .get(thread)
          ?.filter(({ key }) => key > after)
          .slice(0, limit) ?? [],
      ({ value }) => [value],
      (row, cipher) => {
        const text = decryptPayload(cipher, thread, row.value, () => [row.key]);
        return (newest) => {
          row.value = newest.encrypt(text, [row.key]);
        };
      },
    ),
  ];
  const ciphers = { get: getCipher, getSecret: (thread: string) => secrets.get(thread) };
  const putSecret = (thread: string, secret: Uint8Array): void => void secrets.set(thread, secret);
  return { keys, storeCipher, rows, getCipher, reencryption: { listRowSources, putSecret }, ciphers };
}

test("a rotation over any row source encrypts each value with the newest key, and a second one changes none [PK14]", async () => {
  const { keys, reencryption, ciphers, storeCipher, rows, getCipher } = createThreads(["a", "b"], 450);
  keys.unshift(createKey("new", 2));
  const rotate = (): Promise<number> =>
    rotateAll(
      { ciphers, storeCipher, reencryption },
      async (_thread, operation) => operation(),
      async (after) => (after === 0 ? [...rows.keys()].map((id, index) => ({ key: index + 1, id })) : []),
    );
  expect(await rotate()).toBe(900);
  expect(await rotate()).toBe(0);
  keys.splice(1);
  expect(
    rows
      .get("b")
      ?.map(({ key, value }) => getCipher("b")?.decrypt(value, [key]))
      .at(-1),
  ).toBe("b 449");
});

test("a verification names the damage of each thread once, skips deleted threads and counts the others [PK14]", async () => {
  const listed = ["a", "b", "gone"].map((id, index) => ({ key: index + 1, id }));
  const verifier = {
    checkStructure: () => ["a page is missing"],
    getNewestThreadKey: () => 3,
    listThreads: (after: number) => listed.filter(({ key }) => key > after).slice(0, 2),
    verifyItems: async () => undefined,
    verifyOutlines: async () => undefined,
    verifyThread: async (id: string, _read: unknown, onFault: (fault: { thread: string; what: string }) => void) => {
      if (id === "gone") throw storeRules.createUnknownThreadError(id);
      if (id === "b") for (const what of ["a row is damaged", "a row is damaged"]) onFault({ thread: id, what });
      return { checkpoints: 2, artifacts: 1 };
    },
  };
  const report = await verifyStore(verifier, async (operation) => operation(), undefined);
  const faults = [{ what: "a page is missing" }, { thread: "b", what: "a row is damaged" }];
  expect(report).toEqual({ threads: 2, checkpoints: 4, artifacts: 2, faults });
  const unknown = await verifyStore(verifier, async (operation) => operation(), "gone").catch(
    (error: unknown) => error,
  );
  expect(isStatewrightError(unknown, "unknown_thread")).toBe(true);
});

test("the store kit imports nothing but core, node:crypto, node:zlib and node:buffer [PK14]", () => {
  const folder = new URL("../src/", import.meta.url);
  const files = [
    "cipher",
    "column-sums",
    "corrupt-error",
    "encrypted-rows",
    "folded-effects",
    "hash-remaining-deltas",
    "readable-rows",
    "rotation",
    "row-source",
    "rows",
    "run-status",
    "verify-store",
    "well-formed",
  ];
  const imported = files.flatMap((name) =>
    [...readFileSync(new URL(`${name}.ts`, folder), "utf8").matchAll(/from "([^."][^"]*)"/g)].map(([, from]) => from),
  );
  expect([...new Set(imported)].sort()).toEqual([
    "@statewright/core",
    "@statewright/core/adapter",
    "@statewright/core/store",
    "node:buffer",
    "node:crypto",
    "node:zlib",
  ]);
});
