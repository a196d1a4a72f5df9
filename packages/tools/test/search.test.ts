import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import { getMessageText, type JsonObject, type World } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { find, listFiles, search } from "../src/index.ts";
import { createRipgrepArgv } from "../src/ripgrep.ts";
import { createManualWorld } from "./support/manual-world.ts";
import { createTestFolder } from "./support/test-folder.ts";
import { runCall, startCalls } from "./support/tool-calls.ts";

const folder = createTestFolder();
const { root } = folder;

function project(): void {
  folder.put(".gitignore", "dist/\n*.log\n");
  folder.put("readme.md", "# Alpha\nalpha and Beta\n");
  folder.put("src/a.ts", "const alpha = 1;\r\nconst beta = alpha;\r\n");
  folder.put("src/deep/b.tsx", "export const b = 'beta';\n");
  folder.put("src/.gitignore", "local.ts\n");
  folder.put("src/local.ts", "alpha\n");
  folder.put(".hidden", "alpha\n");
  folder.put("dist/out.ts", "alpha\n");
  folder.put("debug.log", "alpha\n");
  folder.put("node_modules/x/index.ts", "alpha\n");
  folder.put(".git/config", "alpha\n");
  folder.put("picture.bin", Buffer.from("alpha\0alpha"));
  mkdirSync(`${root}/../beside`, { recursive: true });
  folder.put("../beside/secret.ts", "alpha\n");
  symlinkSync("../beside", folder.path("door"));
}

describe("list_files", () => {
  const list = async (args: JsonObject = {}) => (await runCall(listFiles({ root }), args)).text.split("\n");

  test("list_files names folders before their content, links and hidden files, and omits ignored ones", async () => {
    project();
    expect(await list()).toEqual([
      ".gitignore",
      ".hidden",
      "door@",
      "picture.bin",
      "readme.md",
      "src/",
      "src/.gitignore",
      "src/a.ts",
      "src/deep/",
      "src/deep/b.tsx",
    ]);
    expect(await list({ path: "src", depth: 1 })).toEqual(["src/.gitignore", "src/a.ts", "src/deep/"]);
    expect(await list({ limit: 2 })).toEqual([
      ".gitignore",
      ".hidden",
      "[There are more than 2 paths. List a subfolder, or use a larger limit.]",
    ]);
  });

  test("list_files reports an empty, a missing and an outside folder without the root", async () => {
    mkdirSync(folder.path("empty"));
    expect(await list({ path: "empty" })).toEqual(["[empty holds nothing.]"]);
    const none = await runCall(listFiles({ root }), { path: "none" });
    expect(none.text).toMatch(/^Cannot list none: /);
    const outside = await runCall(listFiles({ root }), { path: ".." });
    expect(outside.result.error?.kind).toBe("denied");
    expect(none.text + outside.text).not.toContain(root);
  });
});

describe("find", () => {
  const findFiles = async (glob: string) => (await runCall(find({ root }), { glob })).text.split("\n");

  test("find matches globs like .gitignore and ripgrep", async () => {
    project();
    expect(await findFiles("**/*.ts")).toEqual(["src/a.ts"]);
    expect(await findFiles("*.{ts,tsx}")).toEqual(["src/a.ts", "src/deep/b.tsx"]);
    expect(await findFiles("src/*")).toEqual(["src/.gitignore", "src/a.ts"]);
    expect(await findFiles("src/**")).toEqual(["src/.gitignore", "src/a.ts", "src/deep/b.tsx"]);
    expect(await findFiles("./src/[a-c].ts")).toEqual(["src/a.ts"]);
    expect(await findFiles("*.py")).toEqual(["[No file matches *.py.]"]);
    const broken = await runCall(find({ root }), { glob: "src/[a" });
    expect(broken).toMatchObject({ isError: true, text: expect.stringContaining("matches nothing") });
  });

  test("find is bounded and takes time linear in the pattern", async () => {
    for (let at = 0; at < 510; at++) folder.put(`many/${at}.txt`, "");
    const lines = await findFiles("*.txt");
    expect(lines).toHaveLength(501);
    expect(lines.at(-1)).toBe("[There are more than 500 files. Use a narrower pattern.]");
    folder.put("a".repeat(200), "");
    expect(await findFiles(`${"a*".repeat(60)}b`)).toEqual([`[No file matches ${"a*".repeat(60)}b.]`]);
    expect((await runCall(find({ root }), { glob: "{a,b}".repeat(9) })).text).toContain("more than 256 patterns");
  });
});

