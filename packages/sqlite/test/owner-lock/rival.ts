/** Other process: acts on the files, and opens, writes and closes the store. One request per line, over pipes. */
import { openSync, readSync, writeSync } from "node:fs";
import process from "node:process";
import { sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { createSuperstep, graph, readItems, saveCommit } from "../support/rows.ts";
import { actions } from "./actions.ts";
import type { Check, Request, Work } from "./requests.ts";

async function attempt(run: () => unknown): Promise<string> {
  try {
    await run();
    return "ok";
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown ? String(thrown.code) : String(thrown);
  }
}

/** Opens the store, claims the owner's thread and one of its own, writes to each, and closes. */
async function work(file: string): Promise<Work> {
  const result = { opened: "ok", owned: "none", own: "none" };
  result.opened = await attempt(async () => {
    const store = sqliteStore(file);
    for (const [name, thread] of [
      ["owned", "t"],
      ["own", "u"],
    ] as const)
      result[name] = await attempt(async () => {
        const claim = await store.claim({ ...graph, thread });
        await saveCommit(store, createSuperstep(thread, claim, claim.nextCheckpoint, "rival"));
      });
    await store.close();
  });
  return result;
}

/** Writes in a transaction without a wait for locks. */
function write(file: string): Promise<string> {
  return attempt(() => {
    const db = new Database(file, { timeout: 0, fileMustExist: true });
    try {
      db.exec("BEGIN IMMEDIATE; INSERT OR REPLACE INTO settings VALUES ('rival', 'wrote'); COMMIT");
    } finally {
      db.close();
    }
  });
}

async function check(file: string): Promise<Check> {
  let owned: readonly string[] = [];
  let own: readonly string[] = [];
  let integrity = "none";
  const opened = await attempt(async () => {
    const store = sqliteStore(file);
    owned = await readItems(store, "t");
    own = await readItems(store, "u");
    await store.close();
    const db = new Database(file);
    integrity = String(db.pragma("integrity_check", { simple: true }));
    db.close();
  });
  return { opened, owned, own, integrity };
}

async function answer(request: Request): Promise<unknown> {
  if (request.do === "act") return await attempt(() => actions[request.action ?? ""]?.(request.file));
  if (request.do === "work") return await work(request.file);
  return request.do === "write" ? await write(request.file) : await check(request.file);
}

const [requests = "", answers = ""] = process.argv.slice(2);
const [input, output] = [openSync(requests, "r"), openSync(answers, "w")];
const buffer = Buffer.alloc(4_096);
for (;;) {
  const size = readSync(input, buffer);
  if (size === 0) break;
  const request: Request = JSON.parse(buffer.toString("utf8", 0, size));
  writeSync(output, `${JSON.stringify(await answer(request))}\n`);
}
process.exit();
