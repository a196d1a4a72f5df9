import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const script = fileURLToPath(new URL("../house.mjs", import.meta.url));

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "house-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

describe("function names", () => {
  test("declarations and constants with a function are counted, each name once", () => {
    writeSource("packages/a/src/one.ts", [
      "export function loadRun() {}",
      "const parseRow = (text: string) => text;",
      "const asyncRow = async function () {} as unknown;",
      "const limit = 3;",
      "let later = () => 1;",
      "class Store { save() {} }",
    ]);
    writeSource("packages/b/src/inside/two.ts", ["function loadRun(): void { function nested() {} }"]);
    expect(readMetrics()).toMatchObject({ files: 2, functionNames: 4, verbPercent: 50 });
    expect(list("names")).toEqual(["packages/a/src/one.ts:3  asyncRow", "packages/b/src/inside/two.ts:1  nested"]);
  });

  test("predicates and conversions begin with a verb; participles, prepositions and nouns do not", () => {
    const verbs = ["isOpen", "hasKey", "canSplit", "shouldRetry", "toJson", "fromRow", "_getRoot", "drainInbox"];
    const others = ["told", "keepsRow", "beside", "stateWriter", "runningTask", "together"];
    writeSource("packages/a/src/names.ts", declare([...verbs, ...others]));
    expect(list("names").map((line) => line.split("  ")[1])).toEqual(others.sort());
  });

  test("a verb before Of is a noun, and Of is counted as a whole word only", () => {
    writeSource("packages/a/src/names.ts", declare(["listOf", "callOfTask", "showOffer", "findOften"]));
    expect(readMetrics()).toMatchObject({ verbPercent: 50, ofNames: 2, ofPercent: 50 });
    expect(list("of")).toEqual(["packages/a/src/names.ts:2  callOfTask", "packages/a/src/names.ts:1  listOf"]);
  });
});

describe("comment metrics", () => {
  test("line comments on consecutive lines are one comment, and fewer than three words are none", () => {
    writeSource("packages/a/src/a.ts", [
      "// Loads the run",
      "// of a thread.",
      "const a = 1; // Two words",
      "const b = 2; // Three words here",
      "",
      "/** Returns the key. */",
      'const c = "// no comment in a string";',
      "const d = /\\/\\/ none in a regex/;",
      `const e = \`// none in a \${/* or three words */ a} template\`;`,
    ]);
    expect(readMetrics()).toMatchObject({ comments: 4, commentWords: 15 });
  });

  test("directives of tools are no comments and separate the comments around them", () => {
    writeSource("packages/a/src/a.ts", [
      "// Loads the run.",
      "// biome-ignore lint/style/noVar: what a reader never sees",
      "// Returns the row.",
      "// @ts-expect-error what a reader never sees",
      "var a = 1;",
    ]);
    expect(readMetrics()).toMatchObject({ comments: 2, clausePercent: 0, relativesPer100: 0 });
  });

  test("words are runs of letters outside of code spans and fenced blocks", () => {
    writeSource("packages/a/src/a.ts", [
      "/**",
      " * Returns `that which", // A span across a line end.
      " * what` as text-2-speech.",
      " * ```ts",
      " * const that = what(which);",
      " * ```",
      " */",
      "const a = 1;",
    ]);
    expect(readMetrics()).toMatchObject({ comments: 1, commentWords: 4, relativesPer100: 0 });
  });

  test("a comment begins with a clause when the first word is a question word or That", () => {
    const clauses = ["What a run", "whether a run", "Where a run", "How a run", "Whose is this", "That a run"];
    const others = [
      "Whatsoever a run",
      "Runs what follows",
      "`What` a run does",
      "When set, retries",
      "- what of this",
    ];
    writeSource("packages/a/src/a.ts", separate([...clauses, ...others]));
    expect(list("comments").map((line) => line.split("  ")[1])).toEqual(clauses);
    expect(readMetrics()).toMatchObject({ comments: 11, clausePercent: 54.55 });
  });

  test("relative and personal pronouns are counted per 100 words", () => {
    writeSource(
      "packages/a/src/a.ts",
      separate(["One of those that it gives them, which is what they keep in its row of their item"]),
    );
    expect(readMetrics()).toMatchObject({ commentWords: 18, relativesPer100: 16.67, pronounsPer100: 38.89 });
    expect(list("pronouns")[0]).toMatch(/^ {3}7 {2}packages\/a\/src\/a\.ts:1 {2}One of those/);
  });

  test("technical nouns are counted in singular and plural", () => {
    writeSource("packages/a/src/a.ts", separate(["Retries of queries, hashes, a Thread and its Index in no house"]));
    expect(readMetrics()).toMatchObject({ commentWords: 12, nounsPer100: 41.67 });
    expect(list("nouns")).toEqual([]);
  });
});

