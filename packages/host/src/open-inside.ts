/**
 * Opens files below a root. A path can change between check and use, so the file is opened first, then the real
 * location of the open file is checked, and only then is the file used.
 *
 * On Linux, /proc/self/fd returns the exact location, and serves as `openat` for entries of an open folder. On other
 * systems the real path is resolved after the open call and compared with the open file by device and inode: a swap
 * back and forth in between is not detected.
 */
import {
  type BigIntStats,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  read,
  readlinkSync,
  readSync,
  realpathSync,
} from "node:fs";
import { constants, type FileHandle, lstat, mkdir, open, readlink, realpath } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { getSystemCode, HostError } from "./host-error.ts";

/** Open file below the root. */
export interface OpenFile {
  readonly handle: Handle;
  /** Real path of the file, relative to the root. */
  readonly path: string;
  readonly stat: BigIntStats;
}

/** Handle of an open file. */
export interface Handle {
  readonly fd: number;
  /** Reads into a buffer from a file position. Returns the number of bytes read. */
  read(buffer: Buffer, position: number): number | Promise<number>;
  close(): void | Promise<void>;
}

/** Open folder, verified to lie below the root. `resolve` returns the path of an entry for a system call. */
export interface OpenFolder extends AsyncDisposable {
  /** Real path of the folder, relative to the root. */
  readonly path: string;
  resolve(name: string): string;
}

/** Internal error for a path outside the root; `toFileError` converts this error to a HostError with the path. */
class OutsideError extends Error {}

const hasProc = process.platform === "linux" && existsSync("/proc/self/fd");
/**
 * O_PATH, missing in Node's constants: opens a descriptor for inspection only, independent of permissions and file
 * kind.
 */
const inspectFlag = 0o10000000;
const { O_RDONLY, O_NONBLOCK = 0, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants;

/**
 * Converts a relative path, or an absolute path below the root, to a path relative to the root. Throws OutsideError
 * for a path outside the root.
 */
export async function toPathFromRoot(root: string, path: string): Promise<string> {
  if (path.includes("\0")) throw new OutsideError();
  const full = resolve(root, path);
  const relativePath =
    getRelativePathInside(root, full) ??
    (isAbsolute(path) ? getRelativePathInside(await realpath(root), full) : undefined);
  if (relativePath === undefined) throw new OutsideError();
  return relativePath;
}

/** Opens a file or folder for reading or inspection. Follows links as long as the target lies below the root. */
export async function openInside(root: string, path: string, mode: "look" | "read" | "folder"): Promise<OpenFile> {
  return hasProc ? openByHandle(root, path, mode) : openByPath(root, path, mode);
}

/** Synchronous: a single round trip through the thread pool costs more than all these system calls together. */
function openByHandle(root: string, path: string, mode: "look" | "read" | "folder"): OpenFile {
  const kind = mode === "folder" ? O_DIRECTORY : 0;
  // Opening a device can have side effects: inspect the file by O_PATH first, then open the same file for reading.
  const inspectFd = openSync(join(root, path), inspectFlag | kind);
  let fd = inspectFd;
  try {
    const stat = fstatSync(inspectFd, { bigint: true });
    const realPath = toPathInside(
      realpathSync.native(root, { encoding: "buffer" }),
      readlinkSync(getFdPath(inspectFd), "buffer"),
      stat,
    );
    if (realPath === undefined) throw new OutsideError();
    if (mode === "folder" || (mode === "read" && stat.isFile())) fd = openSync(getFdPath(inspectFd), O_RDONLY | kind);
    return { handle: createFdHandle(fd), path: realPath, stat };
  } catch (error) {
    if (fd === inspectFd) closeSync(inspectFd);
    throw error;
  } finally {
    if (fd !== inspectFd) closeSync(inspectFd);
  }
}

/** Maximum size of a synchronous read from the start of a file; other reads use the thread pool. */
const maxSyncReadBytes = 64 * 1024;

function createFdHandle(fd: number): Handle {
  return {
    fd,
    read: (into, at) =>
      at === 0 && into.length <= maxSyncReadBytes ? readSync(fd, into, 0, into.length, 0) : readAsync(fd, into, at),
    close: () => closeSync(fd),
  };
}

function readAsync(fd: number, buffer: Buffer, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, buffer.length, position, (error, bytesRead) =>
      error === null ? resolve(bytesRead) : reject(error),
    );
  });
}

async function openByPath(root: string, path: string, mode: "look" | "read" | "folder"): Promise<OpenFile> {
  const file = join(root, path);
  const kind = mode === "folder" ? O_DIRECTORY : 0;
  const { handle, ...opened } = await verifyInside(root, await open(file, O_RDONLY | O_NONBLOCK | kind), file);
  const fileHandle: Handle = {
    fd: handle.fd,
    read: async (into, at) => (await handle.read(into, 0, into.length, at)).bytesRead,
    close: () => handle.close(),
  };
  return { ...opened, handle: fileHandle };
}

