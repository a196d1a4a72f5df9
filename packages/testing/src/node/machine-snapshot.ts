/** Tags and accepted events of a graph's machine in a given state. */
import type { Graph, Json } from "@statewright/core";

/** Returns the tags of all active states, sorted. */
export function listTags(graph: Graph, value: Json): readonly string[] {
  return [...resolveSnapshot(graph, value).tags].sort();
}

/** Returns the event types accepted by the active states, without evaluating guards; sorted. */
export function listEvents(graph: Graph, value: Json): readonly string[] {
  const { _nodes: nodes } = resolveSnapshot(graph, value);
  const events = nodes.flatMap(({ ownEvents }) => ownEvents.map(String));
  return [...new Set(events)].filter((event) => !event.startsWith("xstate.")).sort();
}

function resolveSnapshot({ machine }: Graph, value: Json): ReturnType<Graph["machine"]["resolveState"]> {
  return machine.resolveState({ value: value as string, context: {} });
}
