/**
 * `defineMigration`: converts threads of a graph version to another. Typed by both graphs: the migration must
 * supply new state without an old value or default, and all names are checked.
 */

import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";
import { checkOptions } from "../base/options.ts";
import type { GraphDefinition, GraphTypes } from "../define/graph.ts";
import { findSubgraph } from "../define/inner-graph.ts";
import type { Graph } from "./graph.ts";
import { getPlan } from "./plan.ts";

/** Channels optional in a migration: the old value is assignable, or the channel is new and has a default. */
type Optional<From extends GraphTypes, To extends GraphTypes> = {
  [Name in keyof To["state"]]: Name extends keyof From["state"]
    ? [From["state"][Name]] extends [To["state"][Name]]
      ? Name
      : never
    : Name extends keyof To["input"]
      ? undefined extends To["input"][Name]
        ? Name
        : never
      : Name;
}[keyof To["state"]];

/** Channel values of a migration: required for new channels and changed types, optional for other channels. */
export type MigratedState<From extends GraphTypes, To extends GraphTypes> = {
  readonly [Name in Exclude<keyof To["state"], Optional<From, To>>]: To["state"][Name];
} & { readonly [Name in Optional<From, To>]?: To["state"][Name] | undefined };

type StateOption<From extends GraphTypes, To extends GraphTypes> =
  Record<never, never> extends MigratedState<From, To>
    ? { readonly state?: (old: From["state"]) => MigratedState<From, To> }
    : { readonly state: (old: From["state"]) => MigratedState<From, To> };

/** Options of `defineMigration`; unchanged names may be omitted. */
export type MigrationOptions<From extends GraphTypes, To extends GraphTypes> = {
  /** Former graph. */
  readonly from: Graph<From>;
  /** Current graph. */
  readonly to: Graph<To>;
  /** New node names by old name; for a user-written machine, state names such as `review.legal`. */
  readonly nodes?: { readonly [Old in NoInfer<From>["nodes"]]?: NoInfer<To>["nodes"] };
  /** New interrupt keys by old key. */
  readonly interrupts?: {
    readonly [Old in keyof NoInfer<From>["interrupts"] & string]?: keyof NoInfer<To>["interrupts"] & string;
  };
  /** New tool names by old name. */
  readonly tools?: Readonly<Record<string, string>>;
  /** Migrations of inner graphs, by old name of the subgraph node. */
  readonly inner?: { readonly [Old in NoInfer<From>["nodes"]]?: Migration };
  /** Converts a queued input of the old graph; default: the input unchanged. */
  readonly input?: (old: NoInfer<From>["input"]) => NoInfer<To>["input"];
} & StateOption<NoInfer<From>, NoInfer<To>>;

/** Conversion of threads from a graph version to another. */
export interface Migration {
  readonly from: GraphDefinition;
  readonly to: GraphDefinition;
  readonly nodes: Readonly<Record<string, string>>;
  readonly interrupts: Readonly<Record<string, string>>;
  readonly tools: Readonly<Record<string, string>>;
  readonly inner: Readonly<Record<string, Migration>>;
  readonly state: ((old: never) => unknown) | undefined;
  readonly input: ((old: never) => unknown) | undefined;
}

const optionKeys = ["from", "to", "nodes", "interrupts", "tools", "inner", "state", "input"];

/**
 * Defines how threads of `from` continue under `to`. Pass the migration in `migrations` of `run`, `resume`,
 * `updateState`, `recover`, `engine` and `checkRuns`. A migration is applied once, when a thread is opened, and
 * writes a single checkpoint; earlier checkpoints stay. `state` returns new values by channel; other channels keep
 * their value or get their default. Throws `invalid_option` for a name that is not in the graphs.
 */
