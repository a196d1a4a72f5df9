/**
 * A graph as people see it: what stands in it and where control may go, subgraphs and nested states included. Every picture
 * is drawn from this, so that all of them show the same edges: each that can be taken, and no other.
 */
import type { AnyStateMachine } from "xstate";
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition, NodeRecord } from "../define/graph.ts";
import { graphOfTool } from "../define/graph-tool.ts";
import { drawingOf } from "./durable-machine.ts";

/** What stands in a graph, in the order of declaration, and where control may go between its parts. */
export interface Outline {
  readonly nodes: readonly OutlineNode[];
  readonly edges: readonly OutlineEdge[];
}

/** A node of a graph, a state of a machine drawn by hand, or where one of them begins or ends. */
export interface OutlineNode {
  /** Its path from the outermost graph, joined by dots: no two parts of an outline share it. */
  readonly id: string;
  /** What it is called where it stands; `START` and `END` are called so everywhere. */
  readonly name: string;
  readonly kind: "start" | "end" | NodeRecord["kind"] | "state";
  /** Whether it runs only when nothing else is runnable. */
  readonly deferred: boolean;
  /** Keys of the questions that it says it may ask; absent where it does not say. */
  readonly asks?: readonly string[];
  /** What stands in it: the graph of a subgraph, the states of a nested state, the tools of a tool node that run graphs. */
  readonly inside?: Outline;
}

/**
 * One way that control may take. `to` is taken always, `join` when every node with a join to the target has finished,
 * `route` when the edge's function chooses it, `each` once for every input sent, `otherwise` when there are none, `goto`
 * when the node says so, `event` when a machine drawn by hand gets the event.
 */
export interface OutlineEdge {
  /** No two edges of an outline share it. */
  readonly id: string;
  /** Ids of nodes. */
  readonly from: string;
  readonly to: string;
  readonly kind: "to" | "join" | "route" | "each" | "otherwise" | "goto" | "event";
  /** The events of a machine drawn by hand that take this edge, in a few words. */
  readonly label?: string;
}

/** The outline of a graph. Nodes of a subgraph and states of a state stand inside it; their edges do too. */
export function outlineOf(graph: GraphDefinition): Outline {
  return within(graph, "", []);
}

/** `around` are the graphs that it stands in. */
function within(graph: GraphDefinition, path: string, around: readonly GraphDefinition[]): Outline {
  const drawing = drawingOf(graph);
  return drawing === undefined ? ofGraph(graph, path, [...around, graph]) : ofMachine(drawing.machine, path);
}

// Graphs of nodes.

function ofGraph(graph: GraphDefinition, path: string, inside: readonly GraphDefinition[]): Outline {
  const edges = [START, ...graph.nodes.keys()].flatMap((source) => {
    const edge = graph.edges.get(source);
    return edge === undefined
      ? []
      : waysOf(graph, edge).map(([kind, target]) => edgeBetween(path, kind, source, target));
  });
  const inner = [...graph.nodes.values()].map(
    ({ name, kind, policy, subgraph, tools }): OutlineNode => ({
      id: path + name,
      name,
      kind,
      deferred: policy.defer === true,
      ...(policy.asks === undefined ? {} : { asks: policy.asks }),
      ...(subgraph === undefined ? {} : { inside: within(subgraph.graph, `${path}${name}.`, inside) }),
      ...graphsOf(tools, `${path}${name}.`, inside),
    }),
  );
  return framed(path, inner, edges);
}

/** What stands in a tool node: the tools that run graphs. One that runs a graph in which it stands is drawn without that. */
function graphsOf(
  tools: NodeRecord["tools"],
  path: string,
  around: readonly GraphDefinition[],
): Pick<OutlineNode, "inside"> {
  const nodes = [...(tools?.defined ?? [])].flatMap(([name, tool]): readonly OutlineNode[] => {
    const graph = graphOfTool(tool)?.graph();
    if (graph === undefined) return [];
    const id = path + name;
    const inside = around.includes(graph) ? {} : { inside: within(graph, `${id}.`, around) };
    return [{ id, name, kind: "body", deferred: false, ...inside }];
  });
  return nodes.length === 0 ? {} : { inside: { nodes, edges: [] } };
}

