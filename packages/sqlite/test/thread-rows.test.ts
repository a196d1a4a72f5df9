/** Complete threads in a file: a deleted thread leaves no rows, and a copied thread has the same rows. */
import { join } from "node:path";
import { copyThread, deleteThread } from "@statewright/core/inspect";
import { sqliteStore } from "@statewright/sqlite";
import { fillThread } from "@statewright/testing/conformance";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sharedTables, threadTables } from "../src/rows/thread-tables.ts";
import { countRows, listTables, readBytes, readText } from "./support/database-file.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let store: ReturnType<typeof sqliteStore>;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  store = sqliteStore(file, { durability: "normal" });
});

afterEach(async () => {
  await store.close();
  home.remove();
});

test("every table belongs to a thread or is listed as shared", () => {
  expect([...Object.keys(threadTables), ...sharedTables].toSorted()).toEqual(listTables(file));
});

test("no table of the file has a row of a deleted thread [E46]", async () => {
  await fillThread(store, "t");
  await store.prune({ thread: "t", keepLast: 1, limit: 1, merge: (rows) => rows });
  const before = countRows(file);
  for (const table of Object.keys(threadTables)) expect([table, before[table]]).not.toEqual([table, 0]);
  await deleteThread(store, "t");
  const after = countRows(file);
  for (const table of Object.keys(threadTables)) expect([table, after[table]]).toEqual([table, 0]);
});

test("after a vacuum no byte of the file contains text of a deleted thread [E46]", async () => {
  await fillThread(store, "kept");
  await fillThread(store, "secretive");
  expect(readText(file)).toContain("paid secretive");
  expect(readBytes(file)).toContain("paid secretive");
  await deleteThread(store, "secretive");
  await store.vacuum();
  expect(readText(file)).not.toContain("secretive");
  expect(readBytes(file)).not.toContain("secretive");
  expect(readBytes(file)).toContain("paid kept");
  expect((await store.verify()).faults).toEqual([]);
});

test("every table has the same number of rows for a thread and its copy, except the outbox [E46, SE8]", async () => {
  await fillThread(store, "t");
  await store.prune({ thread: "t", keepLast: 3, limit: 100, merge: (rows) => rows });
  const before = countRows(file);
  await copyThread(store, "t", "copy");
  const after = countRows(file);
  for (const table of Object.keys(threadTables))
    expect([table, after[table]]).toEqual([table, (table === "outbox" ? 1 : 2) * (before[table] ?? 0)]);
  expect((await store.verify()).faults).toEqual([]);
});
