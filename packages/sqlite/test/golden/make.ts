/**
 * Golden files: one file per format with threads in every status, which newer code must open and continue. `node
 * packages/sqlite/test/golden/make.ts` writes the file of the current format and the text of an exported thread. Each
 * file is created once, at the release of its format, and never changed.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fork, longTermStore, resume, run, type Store, type World } from "@statewright/core";
import { exportThread } from "@statewright/core/inspect";
import { sqliteStore } from "@statewright/sqlite";
import { virtualClock } from "@statewright/testing";
import { migrations } from "../../src/file/schema.ts";
import { asks, breaks, calls, dies, keeps, nests } from "./graphs.ts";

// The file is equal on every machine: no stack contains a folder name.
Error.stackTraceLimit = 0;

/** Current format. */
export const newestFormat: number = migrations.length;

/** Path of the golden file of a format. */
export function getGoldenFile(format: number): string {
  return join(import.meta.dirname, `format-${format}.db`);
}

/** Path of an exported thread, by the format of its text. */
export function getGoldenText(format: number): string {
  return join(import.meta.dirname, `thread-${format}.txt`);
}

/** Writes a golden file of the newest format; returns the export of one of its threads. */
export async function createGoldenFile(path: string): Promise<string> {
  const world = virtualClock({ now: 1_750_000_000_000 });
  const store = sqliteStore(path, { durability: "normal" });
  await write(store, world);
  const text = await exportThread(store, "waits");
  await store.close();
  return text;
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
  await run(keeps, { ...given, thread: "values" }).result;
  await run(calls, { ...given, thread: "calls" }).result;
  const notes = longTermStore(store, { world }).under("golden", "notes");
  await notes.put("stays", { text: "A word that is found" });
  await notes.put("ends", "soon", { ttlMs: 60_000 });
  await new Promise<void>((hangs) => {
    run(dies, { ...given, thread: "dead", context: { isBroken: true, hangs } }).result.catch(isExpected);
  });
}

function isExpected(): void {
  // The run fails on purpose, or its store is closed meanwhile.
}

if (import.meta.main) {
  const path = getGoldenFile(newestFormat);
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  const text = await createGoldenFile(path);
  const { version } = JSON.parse(text.slice(0, text.indexOf("\n"))) as { readonly version: number };
  writeFileSync(getGoldenText(version), text);
  process.stdout.write(`${path}\n${getGoldenText(version)}\n`);
  process.exit(0);
}
