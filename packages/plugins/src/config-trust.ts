/**
 * Trust in configurations that are found in a workspace: whoever can write there could have programs started, so each is
 * asked about once, and again when it, or a program of the workspace that it starts, has changed.
 */
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, parse as parsePath, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isStatewrightError, StatewrightError } from "@statewright/core";
import { isHostError, realPlaceInside, workspace } from "@statewright/host";
import { type ConfigFile, readConfig } from "./config-file.ts";
import { isObject } from "./protocol.ts";

/** A configuration as a person is asked about it. */
export interface FoundConfiguration {
  readonly file: string;
  /** SHA-256 of the configuration and of the files that its commands, arguments and variables name, in hexadecimal. */
  readonly digest: string;
  /** The commands that it would start and the addresses that it would connect to, with the names of variables as they stand in it. */
  readonly starts: readonly string[];
}

/** Which configurations have had a yes. */
export interface ConfigTrust {
  /** The file that remembers it. */
  readonly path: string;
  has(found: Pick<FoundConfiguration, "file" | "digest">): Promise<boolean>;
  /** Trust a configuration as it was shown; the yes to an earlier state of it is forgotten. */
  add(found: Pick<FoundConfiguration, "file" | "digest">): Promise<void>;
  remove(file: string): Promise<void>;
}

const largestProgram = 2 ** 26;

/**
 * The trust that is kept in a file: by default that of the user, `statewright/trusted.json` in the folder for configurations.
 * It must lie outside of the workspaces that it is about.
 */
export function configTrust(path: string = userFile()): ConfigTrust {
  const place = resolve(path);
  const read = async (): Promise<Readonly<Record<string, string>>> => {
    const found = await workspace(dirname(place))
      .read(basename(place))
      .catch((error: unknown) => {
        if (isHostError(error) && error.code === "not_found") return undefined;
        throw error;
      });
    if (found === undefined) return {};
    const said = found.kind === "text" && !found.truncated ? parsed(found.text) : undefined;
    if (isObject(said) && Object.values(said).every((digest) => typeof digest === "string"))
      return said as Readonly<Record<string, string>>;
    throw new StatewrightError("invalid_option", {
      what: `${place}, which says what configurations are trusted, is damaged`,
      next: "Remove it: configurations are asked about again",
    });
  };
  const write = async (said: Readonly<Record<string, string>>): Promise<void> => {
    await workspace(await folderAbove(place)).write(place, `${JSON.stringify(said, undefined, 2)}\n`);
  };
  return Object.freeze({
    path: place,
    has: async ({ file, digest }: Pick<FoundConfiguration, "file" | "digest">) => {
      await checkOutside(place, file);
      const said = await read();
      return Object.hasOwn(said, resolve(file)) && said[resolve(file)] === digest;
    },
    add: async ({ file, digest }: Pick<FoundConfiguration, "file" | "digest">) => {
      await checkOutside(place, file);
      await write({ ...(await read()), [resolve(file)]: digest });
    },
    remove: async (file: string) => {
      await write(Object.fromEntries(Object.entries(await read()).filter(([known]) => known !== resolve(file))));
    },
  });
}

/** What a configuration would start, for whoever is to say yes to it. Nothing is started. */
export async function foundConfiguration(file: string): Promise<FoundConfiguration> {
  return foundOf(await readConfig(file));
}

/** Whether an error says that a configuration has had no yes; its details are what would be started. */
export function isUntrustedConfiguration(
  error: unknown,
): error is StatewrightError & { readonly details: FoundConfiguration } {
  return isStatewrightError(error, "untrusted_configuration");
}

/** Whether what a configuration starts is what a person has said yes to. */
export async function isTrusted(config: ConfigFile, trust: ConfigTrust): Promise<boolean> {
  return trust.has(await foundOf(config));
}

/** Throws `untrusted_configuration` for one that starts programs and has had no yes as it is now. */
export async function checkTrusted(config: ConfigFile, trust: ConfigTrust): Promise<void> {
  if (config.plugins.length + config.mcp.length === 0 || (await isTrusted(config, trust))) return;
  const found = await foundOf(config);
  throw new StatewrightError("untrusted_configuration", {
    what: `the configuration ${found.file} is not trusted as it is now, and would start: ${found.starts.join("; ")}`,
    next: "Read it, and if you agree, give the details of this error to add of the trust",
    details: found,
  });
}

