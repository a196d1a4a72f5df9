// Reads and parses the TypeScript files of a checkout.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "rolldown/utils";

/**
 * Parses packages/<name>/src/**\/*.ts of each package. A path is relative to the root and uses forward slashes.
 * Throws for a file with a syntax error.
 */
export function readPackages(root) {
  return listFolders(join(root, "packages"))
    .filter((name) => existsSync(join(root, "packages", name, "src")))
    .map((name) => ({ name, files: listSources(root, `packages/${name}/src`).map((path) => parseFile(root, path)) }));
}

/** Lists the names of the folders in a folder, sorted; a missing folder has none. */
export function listFolders(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && entry.name !== "node_modules")
    .map((entry) => entry.name)
    .sort();
}

/** Calls `visit(node, parent)` for each node of a syntax tree, parents first. */
export function visitNodes(node, visit, parent) {
  if (typeof node.type === "string") visit(node, parent);
  const next = typeof node.type === "string" ? node : parent;
  for (const key in node) {
    const child = node[key];
    if (typeof child === "object" && child !== null) visitNodes(child, visit, next);
  }
}

function listSources(root, folder) {
  const files = readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => `${folder}/${entry.name}`)
    .sort();
  const inside = listFolders(join(root, folder)).flatMap((name) => listSources(root, `${folder}/${name}`));
  return [...files, ...inside];
}

function parseFile(root, path) {
  const text = readFileSync(join(root, path), "utf8");
  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`);
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return { path, text, program, comments, lineAt: (offset) => findLine(starts, offset) };
}

/** Finds the line of an offset, counted from 1. */
function findLine(starts, offset) {
  let low = 0;
  let high = starts.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= offset) low = middle;
    else high = middle;
  }
  return low + 1;
}
