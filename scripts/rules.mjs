// Which rules of docs/rules have a green test? Reads the ids of the rules and the vitest reports, and keeps
// docs/rules/coverage.md true: `npm run rules` writes it, `--check` fails when it is stale.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const RULES = "docs/rules";
const TABLE = `${RULES}/coverage.md`;
const REPORT = ".reports/tests.json";

/** The families of ids, in the order of the table. */
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
];

const ID = String.raw`(?:S\d+\.\d+|[${FAMILIES.map(([name]) => name)
  .filter((name) => name.length === 1)
  .join("")}]\d+)`;
const ENTRY = new RegExp(String.raw`^- \*\*(${ID})\*\* \S`);
const LEADING_ID = new RegExp(String.raw`^(${ID})(?=$|[\s,;:/&+])[\s,;:/&+]*`);
const RANGE = new RegExp(String.raw`^${ID}(?:(?:-|–|\.\.)\d|\s*(?:-|–|\.\.|to\s)\s*${ID})`);

process.exitCode = main(process.cwd(), process.argv.includes("--check"));

function main(root, check) {
  if (!existsSync(join(root, RULES)))
    return fail([`There is no ${RULES} here. Run this from the root of the repository.`]);
  const { ids, problems: ruleProblems } = readRules(root);
  const packages = packagesOf(root);
  const reports = packages.filter((name) => reportOf(root, name) !== undefined);
  if (reports.length === 0) return fail([`No test report (${REPORT}) in any package. Run \`npm test\` first.`]);

  const tests = reports.flatMap((name) => readReport(root, name));
  const { proven, problems: testProblems } = match(ids, tests);
  const problems = [...ruleProblems, ...missingReports(root, packages, reports), ...testProblems];
  const table = render(ids, proven);
  if (check) {
    const committed = existsSync(join(root, TABLE))
      ? readFileSync(join(root, TABLE), "utf8").replaceAll("\r\n", "\n")
      : "";
    if (committed !== table) problems.push(`${TABLE} is stale. Run \`npm run rules\` and commit it.`);
  } else {
    writeFileSync(join(root, TABLE), table);
  }
  console.log(check ? oneLine(ids, proven) : summary(ids, proven).join("\n"));
  return problems.length > 0 ? fail(problems) : 0;
}

function fail(problems) {
  for (const problem of problems) console.error(`rules: ${problem}`);
  return 1;
}

/** Every id that stands as `- **E1** text` on a page of docs/rules, in natural order. */
function readRules(root) {
  const places = new Map();
  const problems = [];
  for (const page of list(join(root, RULES)).filter((name) => name.endsWith(".md") && `${RULES}/${name}` !== TABLE)) {
    for (const line of readFileSync(join(root, RULES, page), "utf8").split("\n")) {
      const id = ENTRY.exec(line)?.[1];
      if (id === undefined) continue;
      if (places.has(id)) problems.push(`${id} stands twice, in ${places.get(id)} and ${page}. Keep one of them.`);
      places.set(id, page);
    }
  }
  return { ids: [...places.keys()].sort(natural), problems };
}

/** The folders that have tests of their own. */
function packagesOf(root) {
  const inside = ["packages", "apps"].flatMap((group) => list(join(root, group)).map((name) => `${group}/${name}`));
  return [...inside, "scripts"];
}

/** Each package leaves its report in its own folder; the tests of scripts/ may run from the root and leave it there. */
function reportOf(root, name) {
  const places = name === "scripts" ? [join(root, name, REPORT), join(root, REPORT)] : [join(root, name, REPORT)];
  return places.find((place) => existsSync(place));
}

/** A package whose tests did not run would drop out of the table in silence. */
function missingReports(root, packages, reports) {
  return packages
    .filter(
      (name) =>
        !reports.includes(name) &&
        list(join(root, name, "test"), { recursive: true }).some((file) => file.endsWith(".test.ts")),
    )
    .map((name) => `${name} has tests and no report. Run \`npm test\` first.`);
}

