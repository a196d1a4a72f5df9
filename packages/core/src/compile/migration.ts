/**
 * `defineMigration`: how a thread that one version of a graph has written becomes one of the next. Typed by both graphs: what
 * the new state needs and the old one does not have must be given, and every name is one that there is.
 */
import { StatewrightError } from "../base/errors.ts";
import { describeValue, isPlainObject } from "../base/json.ts";
import { checkOptions } from "../base/options.ts";
import type { GraphDefinition, GraphTypes } from "../define/graph.ts";
import type { Graph } from "./define-graph.ts";
import { planOf } from "./plan.ts";

/** Channels of the new state that need not be given: the old value fits, or there is none and the channel has a default. */
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

/** The values that a migration gives: of every channel that is new or of another type, and of any other that it changes. */
export type MigratedState<From extends GraphTypes, To extends GraphTypes> = {
  readonly [Name in Exclude<keyof To["state"], Optional<From, To>>]: To["state"][Name];
} & { readonly [Name in Optional<From, To>]?: To["state"][Name] | undefined };

type StateOption<From extends GraphTypes, To extends GraphTypes> =
  Record<never, never> extends MigratedState<From, To>
    ? { readonly state?: (old: From["state"]) => MigratedState<From, To> }
    : { readonly state: (old: From["state"]) => MigratedState<From, To> };

/** What `defineMigration` takes. Names that stay the same need not be told. */
export type MigrationOptions<From extends GraphTypes, To extends GraphTypes> = {
  readonly from: Graph<From>;
  readonly to: Graph<To>;
  /** New names of nodes, by the old ones; of a machine drawn by hand those of its states, as `review.legal`. */
  readonly nodes?: { readonly [Old in NoInfer<From>["nodes"]]?: NoInfer<To>["nodes"] };
  /** New keys of questions, by the old ones. */
  readonly interrupts?: {
    readonly [Old in keyof NoInfer<From>["interrupts"] & string]?: keyof NoInfer<To>["interrupts"] & string;
  };
  /** New names of tools, by the old ones. */
  readonly tools?: Readonly<Record<string, string>>;
  /** Migrations of graphs inside, by the old name of the node that is one. */
  readonly inner?: { readonly [Old in NoInfer<From>["nodes"]]?: Migration };
  /** The new input for one that was queued for the old graph; as it is by default. */
  readonly input?: (old: NoInfer<From>["input"]) => NoInfer<To>["input"];
} & StateOption<NoInfer<From>, NoInfer<To>>;

/** How threads of one version of a graph become threads of another. */
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

const names = ["from", "to", "nodes", "interrupts", "tools", "inner", "state", "input"];

/**
 * Define how threads that `from` has written go on under `to`: give it to `run`, `resume`, `updateState`, `recover`,
 * `engine` and `checkRuns` as one of their `migrations`. It is applied once, when such a thread is opened, and makes one checkpoint;
 * those before it stay. `state` gives new values by channel; a channel that it leaves out keeps its value, or has its default.
 * Throws `invalid_option` for a name that neither graph has.
 */
export function defineMigration<From extends GraphTypes, To extends GraphTypes>(
  options: MigrationOptions<From, To>,
): Migration {
  checkOptions("defineMigration", options, names);
  const { from, to, nodes = {}, interrupts = {}, tools = {}, inner = {}, state, input } = options;
  for (const [name, graph] of Object.entries({ from, to }))
    if (!isPlainObject(graph) || !(graph.nodes instanceof Map))
      throw refused(`the ${name} of a migration is ${describeValue(graph)}`, "Give what defineGraph(…) made");
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
  check(migration);
  return migration;
}

/** How a message names a migration. */
export function nameOf({ from, to }: Migration): string {
  return `the migration of "${from.name}" from version ${from.version} to ${to.version}`;
}

function check(migration: Migration): void {
  const { from, to, state, input, nodes, interrupts, tools, inner } = migration;
  const what = nameOf(migration);
  if (from.name !== to.name)
    throw refused(`a migration leads from "${from.name}" to "${to.name}"`, "Give two versions of one graph");
  const drawn = planOf(from).drawing !== undefined;
  if (drawn !== (planOf(to).drawing !== undefined))
    throw refused(
      `${what} leads from ${drawn ? "a machine drawn by hand to a graph" : "a graph to a machine drawn by hand"}`,
      "Let its threads go on with the older one: give it as one of the older graphs",
    );
  if (drawn && [interrupts, tools, inner].some((map) => Object.keys(map).length > 0))
    throw refused(
      `${what} is of a machine drawn by hand, and renames more than states`,
      "Give nodes for states with new names, and state for the context: events and actors keep their names",
    );
  if (from.version === to.version && planOf(from).shape === planOf(to).shape)
    throw refused(`${what} leads to the graph that it comes from`, "Count the version of the new graph up");
  if (state !== undefined && typeof state !== "function")
    throw refused(`the state of ${what} is ${describeValue(state)}`, "Give a function of the old state");
  if (input !== undefined && typeof input !== "function")
    throw refused(`the input of ${what} is ${describeValue(input)}`, "Give a function of the old input");
  const maps = [
    { map: nodes, kind: "node", old: from.nodes, now: to.nodes },
    { map: interrupts, kind: "interrupt", old: keysOf(from.interrupts), now: keysOf(to.interrupts) },
    { map: tools, kind: "tool", old: toolsOf(from), now: toolsOf(to) },
  ];
  for (const { map, kind, old, now } of maps)
    for (const [before, after] of Object.entries(map)) {
      if (!old.has(before)) throw refused(`${what} renames the ${kind} "${before}", which the old graph does not have`);
      if (!now.has(after))
        throw refused(`${what} renames the ${kind} "${before}" to "${after}", which the new graph does not have`);
    }
  for (const [node, within] of Object.entries(inner)) checkInner(migration, node, within);
}

function checkInner(migration: Migration, node: string, within: Migration): void {
  const { from, to, nodes } = migration;
  const ends = [
    { graph: from.nodes.get(node)?.subgraph?.graph, is: within.from, name: node },
    { graph: to.nodes.get(nodes[node] ?? node)?.subgraph?.graph, is: within.to, name: nodes[node] ?? node },
  ];
  for (const { graph, is, name } of ends)
    if (graph === undefined || planOf(graph).shape !== planOf(is).shape)
      throw refused(
        `the node "${name}" of ${nameOf(migration)} is not the graph "${is.name}" of version ${is.version}`,
        "Give inner migrations by the node that is a subgraph, from its old graph to its new one",
      );
}

function keysOf(record: object): ReadonlySet<string> {
  return new Set(Object.keys(record));
}

function toolsOf({ tools }: GraphDefinition): ReadonlySet<string> {
  return new Set(tools.map((tool) => tool.spec.name));
}

function refused(what: string, next = "Use names of the two graphs"): StatewrightError {
  return new StatewrightError("invalid_option", { what, next });
}
