/** Aliases of the tools of a registry, and names reserved in this registry. */
import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import { isProviderSafe } from "./definition/tool-name.ts";

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

/** Creates an empty table; `hasTool` tells the names of the registered tools. */
export function createAliasTable(hasTool: (name: string) => boolean): AliasTable {
  const byProvider = new Map<string, ReadonlyMap<string, string>>();
  const reservedNames = new Set<string>();
  /** Lists all uses of a name as an alias. */
  const findUses = (name: string): readonly { readonly provider: string; readonly canonical: string }[] =>
    [...byProvider].flatMap(([provider, named]) =>
      [...named].flatMap(([canonical, alias]) => (alias === name ? [{ provider, canonical }] : [])),
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
      for (const [provider, named] of byProvider)
        byProvider.set(provider, new Map([...named].filter(([name]) => name !== canonical)));
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
        [...byProvider].flatMap(([provider, named]) => {
          const alias = named.get(canonical);
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
