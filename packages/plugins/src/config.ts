/**
 * Tools by configuration: a preset, plugins and MCP servers, in YAML or JSON. A file that the user wrote is loaded as it stands; one that
 * was found in a workspace is loaded with `trust`. When it is watched, its tools change while agents have them.
 */
import { checkOptions, optionNames, systemWorld, type Tool, type ToolRegistry, toolRegistry } from "@statewright/core";
import { watchFile } from "@statewright/host";
import { type ConfigFile, type McpEntry, type PluginEntry, readConfig, unfitConfig } from "./config-file.ts";
import { type ConfigTrust, checkTrusted, isTrusted } from "./config-trust.ts";
import { type HeldPlugin, heldPlugin } from "./managed-plugin.ts";
import type { McpCommonOptions, McpServer } from "./mcp/connect-mcp.ts";
import { loadPluginAs, type Plugin, type PluginOptions } from "./plugin.ts";
import type { MayStart } from "./supervisor.ts";

/** What a configuration is read with. */
export interface ToolConfigOptions {
  /** The ready-made sets by name; those of @statewright/tools are one such. Without it a configuration may name none. */
  readonly presets?: Readonly<Record<string, () => readonly Tool[]>>;
  /** How every plugin is started, beyond what the configuration says. */
  readonly plugins?: Omit<PluginOptions, "command" | "args" | "env" | "cwd">;
  /** How every MCP server is connected, beyond what the configuration says. */
  readonly mcp?: Omit<McpCommonOptions, "name" | "only" | "prefix" | "pins" | "elicitation">;
  /**
   * The file was found in a workspace: it starts programs only where a person has said yes to it as it is now. Its plugins get
   * the usual variables of our environment and those that it names, unless `plugins.inheritEnv` says otherwise.
   */
  readonly trust?: ConfigTrust;
  /** Load the file again when it changes; the function is told what came of it. */
  readonly watch?: boolean | ((change: ConfigChange) => void);
}

/** What came of a change of the file. */
export interface ConfigChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Tools that keep their names and come from another plugin or preset now. */
  readonly replaced: readonly string[];
  /** Why nothing has changed: the new file cannot be used, or the file can no longer be watched. */
  readonly error?: unknown;
}

/** The tools of a configuration as it is now, and the plugins that run for them. */
export interface ConfiguredTools {
  readonly tools: readonly Tool[];
  readonly plugins: readonly Plugin[];
  /** The MCP servers that it is connected to. */
  readonly servers: readonly McpServer[];
  /** The tools as a registry, for an agent: a change of the file counts from its next request to a model on. */
  readonly registry: ToolRegistry;
  /** Take the file as it is now, also where it was refused before. Throws what `loadTools` throws, and all stays as it was. */
  reload(): Promise<ConfigChange>;
  /** End all plugins and connections, and watch no more. */
  close(): Promise<void>;
}

/** A configuration at work. */
interface Loaded {
  readonly config: ConfigFile;
  readonly preset: readonly Tool[];
  readonly held: ReadonlyMap<string, HeldPlugin<Plugin | McpServer>>;
}

const names = optionNames<ToolConfigOptions>({ presets: true, plugins: true, mcp: true, trust: true, watch: true });
const unchanged: ConfigChange = Object.freeze({ added: [], removed: [], replaced: [] });

/**
 * Load the tools that a file names under `tools`: `preset`, `plugins` with `path`, `args` and `env` each, and `mcp` with `name`
 * and `command` or `url`. A path is a file relative to the configuration's folder, or a command of PATH. Throws
 * `invalid_option` for a key or preset that is not known, with those that are; `plugin_failed` and `mcp_failed` for what cannot be started, and the others are ended;
 * `untrusted_configuration` for one that nobody has said yes to.
 */
