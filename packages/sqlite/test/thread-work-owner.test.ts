/** A file records who owns the work on its threads: the store, or an orchestrator. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { engine, isStatewrightError, recover, type StatewrightError } from "@statewright/core";
import type { Ownership } from "@statewright/core/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { change } from "./support/database-file.ts";
import { graph } from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
});
afterEach(() => home.remove());

function getRefusal(open: () => unknown): StatewrightError {
  try {
    open();
  } catch (error) {
    if (isStatewrightError(error, "store_mixed")) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

test.each([
  ["store", "orchestrator"],
  ["orchestrator", "store"],
] as const)(
  "a file first opened with the ownership %s is refused with %s, also while it is open [PK17]",
  async (first, other) => {
    const store = sqliteStore(file, { ownership: first });
    expect(store.ownership).toBe(first);
    expect(getRefusal(() => sqliteStore(file, { ownership: other })).details).toEqual({ path: file, ownership: first });
    await store.close();
    expect(getRefusal(() => sqliteStore(file, { ownership: other })).message).toContain(`ownership: "${first}"`);
    await sqliteStore(file, { ownership: first }).close();
  },
);

test("a file opened without the option belongs to the store [PK17]", async () => {
  await sqliteStore(file).close();
  getRefusal(() => sqliteStore(file, { ownership: "orchestrator" }));
  await sqliteStore(file, { ownership: "store" }).close();
});

test("a file with threads and without a record belongs to the store [PK17]", async () => {
  const store = sqliteStore(file);
  await store.claim({ ...graph, thread: "t" });
  await store.close();
  change(file, (db) => db.prepare("DELETE FROM settings WHERE name = 'ownership'").run());
  getRefusal(() => sqliteStore(file, { ownership: "orchestrator" }));
  await sqliteStore(file).close();
});

test("a file of an orchestrator is opened for reading without the option [PK17]", async () => {
  await sqliteStore(file, { ownership: "orchestrator" }).close();
  const reader = sqliteStore(file, { readOnly: true });
  expect(await reader.threads()).toEqual([]);
  await reader.close();
});

test("a backup of a file keeps the ownership of its threads [PK17]", async () => {
  const store = sqliteStore(file, { ownership: "orchestrator" });
  const target = join(home.path, "copy.db");
  await store.backup(target);
  await store.close();
  getRefusal(() => sqliteStore(target));
  await sqliteStore(target, { ownership: "orchestrator" }).close();
});

test("engine and recover refuse the store of an orchestrator [PK17]", async () => {
  const store = sqliteStore(file, { ownership: "orchestrator" });
  expect(getRefusal(() => engine({ store, graphs: [] })).message).toContain("Run its threads with deliver");
  await expect(async () => await recover({ store, graphs: [] })).rejects.toMatchObject({ code: "store_mixed" });
  await store.close();
});

test("an unknown ownership is refused before a file is created [PK17]", () => {
  expect(() => sqliteStore(file, { ownership: "both" as Ownership })).toThrow("ownership");
  expect(existsSync(file)).toBe(false);
});
