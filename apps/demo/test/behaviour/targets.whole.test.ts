import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createScratchFolder, listAlive, listProcesses, play } from "../support/demo.ts";
import { createRepository, createTree } from "../support/trees.ts";

test.each([
  ["a missing folder", ["nowhere"], /^Folder ".+nowhere" does not exist\./],
  ["a file instead of a folder", ["a-file"], /^".+a-file" is a file, not a folder\. Use its folder ".+"\./],
  ["two folders", ["a", "b"], /^Expected one folder, got "a", "b"\./],
  ["an unknown option", ["--frobnicate"], /^Unknown option '--frobnicate'[\s\S]+npm run demo \[-- \[folder\]/],
  ["a model without its key", ["--model", "openai/gpt-5"], /^--model openai\/gpt-5 needs a key\. Set OPENAI_API_KEY/],
  [
    "a word that is no model",
    ["--model", "gpt"],
    /^--model: expected "provider\/name", got "gpt"\. Pass the model as "provider\/name"\./,
  ],
  [
    "a report into a folder that is not there",
    ["--out", "nowhere/report.md"],
    /^--out: folder ".+nowhere" does not exist\./,
  ],
  ["a resume of what is no stopped demo", ["--resume", "."], /^".+" does not contain a stopped demo\./],
  [
    "a resume with a folder",
    [".", "--resume", "stopped"],
    /^--resume uses the folder and the model of the stopped demo\. Remove the folder and --model\./,
  ],
  ["a resume of a demo.json of something else", ["--resume", "other"], /^".+other" does not contain a stopped demo\./],
  [
    "an answer that is none",
    ["--answer", "perhaps"],
    /^--answer: expected yes or no, got "perhaps"\. Pass yes or no\./,
  ],
])("the demo refuses %s with one clear message and starts nothing", async (_what, args, message) => {
  const home = createTree(createScratchFolder(), { "a-file": "", "other/demo.json": "{}", "stopped/demo.json": "{}" });
  const played = await play(home, args, { env: { OPENAI_API_KEY: "" } });
  expect(played.code).toBe(2);
  expect(played.err).toMatch(message);
  expect(played.out).toBe("");
  expect(readdirSync(home)).toEqual(["a-file", "other", "stopped"]);
});

test("the demo audits a folder without git and packages by its folders, in any language", async () => {
  const home = createScratchFolder();
  const target = createTree(join(home, "plain"), {
    Makefile: "all:\n",
    "src/main.c": "int main(void) { return 0; }\n",
    "docs/a.md": "# A\n",
  });
  const played = await play(home, [target]);
  expect(played.err).toBe("");
  expect(played.code).toBe(0);
  expect(played.out).toContain("no git history: this folder is not in a git repository");
  expect(played.out).toMatch(/✓ check src {2}/);
  expect(played.out).toMatch(/✓ check \. {2}/);
  expect(played.out).toContain("1 source file, no tests");
});

test("audited folders without packages share the tests and the README of the tree", async () => {
  const home = createScratchFolder();
  const target = createTree(join(home, "plain"), {
    "README.md": "# Foo\n",
    "src/foo.py": "x = 1\n",
    "tests/test_foo.py": "def test(): pass\n",
  });
  const played = await play(home, [target]);
  expect(played.err).toBe("");
  expect(played.out).toContain("No findings: every checked part is in order.");
});

test("an unwritable temporary folder is reported before the demo starts", async () => {
  const home = createScratchFolder();
  const target = createTree(join(home, "plain"), { "a.c": "" });
  const played = await play(home, [target], { env: { TMPDIR: join(home, "nowhere") } });
  expect(played.code).toBe(2);
  expect(played.err).toMatch(/^Could not create a folder in ".+nowhere" \(ENOENT\)\. Set TMPDIR/);
  expect(played.out).toBe("");
});

test("the demo reports a host without git", async () => {
  const home = createScratchFolder();
  const played = await play(home, [createRepository(join(home, "teapot"))], {
    env: { PATH: join(home, "no-tools-here") },
  });
  expect(played.err).toBe("");
  expect(played.code).toBe(0);
  expect(played.out).toContain("no git history: this host has no git");
});

test("the demo on an empty tree has no findings and still runs all its steps", async () => {
  const home = createScratchFolder();
  mkdirSync(join(home, "empty"));
  const played = await play(home, [join(home, "empty")]);
  expect(played.err).toBe("");
  expect(played.code).toBe(0);
  expect(played.out).toContain("There is nothing to audit: the tree is empty.");
  expect(played.out).toContain("SIGKILL with 3 tool calls in flight.");
});

const root = process.getuid?.() === 0;

// Root reads everything: the demo then runs as nobody.
test.skipIf(process.platform === "win32")(
  "unreadable files and folders are findings of the audit, not failures",
  async () => {
    const home = createScratchFolder();
    const target = createTree(join(home, "locked"), {
      "src/a.py": "a = 1\n",
      "src/b.py": "b = 1\n",
      "closed/c.py": "c = 1\n",
    });
    symlinkSync("/etc", join(target, "src/elsewhere"));
    chmodSync(join(target, "src/b.py"), 0o000);
    chmodSync(join(target, "closed"), 0o000);
    const played = await play(home, [target], root ? { uid: 65_534, env: { HOME: home } } : {});
    expect(played.err).toBe("");
    expect(played.code).toBe(0);
    const report = readFileSync(join(played.state, "report.md"), "utf8");
    expect(report).toContain("| low | src/b.py | a file that cannot be read |");
    expect(report).toContain("1 path not readable");
    expect(report).not.toContain("passwd");
    chmodSync(join(target, "closed"), 0o700);
  },
);

test("the demo refuses a folder that it cannot read", async () => {
  const home = createScratchFolder();
  mkdirSync(join(home, "closed"));
  chmodSync(join(home, "closed"), 0o000);
  const played = await play(home, [join(home, "closed")], root ? { uid: 65_534 } : {});
  expect(played.code).toBe(2);
  expect(played.err).toMatch(/^Folder ".+closed" is not readable\./);
});

test("the demo audits a huge tree within limits and reports the limits", async () => {
  const home = createScratchFolder();
  const files = Array.from({ length: 5_500 }, (_file, index) => [`part-${index % 40}/file-${index}.js`, `${index}\n`]);
  const played = await play(home, [createTree(join(home, "huge"), Object.fromEntries(files))]);
  expect(played.err).toBe("");
  expect(played.code).toBe(0);
  expect(played.out.match(/✓ check /g)).toHaveLength(24);
  expect(readFileSync(join(played.state, "report.md"), "utf8")).toContain("the first of a larger tree");
});

test("the demo escapes control characters in file names and contents", async () => {
  const home = createScratchFolder();
  const target = createTree(join(home, "odd"), {
    "README.md": "# \u001b[2JGone\n",
    "a\u001b]0;b\u0007|c/x.py": "x = 1\n",
  });
  const played = await play(home, [target]);
  expect(played.code).toBe(0);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches the forbidden characters
  expect(played.out).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
  expect(listAlive(played.pids)).toEqual([]);
  expect(listProcesses(home)).toEqual([]);
});
