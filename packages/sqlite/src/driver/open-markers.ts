/**
 * Marks of open files that all threads of a process see: a worker thread shares neither variables nor the list of open
 * files. A mark is an open descriptor of a deleted temporary file whose name has the driver and the file. Linux lists the
 * descriptors of a process, and closes them at its end. Elsewhere there are no marks.
 */
import { closeSync, openSync, readdirSync, readlinkSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { threadId } from "node:worker_threads";
import type { DriverName } from "./driver.ts";

/** Identity of a file. */
export interface FileId {
  readonly device: bigint;
  readonly inode: bigint;
}

/** Folder with a link for each open descriptor of this process. */
const descriptors = "/proc/self/fd";

/** Drivers by the part of the name of a mark. */
const drivers: ReadonlyMap<string, DriverName> = new Map([
  ["better-sqlite3", "better-sqlite3"],
  ["node-sqlite", "node:sqlite"],
]);

let made = 0;

/**
 * Marks a file as open with a driver, until the returned function is called. Without a folder for temporary files, or
 * without free descriptors, the other threads see no mark.
 */
export function markOpenFile({ device, inode }: FileId, driver: DriverName): () => void {
  if (process.platform !== "linux") return () => undefined;
  made += 1;
  const about = [driver.replace(":", "-"), device, inode, process.pid, threadId, made].join(".");
  const path = join(tmpdir(), `statewright-open.${about}`);
  let mark: number;
  try {
    mark = openSync(path, "wx", 0o600);
  } catch {
    return () => undefined;
  }
  unlinkSync(path);
  return () => closeSync(mark);
}

/** Returns the driver that any thread of this process has marked a file with. */
export function findMarkedDriver({ device, inode }: FileId): DriverName | undefined {
  if (process.platform !== "linux") return undefined;
  const pattern = new RegExp(`/statewright-open\\.([a-z0-9-]+)\\.${device}\\.${inode}\\.[0-9.]+ \\(deleted\\)$`);
  for (const name of listDescriptors()) {
    const [, driver = ""] = pattern.exec(readTarget(join(descriptors, name))) ?? [];
    const found = drivers.get(driver);
    if (found !== undefined) return found;
  }
  return undefined;
}

function listDescriptors(): readonly string[] {
  try {
    return readdirSync(descriptors);
  } catch {
    return [];
  }
}

/** Empty for a descriptor that was closed meanwhile. */
function readTarget(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
