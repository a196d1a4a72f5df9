// Packs packages for publication: the tarball of pnpm, plus the docs of the package, a SKILL.md for coding agents,
// and a README with links into these docs. Publish these tarballs, not the folders.
//
// ```
// node scripts/pack-package.mjs <folder for the tarballs> [packages/core …]
// ```

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { bundlePackages } from "./bundle.mjs";
import { findDocProblems, listDocs } from "./package-docs.mjs";

const root = resolve(import.meta.dirname, "..");
const windows = process.platform === "win32";

/**
 * Packs `packages/<name>` into the file `out`. Throws an error with the output of a failed step. Types and dist must
 * exist.
 */
export function packPackage(folder, out) {
  const work = mkdtempSync(join(tmpdir(), "packing-"));
  try {
    const plain = join(work, "plain.tgz");
    // Skips the `prepack` script that refuses to pack a folder; pnpm removes the script from the manifest too.
    run("pnpm", ["pack", "--ignore-scripts", "--out", plain], join(root, folder));
    run("tar", ["-xzf", basename(plain)], work);
    const unpacked = join(work, "package");
    for (const { path, content } of listDocs(root, folder)) {
      mkdirSync(dirname(join(unpacked, path)), { recursive: true });
      writeFileSync(join(unpacked, path), content);
    }
    const problems = findDocProblems(unpacked, folder);
    if (problems.length > 0) throw new Error(problems.join("\n"));
    run("npm", ["pack", "--ignore-scripts", "--pack-destination", work], unpacked);
    const [packed] = readdirSync(work).filter((file) => file.endsWith(".tgz") && file !== "plain.tgz");
    mkdirSync(dirname(out), { recursive: true });
    copyFileSync(join(work, packed), out);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function run(program, args, cwd) {
  const env = { ...process.env, PATH: [join(root, "node_modules/.bin"), process.env.PATH].join(delimiter) };
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, env, encoding: "utf8", shell: windows });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${error?.message ?? ""}${stdout}${stderr}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [out, ...given] = process.argv.slice(2);
  if (out === undefined) throw new Error("pack-package: expected the folder for the tarballs as the first argument");
  const folders = given.length > 0 ? given : readdirSync(join(root, "packages")).map((name) => `packages/${name}`);
  run("tsc", ["-b", ...folders], root);
  await bundlePackages(root);
  for (const folder of folders) {
    if (!existsSync(join(root, folder, "package.json")))
      throw new Error(`pack-package: expected a package, got ${folder}`);
    const file = resolve(out, `${basename(folder)}.tgz`);
    packPackage(folder, file);
    console.log(file);
  }
}
