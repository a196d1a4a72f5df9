/** The checks of a definition: every problem at once, each with a code, a place and a hint. */
import { StatewrightError } from "../base/errors.ts";
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition } from "../define/graph.ts";

/** One thing that is wrong with a graph. */
export interface GraphProblem {
  readonly code:
    | "reserved_name"
    | "missing_start"
    | "unknown_node"
    | "missing_edge"
    | "unreachable_node"
    | "no_way_out"
    | "join_never_fills"
    | "route_without_targets"
    | "task_without_send"
    | "tools_without_messages"
    | "empty_tool_node"
    | "history_state"
    | "inline_actor"
    | "missing_actor"
    | "unsupported_actor"
    | "live_actor"
    | "unknown_effect";
  readonly node: string;
  readonly message: string;
  readonly hint: string;
}

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

/** Throw `invalid_graph` with every problem of the definition in `details`, or return. */
export function checkDefinition(graph: GraphDefinition): void {
  refuseProblems("graph", graph.name, problemsOf(graph));
}

/** Throw `invalid_graph` with all problems of a definition, if there are any. */
export function refuseProblems(kind: "graph" | "machine", name: string, problems: readonly GraphProblem[]): void {
  if (problems.length === 0) return;
  throw new StatewrightError("invalid_graph", {
    what: `the ${kind} "${name}" has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}: ${problems.map((problem) => `${problem.message} (${problem.hint})`).join("; ")}`,
    next: "Mend the definition",
    place: { graph: name },
    details: problems,
  });
}

/** Every problem of a definition, in the order of its nodes. */
function problemsOf(graph: GraphDefinition): readonly GraphProblem[] {
  return [...nameProblems(graph), ...edgeProblems(graph), ...nodeProblems(graph), ...reachProblems(graph)];
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
      if (node.tools?.registry.names().length === 0)
        problems.push({
          code: "empty_tool_node",
          node: node.name,
          message: `the tool node "${node.name}" has no tools`,
          hint: "give it at least one",
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

function leadsByInput(edge: EdgeRecord, node: string): boolean {
  return edge.kind === "gotos" || (edge.kind === "sends" && edge.target === node && edge.otherwise !== node);
}

/** A join that waits for a node which only the join itself leads to. */
function joinProblems(graph: GraphDefinition): GraphProblem[] {
  const joins = [...graph.edges].filter(([, edge]) => edge.kind === "join");
  const targets = new Set(joins.flatMap(([, edge]) => edge.targets));
  return [...targets].flatMap((target): GraphProblem[] => {
    const sources = joins.flatMap(([source, edge]) => (edge.targets.includes(target) ? [source] : []));
    const before = reachable(graph, [START], target);
    const late = sources.filter((source) => !before.has(source) && reachable(graph, [START]).has(source));
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
  const problems: GraphProblem[] = joinProblems(graph);
  for (const node of graph.nodes.keys()) {
    if (!reached.has(node))
      problems.push({
        code: "unreachable_node",
        node,
        message: `no path leads from START to "${node}"`,
        hint: "add an edge, or remove the node",
      });
    else if (!reachable(graph, [node]).has(END))
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
    const edge = graph.edges.get(source);
    const implied = edge?.kind === "gotos" ? [END] : [];
    for (const target of [...(edge?.targets ?? []), ...implied]) {
      if (seen.has(target)) continue;
      seen.add(target);
      open.push(target);
    }
  }
  return seen;
}

function nearest(name: string, graph: GraphDefinition): string {
  return `nodes are ${[...graph.nodes.keys()].map((node) => `"${node}"`).join(", ")}; "${name}" is none of them`;
}
