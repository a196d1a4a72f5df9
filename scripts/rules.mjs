// Checks that every rule of docs/rules has a green test. Reads the rule ids, and the test names of the vitest reports:
// a test proves the ids that its name lists at the end, in brackets. Tests of gates are not part of the reports: the
// gate proves their ids, and the names are read from the sources. Writes a coverage table to
// .reports/rules-coverage.md. With `--check`, a rule without a green test is an error.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const RULES = "docs/rules";
const TABLE = ".reports/rules-coverage.md";
const REPORT = ".reports/tests.json";
const GATE_TESTS = "apps/gates/test/gates";

/** Families of rule ids, in the order of the table. The table omits families without rules. */
const FAMILIES = [
  ["E", "engine"],
  ["S0", "yoagent"],
  ["S1", "tinyagents"],
  ["S2", "phi-core"],
  ["S3", "bitop-dev/agent"],
  ["S4", "pi-agent-core"],
  ["D", "decisions"],
  ["K", "promises"],
  ["T", "traps"],
  ["I", "invariants"],
  ["C", "crash points"],
  ["F", "faults"],
  ["R", "security"],
  ["FX", "fixes"],
  ["Y", "abilities"],
  ["Z", "evals"],
  ["SE", "engine, for the server"],
  ["V", "server"],
  ["SS", "server security"],
  ["ND", "data for the inspector"],
  ["N", "inspector"],
  ["NS", "inspector security"],
  ["L", "command line"],
  ["X", "docs site and create-statewright"],
  ["PK", "core, for orchestrators"],
  ["P", "PostgreSQL"],
  ["W", "Restate"],
  ["PD", "DBOS"],
  ["PA", "acceptance of orchestrators"],
];

const ID = String.raw`(?:S[0-4]\.\d+|(?:FX|SE|SS|ND|NS|PK|PD|PA|E|K|T|C|F|I|R|V|N|L|X|P|W|Z|Y|D)\d+b?)`;
const WHOLE_ID = new RegExp(`^${ID}$`);
const ENTRY = new RegExp(String.raw`^- \*\*(${ID})\*\* \S`);
const LEADING_ID = new RegExp(String.raw`^\[?(${ID})(?![\w.]*\w)`);
const TRAILING_BRACKETS = /\[([^[\]]*)\]\s*$/;
const EARLIER_IDS = new RegExp(String.raw`\[\s*(${ID}(?:\s*,\s*${ID})*)\s*\](?=\s*\S)`);
const GATE_TEST_NAME = /^\s*test(?:\.each\(.*\))?\(\s*"([^"]+)"/gm;
const RANGE = new RegExp(String.raw`(?<![\w.])${ID}\s*(?:-|–|\.\.|to\s)\s*(?:${ID}|\d)`);

process.exitCode = main(process.cwd(), process.argv.includes("--check"));

function main(root, check) {
  if (!existsSync(join(root, RULES)))
    return fail([
      `${RULES}: expected a folder, found none in ${root}. Run this script from the root of the repository.`,
    ]);
  const { ids, problems: ruleProblems } = readRules(root);
  const packages = listPackages(root);
  const reports = packages.filter((name) => findReport(root, name) !== undefined);
  if (reports.length === 0)
    return fail([`${REPORT}: expected a test report in at least one package, found none. Run \`npm test\` first.`]);

  const tests = [...reports.flatMap((name) => readReport(root, name)), ...readGateTests(root)];
  const { proven, problems: testProblems } = matchTests(ids, tests);
  const problems = [...ruleProblems, ...listMissingReports(root, packages, reports), ...testProblems];
  if (check) problems.push(...listUnproven(ids, proven));
  mkdirSync(dirname(join(root, TABLE)), { recursive: true });
  writeFileSync(join(root, TABLE), renderTable(ids, proven));
  console.log(check ? formatLine(ids, proven) : formatSummary(ids, proven).join("\n"));
  return problems.length > 0 ? fail(problems) : 0;
}

function fail(problems) {
  for (const problem of problems) console.error(`rules: ${problem}`);
  return 1;
}

