/**
 * Trust in configurations of a workspace. A configuration can start programs with the rights of the user, so each one
 * needs approval once, and again after a change of the file or of a workspace program that it starts.
 */
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, parse as parsePath, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isStatewrightError, StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { isHostError, resolveRealPathInside, workspace } from "@statewright/host";
import { isJsonObject } from "@statewright/json-schema";
import { type ConfigFile, readConfig } from "./config-file.ts";

/** Description of a configuration for an approval. */
export interface ConfigurationDescription {
  readonly file: string;
  /** SHA-256 of the configuration and of the files named in its commands, arguments and variables, in hexadecimal. */
  readonly digest: string;
  /** Commands to start and addresses to connect to, with variable references unexpanded. */
  readonly starts: readonly string[];
}

/** Store of approved configurations. */
export interface ConfigTrust {
  /** File with the approvals. */
  readonly path: string;
  /** Returns true for a configuration that is approved with this digest. */
  has(found: Pick<ConfigurationDescription, "file" | "digest">): Promise<boolean>;
  /** Approves a configuration by its digest, and replaces an earlier approval of the same file. */
  add(found: Pick<ConfigurationDescription, "file" | "digest">): Promise<void>;
  /** Removes the approval of a file, if any. */
  remove(file: string): Promise<void>;
}

const maxProgramBytes = 2 ** 26;

/**
 * Returns the trust store of a file, by default `statewright/trusted.json` in the user's configuration folder. The
 * file must lie outside the workspaces of the approved configurations.
 */
export function configTrust(path: string = getUserTrustFile()): ConfigTrust {
  const trustFile = resolve(path);
  const read = async (): Promise<Readonly<Record<string, string>>> => {
    const file = await workspace(dirname(trustFile))
      .read(basename(trustFile))
      .catch((error: unknown) => {
        if (isHostError(error) && error.code === "not_found") return undefined;
        throw error;
      });
    if (file === undefined) return {};
    const digests = file.kind === "text" && !file.truncated ? parseJson(file.text) : undefined;
    if (isJsonObject(digests) && Object.values(digests).every((digest) => typeof digest === "string"))
      return digests as Readonly<Record<string, string>>;
    throw invalidOption({
      where: `trust file ${trustFile}`,
      expected: "a map of files to digests in JSON",
      found: "a damaged file",
      fix: "Remove the file and approve the configurations again",
    });
  };
  const write = async (digests: Readonly<Record<string, string>>): Promise<void> => {
    await workspace(await findParentFolder(trustFile)).write(trustFile, `${JSON.stringify(digests, undefined, 2)}\n`);
  };
  return Object.freeze({
    path: trustFile,
    has: async ({ file, digest }: Pick<ConfigurationDescription, "file" | "digest">) => {
      await checkOutside(trustFile, file);
      const digests = await read();
      return Object.hasOwn(digests, resolve(file)) && digests[resolve(file)] === digest;
    },
    add: async ({ file, digest }: Pick<ConfigurationDescription, "file" | "digest">) => {
      await checkOutside(trustFile, file);
      await write({ ...(await read()), [resolve(file)]: digest });
    },
    remove: async (file: string) => {
      await write(Object.fromEntries(Object.entries(await read()).filter(([known]) => known !== resolve(file))));
    },
  });
}

/** Describes the programs and addresses of a configuration for an approval. Starts no program. */
export async function describeConfiguration(file: string): Promise<ConfigurationDescription> {
  return describeConfig(await readConfig(file));
}

/**
 * Returns true if the error reports a configuration without approval. The error details describe the configuration.
 */
export function isUntrustedConfiguration(
  error: unknown,
): error is StatewrightError & { readonly details: ConfigurationDescription } {
  return isStatewrightError(error, "untrusted_configuration");
}

/** Returns true if the configuration and its programs are approved in their current state. */
export async function isTrusted(config: ConfigFile, trust: ConfigTrust): Promise<boolean> {
  return trust.has(await describeConfig(config));
}

/**
 * Throws `untrusted_configuration` for a configuration that starts programs and is not approved in its current state.
 */
export async function checkTrusted(config: ConfigFile, trust: ConfigTrust): Promise<void> {
  if (config.plugins.length + config.mcp.length === 0 || (await isTrusted(config, trust))) return;
  const description = await describeConfig(config);
  throw new StatewrightError("untrusted_configuration", {
    what: `configuration ${description.file} is not trusted in its current state; it would start: ${description.starts.join("; ")}`,
    next: "Read the configuration. To approve it, pass the details of this error to trust.add",
    details: description,
  });
}

