/**
 * Location of the scripts that run as separate processes: next to this file in the sources, in `dist/crash` when
 * published.
 */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Returns the path of a script in `src/crash`, by its name without extension. */
export function getProcessFile(name: "crash-child" | "plugin-proxy"): string {
  const moduleUrl = import.meta.url;
  if (moduleUrl.endsWith(".ts")) return join(dirname(fileURLToPath(moduleUrl)), `${name}.ts`);
  // In a bundle the depth of this module is unknown, so the path starts at the package manifest.
  const manifest = createRequire(moduleUrl).resolve("@statewright/testing/package.json");
  return join(dirname(manifest), "dist/crash", `${name}.js`);
}
