/** File access that stays inside one folder, for tools whose paths come from a model. */
import { type Dirent, constants as modes } from "node:fs";
import { access, type FileHandle, lstat, open, readdir, readlink, rename, unlink } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { systemWorld, type World } from "@statewright/core";
import { wholeCharacters } from "./capture.ts";
import { type IgnoreRule, ignoreRules, judge, type Verdict } from "./gitignore.ts";
import { HostError, systemCodeOf } from "./host-error.ts";
import {
  createFlags,
  fileError,
  type Handle,
  nameOfOpen,
  type OpenFile,
  type OpenFolder,
  openFolder,
  openInside,
  pathFromRoot,
} from "./open-inside.ts";
import { type PageOptions, type PageResult, readPage } from "./read-page.ts";

/** What a path names, after links. */
export type FileKind = "file" | "folder" | "other";

/** What is known of a file without reading it. */
export interface FileStat {
  /** Where it really is, from the root, with `/`; the same for two paths that lead to one file. */
  readonly path: string;
  readonly kind: FileKind;
  readonly bytes: number;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
  /** Last change, in milliseconds since the epoch. */
  readonly modifiedMs: number;
}

/** How much to read. */
export interface ReadOptions {
  /** At most this many bytes from the start of the file; 1 MiB by default. */
  readonly maxBytes?: number;
}

/** A file's content: text as it stands, with its byte order mark and line ends, or bytes when it is no UTF-8 text. */
export type ReadResult =
  | { readonly kind: "text"; readonly text: string; readonly truncated: boolean; readonly totalBytes: number }
  | { readonly kind: "binary"; readonly bytes: Uint8Array; readonly truncated: boolean; readonly totalBytes: number };

/** What a write did. */
export interface WriteResult {
  /** Where the file really is, from the root, with `/`. */
  readonly path: string;
  /** Whether it did not exist before. */
  readonly created: boolean;
  readonly bytes: number;
}

/** What to list. */
export interface ListOptions {
  /** The folder; the root by default. */
  readonly path?: string;
  /** How many folders deep; 1 lists the folder alone. No limit by default. */
  readonly depth?: number;
  /** How many entries at most; 1,000 by default. */
  readonly limit?: number;
  /** Whether the .gitignore files from the root down are honoured; true by default. */
  readonly gitignore?: boolean;
  /** Names that are always left out; `.git` and `node_modules` by default. */
  readonly skip?: readonly string[];
  /** Which entries are wanted; the others are neither named nor counted, but the folders among them are looked into. */
  readonly wanted?: (path: string, kind: FileKind | "link") => boolean;
  /** Ends the walk with `cancelled`. */
  readonly signal?: AbortSignal;
}

/** What a folder holds, by name, each folder before its content. */
export interface Listing {
  readonly entries: readonly { readonly path: string; readonly kind: FileKind | "link" }[];
  /** What was left out by name or by a .gitignore, as many as `limit`; what lies below is not named. */
  readonly skipped: readonly string[];
  /** What could not be listed and why, as many as `limit`. */
  readonly unreadable: readonly { readonly path: string; readonly cause: string }[];
  /** Whether `limit` left something out. */
  readonly truncated: boolean;
}

/** Files below one root. Paths are relative to it or absolute, and judged after links: what lies outside is refused. */
export interface Workspace {
  /** The folder itself, as an absolute path. */
  readonly root: string;
  /** List a folder and what is below it. Links are named, not followed. Throws when the folder itself cannot be listed. */
  list(options?: ListOptions): Promise<Listing>;
  /** Read a file. Throws `not_found`, `denied`, `outside` or `io`. */
  read(path: string, options?: ReadOptions): Promise<ReadResult>;
  /** Read a page of a file by lines, without loading the rest. Throws `not_found`, `denied`, `outside`, `cancelled` or `io`. */
  readLines(path: string, options?: PageOptions): Promise<PageResult>;
  /**
   * Write a whole file at once, making the folders above it and keeping the mode of a file that was there. A reader sees
   * the old content or the new, also after a crash. Throws `denied`, `outside`, `too_large` or `io`, with nothing changed.
   */
  write(path: string, content: string | Uint8Array): Promise<WriteResult>;
  /** Say what a path names. Throws `not_found`, `denied`, `outside` or `io`. */
  stat(path: string): Promise<FileStat>;
}

