/** What the runs of a test came to in a graph: nodes, edges, questions, outcomes of tools, guards. Plain data that a worker may send. */
import { END, type Graph, type GraphDefinition, type Json, type Outline, outlineOf, START } from "@statewright/core";
import { edgesTaken } from "../node/taken-edges.ts";
import { isDrawn } from "../run/instrument.ts";
import type { Trace } from "../trace/trace.ts";

/** What is counted. */
export const coveredKinds = ["nodes", "edges", "questions", "tools", "guards"] as const;

/** A kind of what is counted. */
export type CoveredKind = (typeof coveredKinds)[number];

/** Names of each kind. Edges have the ids of the outline. */
export type Covered = { readonly [Kind in CoveredKind]: readonly string[] };

/** All that there is in a graph, with its outline for a picture. */
export interface Declared extends Covered {
  readonly outline: Outline;
}

/** What a run came to, and what there is, where this worker has not said so before. */
export interface GraphHits {
  readonly graph: string;
  readonly hits: Covered;
  readonly declared?: Declared;
}

/** Everything of a graph that a test may come to. */
export function declaredIn(graph: Graph): Declared {
  const outline = outlineOf(graph);
  const { nodes, edges } = flat(outline);
  return {
    outline,
    nodes,
    edges,
    questions: questionsIn(graph),
    tools: [...new Set(toolsIn(graph))].flatMap((name) => [`${name} ok`, `${name} error`]),
    guards: isDrawn(graph)
      ? Object.keys(graph.machine.implementations.guards).flatMap((name) => [`${name} yes`, `${name} no`])
      : [],
  };
}

/** What a trace came to. */
export function hitsOf(trace: Trace, graph: Graph): Covered {
  const outline = outlineOf(graph);
  const seen = isDrawn(graph) ? drawnHits(trace, outline) : nodeHits(trace, graph, outline);
  const questions = new Set<string>();
  const tools = new Set<string>();
  for (const entry of trace.entries) {
    const inside = "within" in entry && entry.within !== undefined ? `${entry.within}.` : "";
    if (entry.type === "run.waiting")
      for (const { key } of entry.interrupts) if (!key.endsWith("in_doubt")) questions.add(`${inside}${key} asked`);
    if (entry.type === "tool.completed") tools.add(`${entry.tool} ok`);
    if (entry.type === "tool.failed") tools.add(`${entry.tool} error`);
  }
  for (const name of answeredIn(trace)) questions.add(`${name} answered`);
  return { ...seen, questions: [...questions], tools: [...tools] };
}

/** Both, together. */
export function together(one: Covered, other: Covered): Covered {
  const join = (kind: CoveredKind): readonly string[] => [...new Set([...one[kind], ...other[kind]])];
  return {
    nodes: join("nodes"),
    edges: join("edges"),
    questions: join("questions"),
    tools: join("tools"),
    guards: join("guards"),
  };
}

function questionsIn(graph: GraphDefinition): readonly string[] {
  const own = Object.keys(graph.interrupts).flatMap((key) => [`${key} asked`, `${key} answered`]);
  const inner = [...graph.nodes].flatMap(([name, { subgraph }]) =>
    subgraph === undefined ? [] : questionsIn(subgraph.graph).map((question) => `${name}.${question}`),
  );
  return [...own, ...inner];
}

function toolsIn(graph: GraphDefinition): readonly string[] {
  return [...graph.nodes.values()].flatMap(({ tools, subgraph }) => [
    ...(tools?.registry.tools().keys() ?? []),
    ...(subgraph === undefined ? [] : toolsIn(subgraph.graph)),
  ]);
}

/** Questions that were open before a resume gave them an answer. Answers are given by id or by key. */
function answeredIn(trace: Trace): readonly string[] {
  let open: readonly { readonly id: string; readonly key: string }[] = [];
  return trace.entries.flatMap((entry) => {
    if (entry.type === "run.waiting") open = entry.interrupts;
    if (entry.type !== "process.resumed") return [];
    return entry.answers.flatMap((given) => open.filter(({ id, key }) => id === given || key === given).map(({ key }) => key));
  });
}

function nodeHits(trace: Trace, graph: Graph, outline: Outline): Pick<Covered, "nodes" | "edges" | "guards"> {
  const nodes = new Set<string>();
  const edges = new Set<string>();
  const ways = allEdges(outline);
  const taken = edgesTaken(trace, graph);
  for (const { from, to } of taken) edges.add(`${from} -> ${to}`);
  for (const entry of trace.entries) {
    if (entry.type === "task.started") nodes.add(within(entry) + entry.node);
    if (entry.type !== "step.committed") continue;
    const inside = within(entry);
    const sources = entry.nodes.length === 0 ? [START] : entry.nodes;
    for (const from of sources) {
      // A node that returns no command ends its branch; inside other graphs what came next is all that is told.
      const ends = graph.edges.get(from)?.kind === "gotos" && !taken.some((edge) => edge.from === from && edge.step === entry.step);
      const next = inside === "" ? (ends ? [END] : []) : entry.next.length === 0 ? [END] : entry.next;
      for (const to of next) {
        const id = `${inside}${from} -> ${inside}${to}`;
        if (ways.has(id)) edges.add(id);
      }
    }
  }
  return { nodes: [...nodes], edges: [...edges], guards: [] };
}

function within(entry: object): string {
  return "within" in entry && typeof entry.within === "string" ? `${entry.within}.` : "";
}

function drawnHits(trace: Trace, outline: Outline): Pick<Covered, "nodes" | "edges" | "guards"> {
  const nodes = new Set<string>();
  const edges = new Set<string>();
  const guards = new Set<string>();
  const ways = [...allEdges(outline)].map((id) => {
    const [from = "", to = ""] = id.split(" -> ");
    return { id, from, to };
  });
  for (const entry of trace.entries) {
    if (entry.type !== "transition.taken" || entry.path.length > 1) continue;
    const [before, after] = [statesIn(entry.from), statesIn(entry.to)];
    for (const state of [...before, ...after]) nodes.add(state);
    for (const { guard, result } of entry.guards) guards.add(`${guard} ${result ? "yes" : "no"}`);
    for (const { id, from, to } of ways) {
      const left = from.endsWith(START) ? !before.includes(to) || entry.event === "xstate.init" : before.includes(from);
      const came = to.endsWith(END) ? after.includes(from) : after.includes(to);
      if (came && (to.endsWith(END) || left)) edges.add(id);
    }
  }
  for (const { id, from, to } of ways) if (from.endsWith(START) && nodes.has(to)) edges.add(id);
  return { nodes: [...nodes], edges: [...edges], guards: [...guards] };
}

/** Every state of a value, by its path. */
function statesIn(value: Json, path = ""): readonly string[] {
  if (typeof value === "string") return [path + value];
  return Object.entries(value ?? {}).flatMap(([key, inner]) => [path + key, ...statesIn(inner as Json, `${path}${key}.`)]);
}

function allEdges(outline: Outline): ReadonlySet<string> {
  return new Set(flat(outline).edges);
}

function flat({ nodes, edges }: Outline): { readonly nodes: readonly string[]; readonly edges: readonly string[] } {
  const inner = nodes.flatMap(({ inside }) => (inside === undefined ? [] : [flat(inside)]));
  return {
    nodes: [
      ...nodes.flatMap(({ id, kind }) => (kind === "start" || kind === "end" ? [] : [id])),
      ...inner.flatMap((each) => each.nodes),
    ],
    edges: [...edges.map(({ id }) => id), ...inner.flatMap((each) => each.edges)],
  };
}
