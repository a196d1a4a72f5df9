/** Copy of the repository in a temporary folder, in which the tests of one mutant at a time run. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { runChild } from "../run-child.ts";
import { root } from "./workbench.ts";

/** Files and folders of the repository that tests read. */
const parts = [
  "packages",
  "apps",
  "scripts",
  "docs",
  "vitest.config.ts",
  "package.json",
  "tsconfig.json",
  "biome.json",
];

/** Folders that are no sources. */
const generated: ReadonlySet<string> = new Set(["dist", ".turbo", ".reports", ".cache", ".vite"]);

/** Longest time of a test run. A mutant may hang; the hang counts as detected. */
const timeoutMs = 5 * 60_000;

/** Result of a test run: failed tests, and the number of tests that ran. */
export interface TestCounts {
  readonly failed: readonly string[];
  readonly ran: number;
  /** Reason of a run without a report. */
  readonly error?: string | undefined;
}

/** Copy of the repository. */
export interface TestBench {
  /** Maps a path of the repository to the copy. */
  readonly toPath: (file: string) => string;
  /** Runs the tests of a file whose names have the rule id. */
  readonly runTests: (file: string, rule: string) => Promise<TestCounts>;
  readonly remove: () => void;
}

/** Copies the repository. Installed packages are linked, and links between packages lead to the copy. */
export function createTestBench(): TestBench {
  const home = mkdtempSync(join(tmpdir(), "statewright-tests-"));
  const filter = (path: string): boolean => !generated.has(basename(path));
  for (const part of parts)
    cpSync(join(root, part), join(home, part), { recursive: true, verbatimSymlinks: true, filter });
  mkdirSync(join(home, "node_modules"));
  for (const name of readdirSync(join(root, "node_modules")))
    if (filter(name)) symlinkSync(join(root, "node_modules", name), join(home, "node_modules", name), "junction");
  return {
    toPath: (file) => join(home, file),
    runTests: (file, rule) => runRuleTests(home, file, rule),
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

async function runRuleTests(home: string, file: string, rule: string): Promise<TestCounts> {
  const folder = join(home, file.split("/").slice(0, 2).join("/"));
  const report = join(folder, ".reports/tests.json");
  rmSync(report, { force: true });
  const pattern = `\\[[^\\]]*(?<![\\w.])${rule.replaceAll(".", "\\.")}(?![\\w.])[^\\]]*\\]`;
  const { signal, stderr } = await runChild(
    join(root, "node_modules/vitest/vitest.mjs"),
    ["run", "--config", join(home, "vitest.config.ts"), relative(folder, join(home, file)), "-t", pattern],
    () => undefined,
    { timeoutMs, cwd: folder },
  );
  if (signal === "SIGKILL") return { failed: ["it hangs"], ran: 0 };
  if (!existsSync(report)) return { failed: [], ran: 0, error: stderr.trim().split("\n").at(-1) ?? "no report" };
  return readCounts(readFileSync(report, "utf8"));
}

/** Report of vitest. */
interface TestReport {
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly title: string }[];
  }[];
}

function readCounts(text: string): TestCounts {
  const { testResults } = JSON.parse(text) as TestReport;
  const results = testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = results.flatMap(({ status, title }) => (status === "failed" ? [title] : []));
  const ran = results.filter(({ status }) => status === "passed" || status === "failed").length;
  const message = testResults.map((each) => each.message).find((each) => each !== "");
  return { failed, ran, ...(ran === 0 && message !== undefined ? { error: message.split("\n")[0] } : {}) };
}
