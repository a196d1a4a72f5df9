/** Events of a thread as a caller sees them. */
import { type Graph, type RunEvent, streamEvents } from "@statewright/core";
import { isInView } from "@statewright/core/adapter";
import { toCallerEvent } from "./caller-events.ts";
import type { CallerScope, OwnThread } from "./caller-scope.ts";
import type { CallerService, EventRequest, ThreadFrame } from "./caller-service.ts";
import { findRunRow } from "./find-run-row.ts";
import { omitUndefined } from "./omit-undefined.ts";
import { createUnknownEventProblem } from "./service-problems.ts";
import { statusTable } from "./status-table.ts";
import { getNewestSeq } from "./thread-timeline.ts";

/** Creates the act that streams the events of a thread of a caller. */
export function createEventActs(scope: CallerScope): Pick<CallerService, "streamEvents"> {
  return {
    streamEvents: async (thread, request) => {
      const own = await scope.requireThread(thread, { action: "thread.read" });
      const { after = 0 } = request;
      const newest = after === 0 ? 0 : await getNewestSeq(scope.store, own.stored);
      if (after > newest) throw createUnknownEventProblem(after, newest);
      return followThread(scope, own, request);
    },
  };
}

const endTypes: ReadonlySet<RunEvent["type"]> = new Set([
  "run.completed",
  "run.failed",
  "run.cancelled",
  "run.waiting",
  "run.paused",
  "snapshot",
]);

async function* followThread(
  scope: CallerScope,
  own: OwnThread,
  { after = 0, branch, views, end = "never", signal }: EventRequest,
): AsyncGenerator<ThreadFrame, undefined, undefined> {
  const { store, codec, world, engine } = scope;
  const ended = new AbortController();
  const follow = AbortSignal.any([signal, ended.signal]);
  const options = { store, codec, world, thread: own.stored, after, follow };
  const events = streamEvents({ ...options, ...omitUndefined({ branch, relay: engine.relay }) });
  let { graph } = own.row;
  for await (const event of events) {
    if (event.type === "run.started" && event.within === undefined) graph = event.graph;
    const shown = graph === undefined ? undefined : toCallerEvent(scope, findGraph(scope, graph), own.wire, event);
    if (shown !== undefined && isInView(shown, views)) yield shown;
    if (!endTypes.has(event.type) || event.within !== undefined) continue;
    if (await isOver(scope, own, end, event.seq)) ended.abort();
  }
  return undefined;
}

function findGraph(scope: CallerScope, name: string): Graph {
  return scope.requireGraph(name);
}

/** True when nothing that the stream waits for will follow the event of this number. */
async function isOver(
  scope: CallerScope,
  { stored }: OwnThread,
  end: Exclude<EventRequest["end"], undefined>,
  seq: number,
): Promise<boolean> {
  if (end === "never") return false;
  const { store } = scope;
  if (end === "idle") {
    const active = await store.runs({ thread: stored, status: ["queued", "running", "crashed"], limit: 1 });
    return active.length === 0 && seq >= (await getNewestSeq(store, stored));
  }
  const row = await findRunRow(store, stored, end.run);
  if (row !== undefined && !statusTable[row.status].isResting) return false;
  return seq >= (await getNewestSeq(store, stored));
}
