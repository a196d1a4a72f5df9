/** Streams a run to a legacy client: reads the events of the thread, keeps the state, and selects by mode. */
import { isStatewrightError, type RunEvent } from "@statewright/core";
import type { SseLine } from "../../http/route.ts";
import type { CallerService, RunView, StateView } from "../../service/caller-service.ts";
import type { StreamMode } from "../stream-modes.ts";
import { canApply } from "../wire-changes.ts";
import { toWireRunStatus } from "../wire-status.ts";
import { formatEventId, type LegacyEvent, type StreamPlace } from "./legacy-event.ts";
import {
  countEvent,
  createLegacyMemory,
  type GraphMemory,
  getGraphMemory,
  type LegacyMemory,
  listPositions,
  restoreMessages,
} from "./legacy-memory.ts";
import { createEnd, createError, mapLegacyEvent } from "./map-legacy-event.ts";

/** A run, and what a client wants to read of it. */
export interface RunStream {
  readonly service: Pick<CallerService, "streamEvents" | "getState" | "getRun">;
  readonly run: RunView;
  readonly assistant: string;
  /** Number of the durable event before the start of the run, or of its part that is read. */
  readonly after: number;
  /** Place up to which the client has read; undefined for a client that begins. */
  readonly place: StreamPlace | undefined;
  readonly modes: ReadonlySet<StreamMode>;
  /** True to include inner graphs. */
  readonly subgraphs: boolean;
  readonly hitl: boolean;
  readonly signal: AbortSignal;
}

type CommitEvent = Extract<RunEvent, { readonly type: "step.committed" }>;

/**
 * Yields the wire events of a run above the place of the client, until the run rests. A client that was away receives
 * the rest of open messages, and the end of the run if it came meanwhile.
 */
export async function* streamRun(stream: RunStream): AsyncGenerator<SseLine, undefined, undefined> {
  const { service, run, place, signal } = stream;
  const memory = createMemory(stream);
  const isOfRun = createRunFilter(run, { isInRun: place !== undefined });
  // The events of the durable event of the place were perhaps sent in part: that event is read again.
  const after = place === undefined ? stream.after : Math.max(stream.after, place.seq - 1);
  const events = await service.streamEvents(run.thread, { after, end: { run: run.id }, signal });
  let end: SseLine | undefined;
  let isRestored = false;
  for await (const event of events) {
    if (event.type === "thread.deleted") return yield* streamDeletion(memory);
    if (event.type === "events.dropped" || event.type === "events.pruned") yield { comment: event.type };
    if (!isOfRun(event)) continue;
    if (place !== undefined && !isRestored && !isDurableRunEvent(event, place.seq)) {
      restoreMessages(memory, place.messages);
      isRestored = true;
    }
    await prepareState(stream, memory, event);
    for (const { line, isEnd } of selectEvents(stream, memory, event)) {
      // A later attempt of the run takes back the end of an earlier one.
      if (isEnd) end = line;
      else yield line;
    }
    if (event.type === "run.started" && event.within === undefined) end = undefined;
  }
  if (signal.aborted) return undefined;
  const last = end ?? (await findEnd(stream, memory));
  if (last !== undefined) yield last;
  return undefined;
}

function createMemory({ run, assistant, hitl }: RunStream): LegacyMemory {
  return createLegacyMemory({ thread: run.thread, run: run.id, graph: run.graph, assistant }, { hitl });
}

/** Returns a filter of the events of a run: a thread has the events of all its runs, one after another on a branch. */
function createRunFilter(
  { id, branch }: RunView,
  { isInRun }: { readonly isInRun: boolean },
): (event: RunEvent) => boolean {
  const runs = new Map<string, string>(isInRun ? [[branch, id]] : []);
  return (event) => {
    if (event.type === "snapshot") return event.run === id;
    if (event.within === undefined && (event.type === "run.started" || event.type === "step.committed"))
      runs.set(event.branch, event.run);
    if (event.type === "run.cancelled" && event.run !== undefined) return event.run === id;
    return runs.get(event.branch) === id && event.type !== "run.queued";
  };
}

interface SelectedLine {
  readonly line: SseLine;
  readonly isEnd: boolean;
}

