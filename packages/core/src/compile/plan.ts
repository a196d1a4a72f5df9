/** The plan of a graph: what the engine needs at every step, computed once. */

import { fingerprint } from "../base/ids.ts";
import type { Json } from "../base/json.ts";
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition, NodeRecord } from "../define/graph.ts";
import { graphOfTool } from "../define/graph-tool.ts";
import type { ToolNode } from "../define/tool-node.ts";
import { jsonSchemaOf, modelToolOf } from "../tool/definition/model-tool.ts";
import { answerSchema } from "../tool/policy/interrupt.ts";
import { isParallel } from "./compile-machine.ts";
import { type Drawing, drawingOf, stateIds } from "./durable-machine.ts";

/** A graph, ready to run. */
export interface Plan {
  readonly graph: GraphDefinition;
  readonly nodes: ReadonlyMap<string, NodeRecord>;
  /** Those of its nodes that answer calls of tools. */
  readonly toolNodes: readonly ToolNode<never, never>[];
  /** The machine that was drawn by hand, where the graph is one. */
  readonly drawing: Drawing | undefined;
  /** Names of the channels that one superstep makes visible and the next clears. */
  readonly ephemeral: readonly string[];
  readonly parallel: boolean;
  /** Sources of each join, in order of declaration. */
  readonly joins: ReadonlyMap<string, readonly string[]>;
  /** Nodes that run only when nothing else is runnable. */
  readonly deferred: ReadonlySet<string>;
  /**
   * The format in which checkpoints are written, and a fingerprint of channels, nodes, edges, interrupts, tools and inner
   * graphs: changes when saved runs may no longer fit. Made when first asked for.
   */
  readonly shape: string;
}

/** How control state and values are written: counts up when what was written before is read otherwise. */
export const checkpointFormat = 1;

/** The format of what was written with a shape; undefined where the shape names none. */
export function formatOf(shape: string): number | undefined {
  const [, format] = /^(\d+):/.exec(shape) ?? [];
  return format === undefined ? undefined : Number(format);
}

const plans: WeakMap<GraphDefinition, Plan> = new WeakMap();

/** The plan of a graph, made once. */
export function planOf(graph: GraphDefinition): Plan {
  const known = plans.get(graph);
  if (known !== undefined) return known;
  let shape: string | undefined;
  const plan: Plan = {
    graph,
    nodes: graph.nodes,
    toolNodes: [...graph.nodes.values()].flatMap(({ tools }) => tools ?? []),
    drawing: drawingOf(graph),
    ephemeral: Object.entries(graph.state.channels).flatMap(([name, channel]) =>
      channel.kind === "ephemeral" ? [name] : [],
    ),
    parallel: isParallel(graph),
    joins: joinsOf(graph),
    deferred: new Set([...graph.nodes.values()].flatMap((node) => (node.policy.defer === true ? [node.name] : []))),
    get shape() {
      shape ??= `${checkpointFormat}:${fingerprint(JSON.stringify(shapeOf(graph)))}`;
      return shape;
    },
  };
  plans.set(graph, plan);
  return plan;
}

/** The edge that leaves a node; a node without one ends its branch. */
export function edgeFrom(plan: Plan, source: string): EdgeRecord {
  return plan.graph.edges.get(source) ?? { kind: "to", targets: [END] };
}

function joinsOf(graph: GraphDefinition): ReadonlyMap<string, readonly string[]> {
  const joins = new Map<string, string[]>();
  for (const source of [START, ...graph.nodes.keys()]) {
    const edge = graph.edges.get(source);
    if (edge?.kind !== "join") continue;
    for (const target of edge.targets) joins.set(target, [...(joins.get(target) ?? []), source]);
  }
  return joins;
}

/** `around` are the graphs that it stands in: one that calls itself counts by its name there. */
function shapeOf(graph: GraphDefinition, around: readonly GraphDefinition[] = []): Json {
  if (around.includes(graph)) return [graph.name, graph.version];
  const inside = [...around, graph];
  return {
    channels: Object.entries(graph.state.channels).map(([name, { kind, schema }]) => [
      name,
      kind,
      schema === undefined ? null : (jsonSchemaOf(schema) ?? null),
    ]),
    nodes: [...graph.nodes.values()].map((node) => [
      node.name,
      node.kind,
      node.input === undefined ? null : (jsonSchemaOf(node.input) ?? null),
    ]),
    edges: [...graph.edges].map(([source, edge]) => [source, edge.kind, [...edge.targets]]),
    interrupts: Object.entries(graph.interrupts).map(([key, declared]) => [
      key,
      jsonSchemaOf(answerSchema(declared)) ?? null,
    ]),
    inner: [...graph.nodes.values()].flatMap(({ name, subgraph }) =>
      subgraph === undefined ? [] : [[name, subgraph.persistence, shapeOf(subgraph.graph, inside)]],
    ),
    tools: graph.tools.map((tool) => {
      const inner = graphOfTool(tool)?.graph();
      const own = [tool.spec.name, modelToolOf(tool.spec).inputSchema];
      return inner === undefined ? own : [...own, shapeOf(inner, inside)];
    }),
    drawn: drawnShape(drawingOf(graph)),
  };
}

/** The states and events of a machine drawn by hand, its delays among them, and its actors with theirs. */
function drawnShape(drawing: Drawing | undefined): Json {
  if (drawing === undefined) return null;
  const actors = [...drawing.actors].map(([name, actor]) => [
    name,
    actor.kind === "promise" ? actor.effect : drawnShape(actor.drawing),
  ]);
  return { states: stateIds(drawing.machine), events: [...drawing.machine.events], actors };
}
