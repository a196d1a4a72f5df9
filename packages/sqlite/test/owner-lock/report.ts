/**
 * Runs the whole matrix with and without the program `flock`, and with `--write` writes its tables into docs/design/owner-lock.md:
 * `npm run gates -- owner-lock`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { type CellResult, describeResult, findViolations, listBases, listCells, runCells, stages } from "./matrix.ts";

const page = new URL("../../../../docs/design/owner-lock.md", import.meta.url);

type Rows = ReadonlyMap<string, readonly string[]>;

/** Returns one row per action and place; a cell with different results per file system names both. */
function toRows(results: readonly CellResult[]): Rows {
  const rows = new Map<string, Map<string, Set<string>>>();
  for (const result of results) {
    const action = result.driver === "better-sqlite3" ? result.action : `${result.action}, owner on ${result.driver}`;
    const name = `${action} | ${result.place}`;
    const row = rows.get(name) ?? new Map<string, Set<string>>();
    rows.set(name, row);
    row.set(result.stage, (row.get(result.stage) ?? new Set()).add(describeResult(result)));
  }
  return new Map(
    [...rows].map(([name, row]) => [name, stages.map((stage) => [...(row.get(stage) ?? [])].sort().join(" / "))]),
  );
}

function toTable(rows: Rows): string {
  const lines = [...rows].map(([name, cells]) => `| ${name} | ${cells.join(" | ")} |`);
  return [`| action | place | ${stages.join(" | ")} |`, `|---|---|${stages.map(() => "---|").join("")}`, ...lines].join(
    "\n",
  );
}

/** Prints the violations and returns their number. */
function report(title: string, results: readonly CellResult[]): number {
  const failed = results.filter((result) => findViolations(result).length > 0);
  for (const result of failed) {
    const { action, place, stage, base } = result;
    process.stdout.write(
      `${action}, ${place}, ${stage}, ${base}: ${findViolations(result).join("; ")}\n  ${JSON.stringify(result)}\n`,
    );
  }
  process.stdout.write(
    `${title}: ${results.length} cells on ${listBases().join(" and ")}, ${failed.length} violations\n`,
  );
  return failed.length;
}

function replaceTable(text: string, [begin, end]: readonly [string, string], rows: Rows): string {
  const [head = "", rest = ""] = text.split(begin);
  return `${head}${begin}\n\n${toTable(rows)}\n\n${end}${rest.split(end)[1] ?? ""}`;
}

const results = await runCells(listCells());
const withoutFlock = await runCells(
  listCells().filter(({ action }) => action !== "sqlite3 command"),
  "absent",
);
const failed = report("owner-lock", results) + report("owner-lock without flock", withoutFlock);
if (process.argv.includes("--write")) {
  const rows = toRows(results);
  const different = new Map(
    [...toRows(withoutFlock)].filter(([name, cells]) => cells.join() !== rows.get(name)?.join()),
  );
  const text = replaceTable(readFileSync(page, "utf8"), ["<!-- matrix -->", "<!-- /matrix -->"], rows);
  const markers = ["<!-- matrix without flock -->", "<!-- /matrix without flock -->"] as const;
  writeFileSync(page, replaceTable(text, markers, different));
}
process.exitCode = failed === 0 ? 0 : 1;
