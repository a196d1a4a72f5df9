// Writes docs/reference/api.md: the exported names of the published packages by entry, each with the first sentence of
// its doc comment. `npm test` checks that the page is up to date.
//
// ```
// node scripts/api-reference.mjs [--check]
// ```

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseSync } from "rolldown/utils";

const root = join(import.meta.dirname, "..");
const page = join(root, "docs/reference/api.md");

/** Entries in reading order; an entry that is not listed follows in alphabetic order. */
const firstEntries = [
  "statewright",
  "statewright/inspect",
  "statewright/middleware",
  "statewright/store",
  "statewright/adapter",
  "@statewright/testing",
];

/** Returns the text of docs/reference/api.md. */
export function createApiPage() {
  const entries = listEntries();
  const listed = new Map();
  const sections = [...entries.keys()].sort(compareEntries).map((entry) => {
    const exports = listExports(entries.get(entry), entries);
    const own = exports.filter(({ name, source }) => listed.get(name)?.source !== source);
    const others = exports.filter(({ name, source }) => listed.get(name)?.source === source);
    const homes = [...new Set(others.map(({ name }) => listed.get(name).entry))];
    for (const { name, source } of own) if (!listed.has(name)) listed.set(name, { entry, source });
    return createSection({ entry, own, others, homes });
  });
  return [
    "# API",
    "",
    "All exported names of the published packages, by entry. A name is in the table of the first entry that exports it. `node scripts/api-reference.mjs` generates this page from the doc comments.",
    "",
    ...sections,
  ].join("\n");
}

/** Returns the exports of an entry's file: name, kind, doc sentence, and the place of the declaration. */
function listExports(file, entries) {
  const found = new Map();
  for (const { name, read } of collectExports(file, entries)) if (!found.has(name)) found.set(name, read());
  return [...found]
    .map(([name, declaration]) => ({ name, ...declaration }))
    .flatMap((each) => [each, ...listMembers(each, entries)])
    .sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
}

function listMembers({ name, namespaceFile }, entries) {
  if (namespaceFile === undefined) return [];
  return [...collectExports(namespaceFile, entries)]
    .map((member) => ({ ...member.read(), name: `${name}.${member.name}` }))
    .filter(({ isType }) => !isType);
}

function* collectExports(file, entries) {
  for (const statement of parse(file).program.body) {
    if (statement.type === "ExportAllDeclaration") {
      const source = resolveSource(file, statement.source.value, entries);
      if (statement.exported)
        yield { name: statement.exported.name, read: () => readNamespace(file, statement, source) };
      else yield* collectExports(source, entries);
    }
    if (statement.type === "ExportDefaultDeclaration")
      yield { name: "default", read: () => describe(file, statement, statement) };
    if (statement.type !== "ExportNamedDeclaration") continue;
    for (const name of listDeclaredNames(statement.declaration))
      yield { name, read: () => findDeclaration(file, name, entries) };
    for (const { local, exported } of statement.specifiers) {
      const read = () =>
        statement.source
          ? findDeclaration(resolveSource(file, statement.source.value, entries), local.name, entries)
          : findDeclaration(file, local.name, entries);
      yield { name: exported.name, read };
    }
  }
}

/** Returns the declaration of `name` in `file`, or in the file that it is imported or exported from. */
function findDeclaration(file, name, entries) {
  const declared = [];
  for (const statement of parse(file).program.body) {
    const declaration = statement.declaration ?? statement;
    if (listDeclaredNames(declaration).includes(name)) declared.push(describe(file, statement, declaration));
  }
  if (declared.length > 0) return declared.find(({ doc }) => doc !== "") ?? declared[0];
  for (const statement of parse(file).program.body) {
    if (statement.type === "ImportDeclaration") {
      const found = statement.specifiers.find(({ local }) => local.name === name);
      if (found === undefined) continue;
      const source = resolveSource(file, statement.source.value, entries);
      return found.imported
        ? findDeclaration(source, found.imported.name, entries)
        : readNamespace(file, found, source);
    }
  }
  for (const each of collectExports(file, entries)) if (each.name === name) return each.read();
  throw new Error(`${file}: expected a declaration of "${name}", found none. Fix the export.`);
}

function readNamespace(file, statement, namespaceFile) {
  const doc = findDoc(file, statement.start) || findFileDoc(namespaceFile);
  return { doc, isType: false, source: `${namespaceFile}#*`, namespaceFile };
}

