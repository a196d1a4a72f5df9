/** Our own packages, packed as they are published and installed as a user would: what B17 weighs. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { scratchFolder } from "../scratch-files.ts";
import type { InstalledPeer } from "./agents.ts";
import { install } from "./install.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const main = "statewright";

/** Where `statewright` lies once it is installed, or why it is not. */
export async function installOwn(installing: typeof install = install): Promise<InstalledPeer | string> {
  let dependencies: Readonly<Record<string, string>>;
  try {
    dependencies = await pack(closureOf(main));
  } catch (error) {
    return missing(`it could not be packed: ${error instanceof Error ? error.message : String(error)}`);
  }
  const entry = `export * from "${main}";`;
  const found = await installing({ name: main, version: "", dependencies, overrides: {}, entry });
  return found.kind === "missing" ? missing(found.why) : { name: main, main, folder: found.folder };
}

function missing(why: string): string {
  return `statewright was not installed, and B17 is without it: ${why}.`;
}

/** A package of ours and those of ours that it needs, by name, each with its folder. */
function closureOf(name: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const add = (each: string): void => {
    if (found.has(each)) return;
    const folder = join("packages", each.replace("@statewright/", ""));
    found.set(each, folder);
    const { dependencies = {} } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Manifest;
    for (const needed of Object.keys(dependencies)) if (needed.startsWith("@statewright/")) add(needed);
  };
  add(name);
  return found;
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The tarballs, named after what is in them: what did not change is not installed again. */
async function pack(packages: ReadonlyMap<string, string>): Promise<Readonly<Record<string, string>>> {
  const scratch = scratchFolder();
  const kept = join(tmpdir(), "statewright-bench-peers", "tarballs");
  mkdirSync(kept, { recursive: true });
  try {
    const script = join(root, "scripts/pack-package.mjs");
    await promisify(execFile)(process.execPath, [script, scratch.path, ...packages.values()], { cwd: root });
    return Object.fromEntries(
      [...packages].map(([name, folder]) => {
        const tarball = join(scratch.path, `${folder.split(/[\\/]/).at(-1)}.tgz`);
        const mark = createHash("sha256").update(readFileSync(tarball)).digest("hex").slice(0, 12);
        const file = join(kept, `${mark}.tgz`);
        copyFileSync(tarball, file);
        return [name, `file:${file}`];
      }),
    );
  } finally {
    scratch.remove();
  }
}
