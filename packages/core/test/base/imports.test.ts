import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const source = new URL("../../src/", import.meta.url);

test("no shipped source file imports zod", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  expect(files.length).toBeGreaterThan(50);
  const importing = files.filter((name) => /from "zod/.test(readFileSync(new URL(name, source), "utf8")));
  expect(importing).toEqual([]);
});
