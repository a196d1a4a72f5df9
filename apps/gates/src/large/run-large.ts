/**
 * Large threads on a SQLite file: the export and the deletion of artifacts, and a long queue on one thread, each with
 * the longest time that the event loop stood still.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { channel, defineGraph, defineState, END, run, START, type Store } from "@statewright/core";
import { deleteThread, importThread, streamThreadExport } from "@statewright/core/inspect";
import { sqliteStore } from "@statewright/sqlite";
import * as z from "zod";

/** Maximum milliseconds that the event loop may stand still. */
const maxDelayMs = 2_000;

const bodyBytes = 16 * 2 ** 20;

const graph = defineGraph({ name: "large", state: defineState({ notes: channel.list(z.string()) }) })
  .nodes({ note: () => ({ notes: ["noted"] }) })
  .edges({ [START]: "note", note: END });

/** Runs work and prints its result; returns true if the event loop never stood still for longer than the maximum. */
async function measure<Value>(title: string, work: () => Promise<Value>): Promise<boolean> {
  const delays = monitorEventLoopDelay({ resolution: 10 });
  delays.enable();
  const start = performance.now();
  const result = await work();
  const ms = Math.round(performance.now() - start);
  delays.disable();
  const delayMs = Math.round(delays.max / 1e6);
  console.log(`large: ${title}: ${String(result)}, ${ms} ms, longest delay of the event loop ${delayMs} ms`);
  return delayMs <= maxDelayMs;
}

/** Imports a thread with artifacts of random bytes. */
async function importLarge(store: Store, megabytes: number): Promise<void> {
  await run(graph, { store, thread: "seed", input: {} }).result;
  const image = await store.exportThread("seed");
  const artifacts = Array.from({ length: Math.ceil((megabytes * 2 ** 20) / bodyBytes) }, (_, nth) => {
    const body = randomBytes(bodyBytes);
    const key = createHash("sha256").update(body).digest("hex");
    const origin = {
      tool: "make",
      run: image.run ?? "",
      branch: "main",
      step: 1,
      task: "note",
      call: `c${nth}`,
      at: 1,
    };
    const shape = { mimeType: "application/octet-stream", bytes: bodyBytes, text: false, redaction: "none" as const };
    return { row: { key, name: `file-${nth}`, ...shape, ...origin }, body };
  });
  await store.importThread({
    ...image,
    id: "large",
    runs: image.runs.map((row) => ({ ...row, thread: "large" })),
    artifacts,
  });
}

async function countCharacters(store: Store): Promise<number> {
  let characters = 0;
  for await (const chunk of streamThreadExport(store, "large")) characters += chunk.length;
  return characters;
}

async function runQueue(store: Store, inputs: number): Promise<number> {
  const runs = Array.from({ length: inputs }, () =>
    run(graph, { store, thread: "queue", input: {}, onBusy: "enqueue" }),
  );
  const results = await Promise.all(runs.map(({ result }) => result));
  return results.filter(({ status }) => status === "done").length;
}

/** Exports and deletes a thread of some megabytes, and runs a queue; false for a stall of the event loop. */
export async function runLarge(megabytes: number): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "statewright-large-"));
  const store = sqliteStore(join(folder, "agent.db"), { durability: "normal" });
  try {
    await importLarge(store, megabytes);
    const isExported = await measure(`export of ${megabytes} MB in characters`, () => countCharacters(store));
    const isCopied = await importThread(store, streamThreadExport(store, "seed"), { as: "copy" });
    const isDeleted = await measure(`deletion of ${megabytes} MB`, () => deleteThread(store, "large"));
    const isQueued = await measure("queue of 3,000 inputs", () => runQueue(store, 3_000));
    return isExported && isCopied === "copy" && isDeleted && isQueued;
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
