// Counts passed and failed tests, from the latest reports of all packages.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folders = ["packages", "apps"].flatMap((parent) => readdirSync(parent).map((name) => join(parent, name)));
const count = { passed: 0, failed: 0 };
const absent = [];
for (const folder of [".", ...folders]) {
  const notes = join(folder, ".reports/absent.txt");
  if (existsSync(notes)) absent.push(...readFileSync(notes, "utf8").split("\n").filter(Boolean));
  const report = join(folder, ".reports/tests.json");
  if (!existsSync(report)) continue;
  for (const file of JSON.parse(readFileSync(report, "utf8")).testResults) {
    for (const { status } of file.assertionResults) if (status in count) count[status] += 1;
    // A test file with a load error has no tests, and counts as one failed test.
    if (file.status === "failed" && file.assertionResults.length === 0) count.failed += 1;
  }
}
console.log(`${count.passed} passed, ${count.failed} failed`);
if (absent.length > 0) console.log(`tests used recordings for absent programs: ${absent.join(", ")}`);
