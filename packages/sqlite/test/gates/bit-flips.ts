/**
 * Bit rot: flips one bit of a closed file and reads everything. A read returns the original value or is refused as
 * `store_corrupt`. `verify` reports a missing row or a changed list: no value is silently wrong.
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isStatewrightError } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import type { RunRow } from "@statewright/core/store";
import { type SqliteStore, sqliteStore } from "@statewright/sqlite";
import {
  append,
  createCheckpoint,
  createEffectRow,
  createInterruptRow,
  createRunRow,
  createSuperstep,
  graph,
  saveCommit,
} from "../support/rows.ts";
import { type Found, type Random, runCases } from "./seeded.ts";

const threads = ["alpha", "beta"];

/** Creates a file with every kind of stored data. */
async function image(path: string): Promise<Buffer> {
  const store = sqliteStore(path);
  for (const thread of threads) {
    const parties = { tenant: `tenant of ${thread}`, owner: "ada" };
    await store.createThread({ thread, at: 1, title: `Title of ${thread}`, metadata: { project: thread }, ...parties });
    const claim = await store.claim({ ...graph, thread });
    const about = { key: `key-${thread}`, metadata: { customer: thread }, ...parties };
    const run: RunRow = { ...createRunRow("r1", thread), ...about };
    await saveCommit(store, {
      ...createSuperstep(thread, claim, 1),
      run,
      events: [createDurableEvent(thread, 2, "started")],
      seq: 2,
    });
    for (let id = 2; id <= 6; id++) {
      const deltas = [append("items", [`${thread}-${id}`]), replace("plan", `plan ${id} of ${thread}`)];
      await saveCommit(store, { ...createSuperstep(thread, claim, id), seq: id + 1, checkpoint: at(id, deltas) });
    }
    await saveCommit(store, {
      thread,
      branch: "main",
      epoch: claim.epoch,
      seq: 8,
      effects: [{ ...createEffectRow(6, "idempotent", "kept"), key: "other", args: "args" }],
      run: { ...run, status: "waiting", error: { name: "Error", message: "an error of before" } },
      interrupts: [createInterruptRow("q1", "yes"), open("q2")],
      timers: [{ arm: { id: "wait", kind: "after", generation: 6, dueAt: 9_000, about: "timer" } }],
      events: [createDurableEvent(thread, 8, "waits")],
      release: true,
    });
    const from = { ...at(3).row, branch: "other", parent: 3, source: "fork" } as const;
    await store.branch({ thread, branch: "other", from: 3, checkpoint: { row: from, deltas: [] }, interrupts: [] });
    await store.enqueue({
      thread,
      run: { ...createRunRow(`r2-${thread}`, thread), status: "queued", queuedAt: 2_000, input: '"later"' },
    });
  }
  await store.close();
  return readFileSync(path);
}

function at(id: number, deltas: readonly ReturnType<typeof append>[] = []) {
  const { row } = createCheckpoint(id);
  return { row: { ...row, seq: id === 1 ? 1 : id + 1 }, deltas };
}

function replace(channel: string, value: string) {
  return { channel, kind: "replace", base: true, text: JSON.stringify(value) } as const;
}

function createDurableEvent(thread: string, seq: number, what: string) {
  return { seq, branch: "main", at: 1_000 + seq, text: JSON.stringify({ thread, what }) };
}

function open(id: string) {
  const { answer: _, answeredAt: __, ...row } = createInterruptRow(id, "");
  return row;
}

const quiet = { ...systemWorld(), log: () => undefined };

/** Result of a read: its value, or its refusal. */
type Read = { readonly value: string } | { readonly refused: string };

async function readAll(store: SqliteStore): Promise<ReadonlyMap<string, Read>> {
  const reads = new Map<string, Read>();
  const read = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      const value = await work();
      reads.set(name, { value: JSON.stringify(value) ?? "undefined" });
    } catch (thrown) {
      // Only StatewrightErrors are allowed, with a message.
      if (!isStatewrightError(thrown)) throw thrown;
      reads.set(name, { refused: thrown.code });
    }
  };
  await read("threads", () => store.threads());
  await read("runs", () => store.runs());
  await read("counts", () => Promise.all([store.countThreads(), store.countRuns()]));
  await read("run", () => store.run("r2-beta"));
  await read("questions", () => store.openInterrupts());
  await read("timers", () => store.timers());
  for (const thread of threads) {
    const of = (name: string, work: () => Promise<unknown>): Promise<void> => read(`${name} of ${thread}`, work);
    await of("thread", () => store.thread(thread));
    await of("thread by its tenant", () => store.threads({ tenant: `tenant of ${thread}` }));
    await of("thread by its metadata", () => store.threads({ metadata: { project: thread } }));
    await of("branches", () => store.branches(thread));
    await of("runs", () => store.runs({ thread }));
    await of("questions", () => store.openInterrupts({ thread }));
    await of("timers", () => store.timers({ thread }));
    await of("events", () => store.events(thread, { after: 0, limit: 100 }));
    for (const branch of ["main", "other"]) {
      await of(`head ${branch}`, () => store.head(thread, branch));
      await of(`history ${branch}`, async () => sorted(await store.history(thread, { branch, limit: 100 })));
      await of(`effects ${branch}`, () => store.effects(thread, branch));
      await of(`interrupts ${branch}`, () => store.interrupts(thread, branch));
    }
    for (let id = 1; id <= 7; id++) {
      await of(`checkpoint ${id}`, () => store.checkpoint(thread, id));
      await of(`state ${id}`, () => store.state(thread, id));
      await of(`writer ${id}`, () => store.writtenBy(thread, id));
    }
  }
  return reads;
}

