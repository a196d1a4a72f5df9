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
  test("a passing test proves every rule id in the brackets that end its name", () => {
    writeRules("- **E1** a\n- **E2** b\n- **E10** c\n- **S0.7** d");
    writeReport("packages/core", [pass("an old tool runs, unlike E10 [E2, S0.7]"), pass("plain words about E1")]);
    const run = runRules();
    expect(run.output).toContain("E  1 of 3");
    expect(run.output).toContain("S0 1 of 1");
    expect(run.output).toContain("  E1 E10\n");
    expect(run.code).toBe(0);
    expect(readTable()).toContain("| E2 | an old tool runs, unlike E10 [E2, S0.7] (packages/core/test/some.test.ts) |");
    expect(readTable()).toContain("- E: E1, E10\n");
  });

  test("ids of every family are read, also with two letters or a letter at the end", () => {
    writeRules("- **FX12** a\n- **PK1** b\n- **PK1b** c\n- **Z4** d");
    writeReport("packages/core", [pass("a delivery continues [PK1b, FX12]"), pass("a case is a recorded run [Z4]")]);
    expect(runRules().output).toBe("FX 1 of 1\nZ  1 of 1\nPK 1 of 2\nWithout a green test:\n  PK1\n");
  });

  test("a rule without a green test fails the check and is named", () => {
    writeRules("- **E1** a\n- **E2** b\n- **T3** c");
    writeReport("packages/core", [pass("works [E2]")]);
    expect(runRules().code).toBe(0);
    const check = runRules("--check");
    expect(check.code).toBe(1);
    expect(check.output).toContain("rules: E1: expected a green test, found none");
    expect(check.output).toContain("rules: T3: expected a green test, found none");
    writeReport("packages/core", [pass("works [E1, E2, T3]")]);
    expect(runRules("--check")).toEqual({ code: 0, output: "Rules with a green test: E 2/2, T 1/1\n" });
  });

  test("a test that only a gate runs proves the ids that its source names", () => {
    writeRules("- **E1** a\n- **E2** b");
    writeReport("packages/core", [pass("works [E1]")]);
    writeReport("apps/gates", [pass("counts kills")]);
    const folder = join(root, "apps/gates/test/gates/packs");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "packs.test.ts"), 'test("programs run from tarballs [E2]", async () => {});\n');
    expect(runRules("--check")).toEqual({ code: 0, output: "Rules with a green test: E 2/2\n" });
    expect(readTable()).toContain(
      "| E2 | programs run from tarballs [E2] (apps/gates/test/gates/packs/packs.test.ts) |",
    );
    writeFileSync(join(folder, "packs.test.ts"), 'test("programs run from tarballs [E3]", async () => {});\n');
    expect(runRules("--check").output).toContain("expected ids of docs/rules, got E3");
  });

  test("a failed or skipped test proves no rule, and a failed one fails the check", () => {
    writeRules("- **E1** a\n- **E2** b");
    writeReport("packages/core", [fail("breaks [E1]"), skip("waits [E2]")]);
    expect(runRules().output).toContain("E  0 of 2");
    const check = runRules("--check");
    expect(check.code).toBe(1);
    expect(check.output).toContain('"breaks [E1]" (packages/core/test/some.test.ts): failed, so E1 is not proven');
  });

  test("a name that begins with a rule id is refused", () => {
    writeRules("- **E1** a\n- **S0.7** b");
    const refused = ["E1 works", "E1, S0.7 work [E1]", "E1: works", "S0.7", "[E1] works", "E1-4 work", "Z9 works"];
    const accepted = ["E1a works", "1E works", "E works", "S0.7x works", "the rule E1 works [E1, S0.7]"];
    writeReport("packages/core", [...refused, ...accepted].map(pass));
    const check = runRules("--check");
    expect(check.code).toBe(1);
    for (const title of refused) {
      expect(check.output).toContain(`"${title}" (packages/core/test/some.test.ts): expected a sentence first`);
    }
    for (const title of accepted) expect(check.output).not.toContain(title);
  });

  test.each(["[E1-4]", "[E1–E4]", "[E1 to E4]", "[E1..4]", "[E2, E1 - E4]"])("the range %s is refused", (range) => {
    writeRules("- **E1** a");
    writeReport("apps/demo", [pass("works [E1]"), pass(`too many at once ${range}`)]);
    const check = runRules("--check");
    expect(check.code).toBe(1);
    expect(check.output).toContain(
      `"too many at once ${range}" (apps/demo/test/some.test.ts): expected each rule id written out`,
    );
  });

  test("an id without a rule is refused", () => {
    writeRules("- **E1** a");
    writeReport("apps/demo", [pass("a wrong digit [E1, E99]")]);
    const check = runRules("--check");
    expect(check.code).toBe(1);
    expect(check.output).toContain(
      '"a wrong digit [E1, E99]" (apps/demo/test/some.test.ts): expected ids of docs/rules, got E99',
    );
  });

  test("brackets that mix ids with other text are refused", () => {
    writeRules("- **E1** a\n- **E2** b");
    const refused = ["works [E1 E2]", "works [E1, 2]", "works [see E1]", "works [E1/E2]"];
    writeReport("packages/core", [pass("works [E1, E2]"), ...refused.map(pass)]);
    const check = runRules("--check");
    expect(check.code).toBe(1);
    for (const title of refused)
      expect(check.output).toContain(`"${title}" (packages/core/test/some.test.ts): expected`);
  });

  test("ids in brackets before the end of a name are refused", () => {
    writeRules("- **E1** a\n- **E2** b");
    writeReport("packages/core", [pass("works [E1, E2]"), pass("works [E1] [E2]"), pass("works [E2] as JSON")]);
    const check = runRules("--check");
    expect(check.code).toBe(1);
    expect(check.output).toContain('"works [E1] [E2]" (packages/core/test/some.test.ts): expected rule ids at the end');
    expect(check.output).toContain(
      '"works [E2] as JSON" (packages/core/test/some.test.ts): expected rule ids at the end',
    );
  });

  test("brackets without ids are plain text", () => {
    writeRules("- **E1** a");
    const titles = [
      "folds [1, 2]",
      "reads [] and {}",
      'parses {"a":[1]}',
      "reads ]E9[",
      "unset [CPU1, LINE1-4]",
      "a [b] c [E1]",
    ];
    writeReport("packages/core", titles.map(pass));
    expect(runRules("--check")).toEqual({ code: 0, output: "Rules with a green test: E 1/1\n" });
  });

  test("a duplicate rule is refused", () => {
    writeRules("- **E1** a\n- **E1** b");
    writeReport("packages/core", [pass("works [E1]")]);
    expect(runRules()).toMatchObject({
      code: 1,
      output: expect.stringContaining("E1: expected one line in docs/rules"),
    });
  });

  test("the rules table does not depend on the machine or the order of the tests", () => {
    writeRules("- **E2** b\n- **E1** a");
    writeReport("packages/core", [pass("first [E1]"), pass("second [E1]")], "/home/somebody/checkout");
    runRules();
    const before = readTable();
    writeReport("packages/core", [pass("second [E1]"), pass("first [E1]")], "C:\\code");
    runRules("--check");
    expect(readTable()).toBe(before);
    expect(before).not.toContain("somebody");
    expect(before.indexOf("first [E1]")).toBeLessThan(before.indexOf("second [E1]"));
  });

  test("the rules check without reports names the command that creates them", () => {
    writeRules("- **E1** a");
    expect(runRules()).toMatchObject({ code: 1, output: expect.stringContaining("Run `npm test` first") });
  });

  test("the rules check outside of the repository names the missing folder", () => {
    expect(runRules()).toMatchObject({ code: 1, output: expect.stringContaining("docs/rules: expected a folder") });
  });

  test("the rules check names a package whose tests left no report", () => {
    writeRules("- **E1** a");
    writeReport("packages/core", [pass("works [E1]")]);
    writeText("packages/agent/test/unit/agent.test.ts", "");
    expect(runRules()).toMatchObject({
      code: 1,
      output: expect.stringContaining("packages/agent: expected a report of its tests, found none"),
    });
  });

  test("the tests of scripts/ may leave their report at the root", () => {
    writeRules("- **K11** a");
    writeReport("scripts", [pass("the root is complete [K11]")]);
    mkdirSync(join(root, ".reports"));
    renameSync(join(root, "scripts/.reports/tests.json"), join(root, ".reports/tests.json"));
    expect(runRules().code).toBe(0);
    expect(readTable()).toContain("| K11 | the root is complete [K11] (scripts/test/some.test.ts) |");
  });

  test("the rules check names a test file that could not be loaded", () => {
    writeRules("- **E1** a");
    writeText(
      "packages/core/.reports/tests.json",
      JSON.stringify({
        testResults: [{ name: "/x/packages/core/test/some.test.ts", status: "failed", assertionResults: [] }],
      }),
    );
    expect(runRules()).toMatchObject({
      code: 1,
      output: expect.stringContaining("packages/core/test/some.test.ts: the test file failed to load"),
    });
  });
});

