/**
 * Creation of a database file from the bytes of an empty one. SQLite takes several milliseconds for the tables, and
 * writes their pages to the log and again to the file.
 */
import { Buffer } from "node:buffer";
import { closeSync, fsyncSync, linkSync, openSync, writeSync } from "node:fs";
import { discard } from "../file/discard.ts";
import { createTempPath, releaseTempPath } from "../file/temp-file.ts";
import { emptyFile } from "./empty-file.ts";

/** Permissions of a file that SQLite creates. */
const fileMode = 0o644;

/**
 * Creates a file with the tables of the newest format, durably except for its name: the first commit syncs the folder.
 * Returns false where the file was not created: another process was faster, or the file system refused a step. SQLite
 * then creates what is missing, and reports the errors.
 */
export function createFile(path: string): boolean {
  const tempPath = createTempPath(path);
  try {
    writeDurably(tempPath, decodeRuns(emptyFile));
    // The log exists before the file: a file of this age without a log has lost it (fault F5).
    closeSync(openSync(`${path}-wal`, "a", fileMode));
    // Fails for an existing file, which a rename would replace.
    linkSync(tempPath, path);
    return true;
  } catch {
    return false;
  } finally {
    discard(tempPath);
    releaseTempPath(tempPath);
  }
}

function writeDurably(path: string, bytes: Uint8Array): void {
  const handle = openSync(path, "wx", fileMode);
  try {
    for (let written = 0; written < bytes.length; ) written += writeSync(handle, bytes, written);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Decodes base64 of runs: number of zero bytes, number of other bytes, and these bytes. Numbers have 16 bits. */
export function decodeRuns(text: string): Uint8Array {
  const runs = Buffer.from(text, "base64");
  const bytes = new Uint8Array(runs.readUInt32BE(0));
  for (let from = 4, to = 0; from < runs.length; ) {
    to += runs.readUInt16BE(from);
    const length = runs.readUInt16BE(from + 2);
    bytes.set(runs.subarray(from + 4, from + 4 + length), to);
    from += 4 + length;
    to += length;
  }
  return bytes;
}
