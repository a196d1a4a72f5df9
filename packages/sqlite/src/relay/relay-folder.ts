/**
 * Addresses of the relays of a database file. Each process that publishes listens on a socket of its own in one
 * folder: there is no hub whose death anybody has to notice. The folder belongs to the user alone, and is never beside
 * the file, because a copy of a folder with a socket fails.
 */
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, rmSync, statSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { getErrorCode } from "../driver/sqlite-code.ts";

/** Addresses of the relays of a database file. */
export interface RelayFolder {
  /** Lists the addresses of all processes that listen, also of dead ones. */
  list(): readonly string[];
  /** Returns the address with which a process listens, and the address that others then find. */
  createAddress(id: string): { readonly listensAt: string; readonly foundAt: string };
  /** Removes the socket of a dead process. */
  remove(address: string): void;
  /** Calls `onChange` when a process may have begun to listen; returns the function that ends this. */
  watch(onChange: () => void): () => void;
}

/** Where the sockets are: a fact of the platform, given in tests. */
export interface RelayPlace {
  readonly platform: string;
  /** Folder of the user's session, if the system has one. */
  readonly runtimeFolder: string | undefined;
  readonly temporaryFolder: string;
  /** Id of the user; undefined on Windows. */
  readonly uid: number | undefined;
}

/** Longest path of a Unix socket in bytes on every platform, with a byte for its end. */
const maxPathBytes = 103;

/** Returns the place of this process. */
export function getRelayPlace(): RelayPlace {
  return {
    platform: process.platform,
    runtimeFolder: process.env["XDG_RUNTIME_DIR"],
    temporaryFolder: tmpdir(),
    uid: process.getuid?.(),
  };
}

/**
 * Opens the folder of a database file, and creates it. Throws `store_missing` without the file, and `store_failed` for
 * a folder that another user owns or can enter.
 */
export function openRelayFolder(file: string, place: RelayPlace): RelayFolder {
  const key = hashFile(file);
  return place.platform === "win32" ? openPipes(key) : openSocketFolder(key, place);
}

/** Hash of the device and the inode: the same for every path to the file, and another one for a copy. */
function hashFile(file: string): string {
  if (typeof file !== "string")
    throw invalidOption({ where: "socketRelay", expected: "the path of a database file", got: file });
  if (file === ":memory:" || file === "")
    throw invalidOption({
      where: "socketRelay",
      expected: "the path of a database file",
      got: file,
      fix: "Use memoryRelay() for a store in memory",
    });
  try {
    const { dev, ino } = statSync(file, { bigint: true });
    return createHash("sha256").update(`${dev}:${ino}`).digest("hex").slice(0, 16);
  } catch (cause) {
    throw new StatewrightError("store_missing", {
      what: `socketRelay: expected a database file at ${file}, got ${getErrorCode(cause)}`,
      next: "Call sqliteStore(path) first, which creates the file",
      cause,
    });
  }
}

function openSocketFolder(key: string, { runtimeFolder, temporaryFolder, uid }: RelayPlace): RelayFolder {
  const bases = [
    ...(runtimeFolder === undefined || runtimeFolder === "" ? [] : [join(runtimeFolder, "statewright")]),
    ...[temporaryFolder, "/tmp"].map((folder) => join(folder, `statewright-${uid ?? ""}`)),
  ];
  const folder = bases.map((base) => join(base, key)).find(fitsSocketPath);
  if (folder === undefined)
    throw new StatewrightError("store_failed", {
      what: `socketRelay: expected a folder for sockets with a path below ${maxPathBytes} bytes, got ${bases[0]}`,
      next: "Set XDG_RUNTIME_DIR to a folder with a shorter path",
    });
  createPrivateFolder(join(folder, ".."), uid);
  createPrivateFolder(folder, uid);
  return {
    list: () => listSockets(folder).map((name) => join(folder, name)),
    createAddress: (id) => ({ listensAt: join(folder, `${id}.new`), foundAt: join(folder, `${id}.sock`) }),
    remove: (address) => rmSync(address, { force: true }),
    watch: (onChange) => watchFolder(folder, onChange),
  };
}

function fitsSocketPath(folder: string): boolean {
  return Buffer.byteLength(folder) + "/".length + maxIdLength + ".sock".length <= maxPathBytes;
}

/** Length of the id of a process: its number, a hyphen and eight random characters. */
const maxIdLength = 19;

function listSockets(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(".sock"));
  } catch (error) {
    if (getErrorCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** Creates a folder that only this user can enter. Throws `store_failed` for an existing one that others can. */
function createPrivateFolder(folder: string, uid: number | undefined): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (cause) {
    if (getErrorCode(cause) !== "EEXIST")
      throw createFolderError(folder, `${getErrorCode(cause)} when it was created`, cause);
  }
  const found = lstatSync(folder);
  const mode = found.mode & 0o777;
  if (!found.isDirectory()) throw createFolderError(folder, "no folder");
  if (uid !== undefined && found.uid !== uid) throw createFolderError(folder, `a folder of the user ${found.uid}`);
  if ((mode & 0o077) !== 0) throw createFolderError(folder, `a folder with the mode ${mode.toString(8)}`);
}

function createFolderError(folder: string, found: string, cause?: unknown): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `socketRelay: expected a folder at ${folder} that only this user can enter, got ${found}`,
    next: "Remove it, or set XDG_RUNTIME_DIR to a folder of this user",
    cause,
  });
}

function watchFolder(folder: string, onChange: () => void): () => void {
  try {
    const watcher = watch(folder, { persistent: false }, onChange);
    watcher.on("error", () => watcher.close());
    return () => watcher.close();
  } catch {
    // Without notifications, the next periodic search finds the process.
    return () => undefined;
  }
}

const pipes = "\\\\.\\pipe\\";

/** Named pipes have no folder: Windows lists them by name, and removes those of dead processes. */
function openPipes(key: string): RelayFolder {
  const prefix = `statewright-${key}-`;
  return {
    list: () =>
      readdirSync(pipes)
        .filter((name) => name.startsWith(prefix))
        .map((name) => `${pipes}${name}`),
    createAddress: (id) => ({ listensAt: `${pipes}${prefix}${id}`, foundAt: `${pipes}${prefix}${id}` }),
    remove: () => undefined,
    watch: () => () => undefined,
  };
}
