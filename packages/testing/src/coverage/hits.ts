/**
 * Covered parts of a graph in the runs of a test: nodes, edges, interrupts, tool outcomes, guards. Plain data, so
 * that a test worker can send it.
 */
import { END, type Graph, type GraphDefinition, type Json, START } from "@statewright/core";
import { type Outline, describeGraph } from "@statewright/core/inspect";
import { listTakenEdges } from "../node/taken-edges.ts";
import { isDurableMachine } from "../run/instrument.ts";
import type { Trace } from "../trace/trace.ts";

/** Kinds of covered parts. */
export const coveredKinds = ["nodes", "edges", "interrupts", "tools", "guards"] as const;

/** Kind of a covered part. */
export type CoveredKind = (typeof coveredKinds)[number];

/** Names of covered parts by kind. Edges are named by their outline ids. */
export type CoveredParts = { readonly [Kind in CoveredKind]: readonly string[] };

/** All parts of a graph, with the outline for pictures. */
export interface DeclaredParts extends CoveredParts {
  readonly outline: Outline;
}

/** Covered parts of a graph in a run. `declared` is set once per worker. */
export interface GraphHits {
  readonly graph: string;
  readonly hits: CoveredParts;
  readonly declared?: DeclaredParts;
}

/** Lists all parts of a graph that a test can cover. */
export function listDeclaredParts(graph: Graph): DeclaredParts {
  const outline = describeGraph(graph);
  const { nodes, edges } = flattenOutline(outline);
  return {
    outline,
    nodes,
    edges,
    interrupts: listInterruptParts(graph),
    tools: [...new Set(listToolNames(graph))].flatMap((name) => [`${name} ok`, `${name} error`]),
    guards: isDurableMachine(graph)
      ? Object.keys(graph.machine.implementations.guards).flatMap((name) => [`${name} yes`, `${name} no`])
      : [],
  };
}

/** Collects the covered parts of a trace. */
export function collectHits(trace: Trace, graph: Graph): CoveredParts {
  const outline = describeGraph(graph);
  const covered = isDurableMachine(graph) ? collectMachineHits(trace, outline) : collectNodeHits(trace, graph, outline);
  const interrupts = new Set<string>();
  const tools = new Set<string>();
  for (const entry of trace.entries) {
    const prefix = "within" in entry && entry.within !== undefined ? `${entry.within}.` : "";
    if (entry.type === "run.waiting")
      for (const { key } of entry.interrupts) if (!key.endsWith("in_doubt")) interrupts.add(`${prefix}${key} asked`);
    if (entry.type === "tool.completed") tools.add(`${entry.tool} ok`);
    if (entry.type === "tool.failed") tools.add(`${entry.tool} error`);
  }
  for (const name of listAnsweredKeys(trace)) interrupts.add(`${name} answered`);
  return { ...covered, interrupts: [...interrupts], tools: [...tools] };
}

/** Merges two sets of covered parts without duplicates. */
export function mergeHits(a: CoveredParts, b: CoveredParts): CoveredParts {
  const mergeKind = (kind: CoveredKind): readonly string[] => [...new Set([...a[kind], ...b[kind]])];
  return {
    nodes: mergeKind("nodes"),
    edges: mergeKind("edges"),
    interrupts: mergeKind("interrupts"),
    tools: mergeKind("tools"),
    guards: mergeKind("guards"),
  };
}

function listInterruptParts(graph: GraphDefinition): readonly string[] {
  const own = Object.keys(graph.interrupts).flatMap((key) => [`${key} asked`, `${key} answered`]);
  const inner = [...graph.nodes].flatMap(([name, { subgraph }]) =>
    subgraph === undefined ? [] : listInterruptParts(subgraph.graph).map((part) => `${name}.${part}`),
  );
  return [...own, ...inner];
}

function listToolNames(graph: GraphDefinition): readonly string[] {
  return [...graph.nodes.values()].flatMap(({ tools, subgraph }) => [
    ...(tools?.registry.tools().keys() ?? []),
    ...(subgraph === undefined ? [] : listToolNames(subgraph.graph)),
  ]);
}

