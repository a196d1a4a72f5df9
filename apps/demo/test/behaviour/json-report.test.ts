/** The report of the demo as data, on trees of different sizes and languages. */
import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { listFiles, maxEntries } from "../../src/source-tree.ts";
import { createScratchFolder, type Played, play } from "../support/demo.ts";
import { createTree, runGit, token } from "../support/trees.ts";

const Report = z.strictObject({
  readme: z.string().nullable(),
  filesListed: z.int(),
  filesRead: z.int(),
  findings: z.array(
    z.strictObject({ severity: z.enum(["high", "medium", "low"]), path: z.string(), title: z.string() }),
  ),
});

const repository = realpathSync(join(import.meta.dirname, "../../../.."));

/** Runs the demo with `--json` and parses its output. */
async function playJson(target: string): Promise<{ readonly report: z.infer<typeof Report>; readonly played: Played }> {
  const played = await play(createScratchFolder(), [target, "--json"]);
  expect(played.code, played.err).toBe(0);
  return { report: Report.parse(JSON.parse(played.out)), played };
}

test("the demo with --json reads the README of this repository and reports nothing of high severity [FX22]", async () => {
  const { report, played } = await playJson(repository);
  expect(report.readme).toBe("README.md");
  expect(report.filesListed).toBeGreaterThan(1_000);
  expect(report.filesRead).toBeGreaterThan(1_000);
  expect(report.filesRead).toBeLessThanOrEqual(report.filesListed);
  expect(report.findings.filter(({ severity }) => severity !== "low")).toEqual([]);
  expect(played.err).toContain('The README is titled "Statewright"');
  expect(played.err).toMatch(/= read_file README\.md {2}saved result reused/);
});

test("the demo reports on a small package of a registry without a false alarm [FX22]", async () => {
  const { report, played } = await playJson(realpathSync(join(repository, "node_modules/publint")));
  expect(report.readme).toBe("README.md");
  expect(report.filesListed).toBeLessThan(100);
  expect(report.findings.filter(({ severity }) => severity !== "low")).toEqual([]);
  expect(report.findings).toContainEqual({
    severity: "low",
    path: ".",
    title: expect.stringMatching(/^\d+ source files, no tests \(usual for a published package\)$/),
  });
  expect(played.err).toContain('The README is titled "publint"');
});

test("the demo reports on a large package of a registry and names its longest files [FX22]", async () => {
  const { report, played } = await playJson(realpathSync(join(repository, "apps/demo/node_modules/zod")));
  expect(report.readme).toBe("README.md");
  expect(report.filesListed).toBeGreaterThan(500);
  expect(report.findings.filter(({ severity }) => severity !== "low")).toEqual([]);
  expect(report.findings).toContainEqual({
    severity: "low",
    path: "src/v4/core/schemas.ts",
    title: expect.stringMatching(/^\d,\d+ lines in one file$/),
  });
  expect(played.err).toContain('The README is titled "Zod"');
});

test("the demo audits a Python project by its own conventions [FX22]", async () => {
  const modules = "app cli config db errors events files models queue search server users".split(" ");
  const target = createTree(join(createScratchFolder(), "kiln"), {
    "README.rst": "Kiln\n====\n\nKiln bakes pottery on a schedule. It runs anywhere.\n",
    "pyproject.toml": '[project]\nname = "kiln"\n',
    "kiln/__init__.py": '"""Kiln."""\n',
    ...Object.fromEntries(modules.map((name) => [`kiln/${name}.py`, `def ${name}():\n    return 1\n`])),
    "kiln/leak.py": `TOKEN = "${token}"\n`,
    "tests/test_app.py": `from kiln.app import app\n\nFAKE = "${token}"\n`,
    "tests/conftest.py": "# fixtures\n",
    "scripts/fire.py": "x = 1\n".repeat(900),
  });
  runGit(target, "init", "-q");
  runGit(target, "add", ".");
  runGit(target, "commit", "-q", "-m", "A kiln");
  createTree(target, { "venv/lib/x.py": "x = 1\n", "__pycache__/a.pyc": "" });
  const { report, played } = await playJson(target);
  expect(report).toEqual({
    readme: "README.rst",
    filesListed: 19,
    filesRead: 19,
    findings: [
      { severity: "high", path: "kiln/leak.py", title: "text that looks like a secret" },
      { severity: "low", path: "scripts/fire.py", title: "900 lines in one file" },
      {
        severity: "low",
        path: "tests/test_app.py",
        title: "text that looks like a secret, in a test, an example or a document",
      },
    ],
  });
  expect(played.err).toContain('The README is titled "Kiln" and begins: "Kiln bakes pottery on a schedule."');
});

test("the demo reports an empty tree as data without findings [FX22]", async () => {
  const home = createScratchFolder();
  mkdirSync(join(home, "empty"));
  const { report } = await playJson(join(home, "empty"));
  expect(report).toEqual({ readme: null, filesListed: 0, filesRead: 0, findings: [] });
});

test("a tree whose folders exceed the listing limit is listed with its README first [FX22]", async () => {
  const files = Array.from({ length: maxEntries }, (_file, index) => [`a${index % 3}/file-${index}.txt`, "1\n"]);
  const target = createTree(join(createScratchFolder(), "huge"), {
    ...Object.fromEntries(files),
    "readme.md": "# Huge\n\nA tree of many files.\n",
  });
  const listing = await listFiles(target, new AbortController().signal);
  expect(listing.files[0]).toBe("readme.md");
  expect(listing.more).toBe(true);
});
