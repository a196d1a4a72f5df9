/** Tools by configuration: a preset and plugins, in YAML or JSON. Whoever calls this trusts the file: its plugins are started. */
import { basename, dirname, isAbsolute, resolve } from "node:path";
import { StatewrightError, type Tool } from "@statewright/core";
import { workspace } from "@statewright/host";
import { parse } from "yaml";
import { loadPlugin, type Plugin, type PluginOptions } from "./plugin.ts";
import { isObject } from "./protocol.ts";

/** What a configuration is read with. */
export interface ToolConfigOptions {
  /** The ready-made sets by name; those of @statewright/tools are one such. Without it a configuration may name none. */
  readonly presets?: Readonly<Record<string, () => readonly Tool[]>>;
  /** How every plugin is started, beyond what the configuration says. */
  readonly plugins?: Omit<PluginOptions, "command" | "args" | "env" | "cwd">;
}

/** The tools of a configuration, and the plugins that run for them. */
export interface ConfiguredTools {
  readonly tools: readonly Tool[];
  readonly plugins: readonly Plugin[];
  /** End all plugins. */
  close(): Promise<void>;
}

interface PluginEntry {
  readonly path: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Load the tools that a file names under `tools`: `preset`, and `plugins` with `path`, `args` and `env` each. A path is a
 * file relative to the configuration's folder, or a command of PATH. Throws `invalid_option` for a key or preset that is not
 * known, with those that are; `plugin_failed` for a plugin that cannot be started, and the others are ended.
 */
export async function loadTools(file: string, options: ToolConfigOptions = {}): Promise<ConfiguredTools> {
  const { preset, plugins: entries } = read(file, await textOf(file));
  const ready = presetOf(file, preset, options.presets ?? {});
  const folder = dirname(resolve(file));
  const started = await Promise.allSettled(entries.map((entry) => start(entry, folder, options)));
  const plugins = started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(plugins.map((plugin) => plugin.close()));
  };
  const failed = started.find((each) => each.status === "rejected");
  if (failed !== undefined) {
    await close();
    throw failed.reason;
  }
  return { tools: [...ready, ...plugins.flatMap(({ tools }) => tools)], plugins, close };
}

function start({ path, args, env }: PluginEntry, folder: string, { plugins }: ToolConfigOptions): Promise<Plugin> {
  const command = path.includes("/") && !isAbsolute(path) ? resolve(folder, path) : path;
  return loadPlugin({ ...plugins, command, args, env, cwd: folder });
}

async function textOf(file: string): Promise<string> {
  const read = await workspace(dirname(resolve(file)))
    .read(basename(file))
    .catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw unfit(file, `cannot be read: ${why}`, "Give the path of a YAML or JSON file");
    });
  if (read.kind === "text" && !read.truncated) return read.text;
  throw unfit(file, "is no text of up to 1 MiB", "Give the path of a YAML or JSON file");
}

/** The configuration's own part of a file; JSON is YAML too. */
function read(
  file: string,
  text: string,
): { readonly preset: string | undefined; readonly plugins: readonly PluginEntry[] } {
  let whole: unknown;
  try {
    whole = parse(text);
  } catch (cause) {
    throw unfit(
      file,
      `is not YAML: ${cause instanceof Error ? cause.message : String(cause)}`,
      "Mend the line that it names",
    );
  }
  const { tools = {} } = fields(file, "the file", whole, ["tools"]);
  const { preset, plugins = [] } = fields(file, "tools", tools, ["preset", "plugins"]);
  if (preset !== undefined && typeof preset !== "string")
    throw unfit(file, "has a preset that is no name", "Give its name");
  if (!Array.isArray(plugins)) throw unfit(file, "has plugins that are no list", "Give a list of { path, args, env }");
  return { preset, plugins: plugins.map((given, index) => entryOf(file, given, `plugins[${index}]`)) };
}

function entryOf(file: string, given: unknown, place: string): PluginEntry {
  const { path, args = [], env = {} } = fields(file, place, given, ["path", "args", "env"]);
  if (typeof path !== "string" || path === "")
    throw unfit(file, `has no path in ${place}`, "Give a file, or a command of PATH");
  if (!Array.isArray(args) || !args.every((arg) => typeof arg === "string"))
    throw unfit(file, `has args in ${place} that are no list of texts`, 'Put numbers in quotes: ["--port", "80"]');
  if (!isObject(env) || !Object.values(env).every((value) => typeof value === "string"))
    throw unfit(file, `has an env in ${place} that is no map of texts`, "Put numbers in quotes");
  return { path, args, env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])) };
}

function fields(
  file: string,
  place: string,
  given: unknown,
  known: readonly string[],
): Readonly<Record<string, unknown>> {
  if (given === null || given === undefined) return {};
  if (!isObject(given)) throw unfit(file, `has ${place} that is no map`, `Give ${known.join(", ")}`);
  const stray = Object.keys(given).find((key) => !known.includes(key));
  if (stray === undefined) return given;
  throw unfit(file, `has the key "${stray}" in ${place}, which is not known`, `Known keys are ${known.join(", ")}`);
}

function presetOf(
  file: string,
  name: string | undefined,
  presets: NonNullable<ToolConfigOptions["presets"]>,
): readonly Tool[] {
  if (name === undefined) return [];
  const preset = Object.hasOwn(presets, name) ? presets[name] : undefined;
  if (preset !== undefined) return preset();
  throw unfit(
    file,
    `names the preset "${name}", which there is not`,
    `Presets are ${Object.keys(presets).join(", ") || "none: give them to loadTools"}`,
  );
}

function unfit(file: string, what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `the configuration ${file} ${what}`, next });
}
