/** The checks of a definition: every problem at once, each with a code, a place and a hint. */

import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition } from "../define/graph.ts";
import { graphOfTool } from "../define/graph-tool.ts";
import type { ToolNode } from "../define/tool-node.ts";
import { drawingOf } from "./durable-machine.ts";
import { inputProblems } from "./input-problems.ts";
import { claimProblems } from "./node-declarations.ts";
import { type GraphProblem, refuseProblems } from "./problem.ts";
import { toolClaimProblems } from "./tool-requirements.ts";

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
const nameGrammar = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** Throw `invalid_graph` with every problem of the definition in `details`, after those that were `declared`, or return. */
export function checkDefinition(graph: GraphDefinition, declared: readonly GraphProblem[] = []): void {
  refuseProblems("graph", graph.name, [...declared, ...problemsOf(graph)]);
}

/** Every problem of a definition, in the order of its nodes. */
function problemsOf(graph: GraphDefinition): readonly GraphProblem[] {
  return [
    ...nameProblems(graph),
    ...edgeProblems(graph),
    ...nodeProblems(graph),
    ...privateProblems(graph),
    ...inputProblems(graph),
    ...claimProblems(graph),
    ...toolClaimProblems(graph),
    ...subgraphProblems(graph),
    ...graphToolProblems(graph),
    ...reachProblems(graph),
  ];
}

function privateProblems({ private: hidden, state: { channels } }: GraphDefinition): GraphProblem[] {
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
        message: `the private channel "${name}" has no default, and no input may hold it`,
        hint: "give it a default",
      },
    ];
  });
}

function subgraphProblems(graph: GraphDefinition): GraphProblem[] {
  return [...graph.nodes.values()].flatMap(({ name: node, kind, subgraph, policy }): GraphProblem[] => {
    if (subgraph === undefined) return [];
    const { graph: inner, persistence } = subgraph;
    const problems: GraphProblem[] = [];
    if (drawingOf(inner) !== undefined)
      problems.push({
        code: "drawn_subgraph",
        node,
        message: `the subgraph "${node}" is a machine drawn by hand`,
        hint: "run it on a thread of its own, or invoke machines from a machine",
      });
    if (persistence === "kept" && kind === "task")
      problems.push({
        code: "kept_subgraph_sent",
        node,
        message: `the subgraph "${node}" keeps its state, and sends would call it several times at once`,
        hint: 'use persistence "per-call" where a node receives sends',
      });
    if (policy.effect === "once")
      problems.push({
        code: "once_subgraph",
        node,
        message: `the subgraph "${node}" is declared once`,
        hint: "what may happen once is said by its own nodes, tools and steps, each of which is recorded",
      });
    if (persistence === "none" && mustBeSaved(inner))
      problems.push({
        code: "unsaved_subgraph",
        node,
        message: `the subgraph "${node}" is not saved, and it may ask a person or do something once`,
        hint: 'use persistence "per-call"',
      });
    return problems;
  });
}

/** Tools whose graph cannot run inside another, and tools that share the name under which a node stands in paths. */
function graphToolProblems(graph: GraphDefinition): GraphProblem[] {
  return graph.tools.flatMap((tool): GraphProblem[] => {
    const inner = graphOfTool(tool);
    if (inner === undefined) return [];
    const { name } = tool.spec;
    const problems: GraphProblem[] = [];
    if (!inner.isLater && drawingOf(inner.graph()) !== undefined)
      problems.push({
        code: "drawn_subgraph",
        node: name,
        message: `the graph of the tool "${name}" is a machine drawn by hand`,
        hint: "run it on a thread of its own, or invoke machines from a machine",
      });
    if (graph.nodes.has(name))
      problems.push({
        code: "reserved_name",
        node: name,
        message: `the tool "${name}" runs a graph and is called like a node, so that the questions of both would have the same keys`,
        hint: "rename one of them",
      });
    return problems;
  });
}

/** Whether a graph, or one inside it, may ask a person or do what may happen once. */
function mustBeSaved(graph: GraphDefinition): boolean {
  return (
    Object.keys(graph.interrupts).length > 0 ||
    graph.tools.some((tool) => {
      const inner = graphOfTool(tool);
      return tool.spec.effect === "once" || (inner !== undefined && !inner.isLater && mustBeSaved(inner.graph()));
    }) ||
    [...graph.nodes.values()].some(
      ({ policy, subgraph }) => policy.effect === "once" || (subgraph !== undefined && mustBeSaved(subgraph.graph)),
    )
  );
}

function nameProblems(graph: GraphDefinition): GraphProblem[] {
  return [...graph.nodes.keys()]
    .filter((node) => reserved.has(node) || node in Object.prototype || !nameGrammar.test(node))
    .map((node) => ({
      code: "reserved_name",
      node,
      message: `"${node}" cannot be the name of a node`,
      hint: "start, done and driver are states of the machine; use letters, digits, _ and -",
    }));
}