/** Maps an event, numbers its wire events, and selects those that the client wants and has not read. */
function selectEvents(stream: RunStream, memory: LegacyMemory, event: RunEvent): readonly SelectedLine[] {
  const { place } = stream;
  const before = listPositions(memory);
  const mapped = mapLegacyEvent(event, memory);
  const after = listPositions(memory);
  const isCommit = event.type === "step.committed";
  let positions = before;
  return mapped.flatMap((wire, index) => {
    countEvent(memory, event.seq, wire);
    const isAfter = index === mapped.length - 1 || (isCommit && wire.isBeforeCommit !== true);
    positions = isAfter ? after : (wire.positions ?? positions);
    const wasRead = place !== undefined && isRead(memory, place, event);
    if (place !== undefined && memory.seq === place.seq && !wasRead) memory.n = Math.max(memory.n, place.n + 1);
    const isLeftOut = wasRead || !isSelected(stream, wire);
    return isLeftOut ? [] : [{ line: toLine(memory, wire, positions), isEnd: wire.isEnd === true }];
  });
}

/** Wire events of the durable event of the place have the same numbers again, unlike those of transient events. */
function isRead({ seq, n }: LegacyMemory, place: StreamPlace, event: RunEvent): boolean {
  return seq < place.seq || (isDurableRunEvent(event, place.seq) && seq === place.seq && n <= place.n);
}

/** True for the durable event of the place, and false for a transient event after it. */
function isDurableRunEvent(event: RunEvent, seq: number): boolean {
  return event.seq === seq && (event.type === "step.committed" || event.type.startsWith("run."));
}

function isSelected({ modes, subgraphs }: RunStream, { mode, namespace }: LegacyEvent): boolean {
  return (mode === undefined || modes.has(mode)) && (namespace === "" || subgraphs);
}

function toLine(
  { seq, n }: LegacyMemory,
  { event, namespace, data }: LegacyEvent,
  positions: readonly string[],
): SseLine {
  return { id: formatEventId(seq, n, positions), event: `${event}${namespace}`, data };
}

/** Loads the state that the mapper needs for an event and cannot know. */
async function prepareState(stream: RunStream, memory: LegacyMemory, event: RunEvent): Promise<void> {
  const graph = getGraphMemory(memory, event);
  if (event.type === "step.committed") return prepareCommit(stream, graph, event);
  if (event.within !== undefined || event.type === "run.started" || graph.values !== undefined) return;
  setState(graph, await findState(stream, { branch: stream.run.branch }));
}

async function prepareCommit(stream: RunStream, graph: GraphMemory, event: CommitEvent): Promise<void> {
  const { checkpoint, parent, within } = event;
  const nesting = within === undefined ? {} : { nesting: within };
  if (parent !== undefined && graph.checkpoint !== parent && !isKnown(graph, checkpoint))
    setState(graph, await findState(stream, { at: parent, ...nesting }));
  if (checkpoint === undefined || graph.values === undefined || canApply(graph.values, event.changes)) return;
  setState(graph, await findState(stream, { at: checkpoint, ...nesting }));
}

function isKnown(graph: GraphMemory, checkpoint: number | undefined): boolean {
  return checkpoint !== undefined && graph.checkpoint !== undefined && checkpoint <= graph.checkpoint;
}

function setState(graph: GraphMemory, state: StateView | undefined): void {
  graph.values = state?.values;
  graph.checkpoint = state?.checkpoint;
  if (state !== undefined) graph.step = state.step;
}

type Place = Parameters<CallerService["getState"]>[1];

/** Reads a state; undefined before the first checkpoint, and for a checkpoint that retention has removed. */
async function findState({ service, run }: RunStream, place: Place): Promise<StateView | undefined> {
  try {
    return await service.getState(run.thread, place);
  } catch (error) {
    if (isStatewrightError(error, "unknown_checkpoint")) return undefined;
    throw error;
  }
}

/** The end of a run whose end was read before, or whose last event was pruned; undefined while it is at work. */
async function findEnd({ service, run }: RunStream, memory: LegacyMemory): Promise<SseLine | undefined> {
  const { status, error } = await service.getRun(run.id);
  const wire = toWireRunStatus(status);
  if (wire === "pending" || wire === "running") return undefined;
  const isFailed = wire === "error" && error !== undefined;
  memory.n += 1;
  const end = isFailed ? createError({ code: error.code, message: error.title }) : createEnd(memory, wire);
  return toLine(memory, end, []);
}

function* streamDeletion(memory: LegacyMemory): Generator<SseLine, undefined, undefined> {
  memory.n += 1;
  yield toLine(memory, createError({ code: "unknown_thread", message: "The thread was deleted." }), []);
  return undefined;
}
