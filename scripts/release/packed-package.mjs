// Facts about the tarballs of a release: size, files, integrity, and the order of publication.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";

/** Returns the file name that npm gives to the tarball of a package. */
export function getTarballName({ name, version }) {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
}

/** Reads name, version and dependencies from the manifest in a tarball, and measures the tarball. */
export function readPackedPackage(file) {
  const bytes = readFileSync(file);
  const {
    name,
    version,
    dependencies = {},
    peerDependencies = {},
  } = JSON.parse(runTar(file, "-xzOf", "package/package.json"));
  return {
    name,
    version,
    file: basename(file),
    bytes: bytes.length,
    files: runTar(file, "-tzf").split("\n").filter(Boolean).length,
    integrity: `sha512-${createHash("sha512").update(bytes).digest("base64")}`,
    dependencies,
    peerDependencies,
  };
}

/** Sorts packages so that each comes after the packages it depends on. Throws an error on a cycle. */
export function sortByDependencies(packages) {
  const waiting = new Map(packages.map((packed) => [packed.name, packed]));
  const sorted = [];
  while (waiting.size > 0) {
    const ready = [...waiting.values()].filter((packed) => listNeeded(packed).every((name) => !waiting.has(name)));
    if (ready.length === 0)
      throw new Error(`release: expected no cycle of dependencies, got one of ${[...waiting.keys()].join(", ")}.`);
    for (const packed of ready.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      sorted.push(packed);
      waiting.delete(packed.name);
    }
  }
  return sorted;
}

/** Returns a sentence for each dependency on a package of the release whose range is not `^<version of the release>`. */
export function findWrongRanges(packages, version) {
  const names = new Set(packages.map(({ name }) => name));
  return packages.flatMap((packed) => [
    ...(packed.version === version ? [] : [`${packed.name}: expected version ${version}, got ${packed.version}.`]),
    ...Object.entries({ ...packed.dependencies, ...packed.peerDependencies })
      .filter(([name, range]) => names.has(name) && range !== `^${version}`)
      .map(([name, range]) => `${packed.name}: expected the range ^${version} of ${name}, got ${range}.`),
  ]);
}

function listNeeded({ dependencies, peerDependencies }) {
  return Object.keys({ ...dependencies, ...peerDependencies });
}

function runTar(file, ...args) {
  const [flags, ...rest] = args;
  const options = { cwd: dirname(file), encoding: "utf8", maxBuffer: 2 ** 28 };
  const { status, stdout, stderr, error } = spawnSync("tar", [flags, basename(file), ...rest], options);
  if (status === 0) return stdout;
  throw new Error(`${file}: expected a tarball, got an error of tar: ${error?.message ?? stderr}`);
}
