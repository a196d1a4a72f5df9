// What the processes that tests start load: the sources of all packages in a few files, since Node takes most of a start
// for finding and linking five hundred modules. Made anew when a source has changed, and kept in node_modules/.cache.
//
//   node scripts/bundle-for-tests.mjs    makes the bundle, so that many vitest processes find it made

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
/** Libraries of many modules that the programs of the tests import too, and that have no state. */
const libraries = ["zod"];
const day = 86_400_000;

/**
 * Make the bundle unless it is there; returns the options with which Node loads it. Without a bundle, as when a source
 * cannot be read, processes load the sources one by one.
 */
export async function bundleForTests() {
  try {
    return `--import=${pathToFileURL(await bundled()).href}`;
  } catch (error) {
    process.stderr.write(
      `The processes of the tests start slowly, because there is no bundle of the sources: ${error}\n`,
    );
    return "";
  }
}

/** The module that makes a process load the bundle. */
async function bundled() {
  const entries = entriesOf();
  const folder = join(cache, state(entries));
  const hook = join(folder, "hook.mjs");
  if (existsSync(hook)) return hook;

  mkdirSync(cache, { recursive: true });
  const making = mkdtempSync(join(cache, "making-"));
  await write(entries, making);
  writeFileSync(join(making, "hook.mjs"), hookOf(entries));
  // Some tests start processes of another user.
  chmodSync(making, 0o755);
  try {
    renameSync(making, folder);
  } catch (error) {
    // Another process was faster, and has made the same.
    if (!existsSync(hook)) throw error;
    rmSync(making, { recursive: true });
  }
  removeOld();
  return hook;
}

/** Of a state that the sources no longer have; tests that run beside may still need one of today. */
function removeOld() {
  for (const name of readdirSync(cache)) {
    const folder = join(cache, name);
    const made = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - made > day) rmSync(folder, { recursive: true, force: true });
  }
}

/** Every module that a package hands out, under the name that it is imported by. */
function entriesOf() {
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

/** What the bundle is made of. */
function state(entries) {
  const hash = createHash("sha256").update(JSON.stringify(entries));
  for (const file of [fileURLToPath(import.meta.url), join(root, "pnpm-lock.yaml"), ...sources()])
    hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest("hex").slice(0, 16);
}

function sources() {
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
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [fileName(name), file])),
    platform: "node",
    // As Node resolves: a library must not come in two kinds.
    resolve: { conditionNames: ["node", "import", "default"] },
    logLevel: "warn",
    plugins: [{ name: "what stays where it is", resolveId, transform }],
    output: { dir, format: "esm", keepNames: true, entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" },
  });
}

/** A library is loaded from its own folder: the bundle lies where it is not found by its name. */
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

/** A source that asks for its place gets its own, not that of the bundle. */
function transform(code, id) {
  if (!code.includes("import.meta.")) return null;
  const places = { url: pathToFileURL(id).href, filename: id, dirname: dirname(id) };
  const asked = placesAsked(this.parse(code, { lang: "ts" }));
  return asked.reduceRight((text, { start, end, property }) => {
    const place = places[property.name];
    return place === undefined ? text : text.slice(0, start) + JSON.stringify(place) + text.slice(end);
  }, code);
}

/** Every `import.meta.something` below a node, in their order. */
function placesAsked(node) {
  if (node === null || typeof node !== "object") return [];
  if (node.type === "MemberExpression" && node.object.type === "MetaProperty") return [node];
  return Object.values(node).flatMap(placesAsked);
}

function fileName(name) {
  return name.replace("@", "").replaceAll("/", "-");
}

/**
 * Programs of this repository get the bundle: not those of a copy, which may have been changed, and not a library, which
 * keeps what it was installed with. What the bundle imports by a name that it computes is looked for where the whole of
 * Statewright would find it.
 */
function hookOf(entries) {
  const files = Object.keys(entries).map(
    (name) => `  ${JSON.stringify(name)}: new URL("${fileName(name)}.mjs", import.meta.url).href,`,
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
