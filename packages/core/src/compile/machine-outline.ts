/** Outline of a user-written machine. */
import type { AnyStateMachine } from "xstate";
import { END, START } from "../define/edge.ts";
import type { Outline, OutlineEdge, OutlineNode } from "../define/outline.ts";
import { addMarkers, createEdge } from "./outline-parts.ts";

type StateNode = AnyStateMachine["root"];
type Transition = NonNullable<StateNode["always"]>[number];
/** State keys from the root to a state; for markers, the last key is `START` or `END`. */
type Path = readonly string[];

/** Edges of a machine, by id, grouped by the enclosing state. */
type EdgesByState = Map<string, Map<string, OutlineEdge>>;

/** Returns the outline of a user-written machine. Nested states are in `inside` of their state. */
export function createMachineOutline(machine: AnyStateMachine, path: string): Outline {
  if (listChildren(machine.root).length === 0) {
    const only: OutlineNode = { id: path + machine.id, name: machine.id, kind: "state", deferred: false };
    return addMarkers(path, [only], [createEdge(path, "to", START, machine.id)]);
  }
  const edgesByState: EdgesByState = new Map();
  for (const state of listStates(machine.root)) {
    for (const first of listInitialStates(state))
      addEdge(edgesByState, path, [...state.path, START], { to: first.path, kind: "to" });
    const finals = listFinalStates(state);
    for (const last of finals) {
      const isJoin = state.type === "parallel" && finals.length > 1;
      addEdge(edgesByState, path, last.path, { to: [...state.path, END], kind: isJoin ? "join" : "to" });
    }
    for (const [event, transitions] of listTransitions(state))
      for (const transition of transitions) addTransition(edgesByState, path, state, { event, transition });
  }
  return createStateOutline(machine.root, path, edgesByState);
}

function createStateOutline(state: StateNode, path: string, edgesByState: EdgesByState): Outline {
  const prefix = path + state.path.map((key) => `${key}.`).join("");
  const nodes = listChildren(state).map((child): OutlineNode => {
    const inside = listChildren(child).length === 0 ? {} : { inside: createStateOutline(child, path, edgesByState) };
    return { id: prefix + child.key, name: child.key, kind: "state", deferred: false, ...inside };
  });
  return addMarkers(prefix, nodes, [...(edgesByState.get(toPathKey(state.path))?.values() ?? [])]);
}

/** Options of `addEdge`. */
interface AddEdgeOptions {
  readonly to: Path;
  readonly kind: OutlineEdge["kind"];
  readonly label?: string | undefined;
}

/** Adds an edge to the innermost state that contains both ends; edges with equal ends are merged. */
function addEdge(edgesByState: EdgesByState, path: string, from: Path, { to, kind, label }: AddEdgeOptions): void {
  let shared = 0;
  while (shared < Math.min(from.length, to.length) - 1 && from[shared] === to[shared]) shared += 1;
  const parentKey = toPathKey(from.slice(0, shared));
  const edges = edgesByState.get(parentKey) ?? new Map<string, OutlineEdge>();
  edgesByState.set(parentKey, edges);
  const edge = createEdge(path, kind, from.join("."), to.join("."));
  const labels = [edges.get(edge.id)?.label, label].filter((each) => each !== undefined);
  edges.set(edge.id, labels.length === 0 ? edge : { ...edge, label: [...new Set(labels)].join(", ") });
}

function addTransition(
  edgesByState: EdgesByState,
  path: string,
  state: StateNode,
  { event, transition }: { readonly event: string; readonly transition: Transition },
): void {
  const label = formatLabel(state, event, transition);
  for (const target of (transition.target ?? []) as readonly StateNode[]) {
    for (const source of listSources(state, event, target)) {
      // A transition to an enclosing state re-enters that state.
      const to =
        containsState(target, source) && listChildren(target).length > 0 ? [...target.path, START] : target.path;
      addEdge(edgesByState, path, source.path, { to, kind: "event", label });
    }
  }
}

/**
 * Returns the source states of a transition: the state, or, for a transition to a descendant, its children. For a
 * parallel state, the region that contains the target.
 */
function listSources(state: StateNode, event: string, target: StateNode): readonly StateNode[] {
  if (!canBubble(state, event)) return [];
  const children = listChildren(state);
  if (children.length === 0 || !containsState(state, target)) return [state];
  const region = state.type === "parallel" ? children.find((child) => containsState(child, target)) : undefined;
  return (region === undefined ? children : [region])
    .filter((child) => child.type !== "final" && !isAlwaysHandled(child, event))
    .flatMap((child) => listSources(child, event, target));
}

/** Returns true if the child states may leave an event to their parent state. */
function canBubble(state: StateNode, event: string): boolean {
  const children = listChildren(state);
  const passes = (child: StateNode): boolean => !isAlwaysHandled(child, event) && canBubble(child, event);
  return children.length === 0 || (state.type === "parallel" ? children.every(passes) : children.some(passes));
}

/** Returns true if a state handles an event regardless of its guards. */
function isAlwaysHandled(state: StateNode, event: string): boolean {
  const lists = listTransitions(state).filter(([each]) => each === event || (each === "*" && event !== ""));
  return lists.some(([, transitions]) => transitions.some(({ guard }) => guard === undefined));
}

/**
 * Returns the transitions of a state by event. Transitions after an unguarded transition are unreachable and left
 * out.
 */
function listTransitions(state: StateNode): readonly (readonly [string, readonly Transition[]])[] {
  const lists: readonly (readonly [string, readonly Transition[]])[] = [
    ...[...state.transitions].map(([event, list]) => [String(event), list] as const),
    ["", state.always ?? []],
  ];
  return lists.map(([event, list]) => {
    const unguarded = list.findIndex(({ guard }) => guard === undefined);
    return [event, unguarded === -1 ? list : list.slice(0, unguarded + 1)];
  });
}

/** Returns the initially entered child states. */
function listInitialStates(state: StateNode): readonly StateNode[] {
  if (state.type === "parallel") return listChildren(state);
  return state.type === "compound" ? (state.initial.target as readonly StateNode[]) : [];
}

/**
 * Returns the states that finish their parent: final states, or all regions of a parallel state if every region can
 * finish.
 */
function listFinalStates(state: StateNode): readonly StateNode[] {
  const children = listChildren(state);
  if (state.type !== "parallel") return children.filter((child) => child.type === "final");
  return children.every((child) => listFinalStates(child).length > 0) ? children : [];
}

function formatLabel(state: StateNode, event: string, { guard }: Transition): string {
  const condition = guard === undefined ? "" : ` [${getGuardName(guard)}]`;
  return `${formatEvent(state, event)}${condition}`;
}

function formatEvent(state: StateNode, event: string): string {
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

function getGuardName(guard: unknown): string {
  if (typeof guard === "string") return guard;
  const type: unknown = typeof guard === "object" && guard !== null && "type" in guard ? guard.type : undefined;
  return typeof type === "string" ? type : "if";
}

function listChildren(state: StateNode): readonly StateNode[] {
  return Object.values(state.states) as readonly StateNode[];
}

function listStates(state: StateNode): readonly StateNode[] {
  return [state, ...listChildren(state).flatMap(listStates)];
}

/** Returns true if `outer` is the state or an ancestor of the state. */
function containsState(outer: StateNode, state: StateNode): boolean {
  return outer.path.every((key, index) => state.path[index] === key);
}

function toPathKey(path: Path): string {
  return JSON.stringify(path);
}
