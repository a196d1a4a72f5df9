// A stage: a copy of the repository with the next version, in a temporary folder. The packages are built, packed and
// checked there, so that a dry run and a failed release leave the repository as it was.

import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createVersionSection, readSection } from "./changelog.mjs";
import { runCommand } from "./run-command.mjs";
import { writeVersion } from "./version.mjs";

/**
 * Copies all files of the repository except ignored ones, and links the installed packages. The caller removes the
 * returned folder.
 */
export async function createStage(root) {
  const stage = mkdtempSync(join(tmpdir(), "release-"));
  const flags = ["-z", "--cached", "--others", "--exclude-standard"];
  const listed = await runCommand("git", ["ls-files", ...flags], { cwd: root });
  for (const path of new Set(listed.split("\0").filter(Boolean)))
    if (existsSync(join(root, path))) cpSync(join(root, path), join(stage, path), { verbatimSymlinks: true });
  symlinkSync(join(root, "node_modules"), join(stage, "node_modules"), "junction");
  // The links of a package lead to its neighbours by relative paths, and therefore to the copies.
  for (const name of readdirSync(join(stage, "packages"))) {
    const modules = join("packages", name, "node_modules");
    if (existsSync(join(root, modules)))
      cpSync(join(root, modules), join(stage, modules), { recursive: true, verbatimSymlinks: true });
  }
  return stage;
}

/**
 * Writes the version and its section of CHANGELOG.md below `folder`. Returns the changed files and the notes of the
 * version. A version that has a section keeps its section.
 */
export function applyVersion(folder, { version, date }) {
  const file = join(folder, "CHANGELOG.md");
  const text = readFileSync(file, "utf8");
  const existing = readSection(text, version);
  const notes = existing?.join("\n").trim();
  const created = existing === undefined ? createVersionSection(text, { version, date }) : { text, notes };
  const files = writeVersion(folder, version);
  writeFileSync(file, created.text);
  return { files: [...files, "CHANGELOG.md"], notes: created.notes };
}
