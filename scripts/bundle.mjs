// Bundles packages as they are published: one file for each entry of a manifest, and what two entries share beside them.
// Node loads one file several times as fast as the hundred that it was made of. The declarations in the same folder are
// the compiler's, a file for each source.

import { existsSync, globSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { rolldown } from "rolldown";

/** Write `dist` of each package in `packages/`, below the folder `root`. */
export async function bundlePackages(root) {
  for (const name of readdirSync(join(root, "packages"))) await bundlePackage(join(root, "packages", name));
}

async function bundlePackage(folder) {
  const { exports, publishConfig } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const dist = join(folder, "dist");
  const input = Object.fromEntries(
    Object.entries(exports).map(([entry, source]) => {
      const file = join(folder, publishConfig.exports[entry].default);
      return [relative(dist, file).replaceAll("\\", "/").replace(/\.js$/, ""), join(folder, source)];
    }),
  );
  for (const script of scriptsOf(folder)) input[script] = join(folder, "src", `${script}.ts`);
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
    // They are published beside it: in the map they would be twice as much.
    sourcemapExcludeSources: true,
    comments: false,
    entryFileNames: "[name].js",
    chunkFileNames: "shared/[name].js",
  });
  await bundle.close();
}

/** Sources that are started as processes of their own: nobody imports them. */
function scriptsOf(folder) {
  return ["crash/crash-child", "crash/plugin-proxy"].filter((name) => existsSync(join(folder, "src", `${name}.ts`)));
}

if (import.meta.main) await bundlePackages(join(import.meta.dirname, ".."));
