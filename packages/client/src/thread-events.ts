/** Events of a thread, over as many connections as it takes. */
import { createFrameError } from "./client-error.ts";
import { type ApiRequest, getDelayMs, isTransient, type Requester, toClientError } from "./request.ts";
import type { EventView, InterruptChange, Page, ThreadEvent, WaitingInterrupt } from "./server-types.ts";
import { type Frame, readFrames } from "./sse-reader.ts";

/** Options of `events`. */
export interface EventOptions {
  /** Number of the last durable event that was read: `seq` of any event. Default 0: from the beginning. */
  readonly after?: number;
  /** Default: all branches. */
  readonly branch?: string;
  /** Default: all views. */
  readonly views?: readonly EventView[];
  /** `idle`: ends when no run is at work or queued. Default `never`: goes on until the signal fires. */
  readonly end?: "never" | "idle";
  /** Ends the stream without an error. */
  readonly signal?: AbortSignal;
}

/** Types of events that end the stream of one run. */
const restTypes = new Set(["run.completed", "run.failed", "run.cancelled", "run.paused", "run.waiting"]);

/**
 * Reads the events of a thread, and connects again after a lost connection: durable events come once each and in order,
 * and a `snapshot` says what is open. Ends with the thread, or by `end` or the signal. Throws {@link ClientError} for a
 * refusal.
 */
export async function* readThreadEvents(
  requester: Requester,
  thread: string,
  options: EventOptions,
): AsyncGenerator<ThreadEvent, undefined, undefined> {
  const { after = 0, branch, views, end, signal } = options;
  const path = `/threads/${encodeURIComponent(thread)}/events`;
  const query = { branch, views, end };
  const open = (last: number): Promise<Response> => openEvents(requester, { path, query, signal }, last);
  yield* readWithReconnect(requester, { open, after, signal }, toEvent);
  return undefined;
}

/**
 * Reads the events of a run from the response that started it, and from the thread after a lost connection. Ends after
 * the event with which the run rests.
 */
export async function* readRunEvents(
  requester: Requester,
  {
    thread,
    first,
    signal,
  }: { readonly thread: string; readonly first: Response; readonly signal?: AbortSignal | undefined },
): AsyncGenerator<ThreadEvent, undefined, undefined> {
  let response: Response | undefined = first;
  const path = `/threads/${encodeURIComponent(thread)}/events`;
  const open = async (last: number): Promise<Response> => {
    const given = response;
    response = undefined;
    return given ?? (await openEvents(requester, { path, query: { end: "idle" }, signal }, last));
  };
  const run = first.headers.get("location")?.split("/").at(-1);
  for await (const event of readWithReconnect(requester, { open, after: 0, signal }, toEvent)) {
    yield event;
    const isOther = "run" in event && typeof event["run"] === "string" && event["run"] !== run;
    if (restTypes.has(event.type) && event["within"] === undefined && !isOther) return undefined;
  }
  return undefined;
}

function openEvents(
  { send }: Requester,
  { path, query, signal }: Pick<ApiRequest, "path" | "query" | "signal">,
  last: number,
): Promise<Response> {
  const headers = { accept: "text/event-stream", ...(last > 0 ? { "last-event-id": String(last) } : {}) };
  return send({ method: "GET", path, query, headers, signal });
}

/** Reads the open interrupts of all threads and their changes. Each connection begins with a snapshot. */
export async function* readInterrupts(
  requester: Requester,
  signal: AbortSignal | undefined,
): AsyncGenerator<InterruptChange, undefined, undefined> {
  const request = { path: "/interrupts/events", query: {}, signal };
  yield* readWithReconnect(requester, { open: () => openEvents(requester, request, 0), after: 0, signal }, toChange);
  return undefined;
}

/** Stream to read, and to open again above the number of its last durable event. */
interface OpenedStream {
  readonly open: (last: number) => Promise<Response>;
  readonly after: number;
  readonly signal: AbortSignal | undefined;
}

async function* readWithReconnect<Item>(
  { runtime, url }: Requester,
  { open, after, signal }: OpenedStream,
  convert: (frame: Frame, last: number) => Item,
): AsyncGenerator<Item, undefined, undefined> {
  let last = after;
  let failures = 0;
  while (!isAborted(signal)) {
    try {
      const { body } = await open(last);
      if (body === null) return undefined;
      for await (const frame of readFrames(body)) {
        failures = 0;
        if (frame.id !== undefined) last = Number(frame.id);
        if (frame.event === "end" || frame.event === "deleted") return undefined;
        if (frame.event === "error") throw createFrameError(frame.data);
        yield convert(frame, last);
      }
    } catch (error) {
      if (isAborted(signal)) return undefined;
      const failure = toClientError(error, { url, signal });
      if (!isTransient(failure)) throw failure;
    }
    // The connection ended without the frame `end`.
    failures += 1;
    await runtime.sleep(getDelayMs(failures, undefined, runtime), signal);
  }
  return undefined;
}

/** Converts a frame of the open interrupts. The data is as the OpenAPI document of the server says. */
function toChange({ event, data }: Frame): InterruptChange {
  if (event === "interrupt.opened") return { type: "opened", interrupt: data as WaitingInterrupt };
  if (event === "snapshot") return { type: "snapshot", interrupts: data as Page<WaitingInterrupt> };
  return { type: "closed", ...(data as { readonly id: string; readonly thread: string }) };
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function toEvent({ event, data }: Frame, last: number): ThreadEvent {
  const fields = typeof data === "object" && data !== null ? data : {};
  // The news of pruned events has no place of its own in the thread.
  return { seq: last, at: "", branch: "main", ...fields, type: event };
}
