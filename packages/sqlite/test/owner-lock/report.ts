/**
 * Runs the whole matrix, and with `--write` writes its table into docs/design/owner-lock.md:
 * `npm run gates -- owner-lock`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { type CellResult, describeResult, findViolations, listBases, listCells, runCells, stages } from "./matrix.ts";

const page = new URL("../../../../docs/design/owner-lock.md", import.meta.url);
const [begin, end] = ["<!-- matrix -->", "<!-- /matrix -->"];

/** Returns one row per action and place; a cell with different results per file system names both. */
function toTable(results: readonly CellResult[]): string {
  const rows = new Map<string, Map<string, Set<string>>>();
  for (const result of results) {
    const name = `${result.action} | ${result.place}`;
    const row = rows.get(name) ?? new Map<string, Set<string>>();
    rows.set(name, row);
    row.set(result.stage, (row.get(result.stage) ?? new Set()).add(describeResult(result)));
  }
  const lines = [...rows].map(
    ([name, row]) => `| ${name} | ${stages.map((stage) => [...(row.get(stage) ?? [])].join(" / ")).join(" | ")} |`,
  );
  return [`| action | place | ${stages.join(" | ")} |`, `|---|---|${stages.map(() => "---|").join("")}`, ...lines].join(
    "\n",
  );
}

const results = await runCells(listCells());
let failed = 0;
for (const result of results) {
  const violations = findViolations(result);
  if (violations.length === 0) continue;
  failed += 1;
  const { action, place, stage, base } = result;
  process.stdout.write(
    `${action}, ${place}, ${stage}, ${base}: ${violations.join("; ")}\n  ${JSON.stringify(result)}\n`,
  );
}
process.stdout.write(`owner-lock: ${results.length} cells on ${listBases().join(" and ")}, ${failed} violations\n`);
if (process.argv.includes("--write")) {
  const text = readFileSync(page, "utf8");
  const [head = "", rest = ""] = text.split(begin);
  writeFileSync(page, `${head}${begin}\n\n${toTable(results)}\n\n${end}${rest.split(end)[1] ?? ""}`);
}
process.exitCode = failed === 0 ? 0 : 1;
