/** Tests that go further when they are told to. */
import { spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = new URL("../../../", import.meta.url);

/** The test files of which `npm test` runs a share, and what is left of it with STATEWRIGHT_WHOLE=1. */
export const sharedTests: Readonly<Record<string, readonly string[]>> = {
  "packages/statewright": [
    "test/behaviour/crash-matrix.test.ts",
    "test/behaviour/double-resume.test.ts",
    "test/behaviour/killed-around-a-commit.test.ts",
    "test/behaviour/killed-long-term.test.ts",
    "test/behaviour/killed-machine.test.ts",
    "test/behaviour/killed-queue.test.ts",
    "test/behaviour/killed-summary.test.ts",
    "test/behaviour/killed-timer.test.ts",
    "test/behaviour/killed-while-steered.test.ts",
  ],
  "packages/sqlite": ["test/durability.test.ts", "test/gates.test.ts", "test/parity.test.ts"],
  "packages/host": ["test/gitignore.test.ts"],
  "packages/agent": [
    "test/middleware/clear-tool-results.test.ts",
    "test/middleware/context-together.test.ts",
    "test/middleware/summarise.test.ts",
  ],
  "packages/core": ["test/behaviour/faults.test.ts", "test/compile/outline.test.ts"],
  "packages/plugins": ["test/plugins.test.ts"],
  "packages/pictures": ["test/to-svg.test.ts"],
  "apps/demo": ["test/behaviour/stops.test.ts", "test/behaviour/targets.whole.test.ts"],
  "apps/bench": ["test/kills.whole.test.ts", "test/smoke.test.ts"],
};

/** Run the whole of every test of which `npm test` runs a share; tells whether all passed. */
export async function runWhole(): Promise<boolean> {
  let passed = true;
  for (const [folder, files] of Object.entries(sharedTests))
    if (!(await runTests(folder, files, { STATEWRIGHT_WHOLE: "1" }))) passed = false;
  return passed;
}

/** Run test files of a package; tells whether they passed. The report of its tests stays that of `npm test`. */
export function runTests(
  folder: string,
  files: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<boolean> {
  const child = spawn("vitest", ["run", "--config", "../../vitest.config.ts", "--reporter=default", ...files], {
    cwd: fileURLToPath(new URL(folder, root)),
    stdio: "inherit",
    shell: process.platform === "win32",
    env: { ...process.env, ...env },
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code === 0));
  });
}
