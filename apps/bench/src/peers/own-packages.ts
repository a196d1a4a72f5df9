/** Packs Statewright's packages as for publication and installs them as a user does, for B17 and B22. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createScratchFolder } from "../scratch-files.ts";
import type { InstalledPeer } from "./agents.ts";
import { install } from "./install.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const main = "statewright";

/** Returns the folder of the installed `statewright`, or a sentence about the failure. */
export async function installOwn(installPeer: typeof install = install): Promise<InstalledPeer | string> {
  let dependencies: Readonly<Record<string, string>>;
  try {
    // zod is a peer, which a user installs beside the packages.
    dependencies = { ...(await pack(listOwnPackages(main))), zod: getZodVersion() };
  } catch (error) {
    return formatFailure(`packing failed: ${error instanceof Error ? error.message : String(error)}`);
  }
  const entry = `export * from "${main}";`;
  const found = await installPeer({ name: main, version: "", dependencies, overrides: {}, entry });
  return found.kind === "missing" ? formatFailure(found.reason) : { name: main, main, folder: found.folder };
}

/** Returns the version of zod in this repository. */
function getZodVersion(): string {
  const manifest = createRequire(import.meta.url).resolve("zod/package.json");
  return (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string }).version;
}

function formatFailure(reason: string): string {
  return `statewright is not installed, so B17 and B22 run without it: ${reason}.`;
}

/** Lists a package and its own dependencies within the repository, by name, with their folders. */
function listOwnPackages(name: string): ReadonlyMap<string, string> {
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

/** Packs the packages into tarballs named after their content hash. Unchanged packages are not installed again. */
async function pack(packages: ReadonlyMap<string, string>): Promise<Readonly<Record<string, string>>> {
  const scratch = createScratchFolder();
  const tarballFolder = join(tmpdir(), "statewright-bench-peers", "tarballs");
  mkdirSync(tarballFolder, { recursive: true });
  try {
    const script = join(root, "scripts/pack-package.mjs");
    await promisify(execFile)(process.execPath, [script, scratch.path, ...packages.values()], { cwd: root });
    return Object.fromEntries(
      [...packages].map(([name, folder]) => {
        const tarball = join(scratch.path, `${folder.split(/[\\/]/).at(-1)}.tgz`);
        const hash = createHash("sha256").update(readFileSync(tarball)).digest("hex").slice(0, 12);
        const file = join(tarballFolder, `${hash}.tgz`);
        copyFileSync(tarball, file);
        return [name, `file:${file}`];
      }),
    );
  } finally {
    scratch.remove();
  }
}
