// Bundle for processes started by tests: the sources of all packages in a few files. Node spends most of a process
// start on resolving and linking five hundred modules. The bundle is rebuilt after a change of a source, and cached
// in node_modules/.cache.
//
// ```
// node scripts/bundle-for-tests.mjs    builds the bundle once, before many vitest processes use it
// ```

import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const cache = join(root, "node_modules/.cache/bundled-for-tests");
/** Stateless libraries of many modules, also imported by the programs of the tests. */
const libraries = ["zod"];
const day = 86_400_000;

/**
 * Builds the bundle if necessary. Returns the Node options that load the bundle. After a failed build, for example
 * for a source with a syntax error, processes load the sources one by one.
 */
export async function bundleForTests() {
  try {
    return `--import=${pathToFileURL(await buildIfStale()).href}`;
  } catch (error) {
    process.stderr.write(
      `bundle-for-tests: no bundle of the sources, so processes of the tests start slowly: ${error}\n`,
    );
    return "";
  }
}

/** Returns the path of the module that makes a process load the bundle. */
async function buildIfStale() {
  const entries = listEntries();
  const folder = join(cache, computeCacheKey(entries));
  const hook = join(folder, "hook.mjs");
  if (existsSync(hook)) return hook;

  mkdirSync(cache, { recursive: true });
  const making = mkdtempSync(join(cache, "making-"));
  await write(entries, making);
  writeFileSync(join(making, "hook.mjs"), createHook(entries));
  // Some tests start processes as another user.
  chmodSync(making, 0o755);
  try {
    renameSync(making, folder);
  } catch (error) {
    // A concurrent process has built the same bundle.
    if (!existsSync(hook)) throw error;
    rmSync(making, { recursive: true });
  }
  removeOld();
  return hook;
}

/** Removes bundles older than a day. Concurrent test runs may still use a newer bundle of other sources. */
function removeOld() {
  for (const name of readdirSync(cache)) {
    const folder = join(cache, name);
    const made = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - made > day) rmSync(folder, { recursive: true, force: true });
  }
}

/** Lists all modules exported by packages, by import name. */
function listEntries() {
  const entries = {};
  for (const folder of readdirSync(join(root, "packages")).sort()) {
    const manifest = join(root, "packages", folder, "package.json");
    if (!existsSync(manifest)) continue;
    const { name, exports } = JSON.parse(readFileSync(manifest, "utf8"));
    for (const [path, file] of Object.entries(exports)) entries[join(name, path)] = join(dirname(manifest), file);
  }
  for (const library of libraries) entries[library] = library;
  return entries;
}

/** Returns the cache key: a hash of all inputs of the bundle. */
function computeCacheKey(entries) {
  const hash = createHash("sha256").update(JSON.stringify(entries));
  for (const file of [fileURLToPath(import.meta.url), join(root, "pnpm-lock.yaml"), ...listSources()])
    hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest("hex").slice(0, 16);
}

function listSources() {
  return readdirSync(join(root, "packages")).flatMap((folder) => {
    const source = join(root, "packages", folder, "src");
    const files = existsSync(source) ? readdirSync(source, { recursive: true }).map(String).sort() : [];
    return files.filter((file) => file.endsWith(".ts")).map((file) => join(source, file));
  });
}

async function write(entries, dir) {
  const { build } = await import("rolldown");
  await build({
    cwd: join(root, "packages/statewright"),
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [getFileName(name), file])),
    platform: "node",
    // Same conditions as Node, so that a library is not loaded in two formats.
    resolve: { conditionNames: ["node", "import", "default"] },
    logLevel: "warn",
    plugins: [{ name: "external-libraries", resolveId, transform }],
    output: { dir, format: "esm", keepNames: true, entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" },
  });
}

/** Resolves a library to its own folder, because its name is not resolvable from the folder of the bundle. */
async function resolveId(source, importer, options) {
  if (importer === undefined || !/^[a-z@]/i.test(source) || source.startsWith("node:")) return null;
  const found = await this.resolve(source, importer, { ...options, skipSelf: true });
  if (
    !found ||
    found.external ||
    !found.id.includes("node_modules") ||
    libraries.some((name) => found.id.includes(`/node_modules/${name}/`))
  )
    return found;
  return { id: pathToFileURL(found.id).href, external: true };
}

/**
 * Replaces `import.meta.url` and similar properties by the values of the source file, instead of those of the bundle.
 */
function transform(code, id) {
  if (!code.includes("import.meta.")) return null;
  const places = { url: pathToFileURL(id).href, filename: id, dirname: dirname(id) };
  const properties = listMetaProperties(this.parse(code, { lang: "ts" }));
  return properties.reduceRight((text, { start, end, property }) => {
    const place = places[property.name];
    return place === undefined ? text : text.slice(0, start) + JSON.stringify(place) + text.slice(end);
  }, code);
}

/** Lists every `import.meta.property` expression below a node, in source order. */
function listMetaProperties(node) {
  if (node === null || typeof node !== "object") return [];
  if (node.type === "MemberExpression" && node.object.type === "MetaProperty") return [node];
  return Object.values(node).flatMap(listMetaProperties);
}

function getFileName(name) {
  return name.replace("@", "").replaceAll("/", "-");
}

/**
 * Creates the hook module. Only programs of this repository load the bundle: not programs of a copy, which may
 * differ, and not libraries, which use their installed versions. Imports by a computed name within the bundle are
 * resolved from the folder packages/statewright.
 */
function createHook(entries) {
  const files = Object.keys(entries).map(
    (name) => `  ${JSON.stringify(name)}: new URL("${getFileName(name)}.mjs", import.meta.url).href,`,
  );
  const here = pathToFileURL(join(root, "/")).href;
  const whole = pathToFileURL(join(root, "packages/statewright/package.json")).href;
  return `import { registerHooks } from "node:module";
const own = new URL(".", import.meta.url).href;
const files = {
${files.join("\n")}
};
registerHooks({
  resolve(name, context, next) {
    const { parentURL = "" } = context;
    if (parentURL.startsWith(own))
      return next(name, /^(\\.|node:|file:)/.test(name) ? context : { ...context, parentURL: ${JSON.stringify(whole)} });
    const url = files[name];
    if (url === undefined || !parentURL.startsWith(${JSON.stringify(here)}) || parentURL.includes("/node_modules/")) return next(name, context);
    return { url, format: "module", shortCircuit: true };
  },
});
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleForTests();