/** Rules of the server that are not built: other protocols, webhooks, WebSocket, the dev server, metrics. */
const laterServerRules = new Set(
  [52, 63, ...range(65, 93), 95, ...range(123, 127), 133, 134, 144].map((number) => `V${number}`),
);

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

test("docs/rules holds every id exactly once", () => {
  const found = readdirSync(join(repository, "docs/rules"))
    .filter((page) => page.endsWith(".md"))
    .flatMap((page) =>
      [...readFileSync(join(repository, "docs/rules", page), "utf8").matchAll(/^- \*\*([A-Z][\d.]*\d)\*\* /gm)].map(
        ([, id]) => id,
      ),
    );
  const expected = [
    ...listIds("E", 72),
    ...listIds("S0.", 71),
    ...listIds("S1.", 93),
    ...listIds("S2.", 77),
    ...listIds("S3.", 56).filter((id) => id !== "S3.21" && id !== "S3.37"),
    ...listIds("S4.", 38),
    ...listIds("D", 33),
    ...listIds("K", 11),
    ...listIds("T", 59),
    ...listIds("I", 10),
    ...listIds("C", 24),
    ...listIds("F", 23),
    ...listIds("R", 20),
    ...listIds("Y", 3),
    "Y7",
    "Y8",
    "Y33",
    "Y35",
    ...listIds("V", 146).filter((id) => !laterServerRules.has(id)),
  ];
  expect(found.toSorted()).toEqual(expected.toSorted());
});

