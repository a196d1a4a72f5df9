/** Recursive listing of a folder inside a root, with .gitignore rules. */
import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, sep } from "node:path";
import { type FileKind, getFileKind } from "./file-kind.ts";
import { formatPath, toSlashes } from "./format-path.ts";
import { type IgnoreRule, matchIgnoreRules, parseIgnoreRules, type Verdict } from "./gitignore.ts";
import { getSystemCode, HostError } from "./host-error.ts";
import { getListingPath, type OpenFile, openInside, toFileError, toPathFromRoot } from "./open-inside.ts";
import { readUpTo } from "./read-up-to.ts";
import { tempFileName } from "./write-file.ts";

/** Start, bounds and filters of a folder listing. */
export interface ListOptions {
  /** Folder to list. Default: the root. */
  readonly path?: string;
  /** Maximum folder depth; 1 lists only the folder itself. No limit by default. */
  readonly depth?: number;
  /** Maximum number of entries. Default: 1,000. */
  readonly limit?: number;
  /** Applies the .gitignore files from the root down. Default: true. */
  readonly gitignore?: boolean;
  /** Names to skip. Default: `.git` and `node_modules`. */
  readonly skip?: readonly string[];
  /** Filter of entries. Other entries are neither listed nor counted; other folders are still traversed. */
  readonly filter?: (path: string, kind: FileKind | "link") => boolean;
  /** Aborts the listing with `cancelled`. */
  readonly signal?: AbortSignal;
}

/** Folder listing sorted by name, each folder before its content. */
export interface Listing {
  readonly entries: readonly { readonly path: string; readonly kind: FileKind | "link" }[];
  /** Entries skipped by name or by a .gitignore, at most `limit`; the content of a skipped folder is not listed. */
  readonly skipped: readonly string[];
  /** Entries that could not be listed, with the cause, at most `limit`. */
  readonly unreadable: readonly { readonly path: string; readonly cause: string }[];
  /** True when `limit` truncated the listing. */
  readonly truncated: boolean;
}

/** Rules of a .gitignore, with the folder depth of the file. */
interface FolderRules {
  readonly depth: number;
  readonly rules: readonly IgnoreRule[];
}

/** Position of a traversal: the folder, the .gitignore rules from the root down, and the depth below the start. */
interface Position {
  readonly parts: readonly string[];
  readonly rules: readonly FolderRules[];
  readonly depth: number;
}

/** Lists a folder and its descendants. Throws if the folder itself cannot be listed. */
export async function listFolder(root: string, options: ListOptions): Promise<Listing> {
  const { path = ".", gitignore = true } = options;
  const traversal = new Traversal(root, options);
  try {
    const start = await toPathFromRoot(root, path);
    const folder = await openInside(root, start, "folder");
    const parts = folder.path === "" ? [] : folder.path.split(sep);
    const rules: FolderRules[] = [];
    if (gitignore) {
      for (let count = 0; count < parts.length; count++) rules.push(await loadFolderRules(root, parts.slice(0, count)));
    }
    await traversal.listOpenFolder(folder, { parts, rules, depth: 1 });
  } catch (error) {
    throw toFileError("list", path, error);
  }
  return traversal.getListing();
}

/** Traversal of a listing: collects entries up to the limit. */
class Traversal {
  readonly #root: string;
  readonly #options: Required<Omit<ListOptions, "signal" | "path">>;
  readonly #signal: AbortSignal | undefined;
  readonly #entries: { path: string; kind: FileKind | "link" }[] = [];
  readonly #skipped: string[] = [];
  readonly #unreadable: { path: string; cause: string }[] = [];
  #truncated = false;

  constructor(root: string, options: ListOptions) {
    const { depth = Number.POSITIVE_INFINITY, limit = 1000, gitignore = true } = options;
    const { skip = [".git", "node_modules"], signal, filter = () => true } = options;
    this.#root = root;
    this.#options = { depth, limit, gitignore, skip, filter };
    this.#signal = signal;
  }

  getListing(): Listing {
    return {
      entries: this.#entries,
      skipped: this.#skipped,
      unreadable: this.#unreadable,
      truncated: this.#truncated,
    };
  }

