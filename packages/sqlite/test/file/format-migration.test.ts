import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { getCopyPath } from "../../src/file/migrate.ts";
import { openDatabase } from "../../src/file/open-database.ts";
import { migrations } from "../../src/file/schema.ts";
import { createRandom } from "../gates/seeded.ts";
import { createSuperstep, graph, readItems, saveCommit } from "../support/rows.ts";
import { runLimited } from "../support/run-limited.ts";
import { createSecondFormat, secondSteps } from "../support/second-format.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(async () => {
  home = createFolder();
  file = join(home.path, "agent.db");
  const store = sqliteStore(file);
  for (const thread of ["a", "b"])
    await saveCommit(store, createSuperstep(thread, await store.claim({ ...graph, thread }), 1));
  await store.close();
});

afterEach(() => home.remove());

/** Returns the format of a file; throws for a file that equals neither format row by row. */
function getFormat(path: string): number {
  const { db } = openDatabase(path, { steps: createSecondFormat() });
  // Opening migrates a file of the old format: its copy is next to it then.
  const notes = db.prepare("SELECT id, note FROM threads ORDER BY id").raw().all();
  const counted = db.prepare("SELECT count(*) FROM notes").pluck().get();
  expect([notes, counted]).toEqual([
    [
      ["a", "of a"],
      ["b", "of b"],
    ],
    2,
  ]);
  expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
  db.close();
  return existsSync(getCopyPath(path, 1)) ? 1 : 2;
}

describe("a file of an older format", () => {
  const copy = (): string => getCopyPath(file, migrations.length);

  test("a file of an older format is upgraded, and a copy remains that the older version reads", async () => {
    const { db } = openDatabase(file, { steps: createSecondFormat() });
    expect(db.pragma("user_version", { simple: true })).toBe(2);
    db.close();
    expect(() => sqliteStore(file)).toThrow(expect.objectContaining({ code: "store_newer" }));
    renameSync(copy(), file);
    const store = sqliteStore(file);
    expect(await readItems(store, "b")).toEqual(["1"]);
    await store.close();
    expect(readdirSync(home.path)).toEqual(["agent.db"]);
  });

  test("a kill at any point of a format upgrade leaves the old or the new format, and the copy exists before [C21]", async () => {
    for (const killedAt of [1, 3, secondSteps]) {
      const died = join(home.path, `died-${killedAt}.db`);
      copyFileSync(file, died);
      const ended = await runLimited("./processes/migration-process.ts", [died, String(killedAt)]);
      expect([ended.signal, ended.said]).toEqual(["SIGKILL", ""]);
      // The copy is complete before the migration changes the file.
      const before = openDatabase(getCopyPath(died, 1));
      expect(before.db.prepare("SELECT count(*) FROM threads").pluck().get()).toBe(2);
      before.db.close();
      // The old version still opens the copy; the new version migrates it.
      const old = sqliteStore(died);
      expect(await readItems(old, "a")).toEqual(["1"]);
      await old.close();
      expect(getFormat(died)).toBe(1);
    }
  });

  test("a log torn by a power cut in a format upgrade leaves the old or the new format [F19]", () => {
    const { db } = openDatabase(file, { steps: createSecondFormat() });
    const image = join(home.path, "image.db");
    for (const part of ["", "-wal"]) copyFileSync(file + part, image + part);
    db.close();
    const log = readFileSync(`${image}-wal`);
    const random = createRandom(19);
    const met = new Set<number>();
    for (let cut = 0; cut < 40; cut++) {
      const torn = join(home.path, "torn.db");
      for (const left of readdirSync(home.path)) if (left.startsWith("torn.db")) rmSync(join(home.path, left));
      copyFileSync(image, torn);
      writeFileSync(`${torn}-wal`, log.subarray(0, cut === 0 ? log.length : random.whole(log.length)));
      met.add(getFormat(torn));
    }
    expect([...met].sort()).toEqual([1, 2]);
  });

  test("a file of an older format is unchanged when there is no room for its copy", async () => {
    const before = readFileSync(file);
    const ended = await runLimited("./processes/migration-process.ts", [file, "0"], { fileBlocks: 100 });
    expect(ended.complaints).toContain("store_full");
    expect(readFileSync(file).equals(before)).toBe(true);
    expect(readdirSync(home.path)).toEqual(["agent.db"]);
  });

  test("a file of an older format is unchanged by a failing upgrade", () => {
    const broken = [...migrations, ["CREATE TABLE good (a TEXT) STRICT", "CREATE TABLE broken (a) STRICT"]];
    expect(() => openDatabase(file, { steps: broken })).toThrow(expect.objectContaining({ code: "store_failed" }));
    const { db } = openDatabase(file);
    expect(db.pragma("user_version", { simple: true })).toBe(1);
    db.close();
  });
});
