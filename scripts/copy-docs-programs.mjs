// Copies the programs of the docs with their tests and pages into a folder without the sources of the packages, so
// that the tests run each program from installed packages. Used by scripts/pack-check.mjs.

import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { listImportedPackages } from "./package-examples.mjs";

const skipped = new Set(["node_modules", ".reports", ".turbo"]);

/** Copies programs, tests and pages; the vitest configuration of the copy includes only the tests of programs. */
export function copyDocsPrograms(root, folder) {
  for (const part of ["README.md", "docs", ...listTestFolders(root)])
    cpSync(join(root, part), join(folder, part), {
      recursive: true,
      filter: (source) => !skipped.has(basename(source)),
    });
  writeFileSync(join(folder, "vitest.config.mjs"), config);
}

/**
 * Returns the packages from outside that the programs and their tests import, with their versions in the workspace's
 * catalog.
 */
export function listTestDependencies(root) {
  const catalog = readFileSync(join(root, "pnpm-workspace.yaml"), "utf8");
  const files = listTestFolders(root).flatMap((part) => listCode(join(root, part)));
  const names = new Set(files.flatMap((file) => listImportedPackages(readFileSync(file, "utf8"))));
  return Object.fromEntries(
    [...names].sort().flatMap((name) => {
      const version = findVersion(catalog, name);
      return version === undefined ? [] : [[name, version]];
    }),
  );
}

/** Returns the folders of the packages with programs, the programs that their tests start, and the examples. */
function listTestFolders(root) {
  const packages = readdirSync(join(root, "packages")).map((name) => join("packages", name));
  const tested = packages.filter((place) => existsSync(join(root, place, "test/docs")));
  return [
    "apps/examples",
    ...packages.map((place) => join(place, "test/fixtures")),
    ...tested.flatMap((place) => [join(place, "test/docs"), join(place, "test/support")]),
  ].filter((place) => existsSync(join(root, place)));
}

function listCode(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(?:ts|mjs)$/.test(file) && !file.split(/[\\/]/).some((part) => skipped.has(part)))
    .map((file) => join(folder, file));
}

function findVersion(catalog, name) {
  return new RegExp(`^ {2}"?${name}"?: (\\S+)$`, "m").exec(catalog)?.[1];
}

const config = `import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["packages/*/test/docs/**/*.test.ts", "apps/examples/test/**/*.test.ts"],
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
`;
