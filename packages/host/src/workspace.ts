/** File access confined to one folder, for tools with paths from a model. */
import { type Dirent, constants as modes } from "node:fs";
import { access, type FileHandle, lstat, open, readdir, readlink, rename, unlink } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import type { World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { getCompleteUtf8Length } from "./capture.ts";
import { type IgnoreRule, matchIgnoreRules, parseIgnoreRules, type Verdict } from "./gitignore.ts";
import { getSystemCode, HostError } from "./host-error.ts";
import {
  createFlags,
  getListingPath,
  type Handle,
  type OpenFile,
  type OpenFolder,
  openFolder,
  openInside,
  toFileError,
  toPathFromRoot,
} from "./open-inside.ts";
import { type PageOptions, type PageResult, readPage } from "./read-page.ts";

/** Kind of a file after resolving links. */
export type FileKind = "file" | "folder" | "other";

/** Metadata of a file. */
export interface FileStat {
  /** Real path relative to the root, with `/`; equal for two paths to the same file. */
  readonly path: string;
  readonly kind: FileKind;
  readonly bytes: number;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
  /** Time of the last change, in milliseconds since the epoch. */
  readonly modifiedMs: number;
}

/** Limits of a read. */
export interface ReadOptions {
  /** Maximum number of bytes, from the start of the file. Default: 1 MiB. */
  readonly maxBytes?: number;
}

/**
 * Content of a file: unchanged text with byte order mark and line ends, or bytes for content that is not UTF-8 text.
 */
export type ReadResult =
  | { readonly kind: "text"; readonly text: string; readonly truncated: boolean; readonly totalBytes: number }
  | { readonly kind: "binary"; readonly bytes: Uint8Array; readonly truncated: boolean; readonly totalBytes: number };

/** Result of a write. */
export interface WriteResult {
  /** Real path of the file relative to the root, with `/`. */
  readonly path: string;
  /** True when the file did not exist before. */
  readonly created: boolean;
  readonly bytes: number;
}

/** Options of a folder listing. */
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
  /** Filter of entries. Other entries are neither listed nor counted, but folders among them are still traversed. */
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

/**
 * Files below one root. Paths are relative to the root or absolute, and are checked after resolving links: a path
 * outside the root is refused.
 */
export interface Workspace {
  /** Absolute path of the root folder. */
  readonly root: string;
  /**
   * Lists a folder and its descendants. Links are listed, not followed. Throws if the folder itself cannot be listed.
   */
  list(options?: ListOptions): Promise<Listing>;
  /** Reads a file. Throws `not_found`, `denied`, `outside` or `io`. */
  read(path: string, options?: ReadOptions): Promise<ReadResult>;
  /**
   * Reads a page of lines of a file without loading the rest. Throws `not_found`, `denied`, `outside`, `cancelled` or
   * `io`.
   */
  readLines(path: string, options?: PageOptions): Promise<PageResult>;
  /**
   * Writes a whole file atomically. Creates missing parent folders and preserves the mode of an existing file. A
   * reader sees the old or the new content, also after a crash. Throws `denied`, `outside`, `too_large` or `io`, with
   * nothing changed.
   */
  write(path: string, content: string | Uint8Array): Promise<WriteResult>;
  /** Returns the metadata of a file. Throws `not_found`, `denied`, `outside` or `io`. */
  stat(path: string): Promise<FileStat>;
}

/** Opens a folder as a workspace. Does not access the file system before the first call. */
export function workspace(root: string, options: { readonly world?: World } = {}): Workspace {
  const folder = resolve(root);
  const { random } = options.world ?? systemWorld();
  return {
    root: folder,
    list: (list = {}) => listFolder(folder, list),
    read: (path, { maxBytes = 2 ** 20 } = {}) => convertErrors("read", path, () => readFile(folder, path, maxBytes)),
    readLines: (path, page = {}) => convertErrors("read", path, () => readLines(folder, path, page)),
    write: (path, content) => convertErrors("write", path, () => writeFile(folder, path, content, () => random.next())),
    stat: (path) => convertErrors("look at", path, () => statFile(folder, path)),
  };
}

async function convertErrors<Value>(
  verb: "read" | "write" | "look at",
  path: string,
  operation: () => Promise<Value>,
): Promise<Value> {
  try {
    return await operation();
  } catch (error) {
    throw toFileError(verb, path, error);
  }
}

async function statFile(root: string, path: string): Promise<FileStat> {
  const { handle, stat, path: real } = await openInside(root, await toPathFromRoot(root, path), "look");
  await handle.close();
  const { size, mode, mtimeMs } = stat;
  return {
    path: toSlashes(real),
    kind: getFileKind(stat),
    bytes: Number(size),
    mode: Number(mode) & 0o7777,
    modifiedMs: Number(mtimeMs),
  };
}

async function readFile(root: string, path: string, maxBytes: number): Promise<ReadResult> {
  const { handle, stat } = await openFile(root, path);
  try {
    const content = await readUpTo(handle, maxBytes + 1, Number(stat.size));
    const truncated = content.length > maxBytes;
    const bytes = content.subarray(0, maxBytes);
    const totalBytes = Math.max(Number(stat.size), content.length);
    const text = decodeText(truncated ? bytes.subarray(0, getCompleteUtf8Length(bytes)) : bytes);
    return text === undefined
      ? { kind: "binary", bytes, truncated, totalBytes }
      : { kind: "text", text, truncated, totalBytes };
  } finally {
    await handle.close();
  }
}

async function readLines(root: string, path: string, page: PageOptions): Promise<PageResult> {
  const { handle, stat } = await openFile(root, path);
  try {
    return await readPage(handle, Number(stat.size), page);
  } finally {
    await handle.close();
  }
}

/** Opens a file; refuses folders and special files. */
async function openFile(root: string, path: string): Promise<OpenFile> {
  const opened = await openInside(root, await toPathFromRoot(root, path), "read");
  if (opened.stat.isFile()) return opened;
  await opened.handle.close();
  if (!opened.stat.isDirectory()) throw createNotAFileError("read", path);
  throw new HostError("io", `Cannot read ${formatPath(path)}: the path is a folder. List the folder instead.`);
}

/**
 * Reads from the start up to a limit or the end. Ignores the reported file size: a file can grow, and /proc reports
 * 0.
 */
async function readUpTo(handle: Handle, maxBytes: number, size = maxBytes): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let total = 0; total < maxBytes; ) {
    // One byte more than expected, to detect the end of the file with the same read.
    const expectedBytes = total < size ? size - total + 1 : maxBytes;
    const chunk = Buffer.allocUnsafe(Math.min(maxBytes - total, expectedBytes, 64 * 1024));
    const bytesRead = await handle.read(chunk, total);
    if (bytesRead === 0) break;
    chunks.push(chunk.subarray(0, bytesRead));
    total += bytesRead;
    if (size > 0 && total >= size && bytesRead < chunk.length) break;
  }
  return chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks);
}