function listIds(prefix: string, last: number): string[] {
  return Array.from({ length: last }, (_, index) => `${prefix}${index + 1}`);
}

function writeRules(entries: string): void {
  writeText("docs/rules/page.md", `# A page\n\n${entries}\n`);
}

interface Outcome {
  readonly status: "passed" | "failed" | "skipped";
  readonly title: string;
}

function pass(title: string): Outcome {
  return { status: "passed", title };
}

function fail(title: string): Outcome {
  return { status: "failed", title };
}

function skip(title: string): Outcome {
  return { status: "skipped", title };
}

/** Writes the fields of a vitest JSON report that the script reads. */
function writeReport(name: string, outcomes: readonly Outcome[], checkout = "/checkout"): void {
  const separator = checkout.includes("\\") ? "\\" : "/";
  const file = `${checkout}/${name}/test/some.test.ts`.replaceAll("/", separator);
  const status = outcomes.some((outcome) => outcome.status === "failed") ? "failed" : "passed";
  writeText(
    `${name}/.reports/tests.json`,
    JSON.stringify({ testResults: [{ name: file, status, assertionResults: outcomes }] }),
  );
}

function writeText(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function readTable(): string {
  return readFileSync(join(root, ".reports/rules-coverage.md"), "utf8");
}

function runRules(...args: string[]): { code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { cwd: root, encoding: "utf8" });
  return { code: status, output: stdout + stderr };
}
