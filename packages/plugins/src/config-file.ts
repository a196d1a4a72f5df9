/** Parser of configuration files: preset, plugins and MCP servers. Starts no program. */
import { basename, dirname, isAbsolute, resolve } from "node:path";
import type { StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { workspace } from "@statewright/host";
import { isJsonObject } from "@statewright/json-schema";
import { parse } from "yaml";

/** Plugin entry of a configuration. */
export interface PluginEntry {
  /**
   * Absolute path of a file (relative paths are resolved against the configuration's folder), or a command of PATH.
   */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** MCP server entry of a configuration: a program or an address. */
export interface McpEntry {
  readonly name: string;
  readonly prefix: boolean | string;
  readonly only: readonly string[] | undefined;
  readonly target: PluginEntry | { readonly url: string; readonly headers: Readonly<Record<string, string>> };
}

/** Parsed configuration file. */
export interface ConfigFile {
  readonly file: string;
  /** Folder of the file, and working directory of its plugins. */
  readonly folder: string;
  readonly text: string;
  readonly preset: string | undefined;
  readonly plugins: readonly PluginEntry[];
  readonly mcp: readonly McpEntry[];
}

/**
 * Reads a configuration in YAML or JSON. Throws `invalid_option` for an unreadable file and for unknown keys or
 * invalid values.
 */
export async function readConfig(file: string): Promise<ConfigFile> {
  const text = await readConfigText(file);
  let document: unknown;
  try {
    // YAML is a superset of JSON.
    document = parse(text);
  } catch (cause) {
    // The first line holds the error and its position; the following lines repeat the position as a drawing.
    const [reason = ""] = (cause instanceof Error ? cause.message : String(cause)).split("\n");
    throw createConfigError(file, {
      expected: "valid YAML or JSON",
      found: reason.replace(/:$/, ""),
      fix: "Fix the line named in the error",
    });
  }
  const { tools = {} } = parseFields(file, undefined, document, ["tools"]);
  const { preset, plugins = [], mcp = [] } = parseFields(file, "tools", tools, ["preset", "plugins", "mcp"]);
  if (preset !== undefined && typeof preset !== "string")
    throw createConfigError(file, {
      key: "tools.preset",
      expected: "a string",
      got: preset,
      fix: "Use the name of a preset",
    });
  if (!Array.isArray(plugins))
    throw createConfigError(file, {
      key: "tools.plugins",
      expected: "a list",
      got: plugins,
      fix: "Use a list of { path, args, env }",
    });
  if (!Array.isArray(mcp))
    throw createConfigError(file, {
      key: "tools.mcp",
      expected: "a list",
      got: mcp,
      fix: "Use a list of { name, command } or { name, url }",
    });
  const folder = dirname(resolve(file));
  const servers = mcp.map((value, index) => parseMcpEntry(file, folder, value, `mcp[${index}]`));
  const entries = plugins.map((value, index) => parsePluginEntry(file, folder, value, `plugins[${index}]`));
  return { file: resolve(file), folder, text, preset, plugins: entries, mcp: servers };
}

/** Invalid value of a configuration. */
export interface InvalidConfig {
  /** Path of the key, such as `tools.plugins`; absent for the whole file. */
  readonly key?: string;
  readonly expected: string;
  readonly got?: unknown;
  /** Found value in words, instead of `got`. */
  readonly found?: string;
  readonly fix: string;
}

/** Creates the error for an invalid configuration. */
export function createConfigError(file: string, { key, ...invalid }: InvalidConfig): StatewrightError {
  return invalidOption({ where: `configuration ${file}`, ...(key === undefined ? {} : { option: key }), ...invalid });
}

async function readConfigText(file: string): Promise<string> {
  const read = await workspace(dirname(resolve(file)))
    .read(basename(file))
    .catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw createConfigError(file, {
        expected: "a readable file",
        found: reason,
        fix: "Pass the path of a YAML or JSON file",
      });
    });
  if (read.kind === "text" && !read.truncated) return read.text;
  throw createConfigError(file, {
    expected: "a text file of at most 1 MiB",
    found: read.kind === "text" ? "a longer file" : "a binary file",
    fix: "Pass the path of a YAML or JSON file",
  });
}