/** Decodes UTF-8 text; undefined for binary content (invalid UTF-8, or a zero byte). */
function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Maximum number of links on a path, as on Linux. */
const maxLinks = 40;

async function writeFile(
  root: string,
  path: string,
  content: string | Uint8Array,
  nextRandom: () => number,
): Promise<WriteResult> {
  let target = await toPathFromRoot(root, path);
  for (let links = 0; links <= maxLinks; links++) {
    const parts = target.split(sep);
    const name = parts.pop() ?? "";
    if (name === "")
      throw new HostError("io", `Cannot write ${formatPath(path)}: the path is a folder. Pass the path of a file.`);
    const folder = await openFolder(root, parts);
    const written = await writeInFolder(folder, name, path, content, nextRandom).finally(() =>
      folder[Symbol.asyncDispose](),
    );
    if ("created" in written) return written;
    // Writes through the link to its target file; the folder of the target is checked like any other.
    target = await toPathFromRoot(root, resolve(root, folder.path, written.link));
  }
  throw new HostError(
    "io",
    `Cannot write ${formatPath(path)}: too many symbolic links (a cycle). Pass the path of the file itself.`,
  );
}

/** Writes a file of an open folder. For a link, returns the link target instead. */
async function writeInFolder(
  folder: OpenFolder,
  name: string,
  path: string,
  content: string | Uint8Array,
  nextRandom: () => number,
): Promise<WriteResult | { readonly link: string }> {
  const existing = await lstat(folder.resolve(name)).catch(ignoreMissing);
  if (existing?.isSymbolicLink()) return { link: await readlink(folder.resolve(name)) };
  if (existing?.isDirectory())
    throw new HostError("io", `Cannot write ${formatPath(path)}: the path is a folder. Use another name.`);
  if (existing !== undefined && !existing.isFile()) throw createNotAFileError("write", path);
  if (existing !== undefined) await access(folder.resolve(name), modes.W_OK);
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  await replaceFile(folder, name, bytes, existing && existing.mode & 0o7777, nextRandom);
  return { path: toSlashes(join(folder.path, name)), created: existing === undefined, bytes: bytes.length };
}

