import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listExportedNames } from "../exported-names.mjs";

const root = join(import.meta.dirname, "../..");
const exported = new Set([...listExportedNames(root).values()].flat());
const page = readFileSync(join(root, "docs/reference/renames.md"), "utf8");
const [renames = ""] = page.split("## Moved to another entry");
const rows = new Set([...renames.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name));

test("every exported name of commit 19c6577 that is no longer exported has a row in docs/reference/renames.md", () => {
  const before = readFileSync(join(import.meta.dirname, "data/exported-names-19c6577.txt"), "utf8")
    .trim()
    .split("\n");
  expect(before.length).toBeGreaterThan(900);
  expect(before.filter((name) => !exported.has(name) && !rows.has(name))).toEqual([]);
});

test("docs/reference/renames.md lists no name that is still exported", () => {
  expect([...rows].filter((name) => name !== undefined && exported.has(name))).toEqual([]);
});
