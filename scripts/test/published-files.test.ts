/** The JavaScript files of a published package. */
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundlePackage } from "../bundle.mjs";

const dist = mkdtempSync(join(tmpdir(), "published-files-"));
const files = () => globSync("**/*.js", { cwd: dist }).toSorted();
const read = (file: string) => readFileSync(join(dist, file), "utf8");

beforeAll(() => bundlePackage(join(import.meta.dirname, "../../packages/agent"), dist));
afterAll(() => rmSync(dist, { recursive: true, force: true }));

test("a published package has a file per entry, one file of what entries share, and a source map of each [FX100]", () => {
  expect(files()).toEqual(["dialects.js", "index.js", "inspect.js", "middleware.js", "shared.js"]);
  expect(globSync("**/*.js.map", { cwd: dist })).toHaveLength(5);
});

test("published files are minified, and keep the names of functions and the annotations of pure calls [FX100]", () => {
  for (const file of files()) expect(read(file).split("\n").length, file).toBeLessThan(read(file).length / 1_000 + 5);
  expect(read("index.js")).toMatch(/function createAgent\(\w/);
  expect(read("index.js")).toContain("@__PURE__");
});