function getFdPath(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

/** Returns the path for listing an open folder. */
export function getListingPath(root: string, folder: OpenFile): string {
  return hasProc ? `/proc/self/fd/${folder.handle.fd}` : join(root, folder.path);
}

/** Opens a folder below the root part by part. Creates missing folders. */
export async function openFolder(root: string, parts: readonly string[]): Promise<OpenFolder> {
  let folder = hasProc ? await openFolderByHandle(root, root) : await openFolderByPath(root, root);
  for (const part of parts) {
    const next = await enterOrCreateFolder(root, folder, part).finally(() => folder[Symbol.asyncDispose]());
    folder = next;
  }
  return folder;
}

async function enterOrCreateFolder(root: string, folder: OpenFolder, part: string): Promise<OpenFolder> {
  const file = folder.resolve(part);
  const enter = hasProc ? openFolderByHandle : openFolderByPath;
  try {
    return await enter(root, file);
  } catch (error) {
    if (getSystemCode(error) !== "ENOENT") throw error;
  }
  await mkdir(file).catch((error: unknown) => {
    if (getSystemCode(error) !== "EEXIST") throw error;
  });
  return enter(root, file);
}

async function openFolderByHandle(root: string, file: string): Promise<OpenFolder> {
  const { handle, path } = await verifyInside(root, await open(file, inspectFlag | O_DIRECTORY), file);
  return { path, resolve: (name) => `/proc/self/fd/${handle.fd}/${name}`, [Symbol.asyncDispose]: () => handle.close() };
}

async function openFolderByPath(root: string, file: string): Promise<OpenFolder> {
  const [realRoot, real] = await Promise.all([realpath(root), realpath(file)]);
  const path = getRelativePathInside(realRoot, real);
  if (path === undefined) throw new OutsideError();
  return { path, resolve: (name) => join(real, name), [Symbol.asyncDispose]: () => Promise.resolve() };
}

/** Returns the open file with its real path. Closes the handle and throws OutsideError for a file outside the root. */
async function verifyInside(
  root: string,
  handle: FileHandle,
  file: string,
): Promise<{ readonly handle: FileHandle; readonly path: string; readonly stat: BigIntStats }> {
  try {
    const stat = await handle.stat({ bigint: true });
    const path = await (hasProc ? locateByHandle(root, handle, stat) : locateByPath(root, file, stat));
    if (path === undefined) throw new OutsideError();
    return { handle, path, stat };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function locateByHandle(root: string, handle: FileHandle, stat: BigIntStats): Promise<string | undefined> {
  const [realRoot, link] = await Promise.all([
    realpath(root, { encoding: "buffer" }),
    readlink(getFdPath(handle.fd), { encoding: "buffer" }),
  ]);
  return toPathInside(realRoot, link, stat);
}

/** File names can contain any bytes, so names are compared as bytes; latin1 preserves every byte. */
function toPathInside(realRoot: Buffer, link: Buffer, stat: BigIntStats): string | undefined {
  const real = link.toString("latin1");
  const deleted = stat.nlink === 0n && real.endsWith(" (deleted)") ? real.slice(0, -" (deleted)".length) : real;
  const path = getRelativePathInside(realRoot.toString("latin1"), deleted);
  return path === undefined ? undefined : Buffer.from(path, "latin1").toString("utf8");
}

async function locateByPath(root: string, file: string, stat: BigIntStats): Promise<string | undefined> {
  const [realRoot, real] = await Promise.all([realpath(root), realpath(file)]);
  const found = await lstat(real, { bigint: true });
  if (found.dev !== stat.dev || found.ino !== stat.ino) return undefined;
  return getRelativePathInside(realRoot, real);
}

/**
 * Returns the path relative to the root, compared by complete names (`/work` does not contain `/work-2`); undefined
 * for a path outside the root.
 */
function getRelativePathInside(root: string, path: string): string | undefined {
  const relativePath = relative(root, path);
  return relativePath === ".." || relativePath.startsWith(`..${sep}`) || isAbsolute(relativePath)
    ? undefined
    : relativePath;
}

/** Open flags for a new file; the call fails if a file or link exists at the path. */
export const createFlags: number = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | O_NOFOLLOW;

/** Converts an OutsideError or a system error to a HostError with the path of the caller. */
export function toFileError(verb: "read" | "write" | "list" | "look at", path: string, error: unknown): HostError {
  if (error instanceof HostError) return error;
  const shown = path === "" ? "." : path;
  if (error instanceof OutsideError) {
    return new HostError(
      "outside",
      `Cannot ${verb} ${shown}: the path is outside the workspace. Pass a path inside the workspace.`,
    );
  }
  const systemCode = getSystemCode(error);
  const [code, cause] = causes.get(systemCode) ?? ["io", systemCode || "the system reported no error code"];
  return new HostError(code, `Cannot ${verb} ${shown}: ${cause}`, { systemCode });
}

const causes: ReadonlyMap<string, readonly [HostError["code"], string]> = new Map([
  ["ENOENT", ["not_found", "no such file or folder. List the parent folder to see its entries."]],
  ["ENOTDIR", ["not_found", "a part of the path is a file, not a folder. List the parent folder to see its entries."]],
  ["EACCES", ["denied", "permission denied. Change the permissions, or use another file."]],
  ["EPERM", ["denied", "operation not permitted. Change the permissions, or use another file."]],
  ["EROFS", ["denied", "the file system is read-only. Use a writable folder."]],
  ["EISDIR", ["io", "the path is a folder. Pass the path of a file."]],
  ["ELOOP", ["io", "too many symbolic links (a cycle). Pass the path of the file itself."]],
  ["ENAMETOOLONG", ["io", "the name is too long. Use a shorter name."]],
  ["ENOSPC", ["io", "the disk is full. Free some space, then retry."]],
  ["EDQUOT", ["io", "the disk quota is exceeded. Free some space, then retry."]],
  ["EFBIG", ["too_large", "the file would exceed the size limit of the system. Write less data."]],
  ["EMFILE", ["io", "this process has too many open files. Close some files, then retry."]],
  ["ENFILE", ["io", "the system has too many open files. Close some files, then retry."]],
] as const);
