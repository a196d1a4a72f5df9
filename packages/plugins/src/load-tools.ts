/**
 * Tools from a configuration in YAML or JSON: a preset, plugins and MCP servers. A file of the user is loaded
 * directly, a file of a workspace with `trust`. With `watch` the tools change while agents use the registry.
 */
import type { Tool, ToolRegistry } from "@statewright/core";
import { checkOptions, listOptionNames, systemWorld } from "@statewright/core/adapter";
import { type StartCheck, watchFile } from "@statewright/host";
import { readConfig } from "./config-file.ts";
import { createRegistry, updateRegistry } from "./config-registry.ts";
import {
  checkConnector,
  isServer,
  type LoadedConfig,
  listTools,
  loadSources,
  type ManagedSource,
} from "./config-sources.ts";
import { isTrusted } from "./config-trust.ts";
import type { Plugin } from "./load-plugin.ts";
import type { ConfigChange, ConfiguredTools, ToolConfigOptions } from "./tool-config-options.ts";
import type { ToolServer } from "./tool-server.ts";

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
  const watcher = new ConfigWatcher(file, options);
  let loaded: LoadedTools<Server>;
  try {
    loaded = await LoadedTools.load(file, options);
  } catch (error) {
    watcher.close();
    throw error;
  }
  watcher.start(() => loaded.reload("if-changed"));
  return Object.freeze({
    get tools() {
      return loaded.tools;
    },
    get plugins() {
      return loaded.plugins;
    },
    get servers() {
      return loaded.servers;
    },
    registry: loaded.registry,
    reload: () => loaded.reload("always"),
    close: async () => {
      watcher.close();
      await loaded.close();
    },
  });
}

/** Watches the file, and reports the result of each reload. */
class ConfigWatcher {
  readonly #file: string;
  readonly #options: Pick<ToolConfigOptions, "watch" | "plugins">;
  readonly #unwatch: (() => void) | undefined;
  #reload: (() => Promise<ConfigChange>) | undefined;
  #lastFailure = "";

  /** Watches before the first read, so that no change is missed in between. */
  constructor(file: string, options: Pick<ToolConfigOptions, "watch" | "plugins">) {
    this.#file = file;
    this.#options = options;
    const onEnd = (error: unknown): void => this.#report({ ...noChange, error });
    const onChange = (): void => void this.#reloadAndReport();
    const { watch = false, plugins } = options;
    const world = plugins?.world ?? systemWorld();
    this.#unwatch = watch === false ? undefined : watchFile(file, { world, onEnd, onChange });
  }

  /** Starts to reload, also for a change since the first read. */
  start(reload: () => Promise<ConfigChange>): void {
    this.#reload = reload;
    if (this.#unwatch !== undefined) void this.#reloadAndReport();
  }

  close(): void {
    this.#unwatch?.();
  }

  async #reloadAndReport(): Promise<void> {
    if (this.#reload === undefined) return;
    let change: ConfigChange;
    try {
      change = await this.#reload();
      this.#lastFailure = "";
    } catch (error) {
      // Report a repeated error, such as a missing file, only once.
      if (String(error) !== this.#lastFailure) this.#report({ ...noChange, error });
      this.#lastFailure = String(error);
      return;
    }
    if (change !== noChange) this.#report(change);
  }

  #report(change: ConfigChange): void {
    const file = this.#file;
    const { watch, plugins } = this.#options;
    const world = plugins?.world ?? systemWorld();
    if (change.error !== undefined)
      world.log("warn", `configuration ${file} was not reloaded`, { file, error: change.error });
    if (typeof watch !== "function") return;
    try {
      watch(change);
    } catch (error) {
      world.log("error", `the watch callback for the configuration ${file} failed`, { file, error });
    }
  }
}

/** Tools of a configuration, replaced as a whole by each reload. */
class LoadedTools<Server extends ToolServer> {
  readonly registry: ToolRegistry;
  readonly #file: string;
  readonly #options: ToolConfigOptions<Server>;
  readonly #canStart: StartCheck;
  #current: LoadedConfig<Server>;
  /** Sources removed from the configuration, which close after their running tool calls. */
  readonly #retired: ManagedSource<Server>[] = [];
  #isClosed = false;
  /** Text of the last reload: the watched folder also reports changes of other files. */
  #lastText: string;
  #lastReload: Promise<unknown> = Promise.resolve();

  static async load<Server extends ToolServer>(
    file: string,
    options: ToolConfigOptions<Server>,
  ): Promise<LoadedTools<Server>> {
    const { trust } = options;
    let loaded: LoadedTools<Server> | undefined;
    const config = await readConfig(file);
    const canStart =
      trust === undefined ? undefined : () => isTrusted(loaded === undefined ? config : loaded.#current.config, trust);
    const current = await loadSources(config, options, canStart);
    loaded = new LoadedTools({ file, options, canStart, current, registry: await createRegistry(current) });
    return loaded;
  }

  private constructor({
    file,
    options,
    canStart,
    current,
    registry,
  }: {
    readonly file: string;
    readonly options: ToolConfigOptions<Server>;
    readonly canStart: StartCheck;
    readonly current: LoadedConfig<Server>;
    readonly registry: ToolRegistry;
  }) {
    this.#file = file;
    this.#options = options;
    this.#canStart = canStart;
    this.#current = current;
    this.#lastText = current.config.text;
    this.registry = registry;
  }

  get tools(): readonly Tool[] {
    return listTools(this.#current);
  }

  get plugins(): readonly Plugin[] {
    return this.#sources.flatMap(({ plugin }) => (isServer(plugin) ? [] : [plugin]));
  }

  get servers(): readonly Server[] {
    return this.#sources.flatMap(({ plugin }) => (isServer(plugin) ? [plugin] : []));
  }

  /** Reloads the file after the running reload. */
  reload(mode: "always" | "if-changed"): Promise<ConfigChange> {
    const reload = Promise.allSettled([this.#lastReload]).then(() => this.#reloadFile(mode));
    this.#lastReload = reload;
    return reload;
  }

  /** Closes all sources after the running reload. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled([this.#lastReload]);
    await Promise.all([...this.#sources, ...this.#retired].map((source) => source.close()));
  }

  get #sources(): readonly ManagedSource<Server>[] {
    return [...this.#current.sources.values()];
  }

  async #reloadFile(mode: "always" | "if-changed"): Promise<ConfigChange> {
    if (this.#isClosed) return noChange;
    const config = await readConfig(this.#file);
    if (mode === "if-changed" && config.text === this.#lastText) return noChange;
    this.#lastText = config.text;
    const current = this.#current;
    const next = await loadSources(config, this.#options, this.#canStart, current);
    const change = await updateRegistry(this.registry, current, next);
    const removed = [...current.sources].flatMap(([key, source]) => (next.sources.has(key) ? [] : [source]));
    this.#current = next;
    this.#retired.push(...removed);
    for (const source of removed) source.retire();
    return change;
  }
}