function describe(file, statement, declaration) {
  const isType = /^TS(?:Interface|TypeAlias)Declaration$/.test(declaration.type);
  const [name = "default"] = listDeclaredNames(declaration);
  return { doc: findDoc(file, statement.start), isType, source: `${file}#${name}`, file, declaration };
}

/** Returns the types of all entries, each with its declaration and a test of a member for a doc comment. */
export function listPublicTypes() {
  const entries = listEntries();
  return [...entries.keys()].flatMap((entry) =>
    listExports(entries.get(entry), entries)
      .filter(({ isType }) => isType)
      .map(({ name, file, declaration }) => ({
        name,
        declaration,
        file,
        hasDoc: (member) => findDoc(file, member.start) !== "",
      })),
  );
}

/** Returns the first sentence of the doc comment that ends directly before `start`. */
function findDoc(file, start) {
  const { comments, text } = parse(file);
  const comment = comments.findLast(({ end }) => end <= start && text.slice(end, start).trim() === "");
  return comment?.value.startsWith("*") ? readFirstSentence(comment.value) : "";
}

function findFileDoc(file) {
  const [first] = parse(file).comments;
  return first?.start === 0 && first.value.startsWith("*") ? readFirstSentence(first.value) : "";
}

function readFirstSentence(comment) {
  const lines = comment.split("\n").map((line) => line.replace(/^\s*\*+ ?/, "").trim());
  const end = lines.findIndex((line, index) => line.startsWith("@") || (line === "" && index > 0 && lines[0] !== ""));
  const text = lines
    .slice(0, end === -1 ? undefined : end)
    .join(" ")
    .trim();
  const [sentence = ""] = /^.*?[.:](?=\s|$)(?!\s[a-z])/.exec(text) ?? [text];
  return sentence
    .replaceAll(/\{@link (\S+?)\}/g, "`$1`")
    .replaceAll("|", "\\|")
    .replace(/:$/, ".");
}

const parsed = new Map();

function parse(file) {
  if (!parsed.has(file)) {
    const text = readFileSync(file, "utf8");
    const { program, comments } = parseSync(file, text);
    parsed.set(file, { text, program, comments });
  }
  return parsed.get(file);
}

function resolveSource(file, source, entries) {
  const found = source.startsWith(".") ? join(dirname(file), source) : entries.get(source);
  if (found === undefined)
    throw new Error(`${file}: expected "${source}" to be an entry of a package. Fix the export.`);
  return found;
}

function listDeclaredNames(declaration) {
  if (!declaration) return [];
  if (declaration.declarations) return declaration.declarations.map(({ id }) => id.name);
  return declaration.id ? [declaration.id.name] : [];
}

function listEntries() {
  const entries = new Map();
  for (const folder of readdirSync(join(root, "packages")).map((name) => join(root, "packages", name))) {
    if (!existsSync(join(folder, "package.json"))) continue;
    const { name, exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    for (const [entry, source] of Object.entries(exports))
      if (typeof source === "string" && source.endsWith(".ts"))
        entries.set(`${name}${entry.slice(1)}`, join(folder, source));
  }
  return entries;
}

function compareEntries(a, b) {
  const place = (entry) => {
    const index = firstEntries.indexOf(entry);
    return index === -1 ? firstEntries.length : index;
  };
  return place(a) - place(b) || (a < b ? -1 : 1);
}

function createSection({ entry, own, others, homes }) {
  const values = own.filter(({ isType }) => !isType);
  const types = own.filter(({ isType }) => isType);
  return [
    `## ${entry}`,
    "",
    ...createTable("value", values),
    ...createTable("type", types),
    ...(others.length > 0
      ? [
          `${own.length > 0 ? "Its other names are" : "All its names are"} in ${homes.map((home) => `\`${home}\``).join(", ")}.`,
          "",
        ]
      : []),
  ].join("\n");
}

function createTable(kind, rows) {
  if (rows.length === 0) return [];
  return [`| ${kind} | description |`, "|---|---|", ...rows.map(({ name, doc }) => `| \`${name}\` | ${doc} |`), ""];
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const text = createApiPage();
  if (!process.argv.includes("--check")) writeFileSync(page, text);
  else if (!existsSync(page) || readFileSync(page, "utf8") !== text) {
    console.error(
      "docs/reference/api.md: expected the output of scripts/api-reference.mjs. Run node scripts/api-reference.mjs.",
    );
    process.exitCode = 1;
  }
}
