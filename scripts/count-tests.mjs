// How many tests passed and failed, over the reports that the last runs left in every package.

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
    // A file that could not be loaded has no tests, and still must not pass unseen.
    if (file.status === "failed" && file.assertionResults.length === 0) count.failed += 1;
  }
}
console.log(`${count.passed} passed, ${count.failed} failed`);
if (absent.length > 0) console.log(`recordings stood in for what is absent here: ${absent.join(", ")}`);
