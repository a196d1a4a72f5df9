/**
 * Fuzz: random filters, options and ids for every store function. An unknown key is refused, an invalid id creates no
 * row, and only StatewrightErrors are thrown.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { isStatewrightError } from "@statewright/core";
import { type SqliteStore, sqliteStore } from "@statewright/sqlite";
import { change } from "../support/database-file.ts";
import { createRunRow, createSuperstep, graph, saveCommit } from "../support/rows.ts";
import { type Found, type Random, runCases } from "./seeded.ts";

const texts = [
  "",
  " ",
  "t",
  "main",
  "main/0:0",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "../../etc/passwd",
  "t' OR '1'='1",
  'x"; DROP TABLE threads; --',
  "\u0000",
  "\ud800",
  "\udfff\ud800",
  "\ufffd",
  "ｔ",
  "t\u0301",
  "é",
  "e\u0301",
  "🙂",
  "a".repeat(128),
  "a".repeat(129),
  "a".repeat(100_000),
  "running",
  "2026-01-01",
  "1e999",
];

const numbers = [0, -0, 1, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, -(2 ** 53), 2 ** 53, 2 ** 63, 1e308, 5e-324];

const keys = [
  "thread",
  "status",
  "graph",
  "key",
  "metadata",
  "since",
  "until",
  "before",
  "limit",
  "branch",
  "after",
  "dueBy",
  "from",
  "at",
  "tenant",
  "owner",
  "search",
  "runMetadata",
  "title",
];

const strange = ["where", "order", "__proto__", "constructor", "Thread", "limit ", "", "0", "toString", "\ud800"];

const grammar = /^[A-Za-z0-9_.:-]{1,128}$/;

function garbage(random: Random, depth = 0): unknown {
  const kind = random.whole(depth > 2 ? 6 : 10);
  if (kind < 3) return random.pick(texts);
  if (kind === 3) return random.pick(numbers);
  if (kind === 4) return random.pick([null, undefined, true, false]);
  if (kind === 5)
    return random.pick([Symbol("s"), 10n, 2n ** 70n, () => 1, new Date(Number.NaN), new Map(), /x/, new Uint8Array(3)]);
  if (kind === 6) return Array.from({ length: random.whole(4) }, () => garbage(random, depth + 1));
  return createObject(random, () => garbage(random, depth + 1), [...keys, ...strange]);
}

function createObject(random: Random, value: () => unknown, names: readonly string[]): object {
  const entries = Array.from({ length: random.whole(4) }, () => [random.pick(names), value()] as const);
  const object = {};
  for (const [name, each] of entries)
    Object.defineProperty(object, name, { value: each, enumerable: true, configurable: true, writable: true });
  return object;
}

/** Untyped call: any value in any place. */
type Border = (store: SqliteStore, given: never, random: Random) => unknown;

const threadKeys = ["graph", "tenant", "owner", "metadata", "runMetadata", "search", "since", "until"];
const runKeys = ["thread", "branch", "graph", "key", "tenant", "owner", "metadata", "since", "until"];

const lists: Readonly<Record<string, { readonly known: readonly string[]; readonly ask: Border }>> = {
  threads: {
    known: [...threadKeys, "status", "before", "limit"],
    ask: (store, given) => store.threads(given),
  },
  countThreads: { known: threadKeys, ask: (store, given) => store.countThreads(given) },
  runs: {
    known: [...runKeys, "status", "before", "order", "limit"],
    ask: (store, given) => store.runs(given),
  },
  countRuns: { known: runKeys, ask: (store, given) => store.countRuns(given) },
  openInterrupts: {
    known: ["thread", "graph", "key", "tenant", "owner", "metadata", "at", "before", "limit"],
    ask: (store, given) => store.openInterrupts(given),
  },
  timers: { known: ["thread", "dueBy", "limit"], ask: (store, given) => store.timers(given) },
  history: { known: ["branch", "before", "limit"], ask: (store, given) => store.history("t", given) },
  events: { known: ["after", "from", "limit"], ask: (store, given) => store.events("t", given) },
};

/** Reads by id: an unknown id returns nothing or is refused. */
const reads: readonly Border[] = [
  (store, id) => store.thread(id),
  (store, id) => store.run(id),
  (store, id) => store.updateThread(id, { at: 1, title: "fuzz" }),
  (store, patch) => store.updateThread("none", patch),
  (store, id) => store.branches(id),
  (store, id) => store.checkpoint(id, 1),
  (store, id) => store.checkpoint("t", id),
  (store, id) => store.head(id),
  (store, id) => store.head("t", id),
  (store, id) => store.state(id, 1),
  (store, id) => store.state("t", id),
  (store, id) => store.effects(id, "main"),
  (store, id) => store.effects("t", id),
  (store, id) => store.effects("t", "main", id),
  (store, id) => store.interrupts(id, id),
  (store, id) => store.history(id, { limit: 3 }),
  (store, id) => store.events(id, { after: 0, limit: 3 }),
  (store, id) => store.writtenBy("t", id),
  (store, id) => store.exportThread(id),
  (store, id) => store.verify(id),
  (store, id) => store.dequeue(id, id, { at: 1, reason: "fuzz" }),
  (store, id, random) => store.dequeue("t", id, random.pick([{ at: 1, reason: "fuzz" }, id])),
];

