/** A process that has used up its file handles tries to begin a run, then closes some and tries again; says what came of it. */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import process from "node:process";
import { isStatewrightError, run } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import { first, growing, happened } from "../growing-graph.ts";

const [file = "", diary = ""] = process.argv.slice(2);
const graph = growing(diary, 10, 2);
const store = sqliteStore(file);
const handles: number[] = [];

/** Take all handles but so many. */
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
const begun = await attempt(() => run(graph, { store, thread: "t", input: first }).result);
const threads = (await store.threads()).length;
giveBack();
const did = happened(diary).length;
const again = await attempt(() => run(graph, { store, thread: "t", input: first }).result);
// Its handles are open by now: it goes on without new ones. The one that is left is for the diary.
useUp(1);
const further = await attempt(() => run(graph, { store, thread: "u", input: first }).result);
giveBack();
process.stdout.write(JSON.stringify({ opened, begun, threads, did, again, further }));
store.close();