function parsePluginEntry(file: string, folder: string, value: unknown, location: string): PluginEntry {
  const { path, args = [], env = {} } = parseFields(file, location, value, ["path", "args", "env"]);
  if (typeof path !== "string" || path === "")
    throw createConfigError(file, {
      key: `${location}.path`,
      expected: "a non-empty string",
      got: path,
      fix: "Use a file path or a command of PATH",
    });
  return parseProgram(file, folder, { path, args, env }, location);
}

function parseMcpEntry(file: string, folder: string, value: unknown, location: string): McpEntry {
  const knownKeys = ["name", "command", "args", "env", "url", "headers", "only", "prefix"];
  const {
    name,
    command,
    args = [],
    env = {},
    url,
    headers = {},
    only,
    prefix = false,
  } = parseFields(file, location, value, knownKeys);
  if (typeof name !== "string" || name === "")
    throw createConfigError(file, {
      key: `${location}.name`,
      expected: "a non-empty string",
      got: name,
      fix: `Add a name to ${location}`,
    });
  if ((typeof command === "string") === (typeof url === "string"))
    throw createConfigError(file, {
      key: location,
      expected: "a map with either command or url",
      found: typeof command === "string" ? "both" : "neither",
      fix: "Use exactly one of command and url",
    });
  if (only !== undefined && !(Array.isArray(only) && only.every((each) => typeof each === "string")))
    throw createConfigError(file, {
      key: `${location}.only`,
      expected: "a list of tool names",
      got: only,
      fix: "Use the tool names of the MCP server",
    });
  if (typeof prefix !== "boolean" && typeof prefix !== "string")
    throw createConfigError(file, {
      key: `${location}.prefix`,
      expected: "a boolean or a string",
      got: prefix,
      fix: "Use true, false or a string",
    });
  const shared = { name, prefix, only: only as readonly string[] | undefined };
  if (typeof command === "string")
    return { ...shared, target: parseProgram(file, folder, { path: command, args, env }, location) };
  return { ...shared, target: { url: String(url), headers: parseStringMap(file, headers, `${location}.headers`) } };
}

function parseProgram(
  file: string,
  folder: string,
  { path, args, env }: { readonly path: string; readonly args: unknown; readonly env: unknown },
  location: string,
): PluginEntry {
  if (!Array.isArray(args) || !args.every((arg) => typeof arg === "string"))
    throw createConfigError(file, {
      key: `${location}.args`,
      expected: "a list of strings",
      got: args,
      fix: 'Write numbers in quotes: ["--port", "80"]',
    });
  const command = path.includes("/") && !isAbsolute(path) ? resolve(folder, path) : path;
  return { command, args, env: parseStringMap(file, env, `${location}.env`) };
}

function parseStringMap(file: string, input: unknown, location: string): Readonly<Record<string, string>> {
  if (!isJsonObject(input) || !Object.values(input).every((value) => typeof value === "string"))
    throw createConfigError(file, {
      key: location,
      expected: "a map of strings",
      got: input,
      fix: "Write numbers in quotes",
    });
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, String(value)]));
}

/** Returns the fields of a map. `location` is undefined for the whole file. */
function parseFields(
  file: string,
  location: string | undefined,
  value: unknown,
  knownKeys: readonly string[],
): Readonly<Record<string, unknown>> {
  if (value === null || value === undefined) return {};
  const key = location === undefined ? {} : { key: location };
  if (!isJsonObject(value))
    throw createConfigError(file, {
      ...key,
      expected: "a map",
      got: value,
      fix: `Use the keys ${knownKeys.join(", ")}`,
    });
  const unknownKey = Object.keys(value).find((key) => !knownKeys.includes(key));
  if (unknownKey === undefined) return value;
  throw createConfigError(file, {
    ...key,
    expected: "a map of known keys",
    found: `the unknown key "${unknownKey}"`,
    fix: `Use only the keys ${knownKeys.join(", ")}`,
  });
}
