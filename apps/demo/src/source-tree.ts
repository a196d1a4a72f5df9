/** Access to a source tree: file list and file text, both with limits. */
import { isHostError, workspace } from "@statewright/host";

/** Maximum number of listed files and folders; the report notes a larger tree. */
export const maxEntries = 5_000;

/** Maximum size of a text file. Larger files are usually data or generated. */
const maxFileBytes = 512 * 1024;

/** Folders of generated or downloaded files, skipped even without a .gitignore entry. */
const skippedFolders =
  ".git .hg .svn node_modules bower_components dist target coverage vendor venv .venv __pycache__ .tox .cache .next .turbo".split(
    " ",
  );

/** Files of a tree, as paths relative to its root with `/` separators. */
export interface Listing {
  readonly files: readonly string[];
  /** True when the tree exceeds the limit. */
  readonly more: boolean;
  /** Folders without read permission. */
  readonly unreadable: readonly string[];
}

/** Lists the files of a folder recursively, without ignored files (.gitignore). Does not follow links. */
export async function listFiles(root: string, signal: AbortSignal, folder = "."): Promise<Listing> {
  const { entries, unreadable, truncated } = await workspace(root).list({
    path: folder,
    skip: skippedFolders,
    limit: maxEntries,
    signal,
  });
  return {
    files: entries.flatMap(({ path, kind }) => (kind === "file" ? [path] : [])),
    more: truncated,
    unreadable: unreadable.map(({ path }) => path),
  };
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

/** Returns true for a temporary shortage of host resources: a retry of the read may succeed. */
export function isBusy(systemCode: string | undefined): boolean {
  return systemCode !== undefined && ["EMFILE", "ENFILE", "EAGAIN", "EBUSY"].includes(systemCode);
}
