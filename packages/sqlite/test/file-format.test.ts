/** The page about the file says what the file is. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sqliteStore } from "@statewright/sqlite";
import { afterAll, expect, test } from "vitest";
import { change, tablesOf } from "./support/file.ts";
import { folder } from "./support/stores.ts";

const home = folder();
afterAll(home.remove);

const page = readFileSync(join(import.meta.dirname, "../../../docs/file-format.md"), "utf8");

test("every table and column of the schema stands on the page, with its type and in its order, and no other", () => {
  const file = join(home.path, "agent.db");
  sqliteStore(file).close();
  const written = Object.fromEntries(
    page
      .split(/^## /m)
      .slice(1)
      .map((section) => [
        section.slice(0, section.indexOf("\n")),
        [...section.matchAll(/^\| (\w+) \| ([A-Z]+) \|/gm)].map(([, name, type]) => `${name} ${type}`),
      ]),
  );
  const tables = tablesOf(file);
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