/** Returns the ids of all lines `- **E1** text` in the pages of docs/rules, in natural order. */
function readRules(root) {
  const pages = new Map();
  const problems = [];
  for (const page of listFiles(join(root, RULES)).filter((name) => name.endsWith(".md"))) {
    for (const line of readFileSync(join(root, RULES, page), "utf8").split("\n")) {
      const id = ENTRY.exec(line)?.[1];
      if (id === undefined) continue;
      if (pages.has(id))
        problems.push(`${id}: expected one line in ${RULES}, found lines in ${pages.get(id)} and ${page}. Remove one.`);
      pages.set(id, page);
    }
  }
  return { ids: [...pages.keys()].sort(compareNatural), problems };
}

/** Returns the folders with tests of their own. */
function listPackages(root) {
  const folders = ["packages", "apps"].flatMap((group) =>
    listFiles(join(root, group)).map((name) => `${group}/${name}`),
  );
  return [...folders, "scripts"];
}

/** Returns the path of a package's report. The tests of scripts/ may run from the root and write their report there. */
function findReport(root, name) {
  const paths = name === "scripts" ? [join(root, name, REPORT), join(root, REPORT)] : [join(root, name, REPORT)];
  return paths.find((path) => existsSync(path));
}

/** Returns a problem for each package with tests and without a report: its rules would disappear from the table. */
function listMissingReports(root, packages, reports) {
  return packages
    .filter(
      (name) =>
        !reports.includes(name) &&
        listFiles(join(root, name, "test"), { recursive: true }).some((file) => file.endsWith(".test.ts")),
    )
    .map((name) => `${name}: expected a report of its tests, found none. Run \`npm test\` first.`);
}

/** Returns the tests of one vitest JSON report, with file paths relative to the root of the repository. */
function readReport(root, name) {
  const { testResults = [] } = JSON.parse(readFileSync(findReport(root, name), "utf8"));
  return testResults.flatMap((result) => {
    const file = toRepositoryPath(name, result.name);
    const tests = (result.assertionResults ?? []).map(({ status, title }) => ({ file, status, title }));
    return tests.length === 0 && result.status === "failed" ? [{ file, status: "unreadable", title: "" }] : tests;
  });
}

/** Returns the tests that a gate runs and `npm test` does not, by the literal names in their sources. */
function readGateTests(root) {
  return listFiles(join(root, GATE_TESTS), { recursive: true })
    .filter((name) => name.endsWith(".test.ts"))
    .flatMap((name) => {
      const file = `${GATE_TESTS}/${name.replaceAll("\\", "/")}`;
      const titles = [...readFileSync(join(root, file), "utf8").matchAll(GATE_TEST_NAME)].map(([, title]) => title);
      return titles.map((title) => ({ file, status: "gate", title }));
    });
}

/** Cuts an absolute path at the package folder. A cached report may hold paths of another machine. */
function toRepositoryPath(name, path) {
  const slashed = path.replaceAll("\\", "/");
  const at = slashed.lastIndexOf(`/${name}/`);
  return at < 0 ? `${name}/${slashed.split("/").at(-1)}` : slashed.slice(at + 1);
}

/** Maps each rule id to the green tests that list it, and reports malformed names, unknown ids and failed tests. */
function matchTests(ids, tests) {
  const known = new Set(ids);
  const proven = new Map();
  const problems = [];
  for (const { file, status, title } of tests) {
    const test = `"${title}" (${file})`;
    if (status === "unreadable")
      problems.push(`${file}: the test file failed to load. See the output of \`npm test\`.`);
    const leading = LEADING_ID.exec(title)?.[1];
    if (leading !== undefined)
      problems.push(`${test}: expected a sentence first, got the rule id ${leading}. Move it to the end, in brackets.`);
    const { listed, problem } = parseIds(title);
    if (problem !== undefined) problems.push(`${test}: ${problem}`);
    for (const id of listed) {
      if (!known.has(id))
        problems.push(`${test}: expected ids of ${RULES}, got ${id}. Fix the id, or add the rule to a page.`);
      else if (status === "passed" || status === "gate") proven.set(id, [...(proven.get(id) ?? []), { file, title }]);
      else if (status === "failed")
        problems.push(`${test}: failed, so ${id} is not proven. Fix it and run \`npm test\`.`);
    }
  }
  return { proven, problems: [...new Set(problems)].sort(compareNatural) };
}