export async function loadTools(file: string, options: ToolConfigOptions = {}): Promise<ConfiguredTools> {
  checkOptions("loadTools", options, names);
  const { watch = false } = options;
  const world = options.plugins?.world ?? systemWorld();
  const tell = (change: ConfigChange): void => {
    if (change.error !== undefined)
      world.log("warn", `the configuration ${file} is not taken`, { file, error: change.error });
    if (typeof watch !== "function") return;
    try {
      watch(change);
    } catch (error) {
      world.log("error", `what is told of changes of the configuration ${file} failed`, { file, error });
    }
  };

  // It is watched before it is read: so nothing changes unseen in between.
  let onChange = (): void => undefined;
  const onEnd = (error: unknown): void => tell({ ...unchanged, error });
  const unwatch = watch === false ? undefined : watchFile(file, { world, onEnd, onChange: () => onChange() });
  let current: Loaded;
  let registry: ToolRegistry;
  const { trust } = options;
  const mayStart = trust === undefined ? undefined : () => isTrusted(current.config, trust);
  try {
    current = await load(await readConfig(file), options, mayStart);
    registry = await registryOf(current);
  } catch (error) {
    unwatch?.();
    throw error;
  }
  const retired: Held[] = [];
  let isClosed = false;
  /** What was tried last: a folder has changes that are not of this file. */
  let tried: unknown = current.config.text;

  const take = async (isAsked: boolean): Promise<ConfigChange> => {
    if (isClosed) return unchanged;
    const config = await readConfig(file);
    if (!isAsked && config.text === tried) return unchanged;
    tried = config.text;
    const next = await load(config, options, mayStart, current);
    const change = await entered(registry, current, next);
    const gone = [...current.held].filter(([key]) => !next.held.has(key)).map(([, held]) => held);
    current = next;
    retired.push(...gone);
    for (const held of gone) held.retire();
    return change;
  };
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = (isAsked: boolean): Promise<ConfigChange> => {
    const taken = Promise.allSettled([turn]).then(() => take(isAsked));
    turn = taken;
    return taken;
  };
  let lastFailure = "";
  onChange = () =>
    void inTurn(false).then(
      (change) => {
        lastFailure = "";
        if (change !== unchanged) tell(change);
      },
      (error: unknown) => {
        // A file that is not there is not there at each sign.
        if (String(error) !== lastFailure) tell({ ...unchanged, error });
        lastFailure = String(error);
      },
    );
  if (watch !== false) onChange();

  return Object.freeze({
    get tools() {
      return toolsOf(current);
    },
    get plugins() {
      return [...current.held.values()].flatMap(({ plugin }) => (isServer(plugin) ? [] : [plugin]));
    },
    get servers() {
      return [...current.held.values()].flatMap(({ plugin }) => (isServer(plugin) ? [plugin] : []));
    },
    registry,
    reload: () => inTurn(true),
    close: async () => {
      isClosed = true;
      unwatch?.();
      await Promise.allSettled([turn]);
      await Promise.all([...current.held.values(), ...retired].map((held) => held.close()));
    },
  });
}

/** Start what a configuration names; what is at work already stays. Throws with nothing left that was started. */
async function load(
  config: ConfigFile,
  options: ToolConfigOptions,
  mayStart: MayStart,
  before?: Loaded,
): Promise<Loaded> {
  if (options.trust !== undefined) await checkTrusted(config, options.trust);
  const isSame = before !== undefined && before.config.preset === config.preset;
  const preset = isSame ? before.preset : presetOf(config.file, config.preset, options.presets ?? {});
  const sources = [...config.plugins, ...config.mcp];
  const keys = keysOf(sources);
  const started = await Promise.allSettled(
    sources.map((entry, index) => before?.held.get(keys[index] ?? "") ?? start(entry, config, options, mayStart)),
  );
  const held = new Map(
    started.flatMap((each, index) => (each.status === "fulfilled" ? [[keys[index] ?? "", each.value] as const] : [])),
  );
  const loaded = { config, preset, held };
  const failed = started.find((each) => each.status === "rejected");
  if (failed === undefined) return loaded;
  await endNew(loaded, before);
  throw failed.reason;
}

/** The same plugin may be named twice. */
function keysOf(plugins: readonly (PluginEntry | McpEntry)[]): readonly string[] {
  const texts = plugins.map((entry) => JSON.stringify(entry));
  return texts.map((text, index) => `${texts.slice(0, index).filter((other) => other === text).length} ${text}`);
}

type Held = HeldPlugin<Plugin | McpServer>;

