/**
 * Tools from a configuration in YAML or JSON: a preset, plugins and MCP servers. A file of the user is loaded
 * directly, a file of a workspace with `trust`. With `watch` the tools change while agents use the registry.
 */

import { type Tool, type ToolRegistry, toolRegistry } from "@statewright/core";
import { checkOptions, invalidOption, listOptionNames, systemWorld } from "@statewright/core/adapter";
import { type StartCheck, watchFile } from "@statewright/host";
import { type ConfigFile, createConfigError, type McpEntry, type PluginEntry, readConfig } from "./config-file.ts";
import { type ConfigTrust, checkTrusted, isTrusted } from "./config-trust.ts";
import { createManagedPlugin, type ManagedPlugin } from "./managed-plugin.ts";
import { loadCheckedPlugin, type Plugin, type PluginOptions } from "./plugin.ts";
import type { ToolServer, ToolServerConnector } from "./tool-server.ts";

/** Options of {@link loadTools}. */
export interface ToolConfigOptions<Server extends ToolServer = ToolServer> {
  /**
   * Presets by name, such as the presets of @statewright/tools. Without this option a configuration may not name a
   * preset.
   */
  readonly presets?: Readonly<Record<string, () => readonly Tool[]>>;
  /** Options of every plugin process, in addition to the configuration. */
  readonly plugins?: Omit<PluginOptions, "command" | "args" | "env" | "cwd">;
  /**
   * Connects to MCP servers: `mcpConnector(options)` of @statewright/mcp. Without this option a configuration may not
   * name an MCP server.
   */
  readonly mcp?: ToolServerConnector<Server>;
  /**
   * Trust store for a file of a workspace: programs start only after an approval of the current file. Plugins then
   * receive the usual environment variables and the variables named in the configuration, unless `plugins.inheritEnv`
   * is set.
   */
  readonly trust?: ConfigTrust;
  /** Reloads the file after changes. A function receives the result of each reload. */
  readonly watch?: boolean | ((change: ConfigChange) => void);
}

/** Result of a reload. */
export interface ConfigChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Tools with the same name and a new source. */
  readonly replaced: readonly string[];
  /** Reason for an unchanged configuration: the new file is invalid, or the file can no longer be watched. */
  readonly error?: unknown;
}

/** Current tools of a configuration, and their running plugins. */
export interface ConfiguredTools<Server extends ToolServer = ToolServer> {
  readonly tools: readonly Tool[];
  readonly plugins: readonly Plugin[];
  /** Connected MCP servers. */
  readonly servers: readonly Server[];
  /** Tools as a registry for an agent. A change of the file takes effect at the next model request. */
  readonly registry: ToolRegistry;
  /**
   * Reloads the file, even after a failed reload. Throws the errors of `loadTools`, and then keeps the current tools.
   */
  reload(): Promise<ConfigChange>;
  /** Closes all plugins and connections, and stops watching. */
  close(): Promise<void>;
}

/** Loaded configuration with its started sources. */
interface LoadedConfig<Server extends ToolServer> {
  readonly config: ConfigFile;
  readonly preset: readonly Tool[];
  readonly sources: ReadonlyMap<string, ManagedSource<Server>>;
}

const knownOptions = listOptionNames<ToolConfigOptions>({
  presets: true,
  plugins: true,
  mcp: true,
  trust: true,
  watch: true,
});
const noChange: ConfigChange = Object.freeze({ added: [], removed: [], replaced: [] });

/**
 * Loads the tools of a file, from its key `tools`: `preset`, `plugins` with `path`, `args` and `env`, and `mcp` with
 * `name` and `command` or `url`. A path is a file relative to the configuration's folder, or a command of PATH.
 *
 * Throws `invalid_option` with the known names for an unknown key or preset; `plugin_failed` and `mcp_failed` for a
 * source that does not start, after closing the other sources; `untrusted_configuration` for a configuration without
 * approval.
 */
export async function loadTools<Server extends ToolServer = ToolServer>(
  file: string,
  options: ToolConfigOptions<Server> = {},
): Promise<ConfiguredTools<Server>> {
  checkOptions("loadTools", options, knownOptions);
  checkConnector(options.mcp);
  const { watch = false } = options;
  const world = options.plugins?.world ?? systemWorld();
  const reportChange = (change: ConfigChange): void => {
    if (change.error !== undefined)
      world.log("warn", `configuration ${file} was not reloaded`, { file, error: change.error });
    if (typeof watch !== "function") return;
    try {
      watch(change);
    } catch (error) {
      world.log("error", `the watch callback for the configuration ${file} failed`, { file, error });
    }
  };

  // Watch before the first read, so that no change is missed in between.
  let onChange = (): void => undefined;
  const onEnd = (error: unknown): void => reportChange({ ...noChange, error });
  const unwatch = watch === false ? undefined : watchFile(file, { world, onEnd, onChange: () => onChange() });
  let current: LoadedConfig<Server>;
  let registry: ToolRegistry;
  const { trust } = options;
  const canStart = trust === undefined ? undefined : () => isTrusted(current.config, trust);
  try {
    current = await loadSources(await readConfig(file), options, canStart);
    registry = await createRegistry(current);
  } catch (error) {
    unwatch?.();
    throw error;
  }
  const retired: ManagedSource<Server>[] = [];
  let isClosed = false;
  /** Text of the last reload: the watched folder also reports changes of other files. */
  let lastText: unknown = current.config.text;

  const reloadFile = async (isForced: boolean): Promise<ConfigChange> => {
    if (isClosed) return noChange;
    const config = await readConfig(file);
    if (!isForced && config.text === lastText) return noChange;
    lastText = config.text;
    const next = await loadSources(config, options, canStart, current);
    const change = await updateRegistry(registry, current, next);
    const removedSources = [...current.sources].filter(([key]) => !next.sources.has(key)).map(([, held]) => held);
    current = next;
    retired.push(...removedSources);
    for (const held of removedSources) held.retire();
    return change;
  };
  let lastReload: Promise<unknown> = Promise.resolve();
  const enqueueReload = (isForced: boolean): Promise<ConfigChange> => {
    const reload = Promise.allSettled([lastReload]).then(() => reloadFile(isForced));
    lastReload = reload;
    return reload;
  };
  let lastFailure = "";
  onChange = () =>
    void enqueueReload(false).then(
      (change) => {
        lastFailure = "";
        if (change !== noChange) reportChange(change);
      },
      (error: unknown) => {
        // Report a repeated error, such as a missing file, only once.
        if (String(error) !== lastFailure) reportChange({ ...noChange, error });
        lastFailure = String(error);
      },
    );
  if (watch !== false) onChange();

  return Object.freeze({
    get tools() {
      return listTools(current);
    },
    get plugins() {
      return [...current.sources.values()].flatMap(({ plugin }) => (isServer(plugin) ? [] : [plugin]));
    },
    get servers() {
      return [...current.sources.values()].flatMap(({ plugin }) => (isServer(plugin) ? [plugin] : []));
    },
    registry,
    reload: () => enqueueReload(true),
    close: async () => {
      isClosed = true;
      unwatch?.();
      await Promise.allSettled([lastReload]);
      await Promise.all([...current.sources.values(), ...retired].map((held) => held.close()));
    },
  });
}