async function foundOf({ file, folder, text, plugins, mcp }: ConfigFile): Promise<FoundConfiguration> {
  const hash = createHash("sha256").update(text);
  const programs = [...plugins, ...mcp.flatMap(({ at }) => ("command" in at ? [at] : []))];
  const named = new Set([
    ...programs.flatMap(({ command, args }) => [command, ...args.map(withVariables)]),
    ...programs.flatMap(({ args, env }) => [...args, ...Object.values(env)].flatMap(programsIn)),
  ]);
  for (const name of named) {
    const program = await programAt(folder, name);
    if (program !== undefined) hash.update(`\0${name}\0${program}`);
  }
  const starts = programs.map(({ command, args, env }) => {
    const shown = isAbsolute(command) ? relativeTo(folder, command) : command;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${plain(value)}`);
    return [...variables, plain(shown), ...args.map(plain)].join(" ");
  });
  const addresses = mcp.flatMap(({ at }) => {
    if ("command" in at) return [];
    const headers = Object.entries(at.headers).map(([name, value]) => `${name}: ${plain(value)}`);
    return [["a connection to", plain(at.url), ...headers].join(" ")];
  });
  return { file, digest: hash.digest("hex"), starts: [...starts, ...addresses] };
}

/** A word as it is when a program is started; a variable that is not set stays as it stands. */
function withVariables(word: string): string {
  return word.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (all, name: string) => process.env[name] ?? all);
}

/** Files of programs that stand inside a word, as in `--import=./hooks.mjs`, `-r./hooks.cjs` or `NODE_OPTIONS`. */
function programsIn(word: string): readonly string[] {
  return withVariables(word)
    .split(/\s+/)
    .flatMap((part) => [part, part.slice(part.indexOf("=") + 1), part.replace(/^-[A-Za-z]/, "")])
    .filter((name) => /\.(?:[cm]?[jt]s|py|rb|pl|php|lua|sh|ps1|wasm|jar|node|so|dylib|dll)$/i.test(name))
    .map((name) => (/^file:\/\//i.test(name) && URL.canParse(name) ? pathOf(new URL(name)) : name));
}

function pathOf(url: URL): string {
  try {
    return fileURLToPath(url);
  } catch {
    // It names no file of this machine.
    return "";
  }
}

/**
 * What a file is that a command or an argument names: where it really lies and what it holds, or, where it is too large to be
 * looked through as some interpreters are, its size and when it was changed. Nothing for what names no file.
 */
async function programAt(folder: string, name: string, isInside = false): Promise<string | undefined> {
  const path = resolve(folder, name);
  const real = name === "" || name.includes("\0") ? undefined : await realPlaceInside(parsePath(path).root, path);
  if (real === undefined) return undefined;
  const around = workspace(dirname(real));
  try {
    const { kind, bytes, modifiedMs } = await around.stat(basename(real));
    if (kind === "folder" && !isInside) return await startOf(real);
    if (kind !== "file") return undefined;
    if (bytes > largestProgram) return `${real} ${bytes} ${modifiedMs}`;
    const read = await around.read(basename(real), { maxBytes: largestProgram });
    return `${real} ${createHash("sha256")
      .update(read.kind === "text" ? read.text : read.bytes)
      .digest("hex")}`;
  } catch (error) {
    if (isHostError(error) && error.code !== "io") return undefined;
    throw error;
  }
}

/** What an interpreter starts where it is given a folder. */
const starts = ["package.json", "__main__.py", ...["js", "mjs", "cjs", "ts"].map((ending) => `index.${ending}`)];

async function startOf(folder: string): Promise<string | undefined> {
  const main = await workspace(folder)
    .read("package.json", { maxBytes: largestProgram })
    .then(mainIn, () => undefined);
  const names = main === undefined ? starts : [...starts, main, `${main}.js`, `${main}/index.js`];
  const programs = await Promise.all(names.map((name) => programAt(folder, name, true)));
  return programs.some((program) => program !== undefined) ? programs.join("\0") : undefined;
}

function mainIn(read: { readonly kind: string; readonly text?: string }): string | undefined {
  try {
    const manifest: unknown = JSON.parse(read.text ?? "");
    const main: unknown = isObject(manifest) ? manifest["main"] : undefined;
    return typeof main === "string" ? main : undefined;
  } catch {
    // What is no manifest names no program; what it holds is in the digest all the same.
    return undefined;
  }
}

/** A workspace that could say what is trusted in it would trust itself. */
async function checkOutside(place: string, file: string): Promise<void> {
  if ((await realPlaceInside(dirname(resolve(file)), place)) === undefined) return;
  throw new StatewrightError("invalid_option", {
    what: `${place}, which says what configurations are trusted, lies in the workspace of ${file}`,
    next: "Keep it outside, or load a configuration of the user's own without trust",
  });
}

/** The nearest folder above a file that is there. */
async function folderAbove(file: string): Promise<string> {
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

/** A word as a shell would need it, so that a person sees where it ends; signs that move a terminal's cursor are spelt out. */
function plain(word: string): string {
  return /^[\w@%+=:,./${}-]+$/.test(word) ? word : JSON.stringify(word).replace(/[^\x20-\x7e]/g, spelt);
}

function spelt(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function relativeTo(folder: string, path: string): string {
  const inside = relative(folder, path);
  return inside.startsWith("..") || isAbsolute(inside) ? path : `./${inside}`;
}

function userFile(): string {
  const { XDG_CONFIG_HOME, APPDATA } = process.env;
  const base = XDG_CONFIG_HOME ?? (process.platform === "win32" ? APPDATA : undefined) ?? join(homedir(), ".config");
  return join(base, "statewright", "trusted.json");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
