/** The file format page of the docs matches the schema of the file. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { change, listTables } from "../support/database-file.ts";
import { createSuperstep, graph, saveCommit } from "../support/rows.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createFolder } from "../support/stores.ts";

const home = createFolder();
afterAll(home.remove);

const docs = join(import.meta.dirname, "../../../../docs");
const page = readFileSync(join(docs, "file-format.md"), "utf8");

test("the file format page lists exactly the tables and columns of the schema, with types and order", async () => {
  const file = join(home.path, "agent.db");
  await sqliteStore(file).close();
  const written = Object.fromEntries(
    page
      .split(/^## /m)
      .slice(1)
      .map((section) => [
        section.slice(0, section.indexOf("\n")),
        [...section.matchAll(/^\| (\w+) \| ([A-Z]+) \|/gm)].map(([, name, type]) => `${name} ${type}`),
      ]),
  );
  const tables = listTables(file);
  const found = change(file, (db) =>
    Object.fromEntries(
      tables.map((table) => [
        table,
        (db.pragma(`table_info(${table})`) as readonly { name: string; type: string }[]).map(
          ({ name, type }) => `${name} ${type}`,
        ),
      ]),
    ),
  );
  expect(written).toEqual(found);
});

test("the SQL queries of the docs return rows, also in an encrypted file", async () => {
  const asked = ["file-format.md", "operating.md"].flatMap((name) =>
    [...readFileSync(join(docs, name), "utf8").matchAll(/^.*(SELECT [^";\n]+ FROM history [^";\n]+)/gm)].map(
      ([, sql = ""]) => sql,
    ),
  );
  expect(asked).toHaveLength(2);
  const file = join(home.path, "asked.db");
  const store = sqliteStore(file, { encryption: { keys: () => [{ id: "one", key: new Uint8Array(32) }] } });
  const claim = await store.claim({ ...graph, thread: "t7" });
  for (const id of [1, 2]) await saveCommit(store, createSuperstep("t7", claim, id));
  await store.close();
  const [history = [], threads = []] = change(file, (db) => asked.map((sql) => db.prepare(sql).raw().all()));
  expect(history).toHaveLength(2);
  expect(threads).toEqual([["t7", 2, expect.any(Number)]]);
});
