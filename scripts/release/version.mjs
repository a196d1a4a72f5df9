// The version of the packages: one number, in the manifest of each package and in one source file of core.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The source file that tells the version to other programs. */
export const versionFile = "packages/core/src/base/package-version.ts";

/** Returns the folder and the manifest of each published package below `root`, sorted by folder. */
export function listPackages(root) {
  return readdirSync(join(root, "packages"))
    .map((name) => `packages/${name}`)
    .filter((folder) => existsSync(join(root, folder, "package.json")))
    .sort()
    .map((folder) => ({ folder, manifest: JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) }))
    .filter(({ manifest }) => manifest.private !== true);
}

/** Returns the version of all packages. Throws an error if two packages differ. */
export function readVersion(root) {
  const packages = listPackages(root);
  const versions = new Set([...packages.map(({ manifest }) => manifest.version), readSourceVersion(root)]);
  if (versions.size === 1) return [...versions][0];
  const found = packages.map(({ manifest }) => `${manifest.name} ${manifest.version}`).join(", ");
  throw new Error(
    `release: expected one version in all packages, got ${found}, and ${readSourceVersion(root)} in ${versionFile}. ` +
      "Use the version of the last release in each of them.",
  );
}

/** Returns the version after `version`. Throws an error on another word than major, minor and patch. */
export function getNextVersion(version, bump) {
  const [major, minor, patch] = version.split(".").map(Number);
  const next = { major: [major + 1, 0, 0], minor: [major, minor + 1, 0], patch: [major, minor, patch + 1] };
  if (Object.hasOwn(next, bump)) return next[bump].join(".");
  throw new Error(`release: expected major, minor, patch or no word, got "${bump}". Use one of these words.`);
}

/** Writes the version into all manifests and the source file, and returns the paths of the changed files. */
export function writeVersion(root, version) {
  const old = readVersion(root);
  const files = [...listPackages(root).map(({ folder }) => `${folder}/package.json`), versionFile];
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    // The first match is the version: a manifest has `version` at its beginning, and the source file has one string.
    writeFileSync(join(root, file), text.replace(`"${old}"`, `"${version}"`));
  }
  return files;
}

function readSourceVersion(root) {
  return /"([^"]+)"/.exec(readFileSync(join(root, versionFile), "utf8"))?.[1];
}