/** Every way that an edge may lead, each once. */
function waysOf(graph: GraphDefinition, edge: EdgeRecord): readonly (readonly [OutlineEdge["kind"], string])[] {
  const targets = [...new Set(edge.targets)];
  switch (edge.kind) {
    case "to":
    case "join":
    case "route":
      return targets.map((target) => [edge.kind, target]);
    case "sends":
      return targets.map((target) => [target === edge.target ? "each" : "otherwise", target]);
    case "gotos": {
      // A node that returns no command ends its branch.
      const all = new Set([...targets, END]);
      return [...all].map((target) => [graph.nodes.get(target)?.kind === "task" ? "each" : "goto", target]);
    }
  }
}

// Machines drawn by hand.

type StateNode = AnyStateMachine["root"];
type Transition = NonNullable<StateNode["always"]>[number];
/** The keys that lead to a state; `START` and `END` are the last of those of a beginning and an end. */
type Path = readonly string[];

/** What is drawn between the states of a machine, by the state in which it is drawn. */
type Placed = Map<string, Map<string, OutlineEdge>>;

function ofMachine(machine: AnyStateMachine, path: string): Outline {
  if (childrenOf(machine.root).length === 0) {
    const only: OutlineNode = { id: path + machine.id, name: machine.id, kind: "state", deferred: false };
    return framed(path, [only], [edgeBetween(path, "to", START, machine.id)]);
  }
  const placed: Placed = new Map();
  for (const state of statesBelow(machine.root)) {
    for (const first of entriesOf(state)) place(placed, path, [...state.path, START], first.path, "to");
    const endings = endingsOf(state);
    for (const last of endings) {
      const together = state.type === "parallel" && endings.length > 1;
      place(placed, path, last.path, [...state.path, END], together ? "join" : "to");
    }
    for (const [event, transitions] of listsOf(state))
      for (const transition of transitions) placeTransition(placed, path, state, event, transition);
  }
  return ofState(machine.root, path, placed);
}

function ofState(state: StateNode, path: string, placed: Placed): Outline {
  const own = path + state.path.map((key) => `${key}.`).join("");
  const nodes = childrenOf(state).map((child): OutlineNode => {
    const inside = childrenOf(child).length === 0 ? {} : { inside: ofState(child, path, placed) };
    return { id: own + child.key, name: child.key, kind: "state", deferred: false, ...inside };
  });
  return framed(own, nodes, [...(placed.get(keyOf(state.path))?.values() ?? [])]);
}

/** Draw an edge in the innermost state that holds both of its ends; what leads the same way is one edge. */
function place(placed: Placed, path: string, from: Path, to: Path, kind: OutlineEdge["kind"], label?: string): void {
  let shared = 0;
  while (shared < Math.min(from.length, to.length) - 1 && from[shared] === to[shared]) shared += 1;
  const holder = keyOf(from.slice(0, shared));
  const edges = placed.get(holder) ?? new Map<string, OutlineEdge>();
  placed.set(holder, edges);
  const edge = edgeBetween(path, kind, from.join("."), to.join("."));
  const labels = [edges.get(edge.id)?.label, label].filter((each) => each !== undefined);
  edges.set(edge.id, labels.length === 0 ? edge : { ...edge, label: [...new Set(labels)].join(", ") });
}

function placeTransition(placed: Placed, path: string, state: StateNode, event: string, transition: Transition): void {
  const label = labelOf(state, event, transition);
  for (const target of (transition.target ?? []) as readonly StateNode[]) {
    for (const source of sourcesOf(state, event, target)) {
      // What leads into a state that it stands in begins that state anew.
      const to = holds(target, source) && childrenOf(target).length > 0 ? [...target.path, START] : target.path;
      place(placed, path, source.path, to, "event", label);
    }
  }
}

/**
 * Where a transition of a state is drawn from: the state, or, when it leads into that state, what else stands in it. Of the
 * regions of a parallel state it is the one that the target stands in.
 */
function sourcesOf(state: StateNode, event: string, target: StateNode): readonly StateNode[] {
  if (!lets(state, event)) return [];
  const children = childrenOf(state);
  if (children.length === 0 || !holds(state, target)) return [state];
  const region = state.type === "parallel" ? children.find((child) => holds(child, target)) : undefined;
  return (region === undefined ? children : [region])
    .filter((child) => child.type !== "final" && !takes(child, event))
    .flatMap((child) => sourcesOf(child, event, target));
}

