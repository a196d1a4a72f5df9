/** Finds paths from an initial state to every end with xstate/graph, for test kits. */
import { type AnyStateMachine, type EventObject, fromTransition, getInitialSnapshot, getNextSnapshot } from "xstate";
import { getShortestPaths, getSimplePaths } from "xstate/graph";
import type { Json } from "../../base/json.ts";
import type { GraphDefinition } from "../../define/graph.ts";

/** Input of a path exploration: serializable states, the events of each state, and the transition function. */
export interface PathExploration<State extends object, Event extends EventObject> {
  readonly first: State;
  /** Lists the events that a state accepts. */
  readonly events: (state: State) => readonly Event[];
  /** Returns the state after an event. Pure. */
  readonly next: (state: State, event: Event) => State;
  /** True for a state without successors. */
  readonly isOver: (state: State) => boolean;
  /** True for a final state suitable to complete a partial path. */
  readonly isGoal: (state: State) => boolean;
  /**
   * `shortest`: a shortest path through every state, extended to a goal. `simple`: every path without a repeated
   * state.
   */
  readonly which: "shortest" | "simple";
  /** Maximum number of explored transitions. */
  readonly limit: number;
}

/** A path: its events in order, and its final state. */
export interface ExploredPath<State, Event> {
  readonly events: readonly Event[];
  readonly end: State;
}

/** Returns all paths; paths that reach no end are left out. */
export function explorePaths<State extends object, Event extends EventObject>(
  exploration: PathExploration<State, Event>,
): readonly ExploredPath<State, Event>[] {
  const { first, next, isOver, isGoal, which, limit } = exploration;
  const logic = fromTransition((state: State, event: Event) => next(state, event), first);
  type Snapshot = ReturnType<typeof logic.transition>;
  const options = {
    events: ({ context }: Snapshot): Event[] => (isOver(context) ? [] : [...exploration.events(context)]),
    serializeState: ({ context }: Snapshot): string => JSON.stringify(context),
    limit,
  };
  const isFinalSnapshot = ({ context }: Snapshot): boolean => isOver(context);
  const isGoalSnapshot = ({ context }: Snapshot): boolean => isGoal(context);
  const extendToGoal = (path: ReturnType<typeof getShortestPaths<typeof logic>>[number]): typeof path | undefined => {
    if (isFinalSnapshot(path.state)) return path;
    const rests = getShortestPaths(logic, { ...options, fromState: path.state, toState: isGoalSnapshot });
    const [rest] = rests.toSorted((one, second) => one.steps.length - second.steps.length);
    return rest === undefined ? undefined : { ...rest, steps: [...path.steps, ...rest.steps] };
  };
  const found =
    which === "simple"
      ? getSimplePaths(logic, { ...options, toState: isFinalSnapshot })
      : getShortestPaths(logic, options).flatMap((path) => extendToGoal(path) ?? []);
  return found.map(({ steps, state }) => ({
    events: steps.flatMap(({ event }) => (event.type.startsWith("xstate.") ? [] : [event])),
    end: state.context,
  }));
}

/**
 * Returns the state value of a graph machine after these events, from the initial state or from another state value.
 */
export function applyMachineEvents(
  graph: GraphDefinition,
  from: Json | undefined,
  events: readonly EventObject[],
): Json {
  const { machine } = graph as GraphDefinition & { readonly machine: AnyStateMachine };
  const start =
    from === undefined ? getInitialSnapshot(machine) : machine.resolveState({ value: from as string, context: {} });
  return events.reduce((at, event) => getNextSnapshot(machine, at, event), start).value as Json;
}