function edgeProblems(graph: GraphDefinition): GraphProblem[] {
  const problems: GraphProblem[] = [];
  if (!graph.edges.has(START))
    problems.push({
      code: "missing_start",
      node: START,
      message: "no edge leaves START",
      hint: "add [START]: with the first node",
    });
  for (const [source, edge] of graph.edges) {
    if (source !== START && !graph.nodes.has(source))
      problems.push({
        code: "unknown_node",
        node: source,
        message: `an edge leaves "${source}", which is not a node`,
        hint: nearest(source, graph),
      });
    if (edge.targets.length === 0)
      problems.push({
        code: "route_without_targets",
        node: source,
        message: `the edge of "${source}" has no targets`,
        hint: "list them, or lead to END",
      });
    for (const target of edge.targets) {
      if (target !== END && !graph.nodes.has(target))
        problems.push({
          code: "unknown_node",
          node: source,
          message: `the edge of "${source}" leads to "${target}", which is not a node`,
          hint: nearest(target, graph),
        });
    }
  }
  for (const node of graph.nodes.keys()) {
    if (!graph.edges.has(node))
      problems.push({
        code: "missing_edge",
        node,
        message: `no edge leaves "${node}"`,
        hint: "lead it to END if the graph ends there",
      });
  }
  return problems;
}

function nodeProblems(graph: GraphDefinition): GraphProblem[] {
  const problems: GraphProblem[] = [];
  for (const node of graph.nodes.values()) {
    if (node.kind === "tools") {
      if (graph.state.channels["messages"]?.kind !== "messages")
        problems.push({
          code: "tools_without_messages",
          node: node.name,
          message: `the tool node "${node.name}" has no channel "messages" to read calls from`,
          hint: "add messages: messages() to the state",
        });
      if (node.tools !== undefined && isEmpty(node.tools))
        problems.push({
          code: "empty_tool_node",
          node: node.name,
          message: `the tool node "${node.name}" has no tools`,
          hint: "give it at least one, or a toolRegistry() that gets them later",
        });
    }
    if (node.kind !== "task") continue;
    const plain = [...graph.edges].filter(
      ([, edge]) => edge.targets.includes(node.name) && !leadsByInput(edge, node.name),
    );
    for (const [source] of plain)
      problems.push({
        code: "task_without_send",
        node: node.name,
        message: `the edge of "${source}" leads to the task node "${node.name}" without an input`,
        hint: "lead there with sends, or with send and gotos",
      });
  }
  return problems;
}

/** Whether a tool node has nothing to do, now and later. */
function isEmpty({ registry, grows, final }: ToolNode<never, never>): boolean {
  return registry.names().length === 0 && !grows && final === undefined;
}

function leadsByInput(edge: EdgeRecord, node: string): boolean {
  return edge.kind === "gotos" || (edge.kind === "sends" && edge.target === node && edge.otherwise !== node);
}

/** A join that waits for a node which only the join itself leads to. */
function joinProblems(graph: GraphDefinition): GraphProblem[] {
  const joins = [...graph.edges].filter(([, edge]) => edge.kind === "join");
  const targets = new Set(joins.flatMap(([, edge]) => edge.targets));
  const reached = reachable(graph, [START]);
  return [...targets].flatMap((target): GraphProblem[] => {
    const sources = joins.flatMap(([source, edge]) => (edge.targets.includes(target) ? [source] : []));
    const before = reachable(graph, [START], target);
    const late = sources.filter((source) => !before.has(source) && reached.has(source));
    if (late.length === 0) return [];
    return [
      {
        code: "join_never_fills",
        node: target,
        message: `the join to "${target}" waits for ${late.map((source) => `"${source}"`).join(" and ")}, which nothing but "${target}" leads to`,
        hint: "join only what runs before it",
      },
    ];
  });
}

function reachProblems(graph: GraphDefinition): GraphProblem[] {
  const reached = reachable(graph, [START]);
  const endings = leadingToEnd(graph);
  const problems: GraphProblem[] = joinProblems(graph);
  for (const node of graph.nodes.keys()) {
    if (!reached.has(node))
      problems.push({
        code: "unreachable_node",
        node,
        message: `no path leads from START to "${node}"`,
        hint: "add an edge, or remove the node",
      });
    else if (!endings.has(node))
      problems.push({
        code: "no_way_out",
        node,
        message: `no path leads from "${node}" to END`,
        hint: "give its cycle an edge that leaves it",
      });
  }
  return problems;
}

/** The nodes that some path leads to; a path may enter `closed` but does not leave it. */
function reachable(graph: GraphDefinition, from: readonly string[], closed?: string): ReadonlySet<string> {
  const seen = new Set<string>(from);
  const open = [...from];
  for (let source = open.pop(); source !== undefined; source = open.pop()) {
    if (source === closed) continue;
    for (const target of targetsOf(graph.edges.get(source))) {
      if (seen.has(target)) continue;
      seen.add(target);
      open.push(target);
    }
  }
  return seen;
}

/** The nodes from which some path leads to END: one walk against the edges. */
function leadingToEnd(graph: GraphDefinition): ReadonlySet<string> {
  const sources = new Map<string, string[]>();
  for (const [source, edge] of graph.edges) {
    for (const target of targetsOf(edge)) {
      const known = sources.get(target);
      if (known === undefined) sources.set(target, [source]);
      else known.push(source);
    }
  }
  const seen = new Set<string>();
  const open = [END as string];
  for (let target = open.pop(); target !== undefined; target = open.pop()) {
    for (const source of sources.get(target) ?? []) {
      if (seen.has(source)) continue;
      seen.add(source);
      open.push(source);
    }
  }
  return seen;
}

/** Where an edge may lead; a node that returns gotos may also return none. */
function targetsOf(edge: EdgeRecord | undefined): readonly string[] {
  if (edge === undefined) return [];
  return edge.kind === "gotos" ? [...edge.targets, END] : edge.targets;
}

function nearest(name: string, graph: GraphDefinition): string {
  return `nodes are ${[...graph.nodes.keys()].map((node) => `"${node}"`).join(", ")}; "${name}" is none of them`;
}
