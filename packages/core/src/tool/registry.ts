/** The registry: tools by canonical name, in one stable order, with the names that single providers are shown. */
import { StatewrightError } from "../base/errors.ts";
import { deepFreeze, describeValue, isPlainObject } from "../base/json.ts";
import type { ModelTool } from "../model/model.ts";
import { describeTool, type ToolDescription } from "./definition/describe-tool.ts";
import { modelToolOf } from "./definition/model-tool.ts";
import { isTool, type Tool, type ToolSpec, wholeSpec } from "./definition/tool.ts";
import { checkRegisteredName, isProviderSafe, type ToolNames } from "./definition/tool-name.ts";

/** Tools by name. What is changed counts from the next request to a model on; calls of earlier ones go on as they were. */
export interface ToolRegistry<State = unknown, Context = unknown> {
  /** Add a tool; refuses a name that is taken. */
  register(tool: Tool<State, Context>): ToolRegistry<State, Context>;
  /** Put a tool in the place of the one that has its name, where there is one. */
  replace(tool: Tool<State, Context>): ToolRegistry<State, Context>;
  /** Put these tools in the place of all others; aliases of names that stay are kept. Changes nothing when one is refused. */
  replaceAll(tools: readonly Tool<State, Context>[]): ToolRegistry<State, Context>;
  unregister(name: string): boolean;
  get(name: string): Tool<State, Context> | undefined;
  /** Sorted, so that what the model sees has one order and prompt caches hold. */
  names(): readonly string[];
  /** The tools as they are now, by name; a later change makes another map. */
  tools(): ReadonlyMap<string, Tool<State, Context>>;
  /**
   * Show a tool to the models of one provider under another name. Events, messages and checkpoints have the canonical one.
   * The provider is the part of a model's id before the slash.
   */
  alias(provider: string, canonical: string, alias: string): ToolRegistry<State, Context>;
  /** Aliases by canonical name; nothing for a provider without any. */
  aliases(provider: string): ReadonlyMap<string, string> | undefined;
  /** The canonical name of what a provider's model called; undefined when there is no such tool. */
  toCanonical(provider: string, seen: string): string | undefined;
  /** What the model sees, sorted by name; of `only` these, each of which there must be. */
  forModel(only?: readonly string[]): readonly ModelTool[];
  /** What is known of every tool, as plain data: for people, audits and pages. */
  describe(): readonly ToolDescription[];
}

/** What `toolRegistry` takes besides tools. */
export interface ToolRegistryOptions {
  /** Default `snake_case`. With `provider-safe`, names from elsewhere stay as they are where every provider takes them. */
  readonly names?: ToolNames;
}