  /** Lists an open folder and closes the folder. */
  async listOpenFolder(folder: OpenFile, position: Position): Promise<void> {
    const { parts } = position;
    if (this.#signal?.aborted) {
      await folder.handle.close();
      throw new HostError("cancelled", `Listing ${formatPath(parts.join("/"))} was cancelled.`);
    }
    const dirents = await readdir(getListingPath(this.#root, folder), {
      withFileTypes: true,
      encoding: "buffer",
    }).finally(() => folder.handle.close());
    const hasRules = this.#options.gitignore && dirents.some((entry) => entry.name.toString("latin1") === ".gitignore");
    const rules = hasRules ? [...position.rules, await loadFolderRules(this.#root, parts)] : position.rules;
    for (const entry of dirents.sort((left, right) => Buffer.compare(left.name, right.name))) {
      await this.#listEntry(entry, { ...position, rules });
      if (this.#truncated) return;
    }
  }

  async #listEntry(entry: Dirent<Buffer>, { parts, rules, depth }: Position): Promise<void> {
    const { skip, filter, limit } = this.#options;
    const name = entry.name.toString("utf8");
    const entryParts = [...parts, name];
    const path = entryParts.join("/");
    const kind = entry.isSymbolicLink() ? "link" : getFileKind(entry);
    if (skip.includes(name) || tempFileName.test(name) || isIgnored(rules, entryParts, kind)) {
      if (this.#skipped.length < limit) this.#skipped.push(path);
      return;
    }
    if (!Buffer.from(name).equals(entry.name)) {
      this.#addUnreadable(path, "the name is not valid UTF-8, so no path can address the entry");
      return;
    }
    if (filter(path, kind)) {
      if (this.#entries.length >= limit) {
        this.#truncated = true;
        return;
      }
      this.#entries.push({ path, kind });
    }
    if (kind === "folder" && depth < this.#options.depth)
      await this.#listSubfolder({ parts: entryParts, rules, depth: depth + 1 });
  }

  async #listSubfolder(position: Position): Promise<void> {
    const path = position.parts.join("/");
    try {
      const folder = await openInside(this.#root, join(...position.parts), "folder");
      if (toSlashes(folder.path) === path) return await this.listOpenFolder(folder, position);
      await folder.handle.close();
      this.#addUnreadable(path, "the folder was replaced by a link during the listing");
    } catch (error) {
      if (error instanceof HostError) throw error;
      this.#addUnreadable(path, getSystemCode(error) || "the entry is outside the workspace");
    }
  }

  #addUnreadable(path: string, cause: string): void {
    if (this.#unreadable.length < this.#options.limit) this.#unreadable.push({ path, cause });
  }
}

/** The deepest matching .gitignore decides; an ignored folder is never traversed. */
function isIgnored(rules: readonly FolderRules[], path: readonly string[], kind: FileKind | "link"): boolean {
  const bytes = path.map((name) => Buffer.from(name).toString("latin1"));
  for (const { depth, rules: folderRules } of rules.toReversed()) {
    const verdict: Verdict = matchIgnoreRules(folderRules, bytes.slice(depth), kind);
    if (verdict !== undefined) return verdict === "ignored";
  }
  return false;
}

/** Maximum size of a .gitignore; a larger file is truncated. */
const maxRulesBytes = 2 ** 20;

/** Loads the rules of a folder; empty if its .gitignore is missing, unreadable or, as with git, a link. */
async function loadFolderRules(root: string, parts: readonly string[]): Promise<FolderRules> {
  const path = join(...parts, ".gitignore");
  try {
    const { handle, stat, path: real } = await openInside(root, path, "read");
    try {
      const isRegularFile = real === path && stat.isFile();
      const bytes = isRegularFile ? await readUpTo(handle, maxRulesBytes) : Buffer.alloc(0);
      return { depth: parts.length, rules: parseIgnoreRules(bytes.toString("latin1")) };
    } finally {
      await handle.close();
    }
  } catch {
    return { depth: parts.length, rules: [] };
  }
}