export function defineMigration<From extends GraphTypes, To extends GraphTypes>(
  options: MigrationOptions<From, To>,
): Migration {
  checkOptions("defineMigration", options, optionKeys);
  const { from, to, nodes = {}, interrupts = {}, tools = {}, inner = {}, state, input } = options;
  for (const [name, graph] of Object.entries({ from, to }))
    if (!isPlainObject(graph) || !(graph.nodes instanceof Map))
      throw invalidOption({
        where: "defineMigration",
        option: name,
        expected: "a graph",
        got: graph,
        fix: "Pass a result of defineGraph(…)",
      });
  const migration: Migration = Object.freeze({
    from,
    to,
    nodes: nodes as Migration["nodes"],
    interrupts: interrupts as Migration["interrupts"],
    tools,
    inner: inner as Migration["inner"],
    state: state as Migration["state"],
    input: input as Migration["input"],
  });
  checkMigration(migration);
  return migration;
}

/** Returns the name of a migration for messages. */
export function describeMigration({ from, to }: Migration): string {
  return `the migration of "${from.name}" from version ${from.version} to ${to.version}`;
}

function checkMigration(migration: Migration): void {
  const { from, to, state, input, nodes, interrupts, tools, inner } = migration;
  const where = describeMigration(migration);
  if (from.name !== to.name)
    throw invalidOption({
      where: "defineMigration",
      expected: "two versions of one graph",
      found: `"${from.name}" and "${to.name}"`,
    });
  const { program } = getPlan(from);
  const { program: next } = getPlan(to);
  if (program !== next)
    throw invalidOption({
      where,
      option: "to",
      expected: program.title,
      found: next.title,
      fix: "Use the older version for its threads: pass the older version in the older graphs",
    });
  if (!program.hasNamedParts && [interrupts, tools, inner].some((map) => Object.keys(map).length > 0))
    throw invalidOption({
      where,
      expected: "only renamed states, because the graph is a user-written machine",
      found: "renamed interrupts, tools or inner graphs",
      fix: "Use nodes to rename states, and state to change the context: events and actors keep their names",
    });
  if (from.version === to.version && getPlan(from).shape === getPlan(to).shape)
    throw invalidOption({
      where,
      option: "to",
      expected: "another version of the graph",
      found: "the same graph",
      fix: "Increment the version of the new graph",
    });
  for (const [option, convert] of Object.entries({ state, input }))
    if (convert !== undefined && typeof convert !== "function")
      throw invalidOption({ where, option, expected: `a function of the old ${option}`, got: convert });
  const maps = [
    { map: nodes, kind: "node", old: from.nodes, now: to.nodes },
    { map: interrupts, kind: "interrupt", old: toKeySet(from.interrupts), now: toKeySet(to.interrupts) },
    { map: tools, kind: "tool", old: listToolNames(from), now: listToolNames(to) },
  ];
  for (const { map, kind, old, now } of maps)
    for (const [before, after] of Object.entries(map)) {
      if (!old.has(before))
        throw invalidOption({ where, option: `${kind}s`, expected: `names of ${kind}s of the old graph`, got: before });
      if (!now.has(after))
        throw invalidOption({
          where,
          option: `${kind}s.${before}`,
          expected: `one of the ${kind}s of the new graph`,
          got: after,
        });
    }
  for (const [node, innerMigration] of Object.entries(inner)) checkInner(migration, node, innerMigration);
}

function checkInner(migration: Migration, node: string, inner: Migration): void {
  const { from, to, nodes } = migration;
  const ends = [
    { graph: findSubgraph(from.nodes.get(node))?.graph, is: inner.from, name: node },
    { graph: findSubgraph(to.nodes.get(nodes[node] ?? node))?.graph, is: inner.to, name: nodes[node] ?? node },
  ];
  for (const { graph, is, name } of ends)
    if (graph === undefined || getPlan(graph).shape !== getPlan(is).shape)
      throw invalidOption({
        where: describeMigration(migration),
        option: `inner.${node}`,
        expected: `a migration of the graph of node "${name}"`,
        found: `a migration of "${is.name}" of version ${is.version}`,
        fix: "Pass inner migrations by subgraph node, from its old graph to its new graph",
      });
}

function toKeySet(record: object): ReadonlySet<string> {
  return new Set(Object.keys(record));
}

function listToolNames({ tools }: GraphDefinition): ReadonlySet<string> {
  return new Set(tools.map((tool) => tool.spec.name));
}
