/** Atomic write of a file inside a root. */
import { constants as modes } from "node:fs";
import { access, type FileHandle, lstat, open, readlink, rename, unlink } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { createNotAFileError } from "./file-kind.ts";
import { formatPath, toSlashes } from "./format-path.ts";
import { getSystemCode, HostError } from "./host-error.ts";
import { createFlags, type OpenFolder, openFolder, toPathFromRoot } from "./open-inside.ts";

/** Result of a write. */
export interface WriteResult {
  /** Real path of the file relative to the root, with `/`. */
  readonly path: string;
  /** True when the file did not exist before. */
  readonly created: boolean;
  readonly bytes: number;
}

/** Name of a temporary file, left behind by a crash during a write; hidden from listings. */
export const tempFileName: RegExp = /^\.statewright-[0-9a-z]+\.tmp$/;

/** File to write: its name in an open folder, and the path of the caller for messages. */
interface WriteTarget {
  readonly folder: OpenFolder;
  readonly name: string;
  readonly path: string;
}

/** Maximum number of links on a path, as on Linux. */
const maxLinks = 40;

/**
 * Writes a whole file: a temporary file renamed over the target. Writes through links whose target is inside the root.
 */
export async function writeFile(
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
    const written = await writeInFolder({ folder, name, path }, content, nextRandom).finally(() =>
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
  target: WriteTarget,
  content: string | Uint8Array,
  nextRandom: () => number,
): Promise<WriteResult | { readonly link: string }> {
  const { folder, name, path } = target;
  const existing = await lstat(folder.resolve(name)).catch(ignoreMissing);
  if (existing?.isSymbolicLink()) return { link: await readlink(folder.resolve(name)) };
  if (existing?.isDirectory())
    throw new HostError("io", `Cannot write ${formatPath(path)}: the path is a folder. Use another name.`);
  if (existing !== undefined && !existing.isFile()) throw createNotAFileError("write", path);
  if (existing !== undefined) await access(folder.resolve(name), modes.W_OK);
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const temporary = await createTempFile(folder, nextRandom);
  await replaceFile(target, temporary, { bytes, mode: existing && existing.mode & 0o7777 });
  return { path: toSlashes(join(folder.path, name)), created: existing === undefined, bytes: bytes.length };
}

/** Writes a temporary file, then renames the file over the target; removes the temporary file on failure. */
async function replaceFile(
  { folder, name }: WriteTarget,
  { handle, path }: TempFile,
  { bytes, mode }: { readonly bytes: Uint8Array; readonly mode: number | undefined },
): Promise<void> {
  try {
    try {
      await handle.writeFile(bytes);
      if (mode !== undefined) await handle.chmod(mode);
      // Without fsync, a power failure can leave an empty file under the new name.
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(path, folder.resolve(name));
  } catch (error) {
    await unlink(path).catch(ignoreCleanupError);
    throw error;
  }
}

/** The error of the failed write is reported; the error of the cleanup is ignored. */
function ignoreCleanupError(): void {}

/** Maximum number of attempted names: equal seeds create equal names, and a crash can leave temporary files behind. */
const maxNames = 100;

/** Open temporary file. */
interface TempFile {
  readonly handle: FileHandle;
  readonly path: string;
}

async function createTempFile(folder: OpenFolder, nextRandom: () => number): Promise<TempFile> {
  for (let names = 1; ; names++) {
    const path = folder.resolve(`.statewright-${Math.floor(nextRandom() * 2 ** 52).toString(36)}.tmp`);
    try {
      return { handle: await open(path, createFlags, 0o666), path };
    } catch (error) {
      if (getSystemCode(error) !== "EEXIST" || names === maxNames) throw error;
    }
  }
}

function ignoreMissing(error: unknown): undefined {
  if (getSystemCode(error) !== "ENOENT") throw error;
}