/** A registry with these tools; throws `invalid_tool` for a bad or doubled name or a schema that cannot be shown to a model. */
export function toolRegistry<State = unknown, Context = unknown>(
  tools: readonly Tool<State, Context>[] = [],
  { names: policy = "snake_case" }: ToolRegistryOptions = {},
): ToolRegistry<State, Context> {
  type Tools = ReadonlyMap<string, Tool<State, Context>>;
  if (policy !== "snake_case" && policy !== "provider-safe") {
    throw new StatewrightError("invalid_option", {
      what: `the names of a registry are ${describeValue(policy)}`,
      next: 'Give "snake_case" or "provider-safe"',
    });
  }
  const aliases = new Map<string, ReadonlyMap<string, string>>();
  const free = new Set<string>();
  let current: Tools = new Map();
  let sorted: readonly string[] | undefined;
  let shown: readonly ModelTool[] | undefined;

  const become = (next: Tools): void => {
    current = next;
    sorted = undefined;
    shown = undefined;
  };
  const refuseName = (name: string): void => {
    if (free.has(name)) throw kept(name, name, undefined);
    for (const [provider, named] of aliases)
      for (const [canonical, alias] of named) {
        if (alias === name && canonical !== name) throw takenByAlias(name, provider, canonical);
      }
  };
  const registry: ToolRegistry<State, Context> = {
    register: (tool) => {
      const added = fit(tool, policy);
      const known = current.get(added.spec.name);
      if (known !== undefined) throw taken(added.spec, known.spec);
      refuseName(added.spec.name);
      become(new Map(current).set(added.spec.name, added));
      return registry;
    },
    replace: (tool) => {
      const added = fit(tool, policy);
      refuseName(added.spec.name);
      become(new Map(current).set(added.spec.name, added));
      return registry;
    },
    replaceAll: (all) => {
      const next = setOf(all, policy);
      for (const name of next.keys()) refuseName(name);
      for (const name of current.keys()) if (!next.has(name)) forgetAliases(aliases, name);
      become(next);
      return registry;
    },
    unregister: (name) => {
      if (!current.has(name)) return false;
      become(new Map([...current].filter(([known]) => known !== name)));
      forgetAliases(aliases, name);
      return true;
    },
    get: (name) => current.get(name),
    names: () => {
      sorted ??= Object.freeze([...current.keys()].sort());
      return sorted;
    },
    tools: () => current,
    alias: (provider, canonical, alias) => {
      if (!current.has(canonical)) throw unknownNames([canonical], registry.names());
      if (!isProviderSafe(alias)) throw unfitAlias(canonical, alias);
      const known = aliases.get(provider);
      const owner = known === undefined ? undefined : [...known].find(([, each]) => each === alias)?.[0];
      if (owner !== undefined && owner !== canonical) throw takenByAlias(alias, provider, owner);
      if (current.has(alias) && alias !== canonical) throw takenByTool(alias, provider, canonical);
      if (free.has(alias)) throw kept(alias, canonical, provider);
      aliases.set(provider, new Map(known).set(canonical, alias));
      return registry;
    },
    aliases: (provider) => aliases.get(provider),
    toCanonical: (provider, seen) => {
      const aliased = [...(aliases.get(provider) ?? [])].find(([, alias]) => alias === seen)?.[0];
      return aliased ?? (current.has(seen) ? seen : undefined);
    },
    forModel: (only) => {
      shown ??= Object.freeze(registry.names().flatMap((name) => modelToolsOf(current.get(name))));
      if (only === undefined) return shown;
      checkNames(only, registry.names());
      return shown.filter(({ name }) => only.includes(name));
    },
    describe: () =>
      deepFreeze(registry.names().flatMap((name) => descriptionsOf(current.get(name), [...aliases.entries()]))),
  };
  become(setOf(tools, policy));
  freeing.set(registry, (name) => {
    if (current.has(name)) throw kept(name, name, undefined);
    for (const [provider, named] of aliases)
      for (const [canonical, alias] of named) if (alias === name) throw kept(name, canonical, provider);
    free.add(name);
  });
  return Object.freeze(registry);
}

/** How each registry is told of a name that no tool of it may have. */
const freeing: WeakMap<object, (name: string) => void> = new WeakMap();

/**
 * Keep a name free for what is no tool: throws `invalid_tool` where a tool has it, or is shown under it to some provider, and
 * from now on the registry refuses both.
 */
export function keepFree(registry: ToolRegistry<never, never>, name: string): void {
  freeing.get(registry)?.(name);
}

/** Tell whether tools were given as a registry. */
export function isRegistry<Registry extends ToolRegistry<never, never>>(
  tools: readonly unknown[] | Registry,
): tools is Registry {
  return typeof tools === "object" && tools !== null && "register" in tools && "forModel" in tools;
}

/** Throws `invalid_option` for names that no tool has; the error lists those that there are. */
function checkNames(names: readonly string[], known: readonly string[]): void {
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw unknownNames(unknown, known);
}

function setOf<State, Context>(
  tools: readonly Tool<State, Context>[],
  policy: ToolNames,
): ReadonlyMap<string, Tool<State, Context>> {
  if (!Array.isArray(tools)) {
    throw new StatewrightError("invalid_tool", {
      what: `the tools are ${describeValue(tools)}, not a list`,
      next: "Give [tool, …] of tools that defineTool made",
    });
  }
  const byName = new Map<string, Tool<State, Context>>();
  for (const tool of tools as readonly Tool<State, Context>[]) {
    const added = fit(tool, policy);
    const known = byName.get(added.spec.name);
    if (known !== undefined) throw taken(added.spec, known.spec);
    byName.set(added.spec.name, added);
  }
  return byName;
}

