/**
 * Opening files that must lie below a root. What a path names can change between a check and its use, so the file is
 * opened first, then the system is asked where the open file really is, and only then is it used.
 *
 * On Linux /proc/self/fd answers exactly, and serves as `openat` for what lies in an open folder. Elsewhere the real path
 * is looked up after the opening and must be the file that is open: a swap there and back between the two is not seen.
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
import { HostError, systemCodeOf } from "./host-error.ts";

/** A file that is open and lies below the root. */
export interface OpenFile {
  readonly handle: Handle;
  /** Where it really is, from the root. */
  readonly path: string;
  readonly stat: BigIntStats;
}

/** What an open file is held by. */
export interface Handle {
  readonly fd: number;
  /** Fill a buffer from a place in the file; gives how many bytes there were. */
  read(into: Buffer, at: number): number | Promise<number>;
  close(): void | Promise<void>;
}

/** A folder that is known to lie below the root; `at` names something in it for a system call. */
export interface OpenFolder extends AsyncDisposable {
  /** Where it really is, from the root. */
  readonly path: string;
  at(name: string): string;
}

/** Thrown inside this package for a path that leaves the root; becomes a HostError where the path is known. */
class OutsideError extends Error {}

const hasProc = process.platform === "linux" && existsSync("/proc/self/fd");
/** O_PATH, which Node does not name: a handle to look at, whatever the rights and the kind of the file. */
const lookFlag = 0o10000000;
const { O_RDONLY, O_NONBLOCK = 0, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants;

/** A path as given, from the root: relative to it, or absolute and below it. Throws when it leaves the root. */
export async function pathFromRoot(root: string, path: string): Promise<string> {
  if (path.includes("\0")) throw new OutsideError();
  const full = resolve(root, path);
  const found =
    relativeInside(root, full) ?? (isAbsolute(path) ? relativeInside(await realpath(root), full) : undefined);
  if (found === undefined) throw new OutsideError();
  return found;
}

/** Open a file or folder to read or look at it; links are followed as long as they stay below the root. */
export async function openInside(root: string, path: string, how: "look" | "read" | "folder"): Promise<OpenFile> {
  return hasProc ? openNow(root, path, how) : openLater(root, path, how);
}

/** In one turn: each way through the thread pool costs more than all the calls to the system together. */
function openNow(root: string, path: string, how: "look" | "read" | "folder"): OpenFile {
  const kind = how === "folder" ? O_DIRECTORY : 0;
  // Even opening can do something, to a device for example: so look first, and open for reading what was looked at.
  const looked = openSync(join(root, path), lookFlag | kind);
  let fd = looked;
  try {
    const stat = fstatSync(looked, { bigint: true });
    const place = placeFrom(
      realpathSync.native(root, { encoding: "buffer" }),
      readlinkSync(fdPath(looked), "buffer"),
      stat,
    );
    if (place === undefined) throw new OutsideError();
    if (how === "folder" || (how === "read" && stat.isFile())) fd = openSync(fdPath(looked), O_RDONLY | kind);
    return { handle: numbered(fd), path: place, stat };
  } catch (error) {
    if (fd === looked) closeSync(looked);
    throw error;
  } finally {
    if (fd !== looked) closeSync(looked);
  }
}

/** A read of so much from the start of a file is done at once; what follows goes through the thread pool. */
const readNowBytes = 64 * 1024;

function numbered(fd: number): Handle {
  return {
    fd,
    read: (into, at) =>
      at === 0 && into.length <= readNowBytes ? readSync(fd, into, 0, into.length, 0) : readLater(fd, into, at),
    close: () => closeSync(fd),
  };
}

function readLater(fd: number, into: Buffer, at: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, into, 0, into.length, at, (error, bytesRead) => (error === null ? resolve(bytesRead) : reject(error)));
  });
}

async function openLater(root: string, path: string, how: "look" | "read" | "folder"): Promise<OpenFile> {
  const file = join(root, path);
  const kind = how === "folder" ? O_DIRECTORY : 0;
  const { handle, ...opened } = await checked(root, await open(file, O_RDONLY | O_NONBLOCK | kind), file);
  const held: Handle = {
    fd: handle.fd,
    read: async (into, at) => (await handle.read(into, 0, into.length, at)).bytesRead,
    close: () => handle.close(),
  };
  return { ...opened, handle: held };
}

