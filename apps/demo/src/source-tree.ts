/** Access to a source tree: file list and file text, both with limits. */
import { existsSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { isHostError, workspace } from "@statewright/host";

/** Maximum number of listed files and folders; the report notes a larger tree. */
export const maxEntries = 5_000;

/** Maximum size of a text file. Larger files are usually data or generated. */
const maxFileBytes = 512 * 1024;

const historyFolders = [".git", ".hg", ".svn"];

/** Folders of downloaded files and of tool caches, skipped even without a .gitignore entry. */
const downloadedFolders = "node_modules bower_components venv .venv __pycache__ .tox .cache .next .turbo".split(" ");

/** Folders of generated or copied files, skipped in a git working tree. A published package has its code there. */
const generatedFolders = ["dist", "target", "coverage", "vendor"];

/** Files of a tree, as paths relative to its root with `/` separators. The files of the listed folder come first. */
export interface Listing {
  readonly files: readonly string[];
  /** True when the tree exceeds the limit. */
  readonly more: boolean;
  /** Folders without read permission. */
  readonly unreadable: readonly string[];
  /** Names of the skipped folders, such as `dist`. */
  readonly skipped: readonly string[];
}

/** Lists the files of a folder recursively, without ignored files (.gitignore). Does not follow links. */
export async function listFiles(root: string, signal: AbortSignal, folder = "."): Promise<Listing> {
  const foreign = isGitWorkingTree(root) ? [...downloadedFolders, ...generatedFolders] : downloadedFolders;
  const options = { path: folder, skip: [...historyFolders, ...foreign], limit: maxEntries, signal };
  // The files of the folder itself first: a truncated listing of a large tree could end before its README.
  const top = await workspace(root).list({ ...options, depth: 1 });
  const all = await workspace(root).list(options);
  const files = [...top.entries, ...all.entries].flatMap(({ path, kind }) => (kind === "file" ? [path] : []));
  const skipped = new Set(all.skipped.map((path) => basename(path)).filter((name) => foreign.includes(name)));
  return {
    files: [...new Set(files)],
    more: all.truncated,
    unreadable: all.unreadable.map(({ path }) => path),
    skipped: [...skipped].sort(),
  };
}

/** Returns true below a `.git` folder or file, except in downloaded packages. */
function isGitWorkingTree(folder: string): boolean {
  if (isDownloadedPackage(folder)) return false;
  if (existsSync(join(folder, ".git"))) return true;
  const parent = dirname(folder);
  return parent !== folder && isGitWorkingTree(parent);
}

/** Returns true for a folder that a package manager installed. */
export function isDownloadedPackage(folder: string): boolean {
  return folder.split(sep).some((name) => ["node_modules", "site-packages"].includes(name));
}

/** Result of reading a file: its text, or the reason for a missing text. */
export type FileText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary" | "large" | "unreadable" | "missing" | "outside" };

/** Reads one file of the tree as text. Does not read paths outside the tree. */
export async function readText(root: string, path: string): Promise<FileText> {
  try {
    const file = await workspace(root).read(path, { maxBytes: maxFileBytes });
    if (file.truncated) return { kind: "large" };
    return file.kind === "text" ? { kind: "text", text: file.text } : { kind: "binary" };
  } catch (error) {
    if (!isHostError(error) || isBusy(error.systemCode)) throw error;
    if (error.code === "not_found") return { kind: "missing" };
    return { kind: error.code === "outside" ? "outside" : "unreadable" };
  }
}

/** Returns true for a README at the root of the tree. */
export function isRootReadme(path: string): boolean {
  return /^readme(\.[a-z]+)?$/i.test(path);
}

/** Returns true for files of tests, examples and documents, whose secrets are usually made up. */
export function isSampleFile(path: string): boolean {
  return isTestFile(path) || /(^|\/)(docs?|examples?|samples?|fixtures?|testdata)\/|\.(md|mdx|rst)$/i.test(path);
}

/** Returns true for files of tests, by the conventions of common languages. */
export function isTestFile(path: string): boolean {
  return (
    /(^|\/)(tests?|specs?|__tests__)\/|[._-](test|spec)s?\.|(^|\/)(test_|conftest\.)/i.test(path) ||
    /(Tests?|Spec)\.(cs|java|kt|php|scala|swift)$/.test(path)
  );
}

/** Returns true for a temporary shortage of host resources: a retry of the read may succeed. */
export function isBusy(systemCode: string | undefined): boolean {
  return systemCode !== undefined && ["EMFILE", "ENFILE", "EAGAIN", "EBUSY"].includes(systemCode);
}
