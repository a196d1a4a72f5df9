/** Events of a thread as a caller sees them. */
import type { Graph, RunEvent } from "@statewright/core";
import type { Tapes } from "../tape/tapes.ts";
import { toCallerEvent } from "./caller-events.ts";
import type { CallerScope, OwnThread } from "./caller-scope.ts";
import type { CallerService } from "./caller-service.ts";

/** Creates the act that streams the events of a thread of a caller. */
export function createEventActs(scope: CallerScope, tapes: Tapes): Pick<CallerService, "streamEvents"> {
  return {
    streamEvents: async (thread, request) => {
      const own = await scope.requireThread(thread, { action: "thread.read" });
      const show = createView(scope, own);
      return tapes.read(own.stored, { ...request, show });
    },
  };
}

/** Returns the view of a caller on the events of a thread, which belong to the graph that wrote it. */
function createView(scope: CallerScope, { wire, row }: OwnThread): (event: RunEvent) => RunEvent | undefined {
  let graph: Graph | undefined = row.graph === undefined ? undefined : scope.requireGraph(row.graph);
  return (event) => {
    if (event.type === "run.started" && event.within === undefined) graph = scope.requireGraph(event.graph);
    return toCallerEvent(scope, graph, wire, event);
  };
}