function fdPath(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

/** What to call an open folder in order to list it. */
export function nameOfOpen(root: string, folder: OpenFile): string {
  return hasProc ? `/proc/self/fd/${folder.handle.fd}` : join(root, folder.path);
}

/** Open a folder below the root by its parts, making those that are missing. */
export async function openFolder(root: string, parts: readonly string[]): Promise<OpenFolder> {
  let folder = hasProc ? await folderByHandle(root, root) : await folderByPath(root, root);
  for (const part of parts) {
    const next = await stepInto(root, folder, part).finally(() => folder[Symbol.asyncDispose]());
    folder = next;
  }
  return folder;
}

async function stepInto(root: string, folder: OpenFolder, part: string): Promise<OpenFolder> {
  const file = folder.at(part);
  const enter = hasProc ? folderByHandle : folderByPath;
  try {
    return await enter(root, file);
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT") throw error;
  }
  await mkdir(file).catch((error: unknown) => {
    if (systemCodeOf(error) !== "EEXIST") throw error;
  });
  return enter(root, file);
}

async function folderByHandle(root: string, file: string): Promise<OpenFolder> {
  const { handle, path } = await checked(root, await open(file, lookFlag | O_DIRECTORY), file);
  return { path, at: (name) => `/proc/self/fd/${handle.fd}/${name}`, [Symbol.asyncDispose]: () => handle.close() };
}

async function folderByPath(root: string, file: string): Promise<OpenFolder> {
  const [realRoot, real] = await Promise.all([realpath(root), realpath(file)]);
  const path = relativeInside(realRoot, real);
  if (path === undefined) throw new OutsideError();
  return { path, at: (name) => join(real, name), [Symbol.asyncDispose]: () => Promise.resolve() };
}

/** The open file with its real place, or closed again and an OutsideError. */
async function checked(
  root: string,
  handle: FileHandle,
  file: string,
): Promise<{ readonly handle: FileHandle; readonly path: string; readonly stat: BigIntStats }> {
  try {
    const stat = await handle.stat({ bigint: true });
    const path = await (hasProc ? placeByHandle(root, handle, stat) : placeByPath(root, file, stat));
    if (path === undefined) throw new OutsideError();
    return { handle, path, stat };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function placeByHandle(root: string, handle: FileHandle, stat: BigIntStats): Promise<string | undefined> {
  const [realRoot, link] = await Promise.all([
    realpath(root, { encoding: "buffer" }),
    readlink(fdPath(handle.fd), { encoding: "buffer" }),
  ]);
  return placeFrom(realRoot, link, stat);
}

/** Names may hold any bytes, so they are compared as bytes: latin1 keeps each one. */
function placeFrom(realRoot: Buffer, link: Buffer, stat: BigIntStats): string | undefined {
  const real = link.toString("latin1");
  const deleted = stat.nlink === 0n && real.endsWith(" (deleted)") ? real.slice(0, -" (deleted)".length) : real;
  const path = relativeInside(realRoot.toString("latin1"), deleted);
  return path === undefined ? undefined : Buffer.from(path, "latin1").toString("utf8");
}

async function placeByPath(root: string, file: string, stat: BigIntStats): Promise<string | undefined> {
  const [realRoot, real] = await Promise.all([realpath(root), realpath(file)]);
  const found = await lstat(real, { bigint: true });
  if (found.dev !== stat.dev || found.ino !== stat.ino) return undefined;
  return relativeInside(realRoot, real);
}

/** The way from a root to a path by whole names, so that `/work` does not hold `/work-2`; undefined when it leads out. */
function relativeInside(root: string, path: string): string | undefined {
  const way = relative(root, path);
  return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way) ? undefined : way;
}

/** Flags for a new file that must not exist, not even as a link. */
export const createFlags: number = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | O_NOFOLLOW;

/** A refusal or a failure of the system as a HostError, with the path as it was given. */
export function fileError(verb: "read" | "write" | "list" | "look at", path: string, error: unknown): HostError {
  if (error instanceof HostError) return error;
  const shown = path === "" ? "." : path;
  if (error instanceof OutsideError) {
    return new HostError("outside", `Cannot ${verb} ${shown}: it lies outside the workspace. Give a path inside it.`);
  }
  const systemCode = systemCodeOf(error);
  const [code, cause] = causes.get(systemCode) ?? ["io", systemCode || "the system gave no reason"];
  return new HostError(code, `Cannot ${verb} ${shown}: ${cause}`, { systemCode });
}

const causes: ReadonlyMap<string, readonly [HostError["code"], string]> = new Map([
  ["ENOENT", ["not_found", "there is no such file or folder. List the folder above it to see what is there."]],
  [
    "ENOTDIR",
    ["not_found", "a part of the path is a file, not a folder. List the folder above it to see what is there."],
  ],
  ["EACCES", ["denied", "permission denied. Change its rights, or leave it alone."]],
  ["EPERM", ["denied", "the system does not permit it. Change its rights, or leave it alone."]],
  ["EROFS", ["denied", "the file system is read-only. Write somewhere else."]],
  ["EISDIR", ["io", "it is a folder. Give the path of a file."]],
  ["ELOOP", ["io", "its links lead in a circle. Give the path of the file itself."]],
  ["ENAMETOOLONG", ["io", "its name is too long. Give a shorter one."]],
  ["ENOSPC", ["io", "the disk is full. Free some space, then try again."]],
  ["EDQUOT", ["io", "the quota of the disk is used up. Free some space, then try again."]],
  ["EFBIG", ["too_large", "the file would be larger than this system allows. Write less."]],
  ["EMFILE", ["io", "this process has too many open files. Close some, then try again."]],
  ["ENFILE", ["io", "the system has too many open files. Close some, then try again."]],
] as const);
