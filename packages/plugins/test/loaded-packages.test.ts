/** Packages that a program loads with the entry of this package. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const packages = join(import.meta.dirname, "../..");

/** Lists the imported packages of a source file, also through imported files and packages of this repository. */
function listLoadedPackages(file: string, loaded = new Set<string>()): readonly string[] {
  if (loaded.has(file)) return [];
  loaded.add(file);
  const imports = readFileSync(file, "utf8").matchAll(/^(?:import|export)\s(?!type\s)[^;]*?from "([^"]+)"/gm);
  for (const [, path = ""] of imports) {
    const [, ours, entry = "/index"] = /^@statewright\/([^/]+)(\/.+)?$/.exec(path) ?? [];
    if (path.startsWith(".")) listLoadedPackages(join(file, "..", path), loaded);
    else if (ours !== undefined) listLoadedPackages(join(packages, ours, "src", `${entry}.ts`), loaded);
    else loaded.add(path);
  }
  return [...loaded].filter((path) => !path.startsWith(packages) && !path.startsWith("node:"));
}

test("the MCP SDK is not loaded by programs that do not use MCP", () => {
  const isMcp = (path: string): boolean => path.includes("modelcontextprotocol");
  const loaded = listLoadedPackages(join(packages, "plugins/src/index.ts"));
  expect(loaded).toEqual(expect.arrayContaining(["ajv", "yaml"]));
  expect(loaded.filter(isMcp)).toEqual([]);
  expect(listLoadedPackages(join(packages, "mcp/src/index.ts"))).toContain("@modelcontextprotocol/client");
});
