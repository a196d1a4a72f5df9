/** The behaviour tests of this package once more, with node:sqlite as the driver of their stores. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createFolder } from "../support/stores.ts";

/** Other files act on the database in their own process through better-sqlite3, or replace its methods. */
const allFiles = [
  "damage",
  "disk-full",
  "durability",
  "encryption",
  "file-format",
  "file-size",
  "first-commit",
  "format-migration",
  "golden",
  "hostile-files",
  "other-writers",
  "ownership",
  "parity",
  "read/lists",
  "vector-search",
  "write/long-term",
];

/** Files of `npm test`; all of them with STATEWRIGHT_WHOLE=1. */
const files = process.env["STATEWRIGHT_WHOLE"] === "1" ? allFiles : ["encryption", "golden", "write/long-term"];

test("damage, encryption, forged files, parity and long-term items behave the same with node:sqlite [PK15]", () => {
  const home = createFolder();
  onTestFinished(home.remove);
  const report = join(home.path, "report.json");
  const args = ["run", "--config", "../../vitest.config.ts", "--reporter=json", `--outputFile=${report}`];
  const program = fileURLToPath(new URL("../../../../node_modules/vitest/vitest.mjs", import.meta.url));
  const { stderr } = spawnSync(process.execPath, [program, ...args, ...files.map((name) => `test/${name}.test.ts`)], {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    env: { ...process.env, STATEWRIGHT_DRIVER: "node:sqlite", VITEST: undefined, VITEST_WORKER_ID: undefined },
    encoding: "utf8",
  });
  const { numPassedTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
  const failed = testResults.flatMap(
    ({ assertionResults }: { assertionResults: { status: string; fullName: string }[] }) =>
      assertionResults.flatMap(({ status, fullName }) => (status === "passed" ? [] : [fullName])),
  );
  expect([failed, stderr]).toEqual([[], expect.any(String)]);
  expect(numPassedTests).toBeGreaterThan(200);
}, 300_000);
