/** Sources of a configuration: its preset, running plugins and connected MCP servers. */
import type { Tool } from "@statewright/core";
import { invalidOption, systemWorld } from "@statewright/core/adapter";
import type { StartCheck } from "@statewright/host";
import { type ConfigFile, createConfigError, type McpEntry, type PluginEntry } from "./config-file.ts";
import { checkTrusted } from "./config-trust.ts";
import { loadCheckedPlugin, type Plugin } from "./load-plugin.ts";
import { createManagedPlugin, type ManagedPlugin } from "./managed-plugin.ts";
import type { ToolConfigOptions } from "./tool-config-options.ts";
import type { ToolServer, ToolServerConnector } from "./tool-server.ts";

/** Plugin or MCP server, with a count of its running tool calls. */
export type ManagedSource<Server extends ToolServer> = ManagedPlugin<Plugin | Server>;

/** Loaded configuration with its started sources. */
export interface LoadedConfig<Server extends ToolServer> {
  readonly config: ConfigFile;
  readonly preset: readonly Tool[];
  /** Started sources by the key of their entry. */
  readonly sources: ReadonlyMap<string, ManagedSource<Server>>;
}

/**
 * Starts the sources of a configuration and keeps running sources of the previous one. Closes all newly started
 * sources before a throw.
 */
export async function loadSources<Server extends ToolServer>(
  config: ConfigFile,
  options: ToolConfigOptions<Server>,
  canStart: StartCheck,
  previous?: LoadedConfig<Server>,
): Promise<LoadedConfig<Server>> {
  if (options.trust !== undefined) await checkTrusted(config, options.trust);
  const isSame = previous !== undefined && previous.config.preset === config.preset;
  const preset = isSame ? previous.preset : loadPreset(config.file, config.preset, options.presets ?? {});
  const entries = [...config.plugins, ...config.mcp];
  const keys = createEntryKeys(entries);
  const results = await Promise.allSettled(
    entries.map(
      (entry, index) => previous?.sources.get(keys[index] ?? "") ?? startSource(entry, config, options, canStart),
    ),
  );
  const sources = new Map(
    results.flatMap((each, index) => (each.status === "fulfilled" ? [[keys[index] ?? "", each.value] as const] : [])),
  );
  const loaded = { config, preset, sources };
  const failure = results.find((each) => each.status === "rejected");
  if (failure === undefined) return loaded;
  await closeNewSources(loaded, previous);
  throw failure.reason;
}

/** Creates unique keys: a configuration may name the same plugin twice. */
function createEntryKeys(plugins: readonly (PluginEntry | McpEntry)[]): readonly string[] {
  const texts = plugins.map((entry) => JSON.stringify(entry));
  return texts.map((text, index) => `${texts.slice(0, index).filter((other) => other === text).length} ${text}`);
}

async function startSource<Server extends ToolServer>(
  entry: PluginEntry | McpEntry,
  config: ConfigFile,
  options: ToolConfigOptions<Server>,
  canStart: StartCheck,
): Promise<ManagedSource<Server>> {
  const { plugins, trust } = options;
  const world = plugins?.world ?? systemWorld();
  if ("target" in entry) return connectServer(entry, config, options, canStart);
  const inheritEnv = plugins?.inheritEnv ?? trust === undefined;
  return createManagedPlugin<Plugin | Server>(
    (check) => loadCheckedPlugin({ ...plugins, ...entry, inheritEnv, cwd: config.folder }, check),
    (plugin) => !isServer(plugin) && plugin.pid !== undefined,
    world,
    canStart,
  );
}

/** Connects an MCP server. Throws `invalid_option` without the option `mcp`. */
async function connectServer<Server extends ToolServer>(
  { name, prefix, only, target }: McpEntry,
  { file, folder }: ConfigFile,
  { mcp, plugins }: ToolConfigOptions<Server>,
  canStart: StartCheck,
): Promise<ManagedSource<Server>> {
  if (mcp === undefined)
    throw createConfigError(file, {
      key: "tools.mcp",
      expected: "absent without the option `mcp` of loadTools",
      found: `the MCP server "${name}"`,
      fix: "Install @statewright/mcp and pass its mcpConnector() as the option `mcp`, or remove tools.mcp",
    });
  const world = mcp.world ?? plugins?.world ?? systemWorld();
  const common = { name, prefix, world, ...(only === undefined ? {} : { only }) };
  const server = { ...common, ...("command" in target ? { ...target, cwd: folder } : target) };
  return createManagedPlugin<Plugin | Server>(
    (check) => mcp.connect(server, check),
    (source) => isServer(source) && !source.isClosed,
    world,
    "command" in target ? canStart : undefined,
  );
}

/** Returns true for a connected MCP server. */
export function isServer<Server extends ToolServer>(source: Plugin | Server): source is Server {
  return "isClosed" in source;
}

/** Throws `invalid_option` for a value without `connect`, such as the options of the connections. */
export function checkConnector(mcp: ToolServerConnector | undefined): void {
  if (mcp === undefined || typeof mcp?.connect === "function") return;
  throw invalidOption({
    where: "loadTools",
    option: "mcp",
    expected: "a connector",
    got: mcp,
    fix: "Pass mcpConnector(options) of @statewright/mcp",
  });
}

/** Closes the sources that a previous configuration does not have. */
export async function closeNewSources<Server extends ToolServer>(
  loaded: LoadedConfig<Server>,
  previous: LoadedConfig<Server> | undefined,
): Promise<void> {
  const isNew = ([key]: readonly [string, ManagedSource<Server>]): boolean => previous?.sources.has(key) !== true;
  await Promise.all([...loaded.sources].filter(isNew).map(([, source]) => source.close()));
}

/** Lists the tools of the preset and of all sources. */
export function listTools({ preset, sources }: LoadedConfig<ToolServer>): readonly Tool[] {
  return [...preset, ...[...sources.values()].flatMap(({ tools }) => tools())];
}

function loadPreset(
  file: string,
  name: string | undefined,
  presets: NonNullable<ToolConfigOptions["presets"]>,
): readonly Tool[] {
  if (name === undefined) return [];
  const preset = Object.hasOwn(presets, name) ? presets[name] : undefined;
  if (preset !== undefined) return preset();
  const known = Object.keys(presets);
  throw createConfigError(file, {
    key: "tools.preset",
    expected: "the name of a preset",
    found: `the unknown preset "${name}"`,
    fix:
      known.length === 0
        ? "Pass presets to loadTools, or remove the preset"
        : `Use one of the presets ${known.join(", ")}`,
  });
}
