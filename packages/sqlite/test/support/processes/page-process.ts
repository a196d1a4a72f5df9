/**
 * Process that reads one page of a thread, and prints the bytes that the kernel gave it for the page: of the timeline,
 * or of the history with its texts.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { listSupersteps } from "@statewright/core/inspect";
import { sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { driverNames } from "../../../src/driver/choose-driver.ts";
import { pageEncryption } from "../page-encryption.ts";

const [file = "", what = "", before = "0", driver, kind] = process.argv.slice(2);
const mapped = new Database(file, { readonly: true });
const mmapBytes = mapped.pragma("mmap_size = 0", { simple: true });
mapped.close();

function countReadBytes(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}

const store = sqliteStore(file, {
  driver: driverNames.find((name) => name === driver),
  ...(kind === "encrypted" ? { encryption: pageEncryption } : {}),
});
const start = countReadBytes();
const rows =
  what === "timeline"
    ? await listSupersteps(store, { thread: "t", before: Number(before), limit: 40 })
    : await store.history("t", { before: Number(before), limit: 40 });
const bytes = countReadBytes() - start;
store.close();
process.stdout.write(JSON.stringify({ rows: rows.length, bytes, mmapBytes }));
