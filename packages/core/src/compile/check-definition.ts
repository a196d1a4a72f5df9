/** Checks of a graph definition: all problems in a single error, each with a code, a node and a hint. */

import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition } from "../define/graph.ts";
import { getToolGraph } from "../define/graph-tool.ts";
import { type GraphProblem, throwProblems } from "../define/problem.ts";
import { findInputProblems } from "./input-problems.ts";
import { findNodeDeclarationProblems } from "./node-declarations.ts";
import { getProgramDefinition } from "./program.ts";
import { findToolRequirementProblems } from "./tool-requirements.ts";

const reserved: ReadonlySet<string> = new Set([
  START,
  END,
  "start",
  "done",
  "driver",
  "__proto__",
  "constructor",
  "prototype",
]);
const validName = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** Throws `invalid_graph` with all problems in `details`, the `declared` problems first. */
export function checkDefinition(graph: GraphDefinition, declared: readonly GraphProblem[] = []): void {
  throwProblems("graph", graph.name, [...declared, ...findProblems(graph)]);
}

/** Returns all problems of a graph definition. */
function findProblems(graph: GraphDefinition): readonly GraphProblem[] {
  return [
    ...findNameProblems(graph),
    ...findEdgeProblems(graph),
    ...[...graph.nodes.values()].flatMap((node) => node.logic.findProblems(node, graph)),
    ...findPrivateChannelProblems(graph),
    ...findInputProblems(graph),
    ...findNodeDeclarationProblems(graph),
    ...findToolRequirementProblems(graph),
    ...findGraphToolProblems(graph),
    ...findReachabilityProblems(graph),
  ];
}

function findPrivateChannelProblems({ private: hidden, state: { channels } }: GraphDefinition): GraphProblem[] {
  return [...hidden].flatMap((name): GraphProblem[] => {
    const channel = Object.hasOwn(channels, name) ? channels[name] : undefined;
    if (channel === undefined)
      return [
        {
          code: "unknown_channel",
          node: START,
          message: `the private channel "${name}" is not in the state`,
          hint: `channels are ${Object.keys(channels).join(", ")}`,
        },
      ];
    if (channel.initial() !== undefined) return [];
    return [
      {
        code: "private_input",
        node: START,
        message: `the private channel "${name}" has no default, and an input cannot set private channels`,
        hint: "add a default",
      },
    ];
  });
}

/**
 * Returns problems of tools with a graph: graphs that cannot run as a subgraph, and tool names equal to node names,
 * because both occur in paths.
 */
function findGraphToolProblems(graph: GraphDefinition): GraphProblem[] {
  return graph.tools.flatMap((tool): GraphProblem[] => {
    const inner = getToolGraph(tool);
    if (inner === undefined) return [];
    const { name } = tool.spec;
    const problems: GraphProblem[] = [];
    if (!inner.isLazy && !getProgramDefinition(inner.graph()).isNestable)
      problems.push({
        code: "machine_subgraph",
        node: name,
        message: `the graph of the tool "${name}" is a user-written machine`,
        hint: "run the machine on its own thread, or invoke machines from a machine",
      });
    if (graph.nodes.has(name))
      problems.push({
        code: "reserved_name",
        node: name,
        message: `the tool "${name}" runs a graph and has the name of a node: interrupts of both would have the same keys`,
        hint: "rename the tool or the node",
      });
    return problems;
  });
}

function findNameProblems(graph: GraphDefinition): GraphProblem[] {
  return [...graph.nodes.keys()]
    .filter((node) => reserved.has(node) || node in Object.prototype || !validName.test(node))
    .map((node) => ({
      code: "reserved_name",
      node,
      message: `"${node}" is not a valid node name`,
      hint: "use letters, digits, _ and -; start, done and driver are reserved for states of the machine",
    }));
}