async function describeConfig({ file, folder, text, plugins, mcp }: ConfigFile): Promise<ConfigurationDescription> {
  const hash = createHash("sha256").update(text);
  const programs = [...plugins, ...mcp.flatMap(({ target }) => ("command" in target ? [target] : []))];
  const names = new Set([
    ...programs.flatMap(({ command, args }) => [command, ...args.map(expandVariables)]),
    ...programs.flatMap(({ args, env }) => [...args, ...Object.values(env)].flatMap(findPrograms)),
  ]);
  for (const name of names) {
    const program = await describeProgram(folder, name);
    if (program !== undefined) hash.update(`\0${name}\0${program}`);
  }
  const starts = programs.map(({ command, args, env }) => {
    const shown = isAbsolute(command) ? toRelativePath(folder, command) : command;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${quoteWord(value)}`);
    return [...variables, quoteWord(shown), ...args.map(quoteWord)].join(" ");
  });
  const addresses = mcp.flatMap(({ target }) => {
    if ("command" in target) return [];
    const headers = Object.entries(target.headers).map(([name, value]) => `${name}: ${quoteWord(value)}`);
    return [["a connection to", quoteWord(target.url), ...headers].join(" ")];
  });
  return { file, digest: hash.digest("hex"), starts: [...starts, ...addresses] };
}

/** Expands `${NAME}` references, like at the start of a program. References to unset variables stay unchanged. */
function expandVariables(word: string): string {
  return word.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (reference, name: string) => process.env[name] ?? reference);
}

/** Lists program files inside a word, as in `--import=./hooks.mjs`, `-r./hooks.cjs` or `NODE_OPTIONS`. */
function findPrograms(word: string): readonly string[] {
  return expandVariables(word)
    .split(/\s+/)
    .flatMap((part) => [part, part.slice(part.indexOf("=") + 1), part.replace(/^-[A-Za-z]/, "")])
    .filter((name) => /\.(?:[cm]?[jt]s|py|rb|pl|php|lua|sh|ps1|wasm|jar|node|so|dylib|dll)$/i.test(name))
    .map((name) => (/^file:\/\//i.test(name) && URL.canParse(name) ? toPath(new URL(name)) : name));
}

function toPath(url: URL): string {
  try {
    return fileURLToPath(url);
  } catch {
    // No file of this machine.
    return "";
  }
}

/**
 * Describes the file named by a command or an argument: its real path and the digest of its contents. For a file
 * above the size limit, such as some interpreters, size and modification time replace the digest. Returns undefined
 * for a word that is not a file.
 */
async function describeProgram(
  folder: string,
  name: string,
  { level = "named" }: { readonly level?: "named" | "entry-point" } = {},
): Promise<string | undefined> {
  const path = resolve(folder, name);
  const real = name === "" || name.includes("\0") ? undefined : await resolveRealPathInside(parsePath(path).root, path);
  if (real === undefined) return undefined;
  const parentFolder = workspace(dirname(real));
  try {
    const { kind, bytes, modifiedMs } = await parentFolder.stat(basename(real));
    if (kind === "folder" && level === "named") return await describeEntryPoints(real);
    if (kind !== "file") return undefined;
    if (bytes > maxProgramBytes) return `${real} ${bytes} ${modifiedMs}`;
    const read = await parentFolder.read(basename(real), { maxBytes: maxProgramBytes });
    return `${real} ${createHash("sha256")
      .update(read.kind === "text" ? read.text : read.bytes)
      .digest("hex")}`;
  } catch (error) {
    if (isHostError(error) && error.code !== "io") return undefined;
    throw error;
  }
}

/** Files that interpreters start in a folder. */
const entryPoints = ["package.json", "__main__.py", ...["js", "mjs", "cjs", "ts"].map((ending) => `index.${ending}`)];

async function describeEntryPoints(folder: string): Promise<string | undefined> {
  const main = await workspace(folder)
    .read("package.json", { maxBytes: maxProgramBytes })
    .then(parseMain, () => undefined);
  const names = main === undefined ? entryPoints : [...entryPoints, main, `${main}.js`, `${main}/index.js`];
  const programs = await Promise.all(names.map((name) => describeProgram(folder, name, { level: "entry-point" })));
  return programs.some((program) => program !== undefined) ? programs.join("\0") : undefined;
}

function parseMain(read: { readonly kind: string; readonly text?: string }): string | undefined {
  try {
    const manifest: unknown = JSON.parse(read.text ?? "");
    const main: unknown = isJsonObject(manifest) ? manifest["main"] : undefined;
    return typeof main === "string" ? main : undefined;
  } catch {
    // An invalid manifest names no program; its contents are part of the digest anyway.
    return undefined;
  }
}

/** Throws `invalid_option` for a trust file inside the workspace: such a workspace could approve itself. */
async function checkOutside(trustFile: string, file: string): Promise<void> {
  if ((await resolveRealPathInside(dirname(resolve(file)), trustFile)) === undefined) return;
  throw invalidOption({
    where: `trust file ${trustFile}`,
    expected: `a path outside of the workspace of ${file}`,
    found: "a path inside of it",
    fix: "Move the trust file outside the workspace, or load a configuration of the user without trust",
  });
}

/** Finds the nearest existing parent folder of a file. */
async function findParentFolder(file: string): Promise<string> {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const found = await workspace(folder)
      .stat(".")
      .catch((error: unknown) => {
        if (isHostError(error) && error.code === "not_found" && folder !== dirname(folder)) return undefined;
        throw error;
      });
    if (found !== undefined) return folder;
  }
}

/**
 * Quotes a word like a shell, so that its end is visible. Escapes control characters, which could move the terminal's
 * cursor.
 */
function quoteWord(word: string): string {
  return /^[\w@%+=:,./${}-]+$/.test(word) ? word : JSON.stringify(word).replace(/[^\x20-\x7e]/g, escapeCharacter);
}

function escapeCharacter(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function toRelativePath(folder: string, path: string): string {
  const inside = relative(folder, path);
  return inside.startsWith("..") || isAbsolute(inside) ? path : `./${inside}`;
}

function getUserTrustFile(): string {
  const { XDG_CONFIG_HOME, APPDATA } = process.env;
  const base = XDG_CONFIG_HOME ?? (process.platform === "win32" ? APPDATA : undefined) ?? join(homedir(), ".config");
  return join(base, "statewright", "trusted.json");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
