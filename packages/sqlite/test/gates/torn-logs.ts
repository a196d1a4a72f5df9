/**
 * Torn logs: the state of a file and its log after a power cut. However the log is cut or garbled, the store opens it
 * with an exact prefix of the commits, each of them complete.
 */
import assert from "node:assert/strict";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "@statewright/core";
import type { EffectRow } from "@statewright/core/store";
import { sqliteStore } from "@statewright/sqlite";
import {
  append,
  createCheckpoint,
  createEffectRow,
  createSuperstep,
  graph,
  readItems,
  saveCommit,
} from "../support/rows.ts";
import { type Found, type Random, runCases } from "./seeded.ts";

/** Each round has two commits: the intents of the calls, and the checkpoint that folds them. */
const intents = 4;
const rounds = 8;

/**
 * Creates a file whose commits are all in its log. The file is the one before its log is copied into it: SQLite syncs
 * the log before that, so no power cut tears the log of a newer file.
 */
async function image(home: string): Promise<{ readonly path: string; readonly log: Buffer; readonly file: Buffer }> {
  const file = join(home, "whole.db");
  const store = sqliteStore(file);
  const claim = await store.claim({ ...graph, thread: "t" });
  const path = join(home, "image.db");
  copyFileSync(file, path);
  for (let round = 1; round <= rounds; round++) {
    const started = Array.from({ length: intents }, (_none, call): EffectRow => {
      const { outcome: _outcome, endedAt: _endedAt, ...row } = createEffectRow(round - 1, "once");
      return { ...row, task: `${round - 1}:${call}`, state: "started" };
    });
    await saveCommit(store, { thread: "t", branch: "main", epoch: claim.epoch, seq: round - 1, effects: started });
    await saveCommit(store, {
      ...createSuperstep("t", claim, round),
      checkpoint: createCheckpoint(round, [append("items", [`${round}`])]),
    });
  }
  copyFileSync(`${file}-wal`, `${path}-wal`);
  await store.close();
  return { path, log: readFileSync(`${path}-wal`), file: readFileSync(path) };
}

/** Kind of damage to the log. */
const damages: Readonly<Record<string, (log: Buffer, random: Random) => Buffer>> = {
  "cut anywhere": (log, random) => log.subarray(0, random.whole(log.length + 1)),
  "cut at a sector": (log, random) => log.subarray(0, random.whole(Math.floor(log.length / 512) + 1) * 512),
  "garbled in one place": (log, random) => garbled(log, random, 1 + random.whole(600)),
  "one sector not written": (log, random) => {
    const copy = Buffer.from(log);
    return copy.fill(0, random.whole(Math.floor(log.length / 512)) * 512).subarray(0, log.length);
  },
  "one sector lost": (log, random) => {
    const copy = Buffer.from(log);
    const at = random.whole(Math.floor(log.length / 512)) * 512;
    return copy.fill(0, at, at + 512);
  },
  "one bit flipped": (log, random) => {
    const copy = Buffer.from(log);
    const at = random.whole(log.length);
    copy[at] = (copy[at] ?? 0) ^ (1 << random.whole(8));
    return copy;
  },
};

function garbled(log: Buffer, random: Random, bytes: number): Buffer {
  const copy = Buffer.from(log);
  const at = random.whole(log.length);
  for (let index = at; index < Math.min(at + bytes, log.length); index++) copy[index] = random.whole(256);
  return copy;
}

/**
 * A crash during the copy of the log into the file: some pages are copied, one possibly by half, and the log is
 * complete.
 */
function halfCopied(file: Buffer, log: Buffer, random: Random): Buffer {
  const page = log.readUInt32BE(8);
  const frames: { readonly at: number; readonly number: number }[] = [];
  for (let at = 32; at + 24 + page <= log.length; at += 24 + page)
    frames.push({ at: at + 24, number: log.readUInt32BE(at) });
  const newest = new Map(frames.map(({ at, number }) => [number, at]));
  const grown = Buffer.alloc(Math.max(file.length, Math.max(...newest.keys()) * page));
  file.copy(grown);
  for (const [number, at] of newest) {
    const part = random.pick([0, page, page, 512 * random.whole(page / 512)]);
    log.copy(grown, (number - 1) * page, at, at + part);
  }
  return grown;
}

/** Throws unless the store holds a prefix of the commits; returns the number of commits. */
async function getPrefix(store: Store): Promise<number> {
  const head = (await store.head("t"))?.id ?? 0;
  const expected = Array.from({ length: head }, (_, index) => String(index + 1));
  assert.deepEqual(await readItems(store, "t"), expected);
  assert.equal((await store.history("t", { limit: 1_000 })).length, head);
  const effects = await store.effects("t", "main");
  const open = effects.filter(({ step }) => step === head);
  assert.ok(open.length === 0 || open.length === intents, `${open.length} of ${intents} intents of one commit`);
  assert.equal(effects.length, head * intents + open.length);
  return 2 * head + (open.length === 0 ? 0 : 1);
}

export async function runTornLogs(
  home: string,
  range: { readonly first: number; readonly count: number },
): Promise<Found> {
  const { log, file } = await image(home);
  const copy = join(home, "torn.db");
  return runCases(range, async (random) => {
    const kind = random.pick([...Object.keys(damages), "a copy into the file cut short"]);
    const damage = damages[kind];
    writeFileSync(copy, damage === undefined ? halfCopied(file, log, random) : file);
    writeFileSync(`${copy}-wal`, damage === undefined ? log : damage(log, random));
    const store = sqliteStore(copy, { durability: "normal" });
    try {
      const commits = await getPrefix(store);
      if (damage === undefined) assert.equal(commits, 2 * rounds);
      return kind;
    } finally {
      await store.close();
    }
  });
}