async function start(
  entry: PluginEntry | McpEntry,
  { folder }: ConfigFile,
  options: ToolConfigOptions,
  mayStart: MayStart,
): Promise<Held> {
  const { plugins, trust } = options;
  const world = plugins?.world ?? systemWorld();
  if ("at" in entry) return connected(entry, folder, options, mayStart);
  const inheritEnv = plugins?.inheritEnv ?? trust === undefined;
  return heldPlugin<Plugin | McpServer>(
    (asked) => loadPluginAs({ ...plugins, ...entry, inheritEnv, cwd: folder }, asked),
    ({ pid }) => pid !== undefined,
    world,
    mayStart,
  );
}

/** The SDK of the protocol is loaded for those who use it. */
async function connected(
  { name, prefix, only, at }: McpEntry,
  folder: string,
  { mcp, plugins }: ToolConfigOptions,
  mayStart: MayStart,
): Promise<Held> {
  const { connectMcpAs } = await import("./mcp/connect-mcp.ts");
  const world = mcp?.world ?? plugins?.world ?? systemWorld();
  const said = { ...mcp, name, prefix, world, ...(only === undefined ? {} : { only }) };
  const options = { ...said, ...("command" in at ? { ...at, cwd: folder } : at) };
  return heldPlugin<Plugin | McpServer>(
    (asked) => connectMcpAs(options, asked),
    (server) => isServer(server) && !server.isClosed,
    world,
    "command" in at ? mayStart : undefined,
  );
}

function isServer(source: Plugin | McpServer): source is McpServer {
  return "prompts" in source;
}

async function endNew(loaded: Loaded, before: Loaded | undefined): Promise<void> {
  const isNew = ([key]: readonly [string, Held]): boolean => before?.held.has(key) !== true;
  await Promise.all([...loaded.held].filter(isNew).map(([, held]) => held.close()));
}

function toolsOf({ preset, held }: Loaded): readonly Tool[] {
  return [...preset, ...[...held.values()].flatMap(({ tools }) => tools())];
}

/** A registry with the tools of a configuration. Ends what was started for it where two of them have one name. */
async function registryOf(loaded: Loaded): Promise<ToolRegistry> {
  try {
    return toolRegistry(toolsOf(loaded));
  } catch (error) {
    await endNew(loaded, undefined);
    throw error;
  }
}

/** Bring a registry from one configuration to the next; tools that others put into it stay. Changes all of it or nothing. */
async function entered(registry: ToolRegistry, before: Loaded, after: Loaded): Promise<ConfigChange> {
  const old = new Map(toolsOf(before).map((tool) => [tool.spec.name, tool]));
  const next = new Map(toolsOf(after).map((tool) => [tool.spec.name, tool]));
  const added = [...next.keys()].filter((name) => !old.has(name));
  const done: string[] = [];
  try {
    // Two of one name are refused here.
    toolRegistry(toolsOf(after));
    for (const [name, tool] of next) {
      if (old.has(name)) continue;
      registry.register(tool);
      done.push(name);
    }
  } catch (error) {
    for (const name of done) registry.unregister(name);
    await endNew(after, before);
    throw error;
  }
  const isOurs = (name: string): boolean => registry.get(name) === old.get(name);
  const replaced = [...next].filter(([name, tool]) => old.has(name) && old.get(name) !== tool && isOurs(name));
  for (const [, tool] of replaced) registry.replace(tool);
  const removed = [...old.keys()].filter((name) => !next.has(name) && isOurs(name));
  for (const name of removed) registry.unregister(name);
  return { added, removed, replaced: replaced.map(([name]) => name) };
}

function presetOf(
  file: string,
  name: string | undefined,
  presets: NonNullable<ToolConfigOptions["presets"]>,
): readonly Tool[] {
  if (name === undefined) return [];
  const preset = Object.hasOwn(presets, name) ? presets[name] : undefined;
  if (preset !== undefined) return preset();
  throw unfitConfig(
    file,
    `names the preset "${name}", which there is not`,
    Object.keys(presets).length === 0
      ? "There are none: give them to loadTools as presets"
      : `Presets are ${Object.keys(presets).join(", ")}`,
  );
}
