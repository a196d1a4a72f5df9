/** Process without free file handles that tries to start a run, then frees some and tries again; prints the results. */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import process from "node:process";
import { isStatewrightError, run } from "@statewright/core";
import { createGrowingGraph, first, listEffects } from "../growing-graph.ts";
import { sqliteStore } from "../sqlite-store.ts";

const [file = "", diary = ""] = process.argv.slice(2);
const graph = createGrowingGraph(diary, 10, 2);
const store = sqliteStore(file);
const handles: number[] = [];

/** Opens files until only this many handles are free. */
function useUp(left: number): void {
  try {
    for (;;) handles.push(openSync(devNull, "r"));
  } catch {
    for (const handle of handles.splice(0, left)) closeSync(handle);
  }
}

function giveBack(): void {
  for (const handle of handles.splice(0)) closeSync(handle);
}

async function attempt(work: () => unknown): Promise<string> {
  try {
    await work();
    return "done";
  } catch (error) {
    return isStatewrightError(error) ? error.message : String(error);
  }
}

useUp(0);
const opened = await attempt(() => sqliteStore(`${file}-other`));
const runOutcome = await attempt(() => run(graph, { store, thread: "t", input: first }).result);
const threads = (await store.threads()).length;
giveBack();
const did = listEffects(diary).length;
const again = await attempt(() => run(graph, { store, thread: "t", input: first }).result);
// The handles of the store are open by now: it needs no new ones. The free handle is for the diary.
useUp(1);
const further = await attempt(() => run(graph, { store, thread: "u", input: first }).result);
giveBack();
process.stdout.write(JSON.stringify({ opened, runOutcome, threads, did, again, further }));
await store.close();
