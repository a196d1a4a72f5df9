/** Temporary files of a case, each in its own folder. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface ScratchFile {
  readonly path: string;
  /**
   * Returns the bytes of the file and of everything else in its folder, such as SQLite's journal and nested folders.
   */
  countBytes(): number;
  remove(): void;
}

export function createScratchFile(name: string): ScratchFile {
  const folder = mkdtempSync(join(tmpdir(), "statewright-bench-"));
  return {
    path: join(folder, name),
    countBytes: () => countFolderBytes(folder),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Returns the bytes of all files in a folder, including nested folders. */
export function countFolderBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

export interface ScratchFolder {
  readonly path: string;
  write(name: string, text: string): void;
  remove(): void;
}

export function createScratchFolder(): ScratchFolder {
  const path = mkdtempSync(join(tmpdir(), "statewright-bench-"));
  return {
    path,
    write: (name, text) => writeFileSync(join(path, name), text),
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}
