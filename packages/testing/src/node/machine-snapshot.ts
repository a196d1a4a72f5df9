/** What the machine of a graph says of the state that it stands in: its tags, and the events that it takes. */
import type { Graph, Json } from "@statewright/core";

/** The tags of every state that the machine stands in, sorted. */
export function tagsAt(graph: Graph, value: Json): readonly string[] {
  return [...snapshotAt(graph, value).tags].sort();
}

/** The types of the events that some of these states take, guards aside; sorted. */
export function eventsAt(graph: Graph, value: Json): readonly string[] {
  const { _nodes: nodes } = snapshotAt(graph, value);
  const events = nodes.flatMap(({ ownEvents }) => ownEvents.map(String));
  return [...new Set(events)].filter((event) => !event.startsWith("xstate.")).sort();
}

function snapshotAt({ machine }: Graph, value: Json): ReturnType<Graph["machine"]["resolveState"]> {
  return machine.resolveState({ value: value as string, context: {} });
}
