/** Files that a case writes: in a folder of its own, gone afterwards. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface ScratchFile {
  readonly path: string;
  /** Bytes of the file and of all that was left beside it: what SQLite keeps there, other files, folders of files. */
  bytes(): number;
  remove(): void;
}

export function scratchFile(name: string): ScratchFile {
  const folder = mkdtempSync(join(tmpdir(), "statewright-bench-"));
  return {
    path: join(folder, name),
    bytes: () => bytesBelow(folder),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Bytes of all files of a folder and of those below it. */
export function bytesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

export interface ScratchFolder {
  readonly path: string;
  write(name: string, text: string): void;
  remove(): void;
}

export function scratchFolder(): ScratchFolder {
  const path = mkdtempSync(join(tmpdir(), "statewright-bench-"));
  return {
    path,
    write: (name, text) => writeFileSync(join(path, name), text),
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}
