// Releases all packages under one version.
//
// ```
// npm run release -- [major | minor | patch] --dry-run [--out <folder>] [--no-check]
// npm run release -- major | minor | patch     the next version: changes, commit and tag, then publication
// npm run release                              the current version: the first release, or the rest of one that failed
// ```
//
// The packages are built, packed and checked in a copy of the repository. `--out` gets the tarballs and the lists of
// what would be published; by default it is .reports/release. A release continues only if every check passes.
// `pack:check` and the publication need the package registry.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { findForbiddenLicences, listLicences } from "./release/licences.mjs";
import { findWrongRanges, getTarballName, readPackedPackage, sortByDependencies } from "./release/packed-package.mjs";
import { describeProvenance } from "./release/provenance.mjs";
import { publishPackages } from "./release/publish.mjs";
import { findRefusals, readRepositoryState } from "./release/repository-state.mjs";
import { runCommand } from "./release/run-command.mjs";
import { applyVersion, createStage } from "./release/stage.mjs";
import { getNextVersion, listPackages, readVersion } from "./release/version.mjs";

const root = resolve(import.meta.dirname, "..");

/** Runs a release or a dry run. Throws an error on the first reason not to release. */
async function release({ bump, dryRun, out, check }) {
  const old = readVersion(root);
  const version = bump === undefined ? old : getNextVersion(old, bump);
  const state = await readRepositoryState(root, version);
  const refusals = findRefusals(root, version, state);
  if (!dryRun && refusals.length > 0) throw new Error(refusals.join("\n"));
  console.log(`release: version ${version}${dryRun ? ", a dry run: the repository stays as it is" : ""}`);
  for (const refusal of refusals) console.log(`  not yet: ${refusal}`);

  const date = new Date().toISOString().slice(0, 10);
  const provenance = describeProvenance({
    env: process.env,
    manifests: listPackages(root).map(({ manifest }) => manifest),
    commit: state.commit,
  });
  const prepared = await prepareTarballs({ version, date, out, check });
  writeLists(out, { version, date, commit: state.commit, provenance, ...prepared });
  printLists(out, { provenance, ...prepared });
  if (dryRun) return;

  if (state.taggedCommit === undefined) await commitVersion({ version, date });
  console.log("publication:");
  await publishPackages(prepared.packages, { folder: out, cwd: root, attested: provenance.attested, log: console.log });
  console.log("published. Run: git push --follow-tags");
}

/** Builds, packs and checks the packages in a stage, and writes the tarballs into `out`. */
async function prepareTarballs({ version, date, out, check }) {
  const licences = await listLicences(root);
  failOnProblems(findForbiddenLicences(licences));
  clearFolder(out);
  const stage = await createStage(root);
  try {
    const { notes } = applyVersion(stage, { version, date });
    const packages = await packPackages(stage, out);
    failOnProblems(findWrongRanges(packages, version));
    const sorted = sortByDependencies(packages);
    if (check) await runNode(stage, "scripts/pack-check.mjs", "--tarballs", out);
    return { licences, notes, packages: sorted };
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** Creates the folder, or removes the files of an earlier release. Throws an error for a folder with other files. */
function clearFolder(out) {
  mkdirSync(out, { recursive: true });
  const old = readdirSync(out);
  const other = old.find((name) => !/^(?:NOTES\.md|release\.json|.*\.tgz)$/.test(name));
  if (other !== undefined)
    throw new Error(`release: expected --out to be a folder for tarballs, got ${out} with ${other}. Use a new folder.`);
  for (const name of old) rmSync(join(out, name));
}

async function packPackages(stage, out) {
  await runCommand("tsc", ["-b", ...listPackages(stage).map(({ folder }) => folder)], { cwd: stage });
  await runNode(stage, "scripts/bundle.mjs");
  const { packPackage } = await import(pathToFileURL(join(stage, "scripts/pack-package.mjs")).href);
  return listPackages(stage).map(({ folder, manifest }) => {
    const file = join(out, getTarballName(manifest));
    packPackage(folder, file);
    return readPackedPackage(file);
  });
}

async function runNode(stage, ...args) {
  await runCommand(process.execPath, args, { cwd: stage, show: true });
}

/** Writes what would be published: the packages, the licences and the notes of the version. */
function writeLists(out, { notes, ...lists }) {
  writeFileSync(join(out, "release.json"), `${JSON.stringify(lists, undefined, 2)}\n`);
  writeFileSync(join(out, "NOTES.md"), `# ${lists.version} - ${lists.date}\n\n${notes.trim()}\n`);
}

function printLists(out, { provenance, licences, notes, packages }) {
  console.log(`changelog: ${notes.split("\n").filter((line) => line.startsWith("- ")).length} entries`);
  console.log(`licences of the ${licences.length} packages that users install with ours, all allowed:`);
  for (const { name, version, licence } of licences) console.log(`  ${licence.padEnd(14)} ${name} ${version}`);
  console.log(`provenance: ${provenance.note}`);
  console.log("packages, in the order of publication:");
  for (const { name, version, bytes, files, integrity } of packages)
    console.log(`  ${name} ${version}, ${Math.ceil(bytes / 1024)} KiB, ${files} files, ${integrity}`);
  console.log(`tarballs and lists: ${out} (${readdirSync(out).length} files)`);
  console.log(`install them in a project: npm install ${join(out, "*.tgz")}`);
}

/** Writes the version into the repository, as a commit with a tag. */
async function commitVersion({ version, date }) {
  const { files } = applyVersion(root, { version, date });
  await runCommand("git", ["add", ...files], { cwd: root });
  await runCommand("git", ["commit", "--quiet", "--message", `Release ${version}`], { cwd: root });
  await runCommand("git", ["tag", "--annotate", `v${version}`, "--message", `Release ${version}`], { cwd: root });
}

function failOnProblems(problems) {
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    allowNegative: true,
    options: {
      "dry-run": { type: "boolean", default: false },
      out: { type: "string", default: join(root, ".reports/release") },
      check: { type: "boolean", default: true },
    },
  });
  if (positionals.length > 1)
    throw new Error(`release: expected one of major, minor and patch, got "${positionals.join(" ")}".`);
  if (!values["dry-run"] && !values.check)
    throw new Error("release: expected --no-check with --dry-run only, got a release. Remove --no-check.");
  return { bump: positionals[0], dryRun: values["dry-run"], check: values.check, out: resolve(values.out) };
}

try {
  await release(readArguments());
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