describe("function metrics", () => {
  test("functions over 60 and over 150 lines are counted, nested functions on their own", () => {
    writeSource("packages/a/src/a.ts", [
      "function first() {",
      ...repeatLine(58),
      "}",
      "const second = () => {",
      ...repeatLine(59),
      "};",
      "class Third {",
      "  run() {",
      "    const inner = () => {",
      ...repeatLine(149),
      "    };",
      "  }",
      "}",
    ]);
    expect(readMetrics()).toMatchObject({
      functions: 4,
      longFunctions: 3,
      longPercent: 75,
      veryLongFunctions: 2,
    });
    expect(list("long")).toEqual([
      " 153  packages/a/src/a.ts:123  run",
      " 151  packages/a/src/a.ts:124  inner",
      "  61  packages/a/src/a.ts:61  second",
    ]);
  });

  test("more than four parameters are counted, without `this`", () => {
    writeSource("packages/a/src/a.ts", [
      "function four(this: object, a: 1, b: 1, c: 1, d: 1) {}",
      "function five(a: 1, { b }: { b: 1 }, [c]: [1], d = 1, ...e: 1[]) {}",
      "interface Api { call(a: 1, b: 1, c: 1, d: 1, e: 1): void }",
    ]);
    expect(list("parameters")).toEqual(["   5  packages/a/src/a.ts:2  five"]);
  });

  test("a boolean positional parameter is annotated exactly boolean, or true or false by default", () => {
    writeSource("packages/a/src/a.ts", [
      "function annotated(name: string, force: boolean, dry?: boolean) {}",
      "const defaulted = (force = false) => force;",
      "class Store { constructor(private readonly open: boolean) {} }",
      "[1].map((value: number, all: boolean) => all);",
      "function guard(value: boolean): value is true { return value; }",
      "function option({ force }: { force: boolean }) {}",
      "function union(force: boolean | string, rest: () => boolean, ...flags: boolean[]) {}",
    ]);
    expect(list("booleans").map((line) => line.split("  ")[1])).toEqual([
      "annotated (force, dry)",
      "defaulted (force)",
      "constructor (open)",
      "(callback of map) (all)",
    ]);
  });
});

