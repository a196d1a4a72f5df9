/** Events of a thread as a caller sees them. */
import type { Graph } from "@statewright/core";
import type { Tapes } from "../tape/tapes.ts";
import { toCallerEvent } from "./caller-events.ts";
import type { CallerScope, OwnThread } from "./caller-scope.ts";
import type { CallerService, ThreadFrame } from "./caller-service.ts";

/** Creates the act that streams the events of a thread of a caller. */
export function createEventActs(scope: CallerScope, tapes: Tapes): Pick<CallerService, "streamEvents"> {
  return {
    streamEvents: async (thread, request) => {
      const own = await scope.requireThread(thread, { action: "thread.read" });
      const frames = await tapes.read(own.stored, { ...request, caller: scope.caller });
      return showFrames(scope, own, frames);
    },
  };
}

/** Yields the frames that the caller may see. The events of a thread belong to the graph that wrote it. */
async function* showFrames(
  scope: CallerScope,
  own: OwnThread,
  frames: AsyncIterable<ThreadFrame>,
): AsyncGenerator<ThreadFrame, undefined, undefined> {
  let graph: Graph | undefined = own.row.graph === undefined ? undefined : scope.requireGraph(own.row.graph);
  for await (const frame of frames) {
    if (frame.type === "thread.deleted") {
      yield frame;
      continue;
    }
    if (frame.type === "run.started" && frame.within === undefined) graph = scope.requireGraph(frame.graph);
    const shown = toCallerEvent(scope, graph, own.wire, frame);
    if (shown !== undefined) yield shown;
  }
  return undefined;
}