/** Open a folder as a workspace. Nothing is touched before the first call. */
export function workspace(root: string, options: { readonly world?: World } = {}): Workspace {
  const folder = resolve(root);
  const { random } = options.world ?? systemWorld();
  return {
    root: folder,
    list: (list = {}) => listFolder(folder, list),
    read: (path, { maxBytes = 2 ** 20 } = {}) => guarded("read", path, () => readFile(folder, path, maxBytes)),
    readLines: (path, page = {}) => guarded("read", path, () => readLines(folder, path, page)),
    write: (path, content) => guarded("write", path, () => writeFile(folder, path, content, () => random.next())),
    stat: (path) => guarded("look at", path, () => statFile(folder, path)),
  };
}

async function guarded<Value>(
  verb: "read" | "write" | "look at",
  path: string,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    throw fileError(verb, path, error);
  }
}

async function statFile(root: string, path: string): Promise<FileStat> {
  const { handle, stat, path: real } = await openInside(root, await pathFromRoot(root, path), "look");
  await handle.close();
  const { size, mode, mtimeMs } = stat;
  return {
    path: slashed(real),
    kind: kindOf(stat),
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
    const text = textOf(truncated ? bytes.subarray(0, wholeCharacters(bytes)) : bytes);
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

/** Open what has to be a file. */
async function openFile(root: string, path: string): Promise<OpenFile> {
  const opened = await openInside(root, await pathFromRoot(root, path), "read");
  if (opened.stat.isFile()) return opened;
  await opened.handle.close();
  if (!opened.stat.isDirectory()) throw notAFile("read", path);
  throw new HostError("io", `Cannot read ${shown(path)}: it is a folder. List it instead.`);
}

/** Read from the start until enough or the end, whatever size the file says it has: it may grow, and /proc says 0. */
async function readUpTo(handle: Handle, maxBytes: number, size = maxBytes): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let total = 0; total < maxBytes; ) {
    // One byte more than there should be, so that the end is seen at once.
    const likely = total < size ? size - total + 1 : maxBytes;
    const chunk = Buffer.allocUnsafe(Math.min(maxBytes - total, likely, 64 * 1024));
    const bytesRead = await handle.read(chunk, total);
    if (bytesRead === 0) break;
    chunks.push(chunk.subarray(0, bytesRead));
    total += bytesRead;
    if (size > 0 && total >= size && bytesRead < chunk.length) break;
  }
  return chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks);
}

/** UTF-8 without zero bytes is text. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** How many links a path may go through, as on Linux. */
const maxLinks = 40;

async function writeFile(
  root: string,
  path: string,
  content: string | Uint8Array,
  chance: () => number,
): Promise<WriteResult> {
  let target = await pathFromRoot(root, path);
  for (let links = 0; links <= maxLinks; links++) {
    const parts = target.split(sep);
    const name = parts.pop() ?? "";
    if (name === "") throw new HostError("io", `Cannot write ${shown(path)}: it is a folder. Give the path of a file.`);
    const folder = await openFolder(root, parts);
    const written = await writeInto(folder, name, path, content, chance).finally(() => folder[Symbol.asyncDispose]());
    if ("created" in written) return written;
    // The file behind the link is meant, and its folder has to be judged like any other.
    target = await pathFromRoot(root, resolve(root, folder.path, written.link));
  }
  throw new HostError(
    "io",
    `Cannot write ${shown(path)}: its links lead in a circle. Give the path of the file itself.`,
  );
}

