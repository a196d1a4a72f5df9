/** A source tree as the audit sees it: which files there are, and their text, both within bounds. */
import { isHostError, workspace } from "@statewright/host";

/** More files and folders than this are not looked at; the report says so. */
export const maxEntries = 5_000;

/** A larger file is not read as text: it is data, or made by a program. */
const maxFileBytes = 512 * 1024;

/** Folders that hold what tools made or fetched, where no .gitignore says so. */
const skip =
  ".git .hg .svn node_modules bower_components dist target coverage vendor venv .venv __pycache__ .tox .cache .next .turbo".split(
    " ",
  );

/** The files of a tree, by their paths from its root with `/` between folders. */
export interface Listing {
  readonly files: readonly string[];
  /** The tree is larger than what was looked at. */
  readonly more: boolean;
  /** Folders that could not be read. */
  readonly unreadable: readonly string[];
}

/** List the files of a folder of the tree and below it, without what .gitignore files leave out. Links are not followed. */
export async function listFiles(root: string, signal: AbortSignal, folder = "."): Promise<Listing> {
  const { entries, unreadable, truncated } = await workspace(root).list({
    path: folder,
    skip,
    limit: maxEntries,
    signal,
  });
  return {
    files: entries.flatMap(({ path, kind }) => (kind === "file" ? [path] : [])),
    more: truncated,
    unreadable: unreadable.map(({ path }) => path),
  };
}

/** What a file turned out to be: its text, or why there is none. */
export type FileText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary" | "large" | "unreadable" | "missing" | "outside" };

/** Read one file of the tree as text. What is not in the tree, or not a file, is not read. */
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

/** The host is short of something for now: the same read may work later. */
export function isBusy(systemCode: string | undefined): boolean {
  return systemCode !== undefined && ["EMFILE", "ENFILE", "EAGAIN", "EBUSY"].includes(systemCode);
}
