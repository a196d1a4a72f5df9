import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const repository = fileURLToPath(new URL("../../", import.meta.url));
const script = join(repository, "scripts/rules.mjs");

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rules-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

describe("the table of rules", () => {
  test("a green test proves every id that opens its name", () => {
    rules("- **E1** a\n- **E2** b\n- **E10** c\n- **S0.7** d");
    report("packages/core", [passed("E2, S0.7 an old tool runs, unlike E10"), passed("plain words about E1")]);
    const run = runRules();
    expect(run.output).toContain("E  1 of 3");
    expect(run.output).toContain("S0 1 of 1");
    expect(run.output).toContain("  E1 E10\n");
    expect(run.code).toBe(0);
    expect(table()).toContain("| E2 | E2, S0.7 an old tool runs, unlike E10 (packages/core/test/some.test.ts) |");
    expect(table()).toContain("- E: E1, E10\n");
  });

  test("a red or skipped test proves nothing, and a red one fails the check", () => {
    rules("- **E1** a\n- **E2** b");
    report("packages/core", [failed("E1 breaks"), skipped("E2 waits")]);
    expect(runRules().output).toContain("E  0 of 2");
    const check = runRules("--check");
    expect(check.code).toBe(1);
    expect(check.output).toContain('"E1 breaks" (packages/core/test/some.test.ts) failed');
    expect(check.output).not.toContain("stale");
  });

  test("an id that no rule has is refused, and so is a range", () => {
    rules("- **E1** a");
    report("apps/demo", [
      passed("E1 E99 a slip of the pen"),
      passed("E1-4 too many at once"),
      passed("E1 to E4 the same in words"),
      passed("E1 to the end"),
    ]);
    runRules();
    const check = runRules("--check");
    expect(check.code).toBe(1);
    expect(check.output).toContain('"E1 E99 a slip of the pen" (apps/demo/test/some.test.ts) opens with E99');
    expect(check.output).toContain('"E1-4 too many at once" (apps/demo/test/some.test.ts) opens with a range');
    expect(check.output).toContain('"E1 to E4 the same in words" (apps/demo/test/some.test.ts) opens with a range');
    expect(check.output).not.toContain("to the end");
  });

  test("a rule that stands twice is refused", () => {
    rules("- **E1** a\n- **E1** b");
    report("packages/core", [passed("E1 works")]);
    expect(runRules()).toMatchObject({ code: 1, output: expect.stringContaining("E1 stands twice") });
  });

  test("a stale table is noticed, and the next command is named", () => {
    rules("- **E1** a");
    report("packages/core", []);
    expect(runRules("--check")).toMatchObject({
      code: 1,
      output: expect.stringContaining("coverage.md is stale. Run `npm run rules`"),
    });
    runRules();
    expect(runRules("--check").code).toBe(0);
    report("packages/core", [passed("E1 works")]);
    expect(runRules("--check").code).toBe(1);
  });

  test("the table does not depend on the machine or on the order of the tests", () => {
    rules("- **E2** b\n- **E1** a");
    report("packages/core", [passed("E1 first"), passed("E1 second")], "/home/somebody/checkout");
    runRules();
    const before = table();
    report("packages/core", [passed("E1 second"), passed("E1 first")], "C:\\code");
    expect(runRules("--check").code).toBe(0);
    expect(before).not.toContain("somebody");
    expect(before.indexOf("E1 first")).toBeLessThan(before.indexOf("E1 second"));
  });

  test("without reports it names the command that makes them", () => {
    rules("- **E1** a");
    expect(runRules()).toMatchObject({ code: 1, output: expect.stringContaining("Run `npm test` first") });
  });

  test("a package whose tests left no report is named", () => {
    rules("- **E1** a");
    report("packages/core", [passed("E1 works")]);
    write("packages/agent/test/unit/agent.test.ts", "");
    expect(runRules()).toMatchObject({
      code: 1,
      output: expect.stringContaining("packages/agent has tests and no report"),
    });
  });

  test("the tests of scripts/ may leave their report at the root", () => {
    rules("- **K11** a");
    report("scripts", [passed("K11 the root is whole")]);
    renameSync(join(root, "scripts/.reports"), join(root, ".reports"));
    expect(runRules().code).toBe(0);
    expect(table()).toContain("| K11 | K11 the root is whole (scripts/test/some.test.ts) |");
  });

  test("a test file that could not be loaded is named", () => {
    rules("- **E1** a");
    write(
      "packages/core/.reports/tests.json",
      JSON.stringify({
        testResults: [{ name: "/x/packages/core/test/some.test.ts", status: "failed", assertionResults: [] }],
      }),
    );
    expect(runRules()).toMatchObject({
      code: 1,
      output: expect.stringContaining("packages/core/test/some.test.ts could not be run"),
    });
  });
});

test("docs/rules holds every id exactly once", () => {
  const found = readdirSync(join(repository, "docs/rules"))
    .filter((page) => page.endsWith(".md"))
    .flatMap((page) =>
      [...readFileSync(join(repository, "docs/rules", page), "utf8").matchAll(/^- \*\*([A-Z][\d.]*\d)\*\* /gm)].map(
        ([, id]) => id,
      ),
    );
  const expected = [
    ...upTo("E", 72),
    ...upTo("S0.", 71),
    ...upTo("S1.", 93),
    ...upTo("S2.", 77),
    ...upTo("S3.", 56).filter((id) => id !== "S3.21" && id !== "S3.37"),
    ...upTo("S4.", 38),
    ...upTo("D", 33),
    ...upTo("K", 11),
    ...upTo("T", 59),
    ...upTo("I", 10),
    ...upTo("C", 24),
    ...upTo("F", 23),
    ...upTo("R", 20),
  ];
  expect(found.toSorted()).toEqual(expected.toSorted());
});

function upTo(prefix: string, last: number): string[] {
  return Array.from({ length: last }, (_, index) => `${prefix}${index + 1}`);
}

function rules(entries: string): void {
  write("docs/rules/page.md", `# A page\n\n${entries}\n`);
}

interface Outcome {
  readonly status: "passed" | "failed" | "skipped";
  readonly title: string;
}

function passed(title: string): Outcome {
  return { status: "passed", title };
}

function failed(title: string): Outcome {
  return { status: "failed", title };
}

function skipped(title: string): Outcome {
  return { status: "skipped", title };
}

/** The part of vitest's JSON report that the script reads. */
function report(name: string, outcomes: readonly Outcome[], checkout = "/checkout"): void {
  const separator = checkout.includes("\\") ? "\\" : "/";
  const file = `${checkout}/${name}/test/some.test.ts`.replaceAll("/", separator);
  const status = outcomes.some((outcome) => outcome.status === "failed") ? "failed" : "passed";
  write(
    `${name}/.reports/tests.json`,
    JSON.stringify({ testResults: [{ name: file, status, assertionResults: outcomes }] }),
  );
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function table(): string {
  return readFileSync(join(root, "docs/rules/coverage.md"), "utf8");
}

function runRules(...args: string[]): { code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { cwd: root, encoding: "utf8" });
  return { code: status, output: stdout + stderr };
}
