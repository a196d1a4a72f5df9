/** File access confined to a folder, for tools with paths from a model. */
import { resolve } from "node:path";
import type { World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { getCompleteUtf8Length } from "./capture.ts";
import { createNotAFileError, type FileKind, getFileKind } from "./file-kind.ts";
import { formatPath, toSlashes } from "./format-path.ts";
import { HostError } from "./host-error.ts";
import { type Listing, type ListOptions, listFolder } from "./list-folder.ts";
import { type OpenFile, openInside, toFileError, toPathFromRoot } from "./open-inside.ts";
import { type PageOptions, type PageResult, readPage } from "./read-page.ts";
import { readUpTo } from "./read-up-to.ts";
import { type WriteResult, writeFile } from "./write-file.ts";

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

/**
 * Files below a root. Paths are relative to the root or absolute, and are checked after resolving links: a path
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

/** Decodes UTF-8 text; undefined for binary content (invalid UTF-8, or a zero byte). */
function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
