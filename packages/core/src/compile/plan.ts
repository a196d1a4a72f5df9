/** Execution plan of a graph: derived data for every superstep, computed once. */

import { fingerprint } from "../base/ids.ts";
import type { Json } from "../base/json.ts";
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition, NodeRecord } from "../define/graph.ts";
import { getToolGraph } from "../define/graph-tool.ts";
import type { ToolNode } from "../define/tool-node.ts";
import { toJsonSchema, toModelTool } from "../tool/definition/model-tool.ts";
import { getAnswerSchema } from "../tool/policy/interrupt.ts";
import { isParallel } from "./compile-machine.ts";
import { getMachineDefinition, type MachineDefinition } from "./durable-machine.ts";
import { describeGraph } from "./outline.ts";
import { getProgramDefinition } from "./program.ts";
import type { ProgramDefinition } from "./programs/program-definition.ts";

/** An executable graph. */
export interface Plan {
  readonly graph: GraphDefinition;
  readonly nodes: ReadonlyMap<string, NodeRecord>;
  /** Tool nodes of the graph. */
  readonly toolNodes: readonly ToolNode<never, never>[];
  /** User-written machine; undefined for a graph of nodes. */
  readonly machine: MachineDefinition | undefined;
  readonly program: ProgramDefinition;
  /** Names of the ephemeral channels: visible for a single superstep, then cleared. */
  readonly ephemeral: readonly string[];
  readonly parallel: boolean;
  /** Sources of each join, in order of declaration. */
  readonly joins: ReadonlyMap<string, readonly string[]>;
  /** Nodes that run only when no other node is runnable. */
  readonly deferred: ReadonlySet<string>;
  /**
   * Checkpoint format and a fingerprint of channels, nodes, edges, interrupts, tools and inner graphs: changes when
   * saved runs may be incompatible. Computed on first access.
   */
  readonly shape: string;
  /** Outline of the graph as JSON text, saved with the first claim of the graph version. Computed on first access. */
  readonly outline: string;
}

/** Version of the encoding of control state and values; incremented for every incompatible change of the encoding. */
export const checkpointFormat = 1;

/** Returns the fingerprint of channels, nodes, edges and tools of a graph: equal shapes continue each other's runs. */
export function getGraphShape(graph: GraphDefinition): string {
  return getPlan(graph).shape;
}

/** Returns the checkpoint format of a shape; undefined for a shape without a format. */
export function parseFormat(shape: string): number | undefined {
  const [, format] = /^(\d+):/.exec(shape) ?? [];
  return format === undefined ? undefined : Number(format);
}

const plans: WeakMap<GraphDefinition, Plan> = new WeakMap();

/** Returns the plan of a graph, cached per graph. */
export function getPlan(graph: GraphDefinition): Plan {
  const known = plans.get(graph);
  if (known !== undefined) return known;
  let shape: string | undefined;
  let outline: string | undefined;
  const plan: Plan = {
    graph,
    nodes: graph.nodes,
    toolNodes: [...graph.nodes.values()].flatMap((node) => node.logic.listTools(node)),
    machine: getMachineDefinition(graph),
    program: getProgramDefinition(graph),
    ephemeral: Object.entries(graph.state.channels).flatMap(([name, channel]) =>
      channel.kind === "ephemeral" ? [name] : [],
    ),
    parallel: isParallel(graph),
    joins: listJoins(graph),
    deferred: new Set([...graph.nodes.values()].flatMap((node) => (node.policy.defer === true ? [node.name] : []))),
    get shape() {
      shape ??= `${checkpointFormat}:${fingerprint(JSON.stringify(describeShape(graph)))}`;
      return shape;
    },
    get outline() {
      outline ??= JSON.stringify(describeGraph(graph));
      return outline;
    },
  };
  plans.set(graph, plan);
  return plan;
}

/** Returns the edge of a node; a node without an edge ends its branch. */
export function getEdge(plan: Plan, source: string): EdgeRecord {
  return plan.graph.edges.get(source) ?? { kind: "to", targets: [END] };
}

function listJoins(graph: GraphDefinition): ReadonlyMap<string, readonly string[]> {
  const joins = new Map<string, string[]>();
  for (const source of [START, ...graph.nodes.keys()]) {
    const edge = graph.edges.get(source);
    if (edge?.kind !== "join") continue;
    for (const target of edge.targets) joins.set(target, [...(joins.get(target) ?? []), source]);
  }
  return joins;
}

/** `ancestors`: the enclosing graphs; a recursive graph is described by its name and version. */
function describeShape(graph: GraphDefinition, ancestors: readonly GraphDefinition[] = []): Json {
  if (ancestors.includes(graph)) return [graph.name, graph.version];
  const path = [...ancestors, graph];
  return {
    channels: Object.entries(graph.state.channels).map(([name, { kind, schema }]) => [
      name,
      kind,
      schema === undefined ? null : (toJsonSchema(schema) ?? null),
    ]),
    nodes: [...graph.nodes.values()].map((node) => {
      const input = node.logic.getInputSchema(node);
      return [node.name, node.logic.savedAs, input === undefined ? null : (toJsonSchema(input) ?? null)];
    }),
    edges: [...graph.edges].map(([source, edge]) => [source, edge.kind, [...edge.targets]]),
    interrupts: Object.entries(graph.interrupts).map(([key, declared]) => [
      key,
      toJsonSchema(getAnswerSchema(declared)) ?? null,
    ]),
    inner: [...graph.nodes.values()].flatMap((node) =>
      node.logic
        .listSubgraphs(node)
        .map((inner): Json => [node.name, inner.persistence, describeShape(inner.graph, path)]),
    ),
    tools: graph.tools.map((tool) => {
      const inner = getToolGraph(tool)?.graph();
      const entry = [tool.spec.name, toModelTool(tool.spec).inputSchema];
      return inner === undefined ? entry : [...entry, describeShape(inner, path)];
    }),
    machine: getProgramDefinition(graph).describeShape(graph),
  };
}
