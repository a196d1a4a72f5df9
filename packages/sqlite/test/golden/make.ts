/**
 * Golden files: a file of each format with threads in every state of repair, which newer code must open and go on with.
 * `node packages/sqlite/test/golden/make.ts` writes the one of the format that the code has now; it is made once, when the
 * format is released, and never again.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fork, longTermStore, resume, run, type Store, type World } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import { virtualClock } from "@statewright/testing";
import { migrations } from "../../src/schema.ts";
import { asks, breaks, dies, nests } from "./graphs.ts";

// The file is the same wherever it is made: no stack names a folder.
Error.stackTraceLimit = 0;

/** The format that the code writes. */
export const newestFormat: number = migrations.length;

/** Where the golden file of a format stands. */
export function goldenFile(format: number): string {
  return join(import.meta.dirname, `format-${format}.db`);
}

/** Write a golden file of the newest format. */
export async function makeGolden(path: string): Promise<void> {
  const world = virtualClock({ now: 1_750_000_000_000 });
  const store = sqliteStore(path, { durability: "normal" });
  await write(store, world);
  await store.close();
}

async function write(store: Store, world: World): Promise<void> {
  const given = { store, world, context: { isBroken: true } };
  await run(asks, { ...given, thread: "waits" }).result;
  await run(asks, { ...given, thread: "waits", onBusy: "enqueue", key: "next", metadata: { from: "golden" } }).result;
  await run(asks, { ...given, thread: "timer" }).result;
  await resume(asks, { ...given, thread: "timer", answers: { approve: "yes" } }).result;
  await run(asks, { ...given, thread: "done" }).result;
  await resume(asks, { ...given, thread: "done", answers: { approve: "yes" }, by: "Ann" }).result;
  await resume(asks, { ...given, thread: "done", answers: { late: "in time" } }).result;
  const page = await store.history("done", { limit: 10 });
  const middle = page.find(({ nodes }) => nodes.includes("prepare"));
  await fork(asks, { store, world, thread: "done", at: middle?.id ?? 0, name: "side", update: { log: ["otherwise"] } });
  await run(breaks, { ...given, thread: "failed" }).result.catch(isExpected);
  await run(nests, { ...given, thread: "inside" }).result;
  const notes = longTermStore(store, { world }).under("golden", "notes");
  await notes.put("stays", { text: "A word that is found" });
  await notes.put("ends", "soon", { ttlMs: 60_000 });
  await new Promise<void>((hangs) => {
    run(dies, { ...given, thread: "dead", context: { isBroken: true, hangs } }).result.catch(isExpected);
  });
}

function isExpected(): void {
  // It fails on purpose, or its store is closed under it.
}

if (import.meta.main) {
  const path = goldenFile(newestFormat);
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  await makeGolden(path);
  process.stdout.write(`${path}\n`);
  process.exit(0);
}
