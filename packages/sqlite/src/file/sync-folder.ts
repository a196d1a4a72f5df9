/** Durable renames: after a power failure, a new file name is certain only if its folder was synced. */
import { closeSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";

/** Syncs the folder of `path` to disk, after a creation, rename or deletion. */
export function syncFolder(path: string): void {
  // Windows cannot open folders; NTFS journals names.
  if (process.platform === "win32") return;
  let handle: number;
  try {
    handle = openSync(dirname(path), "r");
  } catch (thrown) {
    // An unreadable folder cannot be synced.
    if (getErrorCode(thrown) === "EACCES") return;
    throw thrown;
  }
  try {
    fsyncSync(handle);
  } catch (thrown) {
    if (!unsupportedCodes.has(getErrorCode(thrown))) throw thrown;
  } finally {
    closeSync(handle);
  }
}

/** Error codes of file systems without folder sync. */
const unsupportedCodes: ReadonlySet<string> = new Set(["EINVAL", "ENOTSUP", "ENOSYS", "EPERM", "EISDIR"]);

function getErrorCode(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
}
