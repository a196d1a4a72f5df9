import { expect, test } from "vitest";
import { createGlobMatcher } from "../src/index.ts";
import { getFailure } from "./support/processes.ts";

test("a glob matches paths like .gitignore and ripgrep", () => {
  const fits = (glob: string, ...paths: string[]) => paths.filter(createGlobMatcher(glob));
  const paths = ["a.ts", "src/a.ts", "src/deep/b.ts", "src/deep/b.tsx", "docs/é.md"];
  expect(fits("*.ts", ...paths)).toEqual(["a.ts", "src/a.ts", "src/deep/b.ts"]);
  expect(fits("/*.ts", ...paths)).toEqual(["a.ts"]);
  expect(fits("**/*.ts", ...paths)).toEqual(["a.ts", "src/a.ts", "src/deep/b.ts"]);
  expect(fits("src/*.ts", ...paths)).toEqual(["src/a.ts"]);
  expect(fits("src/**", ...paths)).toEqual(["src/a.ts", "src/deep/b.ts", "src/deep/b.tsx"]);
  expect(fits("./src/**/[ab].{ts,tsx}", ...paths)).toEqual(["src/a.ts", "src/deep/b.ts", "src/deep/b.tsx"]);
  expect(fits("{docs/*,src/{a,c}.*}", ...paths)).toEqual(["src/a.ts", "docs/é.md"]);
  expect(fits("é.*", ...paths)).toEqual(["docs/é.md"]);
  // Patterns that a .gitignore would read as a comment, a negation or ignored white space.
  expect(fits("#a", "#a", "a")).toEqual(["#a"]);
  expect(fits("!a", "!a", "a")).toEqual(["!a"]);
  expect(fits("a ", "a ", "a")).toEqual(["a "]);
  expect(fits("{a}", "{a}", "a")).toEqual(["{a}"]);
  expect(fits("{a,b", "{a,b", "a")).toEqual(["{a,b"]);
  expect(fits("\\{a,b}", "{a,b}", "a")).toEqual(["{a,b}"]);
});

test("an invalid glob and a glob with too many alternatives are refused", async () => {
  for (const [glob, code] of [
    ["", "io"],
    ["[a", "io"],
    ["a\nb", "io"],
    ["{a,b}".repeat(9), "too_large"],
  ] as const)
    expect(await getFailure(Promise.resolve().then(() => createGlobMatcher(glob)))).toMatchObject({ code });
});

test("matching an adversarial glob takes time linear in its length", () => {
  expect(createGlobMatcher(`${"a*".repeat(500)}b`)("a".repeat(5_000))).toBe(false);
  expect(createGlobMatcher(`${"**/a/".repeat(200)}b`)("a/".repeat(2_000))).toBe(false);
});

test("a glob that is longer than a path is refused", () => {
  expect(() => createGlobMatcher("a".repeat(4_097))).toThrow("The glob has 4097 characters, more than 4096.");
  expect(createGlobMatcher("a".repeat(4_096))("a".repeat(4_096))).toBe(true);
});
