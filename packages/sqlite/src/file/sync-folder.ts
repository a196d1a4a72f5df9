/** Making names durable: after a power cut a file stands under its new name for certain only once its folder was synced. */
import { closeSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";

/** Wait until the disk has the name of the file at `path`, or that it is gone. */
export function syncFolder(path: string): void {
  // Windows opens no folder, and keeps names in the journal of its file system.
  if (process.platform === "win32") return;
  let handle: number;
  try {
    handle = openSync(dirname(path), "r");
  } catch (thrown) {
    // A folder that may be written and not listed cannot be asked for it.
    if (codeOf(thrown) === "EACCES") return;
    throw thrown;
  }
  try {
    fsyncSync(handle);
  } catch (thrown) {
    if (!unable.has(codeOf(thrown))) throw thrown;
  } finally {
    closeSync(handle);
  }
}

/** File systems that sync no folders say so in these words. */
const unable: ReadonlySet<string> = new Set(["EINVAL", "ENOTSUP", "ENOSYS", "EPERM", "EISDIR"]);

function codeOf(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
}
