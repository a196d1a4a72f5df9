import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { configDefaults, defineConfig } from "vitest/config";
import { bundleForTests } from "./scripts/bundle-for-tests.mjs";

/** The test settings of every package and app, each run in its own folder. The JSON is for .ci/run, which counts. */
export default defineConfig({
  test: {
    include: ["**/test/**/*.test.ts"],
    exclude: [
      ...configDefaults.exclude,
      // Long, and proof of no rule: they run with `npm run gates -- whole`.
      ...(process.env["STATEWRIGHT_WHOLE"] === "1" ? [] : ["**/*.whole.test.ts"]),
      // Each gate runs the tests of its folder.
      ...(process.env["STATEWRIGHT_GATE"] === undefined ? ["**/test/gates/**"] : []),
    ],
    // A process runs many files with the modules that it has loaded: loading them anew for each file took as long as the tests.
    isolate: false,
    // Node loads the sources as they are, as in the programs that the tests start: no test needs them rewritten first.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // The processes that tests start load the sources in a few files, compiled once: that saves seven eighths of a start.
    env: {
      NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/compiled"),
      NODE_OPTIONS: [process.env["NODE_OPTIONS"], await bundleForTests()].filter(Boolean).join(" "),
    },
    setupFiles: existsSync("test/setup.ts") ? ["test/setup.ts"] : [],
    // The tests of all packages run at once, perhaps on two cores. Nothing waits on purpose, so this stops only a hang.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ["default", "json"],
    outputFile: { json: ".reports/tests.json" },
  },
});