/** Writes a temporary file, then renames it over the target; removes the temporary file on failure. */
async function replaceFile(
  folder: OpenFolder,
  name: string,
  bytes: Uint8Array,
  mode: number | undefined,
  nextRandom: () => number,
): Promise<void> {
  const { handle, temporary } = await createTempFile(folder, nextRandom);
  try {
    try {
      await handle.writeFile(bytes);
      if (mode !== undefined) await handle.chmod(mode);
      // Without fsync, a power failure can leave an empty file under the new name.
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, folder.resolve(name));
  } catch (error) {
    await unlink(temporary).catch(ignoreCleanupError);
    throw error;
  }
}

/** The error of the failed write is reported; the error of the cleanup is ignored. */
function ignoreCleanupError(): void {}

/** Maximum number of attempted names: equal seeds create equal names, and a crash can leave temporary files behind. */
const maxNames = 100;

async function createTempFile(
  folder: OpenFolder,
  nextRandom: () => number,
): Promise<{ readonly handle: FileHandle; readonly temporary: string }> {
  for (let names = 1; ; names++) {
    const temporary = folder.resolve(`.statewright-${Math.floor(nextRandom() * 2 ** 52).toString(36)}.tmp`);
    try {
      return { handle: await open(temporary, createFlags, 0o666), temporary };
    } catch (error) {
      if (getSystemCode(error) !== "EEXIST" || names === maxNames) throw error;
    }
  }
}

/** Name of a temporary file, left behind by a crash during a write; hidden from listings. */
const tempFileName = /^\.statewright-[0-9a-z]+\.tmp$/;

/** Rules of one .gitignore, with the folder depth of the file. */
interface FolderRules {
  readonly depth: number;
  readonly rules: readonly IgnoreRule[];
}

interface Traversal {
  readonly root: string;
  readonly options: Required<Omit<ListOptions, "signal" | "path" | "filter">>;
  readonly filter: NonNullable<ListOptions["filter"]>;
  readonly signal: AbortSignal | undefined;
  readonly entries: { path: string; kind: FileKind | "link" }[];
  readonly skipped: string[];
  readonly unreadable: { path: string; cause: string }[];
  truncated: boolean;
}

async function listFolder(root: string, options: ListOptions): Promise<Listing> {
  const { path = ".", depth = Number.POSITIVE_INFINITY, limit = 1000, gitignore = true } = options;
  const { skip = [".git", "node_modules"], signal, filter = () => true } = options;
  const traversal: Traversal = {
    root,
    options: { depth, limit, gitignore, skip },
    filter,
    signal,
    entries: [],
    skipped: [],
    unreadable: [],
    truncated: false,
  };
  try {
    const start = await toPathFromRoot(root, path);
    const folder = await openInside(root, start, "folder");
    const parts = folder.path === "" ? [] : folder.path.split(sep);
    const parentRules: FolderRules[] = [];
    if (gitignore) {
      for (let count = 0; count < parts.length; count++)
        parentRules.push(await loadFolderRules(root, parts.slice(0, count)));
    }
    await listOpenFolder(traversal, folder, parts, parentRules, 1);
  } catch (error) {
    throw toFileError("list", path, error);
  }
  const { entries, skipped, unreadable, truncated } = traversal;
  return { entries, skipped, unreadable, truncated };
}