/** Lists the keys of open interrupts that a resume answered, by id or by key. */
function listAnsweredKeys(trace: Trace): readonly string[] {
  let open: readonly { readonly id: string; readonly key: string }[] = [];
  return trace.entries.flatMap((entry) => {
    if (entry.type === "run.waiting") open = entry.interrupts;
    if (entry.type !== "process.resumed") return [];
    return entry.answers.flatMap((answer) => open.filter(({ id, key }) => id === answer || key === answer).map(({ key }) => key));
  });
}

function collectNodeHits(trace: Trace, graph: Graph, outline: Outline): Pick<CoveredParts, "nodes" | "edges" | "guards"> {
  const nodes = new Set<string>();
  const edges = new Set<string>();
  const edgeIds = listEdgeIds(outline);
  const takenEdges = listTakenEdges(trace, graph);
  for (const { from, to } of takenEdges) edges.add(`${from} -> ${to}`);
  for (const entry of trace.entries) {
    if (entry.type === "task.started") nodes.add(getPathPrefix(entry) + entry.node);
    if (entry.type !== "step.committed") continue;
    const prefix = getPathPrefix(entry);
    const sources = entry.nodes.length === 0 ? [START] : entry.nodes;
    for (const from of sources) {
      // A node with `commandTargets` that returns no command ends its branch. For inner graphs the trace only contains the next
      // nodes.
      const endsBranch = graph.edges.get(from)?.kind === "commandTargets" && !takenEdges.some((edge) => edge.from === from && edge.step === entry.step);
      const next = prefix === "" ? (endsBranch ? [END] : []) : entry.next.length === 0 ? [END] : entry.next;
      for (const to of next) {
        const id = `${prefix}${from} -> ${prefix}${to}`;
        if (edgeIds.has(id)) edges.add(id);
      }
    }
  }
  return { nodes: [...nodes], edges: [...edges], guards: [] };
}

function getPathPrefix(entry: object): string {
  return "within" in entry && typeof entry.within === "string" ? `${entry.within}.` : "";
}

function collectMachineHits(trace: Trace, outline: Outline): Pick<CoveredParts, "nodes" | "edges" | "guards"> {
  const nodes = new Set<string>();
  const edges = new Set<string>();
  const guards = new Set<string>();
  const transitions = [...listEdgeIds(outline)].map((id) => {
    const [from = "", to = ""] = id.split(" -> ");
    return { id, from, to };
  });
  for (const entry of trace.entries) {
    if (entry.type !== "transition.taken" || entry.path.length > 1) continue;
    const [before, after] = [listStates(entry.from), listStates(entry.to)];
    for (const state of [...before, ...after]) nodes.add(state);
    for (const { guard, result } of entry.guards) guards.add(`${guard} ${result ? "yes" : "no"}`);
    for (const { id, from, to } of transitions) {
      const leavesSource = from.endsWith(START) ? !before.includes(to) || entry.event === "xstate.init" : before.includes(from);
      const entersTarget = to.endsWith(END) ? after.includes(from) : after.includes(to);
      if (entersTarget && (to.endsWith(END) || leavesSource)) edges.add(id);
    }
  }
  for (const { id, from, to } of transitions) if (from.endsWith(START) && nodes.has(to)) edges.add(id);
  return { nodes: [...nodes], edges: [...edges], guards: [...guards] };
}

/** Lists every active state of a state value by its path. */
function listStates(value: Json, path = ""): readonly string[] {
  if (typeof value === "string") return [path + value];
  return Object.entries(value ?? {}).flatMap(([key, inner]) => [path + key, ...listStates(inner as Json, `${path}${key}.`)]);
}

function listEdgeIds(outline: Outline): ReadonlySet<string> {
  return new Set(flattenOutline(outline).edges);
}

function flattenOutline({ nodes, edges }: Outline): { readonly nodes: readonly string[]; readonly edges: readonly string[] } {
  const inner = nodes.flatMap(({ inside }) => (inside === undefined ? [] : [flattenOutline(inside)]));
  return {
    nodes: [
      ...nodes.flatMap(({ id, kind }) => (kind === "start" || kind === "end" ? [] : [id])),
      ...inner.flatMap((each) => each.nodes),
    ],
    edges: [...edges.map(({ id }) => id), ...inner.flatMap((each) => each.edges)],
  };
}