describe("search", () => {
  const searchLines = async (args: JsonObject, ripgrep: string | false = false) =>
    (await runCall(search({ root, ripgrep }), args)).text.split("\n");

  test("search finds lines in files that are not ignored, by expression, folder, file and glob", async () => {
    project();
    expect(await searchLines({ pattern: "alpha" })).toEqual([
      ".hidden:1:alpha",
      "readme.md:2:alpha and Beta",
      "src/a.ts:1:const alpha = 1;",
      "src/a.ts:2:const beta = alpha;",
    ]);
    expect(await searchLines({ pattern: "(?i)ALPHA$" })).toEqual([".hidden:1:alpha", "readme.md:1:# Alpha"]);
    expect(await searchLines({ pattern: "beta", path: "src" })).toEqual([
      "src/a.ts:2:const beta = alpha;",
      "src/deep/b.tsx:1:export const b = 'beta';",
    ]);
    expect(await searchLines({ pattern: "b.*;$", path: "src", glob: "*.tsx" })).toEqual([
      "src/deep/b.tsx:1:export const b = 'beta';",
    ]);
    expect(await searchLines({ pattern: "^alpha", path: "readme.md" })).toEqual(["readme.md:2:alpha and Beta"]);
    expect(await searchLines({ pattern: "gamma" })).toEqual(["[No line matches gamma.]"]);
  });

  test("search refuses an invalid expression and paths outside the root", async () => {
    project();
    const { result } = await runCall(search({ root, ripgrep: false }), { pattern: "(" });
    expect(result.error?.kind).toBe("invalid_args");
    for (const path of ["..", "door", "door/secret.ts"])
      expect((await runCall(search({ root, ripgrep: false }), { pattern: "alpha", path })).result.error?.kind).toBe(
        "denied",
      );
  });

  test("search is bounded in lines, in line length, and in time for any expression", async () => {
    folder.put("many.txt", "hit\n".repeat(500));
    const found = await searchLines({ pattern: "hit" });
    expect(found).toHaveLength(201);
    expect(found.at(-1)).toBe("[There are more than 200 lines. Search in a folder, or use a more specific pattern.]");
    folder.put("long.txt", `${"a".repeat(100_000)}!\n`);
    expect(await searchLines({ pattern: "(a|aa)+$", path: "long.txt" })).toEqual(["[No line matches (a|aa)+$.]"]);
    const [long] = await searchLines({ pattern: "a!", path: "long.txt" });
    expect(long).toBe(`long.txt:1:${"a".repeat(300)} [… line truncated]`);
  });

  test("search without ripgrep uses the built-in search and looks for ripgrep only once", async () => {
    project();
    const tool = search({ root, ripgrep: "no-such-ripgrep" });
    const args = { pattern: "Beta" };
    for (const answer of [await runCall(tool, args), await runCall(tool, args)])
      expect(answer.text).toBe("readme.md:2:alpha and Beta");
  });

  test("search with ripgrep reads its lines, stops it at the limit, and returns its refusals", async () => {
    project();
    folder.put("rg", '#!/bin/sh\nprintf "./src/a.ts\\0001:const a: b\\n./long\\0007:%0400d\\n" 0\n');
    chmodSync(folder.path("rg"), 0o755);
    const rg = folder.path("rg");
    expect(await searchLines({ pattern: "x" }, rg)).toEqual([
      "src/a.ts:1:const a: b",
      `long:7:${"0".repeat(300)} [… line truncated]`,
    ]);
    folder.put("rg", '#!/bin/sh\nwhile :; do printf "./f\\0001:hit\\n"; done\n');
    expect(await searchLines({ pattern: "x" }, rg)).toHaveLength(201);
    folder.put("rg", "#!/bin/sh\nexit 1\n");
    expect(await searchLines({ pattern: "x" }, rg)).toEqual(["[No line matches x.]"]);
    folder.put("rg", '#!/bin/sh\necho "regex parse error: unclosed group" >&2; exit 2\n');
    expect((await runCall(search({ root, ripgrep: rg }), { pattern: "(" })).result).toMatchObject({
      isError: true,
      error: { kind: "invalid_args", message: expect.stringContaining("unclosed group") },
    });
  });

  test("search passes an expression, a glob and a path to ripgrep that cannot be read as options", () => {
    const argv = createRipgrepArgv({ pattern: "-e --pre=sh", glob: "*.{ts,tsx}", searchPath: "-r" });
    expect(argv.slice(-5)).toEqual([
      "--type-add=wanted:*.{ts,tsx}",
      "--type=wanted",
      "--regexp=-e --pre=sh",
      "--",
      "./-r",
    ]);
    expect(argv[0]).toBe("--no-config");
  });

  test("search passes no glob option to ripgrep, since that option would override .gitignore", async () => {
    project();
    for (const glob of ["*", "*.log", "!x", "src/*", "**/*.ts", "include:all"]) {
      const argv = createRipgrepArgv({ pattern: "x", glob, searchPath: "" });
      expect(argv.filter((arg) => arg.startsWith("--glob"))).toEqual(["--glob=!.git", "--glob=!node_modules"]);
      if (!/^\*(?:\.log)?$/.test(glob)) expect(argv.some((arg) => arg.startsWith("--type"))).toBe(false);
    }
    folder.put("rg", '#!/bin/sh\nprintf "./readme.md\\0001:x\\n./src/a.ts\\0001:x\\n./src/deep/b.ts\\0001:x\\n"\n');
    chmodSync(folder.path("rg"), 0o755);
    expect(await searchLines({ pattern: "x", glob: "src/*" }, folder.path("rg"))).toEqual(["src/a.ts:1:x"]);
  });

  test("search over many files reports progress and stops when cancelled", async () => {
    for (let at = 0; at < 2_000; at++) folder.put(`many/${at}.txt`, at === 0 ? "hit\n" : "text\n");
    const live = startCalls([search({ root, ripgrep: false })], [{ name: "search", args: { pattern: "h.t" } }]);
    await live.shows("many/0.txt:1:hit");
    live.handle.cancel();
    expect((await live.results())[0]?.error?.kind).toBe("cancelled");
  });
});

