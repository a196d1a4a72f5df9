/** Each public name is on a page: all names in docs/reference/api.md, functions for applications also in a guide. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createApiPage, listPublicTypes } from "../api-reference.mjs";
import { listExportedNames } from "../exported-names.mjs";
import { listUndocumentedMethods, listUndocumentedOptions } from "../option-docs.mjs";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/reference/api.md"), "utf8");

test("docs/reference/api.md equals the output of scripts/api-reference.mjs", () => {
  expect(page, "run: node scripts/api-reference.mjs").toBe(createApiPage());
});

test("docs/reference/api.md has a row for each exported name of each entry", () => {
  const names = new Set([...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name));
  for (const [entry, exported] of listExportedNames(root)) {
    expect(page).toContain(`## ${entry}\n`);
    expect(
      exported.filter((name: string) => !names.has(name)),
      entry,
    ).toEqual([]);
  }
});

test("each exported value has a doc comment", () => {
  const rows = [...page.matchAll(/^\| value \|.*\n\|---\|---\|\n((?:\|.*\n)+)/gm)]
    .map(([, table = ""]) => table)
    .join("");
  expect(rows.split("\n").filter((row) => row.endsWith("|  |"))).toEqual([]);
});

test.each(["statewright", "statewright/inspect", "statewright/middleware"])(
  "each value of %s is explained on a page that is not generated",
  (entry) => {
    const guides = readGuides();
    const [, values = ""] = new RegExp(`^## ${entry}\n\n\\| value \\|.*\n.*\n((?:\\|.*\n)+)`, "m").exec(page) ?? [];
    const names = [...values.matchAll(/^\| `(?:\w+\.)?(\w+)` \|/gm)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(5);
    expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(guides))).toEqual([]);
  },
);

function readGuides(): string {
  return readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md") && !/reference[\\/](?:api|renames)\.md$/.test(file))
    .map((file) => readFileSync(join(root, "docs", file), "utf8"))
    .join("\n");
}

test("each option of each public option type has a doc sentence [FX35]", () => {
  expect(listPublicTypes().filter(({ name }) => name === "RunHandle")).not.toEqual([]);
  expect(listUndocumentedOptions()).toEqual([]);
});

test("each method of each public type has a doc sentence [FX35]", () => {
  expect(listUndocumentedMethods()).toEqual([]);
});
