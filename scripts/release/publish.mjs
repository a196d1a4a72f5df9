// Publishes tarballs, as `pnpm publish -r` publishes folders: in the order of their dependencies, and only versions
// that the registry does not have. A release that failed in the middle is therefore repeated safely.

import { join } from "node:path";
import { runCommand, tryCommand } from "./run-command.mjs";

/**
 * Publishes each package from its tarball in `folder`, with the registry and the token that pnpm finds for `cwd`, and
 * reports each by `log`. Throws an error if the registry has the version with another content, and at the first package
 * that cannot be published.
 */
export async function publishPackages(packages, { folder, cwd, attested, log }) {
  for (const packed of packages) {
    const { name, version, file, integrity } = packed;
    const published = await findPublishedIntegrity(packed, cwd);
    if (published !== undefined && published !== integrity)
      throw new Error(
        `release: expected ${integrity} for ${name} ${version} in the registry, got ${published}. Release a new version.`,
      );
    if (published === undefined) {
      const flags = ["--access", "public", "--no-git-checks", ...(attested ? ["--provenance"] : [])];
      await runCommand("pnpm", ["publish", join(folder, file), ...flags], { cwd });
    }
    log(`  ${name} ${version} ${published === undefined ? "published" : "was published before"}`);
  }
}

/** Returns the integrity of a version in the registry; undefined if the registry does not have the version. */
async function findPublishedIntegrity({ name, version }, cwd) {
  const args = ["view", `${name}@${version}`, "dist.integrity", "--json"];
  const { code, stdout, stderr } = await tryCommand("pnpm", args, { cwd });
  if (code === 0) return JSON.parse(stdout);
  if (missing.some((each) => stdout.includes(`"code": "${each}"`))) return undefined;
  throw new Error(`release: expected an answer of the registry for ${name}, got an error.\n${stdout}${stderr}`);
}

/** Codes of pnpm for a package, and for a version, that the registry does not have. */
const missing = ["ERR_PNPM_FETCH_404", "ERR_PNPM_PACKAGE_NOT_FOUND"];
