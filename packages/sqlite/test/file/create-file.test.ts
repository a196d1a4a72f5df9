/** The bytes of a new file, and the creation of a file from them. */
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createFile, decodeRuns } from "../../src/new-file/create-file.ts";
import { emptyFile } from "../../src/new-file/empty-file.ts";
import { createEmptyFile, encodeRuns, libraryVersionByte } from "../golden/make-empty-file.ts";
import { createManualWorld } from "../support/manual-world.ts";
import { graph } from "../support/rows.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

test("the bytes of a new file are those of a file with the executed statements of the schema [FX99]", () => {
  const expected = createEmptyFile();
  const found = decodeRuns(emptyFile);
  // The version of the library that wrote the file may differ.
  for (const bytes of [expected, found]) bytes.fill(0, libraryVersionByte, libraryVersionByte + 4);
  expect(Buffer.compare(found, expected), "run node packages/sqlite/test/golden/make-empty-file.ts").toBe(0);
});

test("encoded runs decode to their bytes, with runs of any length", () => {
  for (const bytes of [[], [0], [1, 0, 0, 2], [1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0], [...new Array(70_000).fill(0), 3]])
    expect([...decodeRuns(encodeRuns(Uint8Array.from(bytes)))]).toEqual(bytes);
  expect([...decodeRuns(encodeRuns(new Uint8Array(140_000).fill(7)))].every((byte) => byte === 7)).toBe(true);
});

test("a created file is complete, in WAL mode, and has only an empty log beside it [FX99]", () => {
  expect(createFile(file)).toBe(true);
  expect(readdirSync(home.path).toSorted()).toEqual(["agent.db", "agent.db-wal"]);
  const db = new Database(file);
  expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
  expect(db.pragma("journal_mode", { simple: true })).toBe("wal");
  db.close();
});

test.each(["file", "link"])("a %s that exists at the path is not replaced [FX99]", (kind) => {
  if (kind === "file") writeFileSync(file, "");
  else symlinkSync(join(home.path, "target.db"), file);
  expect(createFile(file)).toBe(false);
  expect(existsSync(file) && readFileSync(file).length > 0).toBe(false);
  expect(readdirSync(home.path).filter((name) => name.includes("partial"))).toEqual([]);
});

test.each(["better-sqlite3", "node:sqlite"] as const)(
  "%s opens a created file and executes no statement of the schema [FX99]",
  async (driver) => {
    const store = sqliteStore(file, { driver });
    expect(readFileSync(file).length).toBe(decodeRuns(emptyFile).length);
    await store.close();
  },
);

test("a store behind a link without a target is created by SQLite [FX99]", async () => {
  symlinkSync(join(home.path, "target.db"), file);
  await sqliteStore(file).close();
  expect(existsSync(join(home.path, "target.db"))).toBe(true);
});

test("a file whose process died after creating it opens without a warning, and with one if its log is lost [F5]", async () => {
  const warnings: string[] = [];
  const world = { ...createManualWorld(), log: (_: unknown, text: string) => void warnings.push(text) };
  const copy = join(home.path, "copy.db");
  for (const path of [file, copy]) createFile(path);
  rmSync(`${copy}-wal`);
  await sqliteStore(file, { world }).close();
  await sqliteStore(file, { world }).close();
  expect(warnings).toEqual([]);
  await sqliteStore(copy, { world }).close();
  expect(warnings).toEqual([expect.stringContaining("copied without its write-ahead log")]);
});

test("the temporary file of a process that died while it created the file is removed by the first owner [FX99]", async () => {
  const deadPid = 2 ** 22 + 1;
  const remains = `${file}-partial-${deadPid}-0-1`;
  writeFileSync(remains, "");
  const store = sqliteStore(file);
  await store.claim({ ...graph, thread: "t" });
  expect(existsSync(remains)).toBe(false);
  await store.close();
});