/** Writes that would create a row with an id. */
const writes: readonly Border[] = [
  (store, id) => store.claim({ ...graph, thread: id }),
  (store, id) => store.createThread({ thread: id, at: 1 }),
  (store, id) => store.claim({ ...graph, thread: "free", branch: id }),
  (store, id) => store.enqueue({ thread: "t", run: { ...createRunRow(id, "t"), status: "queued", input: "1" } }),
  (store, id) => store.enqueue({ thread: id, run: { ...createRunRow("r", "t"), status: "queued", input: "1" } }),
  (store, id) => saveCommit(store, createSuperstep(id, { epoch: 1, branch: id }, 1)),
  (store, id) => saveCommit(store, createSuperstep("t", { epoch: 1, branch: id }, 2)),
];

function getId(random: Random): unknown {
  return random.whole(2) === 0 ? random.pick(texts) : garbage(random);
}

async function getOutcome(work: () => unknown): Promise<string> {
  try {
    await work();
    return "taken";
  } catch (thrown) {
    assert.ok(
      isStatewrightError(thrown),
      `not an error of ours: ${thrown instanceof Error ? thrown.stack : String(thrown)}`,
    );
    assert.ok(thrown.message.length < 400_000, "a message that repeats what it was given without end");
    return thrown.code;
  }
}

async function listed(store: SqliteStore, random: Random): Promise<string> {
  const [name, { known, ask }] = random.pick(Object.entries(lists));
  const given =
    random.whole(8) === 0
      ? garbage(random)
      : createObject(random, () => garbage(random, 1), [...known, ...known, ...strange]);
  const met = await getOutcome(() => ask(store, given as never, random));
  if (typeof given !== "object" || given === null) return `${name} ${met}`;
  const unknown = Object.keys(given).filter((key) => !known.includes(key));
  const { limit } = given as { readonly limit?: unknown };
  if (unknown.length > 0) assert.equal(met, "invalid_option", `${name} takes ${JSON.stringify(unknown)}`);
  else if (limit !== undefined && !(Number.isInteger(limit) && Number(limit) >= 1))
    assert.equal(met, "invalid_option", `${name} takes a limit that is none`);
  return `list ${met}`;
}

async function written(store: SqliteStore, random: Random): Promise<string> {
  const id = getId(random);
  const met = await getOutcome(() => random.pick(writes)(store, id as never, random));
  if (met === "taken") assert.ok(typeof id === "string" && grammar.test(id), "an id outside the grammar is taken");
  return `write ${met}`;
}

async function opened(random: Random): Promise<string> {
  const given = createObject(random, () => garbage(random, 1), [
    "durability",
    "maxBytes",
    "fileSystem",
    "encryption",
    ...strange,
  ]);
  const path = random.whole(3) === 0 ? garbage(random) : ":memory:";
  const met = await getOutcome(async () => {
    // A value that could be a path is not opened: it would create a file.
    if (typeof path === "string" && path !== ":memory:" && path.trim() !== "" && !path.includes("\0")) return;
    await sqliteStore(path as never, given as never).close();
  });
  const known = new Set(["durability", "maxBytes", "fileSystem", "encryption"]);
  if (path === ":memory:" && Object.keys(given).some((key) => !known.has(key))) assert.equal(met, "invalid_option");
  return `options ${met}`;
}

export async function fuzz(home: string, range: { readonly first: number; readonly count: number }): Promise<Found> {
  const file = join(home, "fuzz.db");
  const store = sqliteStore(file, { durability: "normal" });
  const claim = await store.claim({ ...graph, thread: "t" });
  await saveCommit(store, { ...createSuperstep("t", claim, 1), run: createRunRow("r1", "t"), release: true });
  try {
    const found = await runCases(range, async (random) => {
      const way = random.whole(10);
      if (way < 5) return listed(store, random);
      if (way < 7) return `read ${await getOutcome(() => random.pick(reads)(store, getId(random) as never, random))}`;
      if (way < 9) return written(store, random);
      return opened(random);
    });
    assert.equal((await store.checkpoint("t", 1))?.id, 1);
    assert.deepEqual((await store.verify()).faults, []);
    const ids = change(file, (db) =>
      db
        .prepare<[], string>("SELECT id FROM threads UNION SELECT name FROM branches UNION SELECT id FROM runs")
        .pluck()
        .all(),
    );
    assert.deepEqual(
      ids.filter((id) => !id.split("/").every((part) => grammar.test(part))),
      [],
    );
    return found;
  } finally {
    await store.close();
  }
}