/** Write a file of a folder that is open; where a link stands in its place, where that leads. */
async function writeInto(
  folder: OpenFolder,
  name: string,
  path: string,
  content: string | Uint8Array,
  chance: () => number,
): Promise<WriteResult | { readonly link: string }> {
  const before = await lstat(folder.at(name)).catch(undefinedIfMissing);
  if (before?.isSymbolicLink()) return { link: await readlink(folder.at(name)) };
  if (before?.isDirectory())
    throw new HostError("io", `Cannot write ${shown(path)}: it is a folder. Give another name.`);
  if (before !== undefined && !before.isFile()) throw notAFile("write", path);
  if (before !== undefined) await access(folder.at(name), modes.W_OK);
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  await replaceFile(folder, name, bytes, before && before.mode & 0o7777, chance);
  return { path: slashed(join(folder.path, name)), created: before === undefined, bytes: bytes.length };
}

/** Write beside the file, then put it in its place in one step; a failure leaves nothing behind. */
async function replaceFile(
  folder: OpenFolder,
  name: string,
  bytes: Uint8Array,
  mode: number | undefined,
  chance: () => number,
): Promise<void> {
  const { handle, temporary } = await createBeside(folder, chance);
  try {
    try {
      await handle.writeFile(bytes);
      if (mode !== undefined) await handle.chmod(mode);
      // Without this a power cut can leave an empty file under the new name.
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, folder.at(name));
  } catch (error) {
    await unlink(temporary).catch(theFirstErrorIsTold);
    throw error;
  }
}

/** A temporary file that cannot be removed either says nothing that the failed write did not. */
function theFirstErrorIsTold(): void {}

/** How many names are tried: the same seed gives the same names, and a crash can have left some of them. */
const maxNames = 100;

async function createBeside(
  folder: OpenFolder,
  chance: () => number,
): Promise<{ readonly handle: FileHandle; readonly temporary: string }> {
  for (let names = 1; ; names++) {
    const temporary = folder.at(`.statewright-${Math.floor(chance() * 2 ** 52).toString(36)}.tmp`);
    try {
      return { handle: await open(temporary, createFlags, 0o666), temporary };
    } catch (error) {
      if (systemCodeOf(error) !== "EEXIST" || names === maxNames) throw error;
    }
  }
}

/** A write that a crash cut short leaves such a file; listings do not show it. */
const leftover = /^\.statewright-[0-9a-z]+\.tmp$/;

/** The rules of one .gitignore and how many parts of a path stand above it. */
interface FolderRules {
  readonly depth: number;
  readonly rules: readonly IgnoreRule[];
}

interface Walk {
  readonly root: string;
  readonly options: Required<Omit<ListOptions, "signal" | "path" | "wanted">>;
  readonly wanted: NonNullable<ListOptions["wanted"]>;
  readonly signal: AbortSignal | undefined;
  readonly entries: { path: string; kind: FileKind | "link" }[];
  readonly skipped: string[];
  readonly unreadable: { path: string; cause: string }[];
  truncated: boolean;
}

async function listFolder(root: string, options: ListOptions): Promise<Listing> {
  const { path = ".", depth = Number.POSITIVE_INFINITY, limit = 1000, gitignore = true } = options;
  const { skip = [".git", "node_modules"], signal, wanted = () => true } = options;
  const walk: Walk = {
    root,
    options: { depth, limit, gitignore, skip },
    wanted,
    signal,
    entries: [],
    skipped: [],
    unreadable: [],
    truncated: false,
  };
  try {
    const start = await pathFromRoot(root, path);
    const folder = await openInside(root, start, "folder");
    const parts = folder.path === "" ? [] : folder.path.split(sep);
    const above: FolderRules[] = [];
    if (gitignore) {
      for (let count = 0; count < parts.length; count++) above.push(await rulesIn(root, parts.slice(0, count)));
    }
    await listOpen(walk, folder, parts, above, 1);
  } catch (error) {
    throw fileError("list", path, error);
  }
  const { entries, skipped, unreadable, truncated } = walk;
  return { entries, skipped, unreadable, truncated };
}

