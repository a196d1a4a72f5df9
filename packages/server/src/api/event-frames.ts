/** Frames of the events of a thread: durable events have an id, passing events have none. */
import type { RunEvent } from "@statewright/core";
import type { DurableEventBody } from "@statewright/core/inspect";
import type { Problem } from "../http/problem.ts";
import type { RouteCall, SseLine } from "../http/route.ts";
import type { EventRequest, ThreadFrame } from "../service/caller-service.ts";
import { toJson } from "../service/to-json.ts";
import { toOpenInterrupt, toTime } from "./to-wire.ts";

const durableTypes: { readonly [Type in DurableEventBody["type"] | "step.committed"]: true } = {
  "run.started": true,
  "run.waiting": true,
  "run.paused": true,
  "run.failed": true,
  "run.cancelled": true,
  "run.completed": true,
  "step.committed": true,
  "event.received": true,
  "event.refused": true,
};

/** Converts the frames of a thread to frames of the native stream. Keeps the number of the last durable frame only. */
class EventFrames {
  #last: number;

  constructor(after: number) {
    this.#last = after;
  }

  /** Frame of an event, or of the news that the thread was deleted. */
  toFrame(event: ThreadFrame): SseLine {
    if (event.type === "thread.deleted") return { event: "deleted", data: {} };
    if (event.type === "events.pruned") return { event: "gap", data: { from: event.from, to: event.to } };
    const frame = { event: event.type, data: getWireEvent(event) };
    // An event of an inner graph without own rows repeats the number of the newest durable event.
    if (!Object.hasOwn(durableTypes, event.type) || event.seq <= this.#last) return frame;
    this.#last = event.seq;
    return { id: String(event.seq), ...frame };
  }
}

/** Wire form of the events that have several readers: each is converted and encoded once. */
const wireEvents: WeakMap<RunEvent, unknown> = new WeakMap();

function getWireEvent(event: RunEvent): unknown {
  let data = wireEvents.get(event);
  if (data === undefined) {
    data = toWireEvent(event);
    wireEvents.set(event, data);
  }
  return data;
}

/** Returns an event with times in ISO 8601. Messages and their deltas hold plain data, other events may not. */
function toWireEvent(event: RunEvent): unknown {
  const at = toTime(event.at);
  if (event.type.startsWith("message.")) return { ...event, at };
  if (event.type === "run.waiting") return { ...event, at, interrupts: event.interrupts.map(toOpenInterrupt) };
  return toJson({ ...event, at });
}

/** Frame of a failure that ends a stream. */
export function toFailureFrames(problem: Problem): readonly SseLine[] {
  return [{ event: "error", data: toProblemBody(problem) }];
}

/** Body of a problem, as in a response. */
function toProblemBody({ status, code, title, detail }: Problem): unknown {
  return { type: `urn:statewright:error:${code}`, title, status, code, detail };
}

/**
 * Answers with the events of a thread. A refusal, such as an unknown thread, comes before the stream. The last frame of
 * a stream that ends by `end` is `end`.
 */
export async function streamThread(
  call: RouteCall,
  thread: string,
  request: Omit<EventRequest, "signal">,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const left = new AbortController();
  const events = await call.service.streamEvents(thread, { ...request, signal: left.signal });
  const frames = new EventFrames(request.after ?? 0);
  const options = { headers, formatFailure: toFailureFrames };
  return call.stream((signal) => streamFrames(events, { frames, left, signal }), options);
}

interface FrameParts {
  readonly frames: EventFrames;
  /** Ends the events. */
  readonly left: AbortController;
  /** Signal of the response. */
  readonly signal: AbortSignal;
}

/** A function of its own, not a closure of each stream: each generator function has a prototype. */
async function* streamFrames(
  events: AsyncIterable<ThreadFrame>,
  { frames, left, signal }: FrameParts,
): AsyncGenerator<SseLine, undefined, undefined> {
  const leave = (): void => left.abort();
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    for await (const event of events) yield frames.toFrame(event);
    if (!signal.aborted) yield { event: "end", data: {} };
    return undefined;
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}