describe("folders and imports", () => {
  test("a folder with 31 files is large, a folder with 30 is not", () => {
    for (let at = 0; at < 31; at += 1) writeSource(`packages/a/test/inside/${at}.json`, []);
    for (let at = 0; at < 30; at += 1) writeSource(`apps/b/src/${at}.ts`, []);
    writeSource("packages/a/src/a.ts", []);
    expect(list("folders")).toEqual(["  31  packages/a/test/inside"]);
  });

  test("import rings include type imports, re-exports and extensions of any form, and end at the package", () => {
    writeSource("packages/a/src/one.ts", ['import type { Two } from "./inside/two.ts";']);
    writeSource("packages/a/src/inside/two.ts", ['export * from "../three.js";']);
    writeSource("packages/a/src/three.ts", ['type One = import("./one").One;', 'import "./leaf.ts";']);
    writeSource("packages/a/src/leaf.ts", ['import "node:fs";', 'import "../../b/src/b.ts";']);
    writeSource("packages/b/src/b.ts", ['import "../../a/src/leaf.ts";', 'import("./c.ts");']);
    writeSource("packages/b/src/c.ts", ['import "./b.ts";']);
    expect(readMetrics()).toMatchObject({ rings: 2, largestRing: 3 });
    expect(list("rings")).toEqual([
      "ring of 3 files",
      "  packages/a/src/inside/two.ts",
      "  packages/a/src/one.ts",
      "  packages/a/src/three.ts",
      "ring of 2 files",
      "  packages/b/src/b.ts",
      "  packages/b/src/c.ts",
    ]);
  });

  test("imports of core against the order of folders and rooms are listed", () => {
    const core = "packages/core/src";
    writeSource(`${core}/index.ts`, ['import "./base/a.ts";']);
    writeSource(`${core}/base/a.ts`, ["", 'import "../index.ts";', 'import type {} from "../run/run.ts";']);
    writeSource(`${core}/run/run.ts`, ['import "../base/a.ts";', 'import "./launch.ts";', 'import "./task/task.ts";']);
    writeSource(`${core}/run/launch.ts`, ['import "./run.ts";']);
    writeSource(`${core}/run/task/task.ts`, ['import "../loop/loop.ts";', 'import "../stray.ts";']);
    writeSource(`${core}/run/loop/loop.ts`, ['import "../task/task.ts";', 'import "../run.ts";']);
    writeSource(`${core}/run/stray.ts`, ['import "./run.ts";', 'import "../resume/resume.ts";']);
    writeSource(`${core}/resume/resume.ts`, ['import "../new/new.ts";']);
    writeSource(`${core}/new/new.ts`, ['import "../run/run.ts";']);
    expect(list("order")).toEqual([
      `${core}/base/a.ts:2  imports ${core}/index.ts`,
      `${core}/base/a.ts:3  imports ${core}/run/run.ts`,
      `${core}/run/stray.ts:2  imports ${core}/resume/resume.ts`,
      `${core}/run/loop/loop.ts:2  imports ${core}/run/run.ts`,
      `${core}/run/task/task.ts:1  imports ${core}/run/loop/loop.ts`,
    ]);
    expect(list("rooms")).toEqual(["new", "run/stray.ts"]);
    expect(readMetrics()).toMatchObject({ backwardImports: 5, rooms: { front: 2, task: 1, loop: 1, kernel: 0 } });
  });
});

describe("house command", () => {
  test("the table has each value next to its range and the longest functions below", () => {
    writeSource("packages/a/src/a.ts", ["function loadRun() {", ...repeatLine(60), "}"]);
    const { output, code } = runHouse();
    expect(output).toMatch(/^function names that begin with a verb +100\.0 % +≥ 65 % +names$/m);
    expect(output).toMatch(/^Longest functions\n {4}62 {2}packages\/a\/src\/a\.ts:1 {2}loadRun$/m);
    expect(code).toBe(0);
  });

  test("an unknown row, an unknown option and a folder without packages are refused", () => {
    expect(runHouse()).toMatchObject({ code: 1, errors: expect.stringContaining("expected packages/*/src in") });
    expect(runHouse("--list", "nouns,of").errors).toContain('expected a row, got "nouns,of". Use one of: names, of,');
    expect(runHouse("--list").errors).toContain('expected a row, got "". Use one of: names, of,');
    expect(runHouse("--jsn")).toMatchObject({ code: 1, errors: expect.stringContaining("--jsn") });
  });
});

function writeSource(path: string, text: readonly string[]): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), `${text.join("\n")}\n`);
}

function declare(names: readonly string[]): string[] {
  return names.map((name) => `function ${name}() {}`);
}

/** Separates comments by code: consecutive line comments count as one. */
function separate(comments: readonly string[]): string[] {
  return comments.flatMap((text) => [`// ${text}`, "void 0;"]);
}

function repeatLine(count: number): string[] {
  return Array.from({ length: count }, () => "  void 0;");
}

function runHouse(...args: string[]): { output: string; errors: string; code: number | null } {
  const run = spawnSync(process.execPath, [script, "--root", root, ...args], { encoding: "utf8" });
  return { output: run.stdout, errors: run.stderr, code: run.status };
}

function readMetrics(): unknown {
  const { output, errors } = runHouse("--json");
  expect(errors).toBe("");
  return JSON.parse(output);
}

function list(row: string): string[] {
  return runHouse("--list", row)
    .output.split("\n")
    .filter((line) => line !== "");
}
