// Exported names of the published packages, types included, by package and entry.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseSync } from "rolldown/utils";

/** Returns the sorted exported names of each entry, such as `@statewright/core/store`, below the folder `root`. */
export function listExportedNames(root) {
  const packages = new Map();
  for (const name of readdirSync(join(root, "packages"))) {
    const folder = join(root, "packages", name);
    const manifest = join(folder, "package.json");
    if (existsSync(manifest)) packages.set(JSON.parse(readFileSync(manifest, "utf8")).name, folder);
  }
  const entries = new Map();
  for (const [name, folder] of packages) {
    const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    for (const [entry, source] of Object.entries(exports))
      if (typeof source === "string" && source.endsWith(".ts"))
        entries.set(`${name}${entry.slice(1)}`, join(folder, source));
  }
  return new Map([...entries].map(([entry, file]) => [entry, [...collectNames(file, entries)].sort()]));
}

function collectNames(file, entries) {
  const names = new Set();
  for (const statement of parseSync(file, readFileSync(file, "utf8")).program.body) {
    if (statement.type === "ExportAllDeclaration") {
      if (statement.exported) names.add(statement.exported.name);
      else
        for (const name of collectNames(resolveSource(file, statement.source.value, entries), entries)) names.add(name);
    }
    if (statement.type === "ExportDefaultDeclaration") names.add("default");
    if (statement.type !== "ExportNamedDeclaration") continue;
    for (const { exported } of statement.specifiers) names.add(exported.name ?? exported.value);
    for (const name of listDeclaredNames(statement.declaration)) names.add(name);
  }
  return names;
}

function resolveSource(file, source, entries) {
  const found = source.startsWith(".") ? join(dirname(file), source) : entries.get(source);
  if (found === undefined)
    throw new Error(`${file}: expected "${source}" to be an entry of a package, found none. Fix the export.`);
  return found;
}

function listDeclaredNames(declaration) {
  if (!declaration) return [];
  if (declaration.declarations) return declaration.declarations.map(({ id }) => id.name);
  return declaration.id ? [declaration.id.name] : [];
}
