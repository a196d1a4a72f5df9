/** Public view of saved data: states and events without private channels, for surfaces that show them to others. */
import type { Graph } from "../compile/graph.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import type { GraphDefinition, GraphTypes } from "../define/graph.ts";
import { findInnerGraph } from "../define/inner-graph.ts";
import type { RunEvent } from "../run/events/run-event.ts";

/**
 * Returns a state without the private channels of its graph, as in the result of a run. Reads no store.
 *
 * @example
 * const { state } = await getState(graph, { store, thread: "t1" });
 * response.json(toPublicState(graph, state));
 */
export function toPublicState<Types extends GraphTypes>(graph: Graph<Types>, state: Types["state"]): Types["result"] {
  checkGraphOption("toPublicState", graph);
  return removePrivate(graph as Graph, state);
}

/**
 * Returns an event without changes of private channels: `step.committed` and `transition.taken` hold changes. An event
 * of an inner graph is reduced by the private channels of that graph, which `within` names below `graph`; without such
 * a graph, as after a rename, all changes are removed. Other events are returned unchanged.
 *
 * @example
 * for await (const event of streamEvents({ store, thread: "t1" })) send(toPublicEvent(graph, event));
 */
export function toPublicEvent(graph: Graph, event: RunEvent): RunEvent {
  checkGraphOption("toPublicEvent", graph);
  if (event.type !== "step.committed" && event.type !== "transition.taken") return event;
  const written = event.within === undefined ? graph : findGraphAt(graph, event.within);
  const changes = written === undefined ? {} : removePrivate(written, event.changes);
  return changes === event.changes ? event : Object.freeze({ ...event, changes });
}

/** Removes the private channels from values by channel. */
function removePrivate<Values extends object>(graph: GraphDefinition, values: Values): Values {
  const names = Object.keys(values);
  if (!names.some((name) => graph.private.has(name))) return values;
  const shown = Object.entries(values).filter(([name]) => !graph.private.has(name));
  return Object.freeze(Object.fromEntries(shown)) as Values;
}

/** Finds the inner graph at a path of nodes and tools. */
function findGraphAt(graph: GraphDefinition, path: string): GraphDefinition | undefined {
  let found: GraphDefinition | undefined = graph;
  for (const name of path.split(".")) found = found && findInnerGraph(found, name);
  return found;
}