function sorted(history: Awaited<ReturnType<SqliteStore["history"]>>) {
  return history.map((row) => ({
    ...row,
    deltas: row.deltas.toSorted((one, other) => (one.channel < other.channel ? -1 : 1)),
  }));
}

/** A random bit of the file, or, equally often, a bit of a used page. */
function getPlace(clean: Buffer, random: Random): number {
  const anywhere = random.whole(clean.length);
  if (random.whole(2) === 0) return anywhere;
  for (let at = anywhere; ; at = (at + 1) % clean.length) if (clean[at] !== 0) return at;
}

export async function runBitFlips(
  home: string,
  range: { readonly first: number; readonly count: number },
): Promise<Found> {
  const clean = await image(join(home, "clean.db"));
  const copy = join(home, "flipped.db");
  const store = sqliteStore(join(home, "clean.db"));
  const before = await readAll(store);
  assert.deepEqual(
    [...before].filter(([, each]) => "refused" in each),
    [],
  );
  assert.deepEqual((await store.verify()).faults, []);
  await store.close();
  return runCases(range, async (random) => {
    const [place, bit] = [getPlace(clean, random), random.whole(8)];
    const bytes = Buffer.from(clean);
    bytes[place] = (bytes[place] ?? 0) ^ (1 << bit);
    for (const part of ["-wal", "-shm"]) rmSync(copy + part, { force: true });
    writeFileSync(copy, bytes);
    return classifyFile(copy, before, `bit ${bit} of byte ${place}`);
  });
}

/** Classifies a file; throws for a value that is silently wrong. */
async function classifyFile(copy: string, before: ReadonlyMap<string, Read>, where: string): Promise<string> {
  let store: SqliteStore;
  try {
    store = sqliteStore(copy, { world: quiet });
  } catch (thrown) {
    if (!isStatewrightError(thrown)) throw thrown;
    return "not opened";
  }
  try {
    const after = await readAll(store);
    const refused = [...after].filter(([, each]) => "refused" in each);
    const strange = refused.flatMap(([name, each]) =>
      "refused" in each && !honest.has(each.refused) ? [`${name}: ${each.refused}`] : [],
    );
    assert.deepEqual(strange, [], `${where}: refused in other words`);
    const wrong = [...after].flatMap(([name, each]) => {
      const clean = before.get(name);
      return "value" in each && clean !== undefined && "value" in clean && each.value !== clean.value ? [name] : [];
    });
    if (wrong.length === 0) return refused.length === 0 ? "harmless" : "refused";
    const faults = await store.verify().then(
      (report) => report.faults.length,
      (thrown) => (isStatewrightError(thrown) ? 1 : Promise.reject(thrown)),
    );
    assert.ok(faults > 0, `${where}: wrong without a word: ${wrong.join(", ")}`);
    const content = wrong.filter((name) => contents.test(name));
    const changed = content.filter((name) => !isLess(before.get(name), after.get(name)));
    assert.deepEqual(changed, [], `${where}: wrong when it is read`);
    return content.length === 0 ? "found by verify" : "a row is gone, found by verify";
  } finally {
    await store.close();
  }
}

/** Returns whether the read data is the original without some of its rows. */
function isLess(before: Read | undefined, after: Read | undefined): boolean {
  if (before === undefined || after === undefined || !("value" in before) || !("value" in after)) return false;
  return after.value === "undefined" || isPart(JSON.parse(before.value), JSON.parse(after.value));
}

function isPart(whole: unknown, part: unknown): boolean {
  if (Array.isArray(whole) && Array.isArray(part))
    return part.every((item) => whole.some((each) => isPart(each, item)));
  if (typeof whole !== "object" || typeof part !== "object" || whole === null || part === null) return whole === part;
  return Object.entries(part).every(([key, value]) => isPart(Reflect.get(whole, key), value));
}

/** Error codes that report a changed row or a missing name. */
const honest = new Set(["store_corrupt", "unknown_thread", "unknown_branch", "unknown_checkpoint"]);

/** Reads that a resumed run needs. */
const contents = /^(?:state|history|checkpoint|head|effects|interrupts|events) /;