/** Whether the states inside leave an event to the state that holds them. */
function lets(state: StateNode, event: string): boolean {
  const children = childrenOf(state);
  const passes = (child: StateNode): boolean => !takes(child, event) && lets(child, event);
  return children.length === 0 || (state.type === "parallel" ? children.every(passes) : children.some(passes));
}

/** Whether a state takes an event whatever its guards say. */
function takes(state: StateNode, event: string): boolean {
  const lists = listsOf(state).filter(([each]) => each === event || (each === "*" && event !== ""));
  return lists.some(([, transitions]) => transitions.some(({ guard }) => guard === undefined));
}

/** The transitions of a state by event. One behind a transition without a guard is never taken. */
function listsOf(state: StateNode): readonly (readonly [string, readonly Transition[]])[] {
  const lists: readonly (readonly [string, readonly Transition[]])[] = [
    ...[...state.transitions].map(([event, list]) => [String(event), list] as const),
    ["", state.always ?? []],
  ];
  return lists.map(([event, list]) => {
    const certain = list.findIndex(({ guard }) => guard === undefined);
    return [event, certain === -1 ? list : list.slice(0, certain + 1)];
  });
}

/** What is entered first in a state. */
function entriesOf(state: StateNode): readonly StateNode[] {
  if (state.type === "parallel") return childrenOf(state);
  return state.type === "compound" ? (state.initial.target as readonly StateNode[]) : [];
}

/** The states whose end is the end of their parent: final ones, and the regions of a parallel state when all can end. */
function endingsOf(state: StateNode): readonly StateNode[] {
  const children = childrenOf(state);
  if (state.type !== "parallel") return children.filter((child) => child.type === "final");
  return children.every((child) => endingsOf(child).length > 0) ? children : [];
}

function labelOf(state: StateNode, event: string, { guard }: Transition): string {
  const condition = guard === undefined ? "" : ` [${nameOfGuard(guard)}]`;
  return `${eventInWords(state, event)}${condition}`;
}

function eventInWords(state: StateNode, event: string): string {
  if (event === "") return "always";
  if (event === "*") return "any event";
  for (const [prefix, word] of [
    ["xstate.done.actor.", "done"],
    ["xstate.error.actor.", "failed"],
  ] as const) {
    if (!event.startsWith(prefix)) continue;
    const invoked = state.invoke.find(({ id }) => id === event.slice(prefix.length));
    return `${typeof invoked?.src === "string" ? invoked.src : event.slice(prefix.length)} ${word}`;
  }
  if (event.startsWith("xstate.done.state.")) return "done";
  const delay = /^xstate\.after\.(.+)$/.exec(event)?.[1]?.slice(0, -(state.id.length + 1));
  if (delay === undefined) return event;
  return /^\d+$/.test(delay) ? `after ${delay} ms` : `after ${delay}`;
}

function nameOfGuard(guard: unknown): string {
  if (typeof guard === "string") return guard;
  const type: unknown = typeof guard === "object" && guard !== null && "type" in guard ? guard.type : undefined;
  return typeof type === "string" ? type : "if";
}

function childrenOf(state: StateNode): readonly StateNode[] {
  return Object.values(state.states) as readonly StateNode[];
}

function statesBelow(state: StateNode): readonly StateNode[] {
  return [state, ...childrenOf(state).flatMap(statesBelow)];
}

/** Whether a state is another one, or holds it. */
function holds(outer: StateNode, state: StateNode): boolean {
  return outer.path.every((key, index) => state.path[index] === key);
}

function keyOf(path: Path): string {
  return JSON.stringify(path);
}

// Both.

function edgeBetween(path: string, kind: OutlineEdge["kind"], source: string, target: string): OutlineEdge {
  const from = path + source;
  const to = path + target;
  return { id: `${from} -> ${to}`, from, to, kind };
}

/** Nodes between a beginning and an end, which stands there only where something leads to it. */
function framed(path: string, inner: readonly OutlineNode[], edges: readonly OutlineEdge[]): Outline {
  const edge = (name: typeof START | typeof END, kind: "start" | "end"): OutlineNode => ({
    id: path + name,
    name,
    kind,
    deferred: false,
  });
  const ends = edges.some(({ to }) => to === path + END);
  return { nodes: [edge(START, "start"), ...inner, ...(ends ? [edge(END, "end")] : [])], edges };
}
