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

/**
 * Writes the version into the source file, all manifests, and the other documents of packages that state the version,
 * such as openapi.json. Returns the paths of the changed files.
 */
export function writeVersion(root, version) {
  const old = readVersion(root);
  const documents = listPackages(root).flatMap(({ folder }) => listDocuments(root, folder, old));
  const files = [...documents, versionFile];
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    // The first match is the version: documents have it at their beginning, and the source file has one string.
    writeFileSync(join(root, file), text.replace(`"${old}"`, `"${version}"`));
  }
  return files;
}

/** Returns the JSON files of a package, folders excluded, with the version as the value of a key `version`. */
function listDocuments(root, folder, version) {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".json"))
    .map((name) => `${folder}/${name}`)
    .filter((file) =>
      new RegExp(`"version":\\s*"${RegExp.escape(version)}"`).test(readFileSync(join(root, file), "utf8")),
    );
}

function readSourceVersion(root) {
  return /"([^"]+)"/.exec(readFileSync(join(root, versionFile), "utf8"))?.[1];
}
