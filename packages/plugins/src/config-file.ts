/** A file of configuration, read: which preset, which plugins and which MCP servers it names. Nothing is started by reading it. */
import { basename, dirname, isAbsolute, resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import { workspace } from "@statewright/host";
import { parse } from "yaml";
import { isObject } from "./protocol.ts";

/** A plugin as a configuration names it. */
export interface PluginEntry {
  /** A file, absolute where the configuration names one relative to its folder, or a command of PATH. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** An MCP server as a configuration names it: a program, or an address. */
export interface McpEntry {
  readonly name: string;
  readonly prefix: boolean | string;
  readonly only: readonly string[] | undefined;
  readonly at: PluginEntry | { readonly url: string; readonly headers: Readonly<Record<string, string>> };
}

/** What a file says. */
export interface ConfigFile {
  readonly file: string;
  /** The folder that it lies in, in which its plugins are started. */
  readonly folder: string;
  readonly text: string;
  readonly preset: string | undefined;
  readonly plugins: readonly PluginEntry[];
  readonly mcp: readonly McpEntry[];
}

/** Read a configuration in YAML or JSON. Throws `invalid_option` for one that cannot be read, or says what is not known. */
export async function readConfig(file: string): Promise<ConfigFile> {
  const text = await textOf(file);
  let whole: unknown;
  try {
    // JSON is YAML too.
    whole = parse(text);
  } catch (cause) {
    // Below its first line stands the place once more, drawn.
    const [why = ""] = (cause instanceof Error ? cause.message : String(cause)).split("\n");
    throw unfitConfig(file, `is not YAML: ${why.replace(/:$/, "")}`, "Mend the line that it names");
  }
  const { tools = {} } = fields(file, "the file", whole, ["tools"]);
  const { preset, plugins = [], mcp = [] } = fields(file, "tools", tools, ["preset", "plugins", "mcp"]);
  if (preset !== undefined && typeof preset !== "string")
    throw unfitConfig(file, "has a preset that is no name", "Give its name");
  if (!Array.isArray(plugins))
    throw unfitConfig(file, "has plugins that are no list", "Give a list of { path, args, env }");
  if (!Array.isArray(mcp)) throw unfitConfig(file, "has an mcp that is no list", "Give a list of { name, command }");
  const folder = dirname(resolve(file));
  const servers = mcp.map((given, index) => serverOf(file, folder, given, `mcp[${index}]`));
  const entries = plugins.map((given, index) => entryOf(file, folder, given, `plugins[${index}]`));
  return { file: resolve(file), folder, text, preset, plugins: entries, mcp: servers };
}

/** What a configuration says wrongly. */
export function unfitConfig(file: string, what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `the configuration ${file} ${what}`, next });
}

async function textOf(file: string): Promise<string> {
  const read = await workspace(dirname(resolve(file)))
    .read(basename(file))
    .catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw unfitConfig(file, `cannot be read: ${why}`, "Give the path of a YAML or JSON file");
    });
  if (read.kind === "text" && !read.truncated) return read.text;
  throw unfitConfig(file, "is no text of up to 1 MiB", "Give the path of a YAML or JSON file");
}

function entryOf(file: string, folder: string, given: unknown, place: string): PluginEntry {
  const { path, args = [], env = {} } = fields(file, place, given, ["path", "args", "env"]);
  if (typeof path !== "string" || path === "")
    throw unfitConfig(file, `has no path in ${place}`, "Give a file, or a command of PATH");
  return programOf(file, folder, { path, args, env }, place);
}

function serverOf(file: string, folder: string, given: unknown, place: string): McpEntry {
  const known = ["name", "command", "args", "env", "url", "headers", "only", "prefix"];
  const {
    name,
    command,
    args = [],
    env = {},
    url,
    headers = {},
    only,
    prefix = false,
  } = fields(file, place, given, known);
  if (typeof name !== "string" || name === "") throw unfitConfig(file, `has no name in ${place}`, "Give it one");
  if ((typeof command === "string") === (typeof url === "string"))
    throw unfitConfig(file, `has no command or url in ${place}, or both`, "Give one of them");
  if (only !== undefined && !(Array.isArray(only) && only.every((each) => typeof each === "string")))
    throw unfitConfig(file, `has an only in ${place} that is no list of names`, "Give the server's names of tools");
  if (typeof prefix !== "boolean" && typeof prefix !== "string")
    throw unfitConfig(file, `has a prefix in ${place} that is no text`, "Give true, or a text");
  const shared = { name, prefix, only: only as readonly string[] | undefined };
  if (typeof command === "string")
    return { ...shared, at: programOf(file, folder, { path: command, args, env }, place) };
  return { ...shared, at: { url: String(url), headers: texts(file, headers, `headers in ${place}`) } };
}

function programOf(
  file: string,
  folder: string,
  { path, args, env }: { readonly path: string; readonly args: unknown; readonly env: unknown },
  place: string,
): PluginEntry {
  if (!Array.isArray(args) || !args.every((arg) => typeof arg === "string"))
    throw unfitConfig(
      file,
      `has args in ${place} that are no list of texts`,
      'Put numbers in quotes: ["--port", "80"]',
    );
  const command = path.includes("/") && !isAbsolute(path) ? resolve(folder, path) : path;
  return { command, args, env: texts(file, env, `an env in ${place}`) };
}

function texts(file: string, given: unknown, what: string): Readonly<Record<string, string>> {
  if (!isObject(given) || !Object.values(given).every((value) => typeof value === "string"))
    throw unfitConfig(file, `has ${what} that is no map of texts`, "Put numbers in quotes");
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]));
}

function fields(
  file: string,
  place: string,
  given: unknown,
  known: readonly string[],
): Readonly<Record<string, unknown>> {
  if (given === null || given === undefined) return {};
  if (!isObject(given)) throw unfitConfig(file, `has ${place} that is no map`, `Give ${known.join(", ")}`);
  const stray = Object.keys(given).find((key) => !known.includes(key));
  if (stray === undefined) return given;
  throw unfitConfig(
    file,
    `has the key "${stray}" in ${place}, which is not known`,
    `Known keys are ${known.join(", ")}`,
  );
}