function findEdgeProblems(graph: GraphDefinition): GraphProblem[] {
  const problems: GraphProblem[] = [];
  if (!graph.edges.has(START))
    problems.push({
      code: "missing_start",
      node: START,
      message: "START has no edge",
      hint: "add [START]: with the first node",
    });
  for (const [source, edge] of graph.edges) {
    if (source !== START && !graph.nodes.has(source))
      problems.push({
        code: "unknown_node",
        node: source,
        message: `an edge starts at "${source}", which is not a node`,
        hint: formatNodeNames(source, graph),
      });
    if (edge.targets.length === 0)
      problems.push({
        code: "route_without_targets",
        node: source,
        message: `the edge from "${source}" has no targets`,
        hint: "list the targets, or use END",
      });
    for (const target of edge.targets) {
      if (target !== END && !graph.nodes.has(target))
        problems.push({
          code: "unknown_node",
          node: source,
          message: `the edge from "${source}" leads to "${target}", which is not a node`,
          hint: formatNodeNames(target, graph),
        });
    }
  }
  for (const node of graph.nodes.keys()) {
    if (!graph.edges.has(node))
      problems.push({
        code: "missing_edge",
        node,
        message: `the node "${node}" has no edge`,
        hint: "add an edge to END if the graph ends there",
      });
  }
  return problems;
}

/** Returns joins that wait for a source node reachable only through the join itself. */
function findJoinProblems(graph: GraphDefinition): GraphProblem[] {
  const joins = [...graph.edges].filter(([, edge]) => edge.kind === "join");
  const targets = new Set(joins.flatMap(([, edge]) => edge.targets));
  const reached = findReachable(graph, [START]);
  return [...targets].flatMap((target): GraphProblem[] => {
    const sources = joins.flatMap(([source, edge]) => (edge.targets.includes(target) ? [source] : []));
    const reachableBefore = findReachable(graph, [START], target);
    const dependent = sources.filter((source) => !reachableBefore.has(source) && reached.has(source));
    if (dependent.length === 0) return [];
    return [
      {
        code: "join_never_fills",
        node: target,
        message: `the join to "${target}" waits for ${dependent.map((source) => `"${source}"`).join(" and ")}, reachable only through "${target}"`,
        hint: "join only nodes that run before the target",
      },
    ];
  });
}

function findReachabilityProblems(graph: GraphDefinition): GraphProblem[] {
  const reached = findReachable(graph, [START]);
  const reachingEnd = findReachingEnd(graph);
  const problems: GraphProblem[] = findJoinProblems(graph);
  for (const node of graph.nodes.keys()) {
    if (!reached.has(node))
      problems.push({
        code: "unreachable_node",
        node,
        message: `no path leads from START to "${node}"`,
        hint: "add an edge, or remove the node",
      });
    else if (!reachingEnd.has(node))
      problems.push({
        code: "no_path_to_end",
        node,
        message: `no path leads from "${node}" to END`,
        hint: "add an edge that leaves the cycle",
      });
  }
  return problems;
}

/** Returns the nodes reachable from `from`; paths may enter `closed` but not leave it. */
function findReachable(graph: GraphDefinition, from: readonly string[], closed?: string): ReadonlySet<string> {
  const seen = new Set<string>(from);
  const pending = [...from];
  for (let source = pending.pop(); source !== undefined; source = pending.pop()) {
    if (source === closed) continue;
    for (const target of listTargets(graph.edges.get(source))) {
      if (seen.has(target)) continue;
      seen.add(target);
      pending.push(target);
    }
  }
  return seen;
}

/** Returns the nodes with a path to END, by one backward traversal of the edges. */
function findReachingEnd(graph: GraphDefinition): ReadonlySet<string> {
  const sources = new Map<string, string[]>();
  for (const [source, edge] of graph.edges) {
    for (const target of listTargets(edge)) {
      const known = sources.get(target);
      if (known === undefined) sources.set(target, [source]);
      else known.push(source);
    }
  }
  const seen = new Set<string>();
  const pending = [END as string];
  for (let target = pending.pop(); target !== undefined; target = pending.pop()) {
    for (const source of sources.get(target) ?? []) {
      if (seen.has(source)) continue;
      seen.add(source);
      pending.push(source);
    }
  }
  return seen;
}

/** Returns the possible targets of an edge; a node with command targets may also return no command and end. */
function listTargets(edge: EdgeRecord | undefined): readonly string[] {
  if (edge === undefined) return [];
  return edge.kind === "commandTargets" ? [...edge.targets, END] : edge.targets;
}

function formatNodeNames(name: string, graph: GraphDefinition): string {
  return `nodes are ${[...graph.nodes.keys()].map((node) => `"${node}"`).join(", ")}; "${name}" is not a node`;
}