/** The tests of one vitest JSON report, with files named from the root of the repository. */
function readReport(root, name) {
  const { testResults = [] } = JSON.parse(readFileSync(reportOf(root, name), "utf8"));
  return testResults.flatMap((result) => {
    const file = fileWithin(name, result.name);
    const tests = (result.assertionResults ?? []).map(({ status, title }) => ({ file, status, title }));
    return tests.length === 0 && result.status === "failed" ? [{ file, status: "unreadable", title: "" }] : tests;
  });
}

/** Reports name files absolutely, perhaps on the machine that filled the cache: cut at the package. */
function fileWithin(name, path) {
  const slashed = path.replaceAll("\\", "/");
  const at = slashed.lastIndexOf(`/${name}/`);
  return at < 0 ? `${name}/${slashed.split("/").at(-1)}` : slashed.slice(at + 1);
}

/** Map every id to the green tests whose title it opens. */
function match(ids, tests) {
  const known = new Set(ids);
  const proven = new Map();
  const problems = [];
  for (const { file, status, title } of tests) {
    if (status === "unreadable") problems.push(`${file} could not be run. See the output of \`npm test\`.`);
    const { opening, range } = openingIds(title);
    if (range) problems.push(`"${title}" (${file}) opens with a range. Write every id out.`);
    for (const id of opening) {
      if (!known.has(id))
        problems.push(`"${title}" (${file}) opens with ${id}, which no page of ${RULES} holds. Correct the id.`);
      else if (status === "passed") proven.set(id, [...(proven.get(id) ?? []), { file, title }]);
      else if (status === "failed")
        problems.push(`"${title}" (${file}) failed: ${id} is not proven. Mend it and run \`npm test\`.`);
    }
  }
  return { proven, problems: [...new Set(problems)].sort(natural) };
}

function openingIds(title) {
  const opening = new Set();
  let rest = title;
  for (let found = LEADING_ID.exec(rest); found && !RANGE.test(rest); found = LEADING_ID.exec(rest)) {
    opening.add(found[1]);
    rest = rest.slice(found[0].length);
  }
  return { opening: [...opening], range: RANGE.test(rest) };
}

function oneLine(ids, proven) {
  const parts = counts(ids, proven).map(
    ({ family, all, without }) => `${family} ${all.length - without.length}/${all.length}`,
  );
  return `Rules with a green test: ${parts.join(", ")}`;
}

function summary(ids, proven) {
  const rows = counts(ids, proven);
  const open = rows.filter(({ without }) => without.length > 0);
  return [
    ...rows.map(({ family, all, without }) => `${family.padEnd(2)} ${all.length - without.length} of ${all.length}`),
    ...(open.length > 0 ? ["Without a green test:", ...open.map(({ without }) => `  ${without.join(" ")}`)] : []),
  ];
}

function render(ids, proven) {
  const rows = counts(ids, proven);
  const open = rows.filter(({ without }) => without.length > 0);
  const total = `| all | | ${ids.filter((id) => proven.has(id)).length} | ${ids.length} |`;
  return [
    "# Which rules have a green test",
    "",
    "Written by `npm run rules` from the reports of `npm test`: a test proves the rules whose ids open its name. Not to be edited by hand.",
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
    ...ids.filter((id) => proven.has(id)).map((id) => `| ${id} | ${testsCell(proven.get(id))} |`),
    "",
    "## Without a green test",
    "",
    ...(open.length > 0 ? open.map(({ family, without }) => `- ${family}: ${without.join(", ")}`) : ["None."]),
    "",
  ].join("\n");
}

function testsCell(tests) {
  const cells = tests.map(({ file, title }) => `${cell(title)} (${cell(file)})`);
  return [...new Set(cells)].sort(natural).join("<br>");
}

function cell(text) {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replace(/\s+/g, " ").trim();
}

function counts(ids, proven) {
  return FAMILIES.map(([family, about]) => {
    const all = ids.filter((id) => familyOf(id) === family);
    return { family, about, all, without: all.filter((id) => !proven.has(id)) };
  }).filter(({ all }) => all.length > 0);
}

function familyOf(id) {
  return id.startsWith("S") ? id.split(".")[0] : id.charAt(0);
}

function list(folder, options) {
  return existsSync(folder) ? readdirSync(folder, options).map(String).sort(natural) : [];
}

/** E2 before E10, the same on every machine. */
function natural(a, b) {
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