describe("a costly pattern over a line of 4 MB, without ripgrep", () => {
  const pattern = ".{0,1000}x$";
  const startSearch = (more: { readonly world?: World } = {}) =>
    startCalls([search({ root, ripgrep: false, ...more })], [{ name: "search", args: { pattern } }]);
  const putLines = (): void => {
    folder.put("one-line.txt", "abcdefghijklmnopqrstuvwxyz".repeat(160_000));
    folder.put("small.txt", "box\n");
  };

  test("the event loop turns during the match, and a cancel ends the search [FX69]", async () => {
    putLines();
    const { world, waitForTimer } = createManualWorld();
    const isMatching = waitForTimer(10_000);
    const live = startSearch({ world });
    let isFinished = false;
    const results = live.results().finally(() => {
      isFinished = true;
    });
    await isMatching;
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    // A match on the event loop would have ended before the first turn.
    expect(isFinished).toBe(false);
    live.handle.cancel();
    expect((await results)[0]?.error?.kind).toBe("cancelled");
  });

  test("the search ends after 10 seconds with the lines of the other files and the number of unsearched files [FX69]", async () => {
    putLines();
    const { world, advance, waitForTimer } = createManualWorld();
    const isMatching = waitForTimer(10_000);
    const live = startSearch({ world });
    await isMatching;
    advance(10_000);
    const [answer] = await live.answers();
    expect(getMessageText(answer)).toBe(
      "small.txt:1:box\n[1 files could not be read, were too large, or took too long.]",
    );
  });
});