/**
 * Starts the sources of a configuration and keeps running sources of the previous one. Closes all newly started
 * sources before a throw.
 */
async function loadSources<Server extends ToolServer>(
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

type ManagedSource<Server extends ToolServer> = ManagedPlugin<Plugin | Server>;

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
    throw createConfigError(
      file,
      `tools.mcp names the MCP server "${name}", and loadTools has no option mcp`,
      "Install @statewright/mcp and pass its mcpConnector() as the option mcp of loadTools, or remove tools.mcp",
    );
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

function isServer<Server extends ToolServer>(source: Plugin | Server): source is Server {
  return "isClosed" in source;
}

/** Throws `invalid_option` for a value without `connect`, such as the options of the connections. */
function checkConnector(mcp: ToolServerConnector | undefined): void {
  if (mcp === undefined || typeof mcp?.connect === "function") return;
  throw invalidOption({
    where: "loadTools",
    option: "mcp",
    expected: "a connector",
    got: mcp,
    fix: "Pass mcpConnector(options) of @statewright/mcp",
  });
}

async function closeNewSources<Server extends ToolServer>(
  loaded: LoadedConfig<Server>,
  previous: LoadedConfig<Server> | undefined,
): Promise<void> {
  const isNew = ([key]: readonly [string, ManagedSource<Server>]): boolean => previous?.sources.has(key) !== true;
  await Promise.all([...loaded.sources].filter(isNew).map(([, held]) => held.close()));
}

function listTools({ preset, sources }: LoadedConfig<ToolServer>): readonly Tool[] {
  return [...preset, ...[...sources.values()].flatMap(({ tools }) => tools())];
}

/** Creates the registry of a configuration. Closes the started sources after a duplicate tool name. */
async function createRegistry(loaded: LoadedConfig<ToolServer>): Promise<ToolRegistry> {
  try {
    return toolRegistry(listTools(loaded));
  } catch (error) {
    await closeNewSources(loaded, undefined);
    throw error;
  }
}

/** Updates a registry to the next configuration, atomically. Keeps tools registered by other code. */
async function updateRegistry(
  registry: ToolRegistry,
  previous: LoadedConfig<ToolServer>,
  updated: LoadedConfig<ToolServer>,
): Promise<ConfigChange> {
  const oldTools = new Map(listTools(previous).map((tool) => [tool.spec.name, tool]));
  const newTools = new Map(listTools(updated).map((tool) => [tool.spec.name, tool]));
  const added = [...newTools.keys()].filter((name) => !oldTools.has(name));
  const registered: string[] = [];
  try {
    // Throws for duplicate tool names.
    toolRegistry(listTools(updated));
    for (const [name, tool] of newTools) {
      if (oldTools.has(name)) continue;
      registry.register(tool);
      registered.push(name);
    }
  } catch (error) {
    for (const name of registered) registry.unregister(name);
    await closeNewSources(updated, previous);
    throw error;
  }
  const isOurs = (name: string): boolean => registry.get(name) === oldTools.get(name);
  const replaced = [...newTools].filter(
    ([name, tool]) => oldTools.has(name) && oldTools.get(name) !== tool && isOurs(name),
  );
  for (const [, tool] of replaced) registry.replace(tool);
  const removed = [...oldTools.keys()].filter((name) => !newTools.has(name) && isOurs(name));
  for (const name of removed) registry.unregister(name);
  return { added, removed, replaced: replaced.map(([name]) => name) };
}

function loadPreset(
  file: string,
  name: string | undefined,
  presets: NonNullable<ToolConfigOptions["presets"]>,
): readonly Tool[] {
  if (name === undefined) return [];
  const preset = Object.hasOwn(presets, name) ? presets[name] : undefined;
  if (preset !== undefined) return preset();
  throw createConfigError(
    file,
    `unknown preset "${name}"`,
    Object.keys(presets).length === 0
      ? "Pass presets to loadTools, or remove the preset"
      : `Use one of the presets ${Object.keys(presets).join(", ")}`,
  );
}
