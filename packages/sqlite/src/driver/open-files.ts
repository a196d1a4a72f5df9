/**
 * Files that this process has open, with their drivers. Two SQLite libraries in a process know nothing of each other:
 * a close by the first releases the POSIX locks of the second on the file, and the second loses the log.
 */
import { statSync } from "node:fs";
import type { Database } from "./database.ts";
import type { DriverName } from "./driver.ts";
import { type FileId, findMarkedDriver, markOpenFile } from "./open-markers.ts";

interface OpenFile {
  readonly driver: DriverName;
  readonly removeMark: () => void;
  count: number;
}

/** Copies of this package in a thread share the list. */
const registryKey: symbol = Symbol.for("@statewright/sqlite open files");

function getOpenFiles(): Map<string, OpenFile> {
  const home: { [registryKey]?: Map<string, OpenFile> } = globalThis;
  home[registryKey] ??= new Map();
  return home[registryKey];
}

/** Identity of an existing file, the same for all of its names. */
function getFileId(path: string): FileId | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && { device: found.dev, inode: found.ino };
}

function toKey({ device, inode }: FileId): string {
  return `${device}:${inode}`;
}

/** Returns the driver that this process has a file open with. Threads see the files of each other on Linux only. */
export function findOpenDriver(path: string): DriverName | undefined {
  const id = getFileId(path);
  return id && (getOpenFiles().get(toKey(id))?.driver ?? findMarkedDriver(id));
}

/** Records the file of a connection until the connection is closed. */
export function recordUntilClosed(db: Database, path: string, driver: DriverName): void {
  const id = getFileId(path);
  if (id === undefined) return;
  const key = toKey(id);
  const files = getOpenFiles();
  const file = files.get(key) ?? { driver, removeMark: markOpenFile(id, driver), count: 0 };
  file.count += 1;
  files.set(key, file);
  const close = db.close;
  let isOpen = true;
  db.close = () => {
    const result = close.call(db);
    if (!isOpen) return result;
    isOpen = false;
    file.count -= 1;
    if (file.count === 0) {
      files.delete(key);
      file.removeMark();
    }
    return result;
  };
}
