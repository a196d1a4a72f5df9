// Writes the line of imports of each page: the entries of the names that the blocks of the page use and its programs
// import, except names of `statewright`. `npm test` checks that the lines are up to date.
//
// ```
// node scripts/page-imports.mjs
// ```

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { listExportedNames } from "./exported-names.mjs";

const root = join(import.meta.dirname, "..");
const mainEntry = "statewright";
/** Packages whose entries `statewright` re-exports under the same path. */
const mergedPackages = /^@statewright\/(?:core|sqlite|agent|ai-sdk)(?=\/|$)/;

/** Lists the pages with programs, as paths below the root. */
export function listProgramPages() {
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((file) => join("docs", file));
  const readmes = readdirSync(join(root, "packages")).map((name) => join("packages", name, "README.md"));
  return [...docs.filter((file) => file.endsWith(".md")), ...readmes]
    .filter((page) => /^Program: /m.test(readFileSync(join(root, page), "utf8")))
    .sort();
}

/** Returns the text of a page with its line of imports. */
export function addImportsLine(page, text) {
  const without = text.replace(/(?<=^(?:Program: .*| {4}.*)\n\n)Import `.*`\.\n\n/m, "");
  const line = createImportsLine(page, without);
  if (line === undefined) return without;
  // Behind the output of a program that follows its line.
  return without.replace(/(?:^Program: .*\n\n(?:(?: {4}.*)?\n)*)+/m, (programs) => `${programs}${line}\n\n`);
}

/**
 * Returns the sentence with the entries of the names whose import the page does not show; undefined if all of them are
 * of `statewright`.
 */
function createImportsLine(page, text) {
  const blocks = [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
  const shown = new Set(blocks.flatMap(listImports).map(({ name }) => name));
  const entries = new Map();
  for (const [, file] of text.matchAll(/^Program: \[[^\]]*\]\(([^)]+)\)/gm)) {
    const program = readFileSync(join(root, dirname(page), file), "utf8");
    const code = blocks.filter((block) => squeeze(program).includes(squeeze(block))).join("\n");
    for (const { name, from } of listImports(program)) {
      if (shown.has(name) || !new RegExp(`(?<![\\w.$"])${name}(?![\\w$"])`).test(code)) continue;
      const entry = findEntry(name, from);
      if (entry !== undefined) entries.set(entry, (entries.get(entry) ?? new Set()).add(name));
    }
  }
  const others = [...entries.keys()].filter((entry) => entry !== mainEntry).sort();
  if (others.length === 0) return undefined;
  const clauses = others.map((entry) => `${formatNames(entries.get(entry))} from \`${entry}\``);
  if (entries.has(mainEntry)) clauses.push(`all other names from \`${mainEntry}\``);
  return `Import ${clauses.join("; ")}.`;
}

/** Removes white space and trailing commas, which the formatter sets by the width of a line. */
function squeeze(code) {
  return code.replaceAll(/\s+/g, "").replaceAll(/,([)\]}]|$)/g, "$1");
}

function formatNames(names) {
  const sorted = [...names].sort((left, right) => left.localeCompare(right, "en"));
  const quoted = sorted.map((name) => `\`${name}\``);
  return quoted.length < 2 ? quoted.join("") : `${quoted.slice(0, -1).join(", ")} and ${quoted.at(-1)}`;
}

const exportedNames = listExportedNames(root);

/** Returns the entry to import a name from: of `statewright` if it has the name, else of its own package. */
function findEntry(name, from) {
  if (!/^@?statewright(?:\/|$)/.test(from)) return undefined;
  const own = from.replace(mergedPackages, mainEntry);
  return [mainEntry, own].find((entry) => exportedNames.get(entry)?.includes(name)) ?? from;
}

/** Lists the named imports of a program: the exported names, with the module. */
function listImports(code) {
  return [...code.matchAll(/^import (?:type )?\{([^}]*)\} from "([^"]+)";/gm)].flatMap(([, names, from]) =>
    names
      .split(",")
      .map(
        (name) =>
          name
            .trim()
            .replace(/^type /, "")
            .split(" as ")[0] ?? "",
      )
      .filter((name) => name !== "")
      .map((name) => ({ name, from })),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  for (const page of listProgramPages()) {
    const file = join(root, page);
    const text = readFileSync(file, "utf8");
    const next = addImportsLine(page, text);
    if (next !== text) {
      writeFileSync(file, next);
      console.log(relative(root, file));
    }
  }