/** List an open folder and close it. */
async function listOpenFolder(
  traversal: Traversal,
  folder: OpenFile,
  parts: readonly string[],
  parentRules: readonly FolderRules[],
  depth: number,
): Promise<void> {
  const { root, options } = traversal;
  if (traversal.signal?.aborted) {
    await folder.handle.close();
    throw new HostError("cancelled", `Listing ${formatPath(parts.join("/"))} was cancelled.`);
  }
  const dirents = await readdir(getListingPath(root, folder), { withFileTypes: true, encoding: "buffer" }).finally(() =>
    folder.handle.close(),
  );
  const hasRules = options.gitignore && dirents.some((entry) => entry.name.toString("latin1") === ".gitignore");
  const rules = hasRules ? [...parentRules, await loadFolderRules(root, parts)] : parentRules;
  for (const entry of dirents.sort((left, right) => Buffer.compare(left.name, right.name))) {
    await listEntry(traversal, entry, parts, rules, depth);
    if (traversal.truncated) return;
  }
}

async function listEntry(
  traversal: Traversal,
  entry: Dirent<Buffer>,
  parts: readonly string[],
  rules: readonly FolderRules[],
  depth: number,
): Promise<void> {
  const { entries, skipped, unreadable, options } = traversal;
  const name = entry.name.toString("utf8");
  const entryParts = [...parts, name];
  const path = entryParts.join("/");
  if (options.skip.includes(name) || tempFileName.test(name) || isIgnored(rules, entryParts, entry.isDirectory())) {
    addBounded(skipped, path, options.limit);
    return;
  }
  if (!Buffer.from(name).equals(entry.name)) {
    addBounded(
      unreadable,
      { path, cause: "the name is not valid UTF-8, so no path can address the entry" },
      options.limit,
    );
    return;
  }
  const kind = entry.isSymbolicLink() ? "link" : getFileKind(entry);
  if (traversal.filter(path, kind)) {
    if (entries.length >= options.limit) {
      traversal.truncated = true;
      return;
    }
    entries.push({ path, kind });
  }
  if (!entry.isDirectory() || depth >= options.depth) return;
  try {
    const folder = await openInside(traversal.root, join(...entryParts), "folder");
    if (toSlashes(folder.path) === path) return await listOpenFolder(traversal, folder, entryParts, rules, depth + 1);
    await folder.handle.close();
    addBounded(unreadable, { path, cause: "the folder was replaced by a link during the listing" }, options.limit);
  } catch (error) {
    if (error instanceof HostError) throw error;
    addBounded(
      unreadable,
      { path, cause: getSystemCode(error) || "the entry is outside the workspace" },
      options.limit,
    );
  }
}

/** The deepest matching .gitignore decides; an ignored folder is never traversed. */
function isIgnored(rules: readonly FolderRules[], path: readonly string[], isFolder: boolean): boolean {
  const bytes = path.map((name) => Buffer.from(name).toString("latin1"));
  for (const { depth, rules: folderRules } of rules.toReversed()) {
    const verdict: Verdict = matchIgnoreRules(folderRules, bytes.slice(depth), isFolder);
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

function addBounded<Item>(items: Item[], item: Item, limit: number): void {
  if (items.length < limit) items.push(item);
}

function getFileKind(entry: { isFile(): boolean; isDirectory(): boolean }): FileKind {
  if (entry.isFile()) return "file";
  return entry.isDirectory() ? "folder" : "other";
}

function createNotAFileError(verb: "read" | "write", path: string): HostError {
  const reason = "the path is a device, a pipe or a socket. Pass the path of a file.";
  return new HostError("io", `Cannot ${verb} ${formatPath(path)}: ${reason}`);
}

function ignoreMissing(error: unknown): undefined {
  if (getSystemCode(error) !== "ENOENT") throw error;
}

function formatPath(path: string): string {
  return path === "" ? "." : path;
}

function toSlashes(path: string): string {
  return sep === "/" ? path : path.replaceAll(sep, "/");
}
