/** Paths from a beginning to every end, found by xstate/graph: what test kits walk a graph with. */
import { type AnyStateMachine, type EventObject, fromTransition, getInitialSnapshot, getNextSnapshot } from "xstate";
import { getShortestPaths, getSimplePaths } from "xstate/graph";
import type { Json } from "../../base/json.ts";
import type { GraphDefinition } from "../../define/graph.ts";

/** What is walked: plain states, the events that each may get, and where they lead. */
export interface WalkedPaths<State extends object, Event extends EventObject> {
  readonly first: State;
  readonly events: (state: State) => readonly Event[];
  readonly next: (state: State, event: Event) => State;
  /** Nothing comes after it. */
  readonly isOver: (state: State) => boolean;
  /** Where a path may go on to from a state that is on no other way: a good end. */
  readonly isGoal: (state: State) => boolean;
  /** `shortest`: a shortest path through every state, led on to a goal. `simple`: every path that comes to no state twice. */
  readonly which: "shortest" | "simple";
  /** Transitions that may be tried. */
  readonly limit: number;
}

/** One path: its events in order, and the state at its end. */
export interface WalkedPath<State, Event> {
  readonly events: readonly Event[];
  readonly end: State;
}

/** Walk all paths. A path that leads to no end is left out. */
export function walkPaths<State extends object, Event extends EventObject>(
  walked: WalkedPaths<State, Event>,
): readonly WalkedPath<State, Event>[] {
  const { first, next, isOver, isGoal, which, limit } = walked;
  const logic = fromTransition((state: State, event: Event) => next(state, event), first);
  type Snapshot = ReturnType<typeof logic.transition>;
  const options = {
    events: ({ context }: Snapshot): Event[] => (isOver(context) ? [] : [...walked.events(context)]),
    serializeState: ({ context }: Snapshot): string => JSON.stringify(context),
    limit,
  };
  const over = ({ context }: Snapshot): boolean => isOver(context);
  const goal = ({ context }: Snapshot): boolean => isGoal(context);
  const led = (path: ReturnType<typeof getShortestPaths<typeof logic>>[number]): typeof path | undefined => {
    if (over(path.state)) return path;
    const rests = getShortestPaths(logic, { ...options, fromState: path.state, toState: goal });
    const [rest] = rests.toSorted((one, other) => one.steps.length - other.steps.length);
    return rest === undefined ? undefined : { ...rest, steps: [...path.steps, ...rest.steps] };
  };
  const found =
    which === "simple"
      ? getSimplePaths(logic, { ...options, toState: over })
      : getShortestPaths(logic, options).flatMap((path) => led(path) ?? []);
  return found.map(({ steps, state }) => ({
    events: steps.flatMap(({ event }) => (event.type.startsWith("xstate.") ? [] : [event])),
    end: state.context,
  }));
}

/** Where the machine of a graph stands after these events, from its beginning or from another state value. */
export function machineAfter(graph: GraphDefinition, from: Json | undefined, events: readonly EventObject[]): Json {
  const { machine } = graph as GraphDefinition & { readonly machine: AnyStateMachine };
  const start =
    from === undefined ? getInitialSnapshot(machine) : machine.resolveState({ value: from as string, context: {} });
  return events.reduce((at, event) => getNextSnapshot(machine, at, event), start).value as Json;
}