/** A tool as it stands in a registry: its spec whole, under the name that it has there. */
function fit<State, Context>(tool: Tool<State, Context>, policy: ToolNames): Tool<State, Context> {
  if (!isTool(tool)) throw noTool(tool);
  const { name: given, originalName } = tool.spec;
  const name = policy === "provider-safe" && isProviderSafe(originalName) ? originalName : given;
  checkRegisteredName(name, policy);
  const spec = wholeSpec(name === given ? tool.spec : { ...tool.spec, name });
  modelToolOf(spec);
  return spec === tool.spec ? tool : withSpec(tool, spec);
}

/** The same tool under another spec; a method keeps its object. */
function withSpec<State, Context>(tool: Tool<State, Context>, spec: ToolSpec): Tool<State, Context> {
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

function modelToolsOf(tool: Tool<never, never> | undefined): readonly ModelTool[] {
  return tool === undefined ? [] : [modelToolOf(tool.spec)];
}

function descriptionsOf(
  tool: Tool<never, never> | undefined,
  aliases: readonly (readonly [provider: string, named: ReadonlyMap<string, string>])[],
): readonly ToolDescription[] {
  if (tool === undefined) return [];
  const { name } = tool.spec;
  const named = aliases.flatMap(([provider, each]) => {
    const alias = each.get(name);
    return alias === undefined ? [] : [[provider, alias] as const];
  });
  return [{ ...describeTool(tool), ...(named.length === 0 ? {} : { aliases: Object.fromEntries(named) }) }];
}

function forgetAliases(aliases: Map<string, ReadonlyMap<string, string>>, canonical: string): void {
  for (const [provider, named] of aliases)
    aliases.set(provider, new Map([...named].filter(([name]) => name !== canonical)));
}

function noTool(given: unknown): StatewrightError {
  if (isPlainObject(given) && given["nodes"] instanceof Map)
    return new StatewrightError("invalid_tool", {
      what: `the graph ${describeValue(given["name"])} stands among the tools`,
      next: "Make a tool of it: agentTool(agent, { description }) of an agent, graphTool(graph, …) of any graph",
    });
  return new StatewrightError("invalid_tool", {
    what: `${describeValue(given)} stands among the tools and is none`,
    next: "Make it with defineTool",
  });
}

function taken(added: ToolSpec, known: ToolSpec): StatewrightError {
  const both = [known, added].flatMap(({ originalName }) => (originalName === undefined ? [] : [`"${originalName}"`]));
  const from =
    both.length === 0 ? "" : `, ${both.join(" and ")} where ${both.length === 1 ? "it comes" : "they come"} from`;
  return new StatewrightError("invalid_tool", {
    what: `two tools are named "${added.name}"${from}`,
    next: "Rename one of them, or use replace to put the new one in the place of the old one",
    place: { tool: added.name },
  });
}

function kept(name: string, canonical: string, provider: string | undefined): StatewrightError {
  const who = provider === undefined ? "a tool has" : `for models of "${provider}" the tool "${canonical}" has`;
  return new StatewrightError("invalid_tool", {
    what: `${who} the name "${name}", by which the model gives its output`,
    next: provider === undefined ? "Rename the tool" : "Choose another alias",
    place: { tool: canonical },
  });
}

function takenByAlias(name: string, provider: string, canonical: string): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `"${name}" is the name of the tool "${canonical}" for models of "${provider}" already`,
    next: "Choose another name: a call would be of two tools",
    place: { tool: canonical },
  });
}

function takenByTool(alias: string, provider: string, canonical: string): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `"${alias}" cannot be the name of the tool "${canonical}" for models of "${provider}": another tool has it`,
    next: "Choose another alias: a call would be of two tools",
    place: { tool: canonical },
  });
}

function unfitAlias(canonical: string, alias: unknown): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `${describeValue(alias)} cannot be an alias of the tool "${canonical}"`,
    next: "Use a letter or an underscore, then up to 63 letters, digits, underscores and hyphens",
    place: { tool: canonical },
  });
}

function unknownNames(unknown: readonly string[], known: readonly string[]): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `there is no tool ${unknown.map((name) => describeValue(name)).join(", ")}`,
    next: known.length === 0 ? "There are none" : `Tools are ${known.map((name) => `"${name}"`).join(", ")}`,
  });
}
