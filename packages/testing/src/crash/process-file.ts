/** Where the scripts of this package are that run as processes of their own: beside this file in the sources, in `dist/crash` when published. */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The path of a script in `src/crash`, by its name without an extension. */
export function processFile(name: "crash-child" | "plugin-proxy"): string {
  const here = import.meta.url;
  if (here.endsWith(".ts")) return join(dirname(fileURLToPath(here)), `${name}.ts`);
  // Bundled with others, this code does not know how deep it stands.
  const manifest = createRequire(here).resolve("@statewright/testing/package.json");
  return join(dirname(manifest), "dist/crash", `${name}.js`);
}
