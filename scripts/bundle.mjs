// Bundles packages for publication: one file per entry of a manifest, plus one with what several entries share. Node
// loads one file several times as fast as a hundred source files, and compiles short names and lines in less time. The
// declaration files in the same folder come from the compiler, one per source.

import { existsSync, globSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { rolldown } from "rolldown";

const keepNames = { function: true, class: true };

/** Writes `dist` of each package in `packages/` below the folder `root`. */
export async function bundlePackages(root) {
  for (const name of readdirSync(join(root, "packages"))) await bundlePackage(join(root, "packages", name));
}

/** Writes the files of a package to `dist`, in place of the JavaScript files that are there. */
export async function bundlePackage(folder, dist = join(folder, "dist")) {
  const { exports, publishConfig } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const input = Object.fromEntries(
    Object.entries(exports).map(([entry, source]) => {
      const file = relative("dist", publishConfig.exports[entry].default);
      return [file.replaceAll("\\", "/").replace(/\.js$/, ""), join(folder, source)];
    }),
  );
  for (const script of listScripts(folder)) input[script] = join(folder, "src", `${script}.ts`);
  for (const old of globSync("**/*.js{,.map}", { cwd: dist })) rmSync(join(dist, old));
  const bundle = await rolldown({
    input,
    external: (id) => /^[^./]/.test(id) && !/^[A-Z]:/.test(id),
    platform: "neutral",
  });
  await bundle.write({
    dir: dist,
    format: "esm",
    sourcemap: true,
    // Sources are published next to the map; a second copy in the map would double the size.
    sourcemapExcludeSources: true,
    comments: { annotation: true, jsdoc: false, legal: false },
    // Stack traces show the names of functions and classes.
    minify: { compress: { keepNames }, mangle: { toplevel: true, keepNames }, codegen: true },
    codeSplitting: { groups: [{ name: "shared", minShareCount: 2 }] },
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
  });
  await bundle.close();
}

/** Lists sources started as separate processes, which no module imports. */
function listScripts(folder) {
  return ["crash/crash-child", "crash/plugin-proxy"].filter((name) => existsSync(join(folder, "src", `${name}.ts`)));
}

if (import.meta.main) await bundlePackages(join(import.meta.dirname, ".."));