/** Returns the ids in the brackets that end a test name. Brackets without any id, such as `[1, 2]`, are plain text. */
function parseIds(title) {
  const brackets = TRAILING_BRACKETS.exec(title)?.[1] ?? "";
  const items = brackets.split(",").map((item) => item.trim());
  return {
    listed: [...new Set(items.filter((item) => WHOLE_ID.test(item)))],
    problem: findProblem(title, brackets, items),
  };
}

function findProblem(title, brackets, items) {
  if (RANGE.test(brackets)) return `expected each rule id written out, got the range [${brackets}]. List every id.`;
  const hasId = brackets.split(/[\s,;:/&+]+/).some((word) => WHOLE_ID.test(word));
  if (hasId && !items.every((item) => WHOLE_ID.test(item)))
    return `expected only rule ids, separated by commas, got [${brackets}]. Remove the rest.`;
  const earlier = EARLIER_IDS.exec(title)?.[1];
  return (
    earlier && `expected rule ids at the end of the name, got [${earlier}] before it. Move them to one list at the end.`
  );
}

function listUnproven(ids, proven) {
  return countByFamily(ids, proven)
    .filter(({ without }) => without.length > 0)
    .map(
      ({ without }) => `${without.join(", ")}: expected a green test, found none. Add the id to the name of a test.`,
    );
}

function formatLine(ids, proven) {
  const parts = countByFamily(ids, proven).map(
    ({ family, all, without }) => `${family} ${all.length - without.length}/${all.length}`,
  );
  return `Rules with a green test: ${parts.join(", ")}`;
}

function formatSummary(ids, proven) {
  const rows = countByFamily(ids, proven);
  const open = rows.filter(({ without }) => without.length > 0);
  return [
    ...rows.map(({ family, all, without }) => `${family.padEnd(2)} ${all.length - without.length} of ${all.length}`),
    ...(open.length > 0 ? ["Without a green test:", ...open.map(({ without }) => `  ${without.join(" ")}`)] : []),
  ];
}

function renderTable(ids, proven) {
  const rows = countByFamily(ids, proven);
  const open = rows.filter(({ without }) => without.length > 0);
  const total = `| all | | ${ids.filter((id) => proven.has(id)).length} | ${ids.length} |`;
  return [
    "# Rules with a green test",
    "",
    "Generated by `npm run rules` from the reports of `npm test`. A test proves the rule ids that end its name in brackets. Do not edit this file.",
    "",
    "| family | about | with a green test | rules |",
    "|---|---|---|---|",
    ...rows.map(
      ({ family, about, all, without }) => `| ${family} | ${about} | ${all.length - without.length} | ${all.length} |`,
    ),
    total,
    "",
    "## Proven",
    "",
    ...(proven.size > 0 ? ["| rule | tests |", "|---|---|"] : ["None yet."]),
    ...ids.filter((id) => proven.has(id)).map((id) => `| ${id} | ${renderTests(proven.get(id))} |`),
    "",
    "## Without a green test",
    "",
    ...(open.length > 0 ? open.map(({ family, without }) => `- ${family}: ${without.join(", ")}`) : ["None."]),
    "",
  ].join("\n");
}

function renderTests(tests) {
  const cells = tests.map(({ file, title }) => `${escapeCell(title)} (${escapeCell(file)})`);
  return [...new Set(cells)].sort(compareNatural).join("<br>");
}

function escapeCell(text) {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replace(/\s+/g, " ").trim();
}

function countByFamily(ids, proven) {
  return FAMILIES.map(([family, about]) => {
    const all = ids.filter((id) => getFamily(id) === family);
    return { family, about, all, without: all.filter((id) => !proven.has(id)) };
  }).filter(({ all }) => all.length > 0);
}

function getFamily(id) {
  return /^S\d|^[A-Z]+/.exec(id)[0];
}

function listFiles(folder, options) {
  return existsSync(folder) ? readdirSync(folder, options).map(String).sort(compareNatural) : [];
}

/** Compares numbers by value, so E2 precedes E10. The order is the same on every machine. */
function compareNatural(a, b) {
  const left = a.match(/\d+|\D+/g) ?? [];
  const right = b.match(/\d+|\D+/g) ?? [];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] === right[i]) continue;
    const difference = Number(left[i]) - Number(right[i]);
    if (difference) return difference;
    return left[i] < right[i] ? -1 : 1;
  }
  return left.length - right.length;
}