/** List an open folder and close it. */
async function listOpen(
  walk: Walk,
  folder: OpenFile,
  parts: readonly string[],
  above: readonly FolderRules[],
  depth: number,
): Promise<void> {
  const { root, options } = walk;
  if (walk.signal?.aborted) {
    await folder.handle.close();
    throw new HostError("cancelled", `Listing ${shown(parts.join("/"))} was cancelled.`);
  }
  const found = await readdir(nameOfOpen(root, folder), { withFileTypes: true, encoding: "buffer" }).finally(() =>
    folder.handle.close(),
  );
  const hasRules = options.gitignore && found.some((entry) => entry.name.toString("latin1") === ".gitignore");
  const rules = hasRules ? [...above, await rulesIn(root, parts)] : above;
  for (const entry of found.sort((one, other) => Buffer.compare(one.name, other.name))) {
    await listEntry(walk, entry, parts, rules, depth);
    if (walk.truncated) return;
  }
}

async function listEntry(
  walk: Walk,
  entry: Dirent<Buffer>,
  parts: readonly string[],
  rules: readonly FolderRules[],
  depth: number,
): Promise<void> {
  const { entries, skipped, unreadable, options } = walk;
  const name = entry.name.toString("utf8");
  const below = [...parts, name];
  const path = below.join("/");
  if (options.skip.includes(name) || leftover.test(name) || isIgnored(rules, below, entry.isDirectory())) {
    addBounded(skipped, path, options.limit);
    return;
  }
  if (!Buffer.from(name).equals(entry.name)) {
    addBounded(unreadable, { path, cause: "its name is not UTF-8, so that no path can name it" }, options.limit);
    return;
  }
  const kind = entry.isSymbolicLink() ? "link" : kindOf(entry);
  if (walk.wanted(path, kind)) {
    if (entries.length >= options.limit) {
      walk.truncated = true;
      return;
    }
    entries.push({ path, kind });
  }
  if (!entry.isDirectory() || depth >= options.depth) return;
  try {
    const folder = await openInside(walk.root, join(...below), "folder");
    if (slashed(folder.path) === path) return await listOpen(walk, folder, below, rules, depth + 1);
    await folder.handle.close();
    addBounded(unreadable, { path, cause: "a link took its place while it was listed" }, options.limit);
  } catch (error) {
    if (error instanceof HostError) throw error;
    addBounded(unreadable, { path, cause: systemCodeOf(error) || "it lies outside the workspace" }, options.limit);
  }
}

/** The deepest .gitignore that speaks of a path decides; a folder that is ignored is never looked into. */
function isIgnored(rules: readonly FolderRules[], path: readonly string[], isFolder: boolean): boolean {
  const bytes = path.map((name) => Buffer.from(name).toString("latin1"));
  for (const { depth, rules: own } of rules.toReversed()) {
    const verdict: Verdict = judge(own, bytes.slice(depth), isFolder);
    if (verdict !== undefined) return verdict === "ignored";
  }
  return false;
}

/** Rules beyond this size are no rules that a person wrote. */
const maxRulesBytes = 2 ** 20;

/** The rules of a folder; none when its .gitignore is missing, unreadable, or (as with git) a link. */
async function rulesIn(root: string, parts: readonly string[]): Promise<FolderRules> {
  const path = join(...parts, ".gitignore");
  try {
    const { handle, stat, path: real } = await openInside(root, path, "read");
    try {
      const isOwn = real === path && stat.isFile();
      const bytes = isOwn ? await readUpTo(handle, maxRulesBytes) : Buffer.alloc(0);
      return { depth: parts.length, rules: ignoreRules(bytes.toString("latin1")) };
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

function kindOf(found: { isFile(): boolean; isDirectory(): boolean }): FileKind {
  if (found.isFile()) return "file";
  return found.isDirectory() ? "folder" : "other";
}

function notAFile(verb: "read" | "write", path: string): HostError {
  const what = "it is a device, a pipe or a socket. Give the path of a file.";
  return new HostError("io", `Cannot ${verb} ${shown(path)}: ${what}`);
}

function undefinedIfMissing(error: unknown): undefined {
  if (systemCodeOf(error) !== "ENOENT") throw error;
}

function shown(path: string): string {
  return path === "" ? "." : path;
}

function slashed(path: string): string {
  return sep === "/" ? path : path.replaceAll(sep, "/");
}
