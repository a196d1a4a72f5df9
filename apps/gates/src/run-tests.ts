/** Tests with a larger scope, set by environment variables. */
import { spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = new URL("../../../", import.meta.url);

/** Test files that `npm test` samples, and that run completely with STATEWRIGHT_WHOLE=1. */
export const sampledTests: Readonly<Record<string, readonly string[]>> = {
  "packages/statewright": [
    "test/behaviour/crashes/crash-matrix.test.ts",
    "test/behaviour/interrupts/double-resume.test.ts",
    "test/behaviour/crashes/every-commit.test.ts",
    "test/behaviour/crashes/long-term-store.test.ts",
    "test/behaviour/crashes/durable-machine.test.ts",
    "test/behaviour/crashes/queue.test.ts",
    "test/behaviour/crashes/schedules.test.ts",
    "test/behaviour/crashes/summary.test.ts",
    "test/behaviour/crashes/timer.test.ts",
    "test/behaviour/crashes/steering.test.ts",
    "test/behaviour/hostile-calls.test.ts",
  ],
  "packages/sqlite": [
    "test/read/many-threads.test.ts",
    "test/read/many-timers.test.ts",
    "test/durability.test.ts",
    "test/gates.test.ts",
    "test/driver/node-sqlite.test.ts",
    "test/owner-lock.test.ts",
    "test/read/snapshots.test.ts",
    "test/parity.test.ts",
  ],
  "packages/host": ["test/gitignore.test.ts", "test/process-leaks.test.ts"],
  "packages/ai-sdk": ["test/behaviour/broken-streams.test.ts"],
  "packages/agent": [
    "test/middleware/clear-tool-results.test.ts",
    "test/middleware/combined-context.test.ts",
    "test/middleware/summarise.test.ts",
  ],
  "packages/core": [
    "test/behaviour/failures/faults.test.ts",
    "test/compile/outline.test.ts",
    "test/run/graph-kernel.test.ts",
  ],
  "packages/plugins": ["test/plugins.test.ts"],
  "packages/pictures": ["test/to-svg.test.ts"],
  "apps/demo": ["test/behaviour/stops.test.ts", "test/behaviour/targets.whole.test.ts"],
  "apps/bench": ["test/kills.whole.test.ts", "test/smoke.test.ts"],
};

/** Runs all sampled tests completely. Returns true if all passed. */
export async function runFullTests(): Promise<boolean> {
  let passed = true;
  for (const [folder, files] of Object.entries(sampledTests))
    if (!(await runTests(folder, files, { STATEWRIGHT_WHOLE: "1" }))) passed = false;
  return passed;
}

/** Runs test files of a package. Returns true if all passed. The report file of `npm test` is unchanged. */
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

/** Runs the tests in `test/gates/<gate>`, which `npm test` does not run. Returns true if all passed. */
export function runGateTests(gate: string, env: Readonly<Record<string, string>> = {}): Promise<boolean> {
  return runTests("apps/gates", [`test/gates/${gate}/`], { STATEWRIGHT_GATE: gate, ...env });
}

/** Runs a script of the repository. Returns true if it succeeded. */
export function runScript(file: string, args: readonly string[]): Promise<boolean> {
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, root)), ...args], { stdio: "inherit" });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code === 0));
  });
}
