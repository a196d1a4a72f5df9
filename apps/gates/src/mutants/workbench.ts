/** A copy of the engine and of the simulator in a folder of its own, with one fault planted. */
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

const root = fileURLToPath(new URL("../../../../", import.meta.url));

/** What is copied; packages that they need from outside are linked. */
const parts = ["packages/core", "packages/sqlite", "packages/testing", "apps/gates"] as const;

/** A workbench: `path` leads to a file of the repository in the copy, `copyOf` to that of a file here. */
export interface Workbench {
  readonly path: (file: string) => string;
  readonly copyOf: (file: URL) => string;
  readonly remove: () => void;
}

/** Copy the sources. */
export function createWorkbench(): Workbench {
  const home = mkdtempSync(join(tmpdir(), "statewright-mutant-"));
  for (const part of parts) {
    const modules = join(home, part, "node_modules");
    mkdirSync(join(modules, "@statewright"), { recursive: true });
    cpSync(join(root, part, "src"), join(home, part, "src"), { recursive: true });
    cpSync(join(root, part, "package.json"), join(home, part, "package.json"));
    const given = join(root, part, "node_modules");
    for (const name of existsSync(given) ? readdirSync(given) : [])
      if (!name.startsWith(".") && name !== "@statewright")
        symlinkSync(realpathSync(join(given, name)), join(modules, name), "junction");
    for (const other of parts.slice(0, 3)) {
      const link = join(modules, "@statewright", other.slice("packages/".length));
      if (other !== part) symlinkSync(join(home, other), link, "junction");
    }
  }
  return {
    path: (file) => join(home, file),
    copyOf: (file) => join(home, relative(root, fileURLToPath(file))),
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** Why a mutant cannot be planted any more; nothing when it can. */
export function misplaced({ file, find }: Mutant): string | undefined {
  const text = readFileSync(join(root, "packages/core/src", file), "utf8");
  const times = text.split(find).length - 1;
  return times === 1 ? undefined : `what it changes in ${file} stands there ${times} times`;
}

/** Plant a mutant, and undo it. */
export function plant(bench: Workbench, { file, find, replace }: Mutant): () => void {
  const path = bench.path(`packages/core/src/${file}`);
  const text = readFileSync(path, "utf8");
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
  return () => writeFileSync(path, text);
}
