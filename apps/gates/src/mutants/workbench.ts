/** Copy of the engine and of the simulator in a temporary folder, for one mutant at a time. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutants.ts";

/** Folder of the repository. */
export const root: string = fileURLToPath(new URL("../../../../", import.meta.url));

/** Copied packages. Packages from outside the repository are linked. */
const parts = ["packages/core", "packages/sqlite", "packages/testing", "apps/gates"] as const;

/**
 * Copy of sources. `toPath` maps a path of the repository to the copy; `toCopyPath` maps a file URL of the repository to
 * the copy.
 */
export interface Workbench {
  readonly toPath: (file: string) => string;
  readonly toCopyPath: (file: URL) => string;
  readonly remove: () => void;
}

/** Copies the sources. */
export function createWorkbench(): Workbench {
  const home = mkdtempSync(join(tmpdir(), "statewright-mutant-"));
  for (const part of parts) {
    const modules = join(home, part, "node_modules");
    mkdirSync(join(modules, "@statewright"), { recursive: true });
    cpSync(join(root, part, "src"), join(home, part, "src"), { recursive: true });
    cpSync(join(root, part, "package.json"), join(home, part, "package.json"));
    const sourceModules = join(root, part, "node_modules");
    for (const name of existsSync(sourceModules) ? readdirSync(sourceModules) : [])
      if (!name.startsWith(".") && name !== "@statewright")
        symlinkSync(realpathSync(join(sourceModules, name)), join(modules, name), "junction");
    for (const other of parts.slice(0, 3)) {
      const link = join(modules, "@statewright", other.slice("packages/".length));
      if (other !== part) symlinkSync(join(home, other), link, "junction");
    }
  }
  return {
    toPath: (file) => join(home, file),
    toCopyPath: (file) => join(home, relative(root, fileURLToPath(file))),
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** Returns the reason why a mutant cannot be applied, or undefined. */
export function findMisplacement({ file, find }: Pick<Mutant, "file" | "find">): string | undefined {
  const text = readFileSync(join(root, file), "utf8");
  const times = text.split(find).length - 1;
  return times === 1 ? undefined : `expected its source text once in ${file}, found ${times} times`;
}

/** Applies a mutant. The returned function restores the file. */
export function applyMutant(
  bench: Pick<Workbench, "toPath">,
  { file, find, replace }: Pick<Mutant, "file" | "find" | "replace">,
): () => void {
  const path = bench.toPath(file);
  const text = readFileSync(path, "utf8");
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
  return () => writeFileSync(path, text);
}
