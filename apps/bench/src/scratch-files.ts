/** Files that a case writes: in a folder of its own, gone afterwards. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface ScratchFile {
  readonly path: string;
  /** Bytes of the file and of what SQLite keeps beside it. */
  bytes(): number;
  remove(): void;
}

export function scratchFile(name: string): ScratchFile {
  const folder = mkdtempSync(join(tmpdir(), "statewright-bench-"));
  return {
    path: join(folder, name),
    bytes: () => readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
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
