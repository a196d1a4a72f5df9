/** Tool registry: tools by canonical name in a stable order, their aliases for specific providers, reserved names. */
import { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { deepFreeze, describeValue, isPlainObject } from "../base/json.ts";
import { checkChoice } from "../base/options.ts";
import type { ModelTool } from "../model/model.ts";
import { describeTool, type ToolDescription } from "./definition/describe-tool.ts";
import { toModelTool } from "./definition/model-tool.ts";
import { completeSpec, isTool, type Tool, type ToolSpec } from "./definition/tool.ts";
import { checkRegisteredName, isProviderSafe, type ToolNames } from "./definition/tool-name.ts";

/** Tools by name. Changes apply from the next model request; calls of earlier requests keep their tools. */
export interface ToolRegistry<State = unknown, Context = unknown> {
  /** Adds a tool. Throws `invalid_tool` for a name in use. */
  register(tool: Tool<State, Context>): ToolRegistry<State, Context>;
  /** Adds a tool, replacing the tool of the same name if any. */
  replace(tool: Tool<State, Context>): ToolRegistry<State, Context>;
  /**
   * Replaces all tools; keeps the aliases of names that stay. Atomic: an invalid tool leaves the registry unchanged.
   */
  replaceAll(tools: readonly Tool<State, Context>[]): ToolRegistry<State, Context>;
  /** Removes a tool; returns false when the registry has no tool of this name. */
  unregister(name: string): boolean;
  /** Returns the tool of this name; undefined without a tool. */
  get(name: string): Tool<State, Context> | undefined;
  /** Lists the names, sorted: a stable order keeps prompt caches valid. */
  names(): readonly string[];
  /** Returns the current tools by name; a later change creates a new map. */
  tools(): ReadonlyMap<string, Tool<State, Context>>;
  /**
   * Advertises a tool to the models of a provider under another name. Events, messages and checkpoints use the
   * canonical name. The provider is the part of a model id before the slash.
   */
  alias(provider: string, canonical: string, alias: string): ToolRegistry<State, Context>;
  /** Returns the aliases of a provider by canonical name; undefined for a provider without aliases. */
  aliases(provider: string): ReadonlyMap<string, string> | undefined;
  /** Returns the canonical name of a tool called by a provider's model; undefined for an unknown tool. */
  toCanonical(provider: string, seen: string): string | undefined;
  /**
   * Lists the tool definitions for a model, sorted by name. `only` selects names; throws `invalid_option` for an
   * unknown name.
   */
  forModel(only?: readonly string[]): readonly ModelTool[];
  /** Describes every tool as plain data, for people, audits and pages. */
  describe(): readonly ToolDescription[];
}

/** Options of `toolRegistry`. */
export interface ToolRegistryOptions {
  /**
   * Naming rule. Default: any name that every provider accepts; an imported tool has its name in snake_case.
   * `snake_case` refuses other names. `provider-safe` keeps the original name of an imported tool if every provider
   * accepts the name.
   */
  readonly names?: ToolNames;
}

/** Creates a registry. Throws `invalid_tool` for an invalid or duplicate name, or a schema without a JSON Schema. */
export function toolRegistry<State = unknown, Context = unknown>(
  tools: readonly Tool<State, Context>[] = [],
  { names: policy }: ToolRegistryOptions = {},
): ToolRegistry<State, Context> {
  if (policy !== undefined) checkChoice("toolRegistry", { names: policy }, ["snake_case", "provider-safe"]);
  let current: ReadonlyMap<string, Tool<State, Context>> = indexTools(tools, policy);
  let sortedNames: readonly string[] | undefined;
  let modelTools: readonly ModelTool[] | undefined;
  const aliases = createAliasTable((name) => current.has(name));

  const setTools = (next: typeof current): void => {
    current = next;
    sortedNames = undefined;
    modelTools = undefined;
  };
  const addTool = (added: Tool<State, Context>): void => {
    aliases.checkName(added.spec.name);
    setTools(new Map(current).set(added.spec.name, added));
  };
  const registry: ToolRegistry<State, Context> = {
    register: (tool) => {
      const added = prepareTool(tool, policy);
      const known = current.get(added.spec.name);
      if (known !== undefined) throw createDuplicateError(added.spec, known.spec);
      addTool(added);
      return registry;
    },
    replace: (tool) => {
      addTool(prepareTool(tool, policy));
      return registry;
    },
    replaceAll: (all) => {
      const next = indexTools(all, policy);
      for (const name of next.keys()) aliases.checkName(name);
      for (const name of current.keys()) if (!next.has(name)) aliases.remove(name);
      setTools(next);
      return registry;
    },
    unregister: (name) => {
      if (!current.has(name)) return false;
      setTools(new Map([...current].filter(([known]) => known !== name)));
      aliases.remove(name);
      return true;
    },
    get: (name) => current.get(name),
    names: () => {
      sortedNames ??= Object.freeze([...current.keys()].sort());
      return sortedNames;
    },
    tools: () => current,
    alias: (provider, canonical, alias) => {
      if (!current.has(canonical)) throw createUnknownToolError([canonical], registry.names());
      aliases.add(provider, canonical, alias);
      return registry;
    },
    aliases: aliases.get,
    toCanonical: (provider, seen) => aliases.findCanonical(provider, seen) ?? (current.has(seen) ? seen : undefined),
    forModel: (only) => {
      modelTools ??= Object.freeze(registry.names().flatMap((name) => listModelTools(current.get(name))));
      if (only === undefined) return modelTools;
      checkNames(only, registry.names());
      return modelTools.filter(({ name }) => only.includes(name));
    },
    describe: () => deepFreeze(registry.names().flatMap((name) => listDescriptions(current.get(name), aliases))),
  };
  reservers.set(registry, aliases.reserve);
  return Object.freeze(registry);
}

/** Functions that reserve a name in a registry. */
const reservers: WeakMap<object, (name: string) => void> = new WeakMap();

/**
 * Reserves a name: throws `invalid_tool` when a tool has the name or an alias of this name. Afterwards the registry
 * refuses both.
 */
export function reserveName(registry: ToolRegistry<never, never>, name: string): void {
  reservers.get(registry)?.(name);
}

/** Returns true if tools are a registry and not a list. */
export function isRegistry<Registry extends ToolRegistry<never, never>>(
  tools: readonly unknown[] | Registry,
): tools is Registry {
  return typeof tools === "object" && tools !== null && "register" in tools && "forModel" in tools;
}

/** Throws `invalid_option` for unknown tool names; the error lists the known names. */
function checkNames(names: readonly string[], known: readonly string[]): void {
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw createUnknownToolError(unknown, known);
}

function indexTools<State, Context>(
  tools: readonly Tool<State, Context>[],
  policy: ToolNames | undefined,
): ReadonlyMap<string, Tool<State, Context>> {
  if (!Array.isArray(tools)) {
    throw new StatewrightError("invalid_tool", {
      what: `the tools: expected a list, got ${describeValue(tools)}`,
      next: "Pass a list of tools created with defineTool",
    });
  }
  const byName = new Map<string, Tool<State, Context>>();
  for (const tool of tools as readonly Tool<State, Context>[]) {
    const added = prepareTool(tool, policy);
    const known = byName.get(added.spec.name);
    if (known !== undefined) throw createDuplicateError(added.spec, known.spec);
    byName.set(added.spec.name, added);
  }
  return byName;
}

/** Returns the tool with a complete spec, under its registered name. */
function prepareTool<State, Context>(tool: Tool<State, Context>, policy: ToolNames | undefined): Tool<State, Context> {
  if (!isTool(tool)) throw createNotToolError(tool);
  const { name: specName, originalName } = tool.spec;
  const name = policy === "provider-safe" && isProviderSafe(originalName) ? originalName : specName;
  checkRegisteredName(name, policy);
  const spec = completeSpec(name === specName ? tool.spec : { ...tool.spec, name });
  toModelTool(spec);
  return spec === tool.spec ? tool : replaceSpec(tool, spec);
}

/** Returns the tool with another spec; methods keep their `this`. */
function replaceSpec<State, Context>(tool: Tool<State, Context>, spec: ToolSpec): Tool<State, Context> {
  const { resolve, reconcile, prepareArguments, graph } = tool;
  return {
    spec,
    ...(graph === undefined ? {} : { graph }),
    call: (state, runtime, call) => tool.call(state, runtime, call),
    ...(resolve === undefined ? {} : { resolve: (source) => resolve.call(tool, source) }),
    ...(prepareArguments === undefined ? {} : { prepareArguments: (args) => prepareArguments.call(tool, args) }),
    ...(reconcile === undefined
      ? {}
      : { reconcile: (state, runtime, call) => reconcile.call(tool, state, runtime, call) }),
  };
}

function listModelTools(tool: Tool<never, never> | undefined): readonly ModelTool[] {
  return tool === undefined ? [] : [toModelTool(tool.spec)];
}

function listDescriptions(
  tool: Tool<never, never> | undefined,
  { listAliases }: AliasTable,
): readonly ToolDescription[] {
  if (tool === undefined) return [];
  const aliases = listAliases(tool.spec.name);
  return [{ ...describeTool(tool), ...(Object.keys(aliases).length === 0 ? {} : { aliases }) }];
}

function createNotToolError(value: unknown): StatewrightError {
  if (isPlainObject(value) && value["nodes"] instanceof Map)
    return new StatewrightError("invalid_tool", {
      what: `expected a tool, got the graph ${describeValue(value["name"])}`,
      next: "Convert it to a tool: agentTool(agent, { description }) for an agent, graphTool(graph, …) for any graph",
    });
  if (isPlainObject(value) && typeof value["execute"] === "function" && "parameters" in value)
    return new StatewrightError("invalid_tool", {
      what: `expected a tool, got the pi tool ${describeValue(value["name"])}`,
      next: "Convert it to a tool: fromPiTool(tool)",
    });
  return new StatewrightError("invalid_tool", {
    what: `expected a tool, got ${describeValue(value)}`,
    next: "Create the tool with defineTool",
  });
}

function createDuplicateError(added: ToolSpec, known: ToolSpec): StatewrightError {
  const originals = [known, added].flatMap(({ originalName }) =>
    originalName === undefined ? [] : [`"${originalName}"`],
  );
  const suffix = originals.length === 0 ? "" : `, originally ${originals.join(" and ")}`;
  return new StatewrightError("invalid_tool", {
    what: `two tools are named "${added.name}"${suffix}`,
    next: "Rename one of them, or use replace to replace the registered tool",
    place: { tool: added.name },
  });
}

function createUnknownToolError(unknown: readonly string[], known: readonly string[]): StatewrightError {
  return invalidOption({
    where: "toolRegistry",
    expected: "a registered tool",
    found: `unknown tool ${unknown.map((name) => describeValue(name)).join(", ")}`,
    fix:
      known.length === 0
        ? "Add a tool first: the registry is empty"
        : `Use ${known.map((name) => `"${name}"`).join(", ")}`,
  });
}

export interface AliasTable {
  /** Throws `invalid_tool` for a tool name that is reserved, or the alias of another tool. */
  checkName(name: string): void;
  /** Adds an alias. Throws `invalid_tool` for an alias that would make calls ambiguous. */
  add(provider: string, canonical: string, alias: string): void;
  /** Removes all aliases of a tool. */
  remove(canonical: string): void;
  /** Reserves a name. Throws `invalid_tool` for a name in use. */
  reserve(name: string): void;
  /** Returns the aliases of a provider by canonical name. */
  get(provider: string): ReadonlyMap<string, string> | undefined;
  findCanonical(provider: string, alias: string): string | undefined;
  /** Returns the aliases of a tool by provider. */
  listAliases(canonical: string): Readonly<Record<string, string>>;
}

/** Creates an empty table; `hasTool` returns true for the name of a registered tool. */
function createAliasTable(hasTool: (name: string) => boolean): AliasTable {
  const byProvider = new Map<string, ReadonlyMap<string, string>>();
  const reservedNames = new Set<string>();
  /** Lists all uses of a name as an alias. */
  const findUses = (name: string): readonly { readonly provider: string; readonly canonical: string }[] =>
    [...byProvider].flatMap(([provider, aliases]) =>
      [...aliases].flatMap(([canonical, alias]) => (alias === name ? [{ provider, canonical }] : [])),
    );
  const findCanonical = (provider: string, name: string): string | undefined =>
    [...(byProvider.get(provider) ?? [])].find(([, alias]) => alias === name)?.[0];
  return {
    checkName: (name) => {
      if (reservedNames.has(name)) throw createReservedNameError(name, name, undefined);
      for (const { provider, canonical } of findUses(name))
        if (canonical !== name) throw createAliasConflictError(name, provider, canonical);
    },
    add: (provider, canonical, alias) => {
      if (!isProviderSafe(alias)) throw createAliasError(canonical, alias);
      const owner = findCanonical(provider, alias);
      if (owner !== undefined && owner !== canonical) throw createAliasConflictError(alias, provider, owner);
      if (hasTool(alias) && alias !== canonical) throw createToolConflictError(alias, provider, canonical);
      if (reservedNames.has(alias)) throw createReservedNameError(alias, canonical, provider);
      byProvider.set(provider, new Map(byProvider.get(provider)).set(canonical, alias));
    },
    remove: (canonical) => {
      for (const [provider, aliases] of byProvider)
        byProvider.set(provider, new Map([...aliases].filter(([name]) => name !== canonical)));
    },
    reserve: (name) => {
      if (hasTool(name)) throw createReservedNameError(name, name, undefined);
      for (const { provider, canonical } of findUses(name)) throw createReservedNameError(name, canonical, provider);
      reservedNames.add(name);
    },
    get: (provider) => byProvider.get(provider),
    findCanonical,
    listAliases: (canonical) =>
      Object.fromEntries(
        [...byProvider].flatMap(([provider, aliases]) => {
          const alias = aliases.get(canonical);
          return alias === undefined ? [] : [[provider, alias]];
        }),
      ),
  };
}

function createReservedNameError(name: string, canonical: string, provider: string | undefined): StatewrightError {
  const owner = provider === undefined ? "a tool has" : `for models of "${provider}" the tool "${canonical}" has`;
  return new StatewrightError("invalid_tool", {
    what: `${owner} the name "${name}", which is reserved for the agent's output`,
    next: provider === undefined ? "Rename the tool" : "Use another alias",
    place: { tool: canonical },
  });
}

function createAliasConflictError(name: string, provider: string, canonical: string): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `"${name}" is already the alias of the tool "${canonical}" for models of "${provider}"`,
    next: "Use another name: calls would be ambiguous",
    place: { tool: canonical },
  });
}

function createToolConflictError(alias: string, provider: string, canonical: string): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `"${alias}" cannot be the alias of the tool "${canonical}" for models of "${provider}": another tool has this name`,
    next: "Use another alias: calls would be ambiguous",
    place: { tool: canonical },
  });
}

function createAliasError(canonical: string, alias: unknown): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `${describeValue(alias)} cannot be an alias of the tool "${canonical}"`,
    next: "Use a letter or an underscore, then up to 63 letters, digits, underscores and hyphens",
    place: { tool: canonical },
  });
}
