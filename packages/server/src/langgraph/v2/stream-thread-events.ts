/** Streams a thread to a client of the streaming events protocol: its past, what is open, and what comes. */
import { isStatewrightError, type RunEvent } from "@statewright/core";
import type { SseLine } from "../../http/route.ts";
import type { CallerService, StateView, ThreadFrame } from "../../service/caller-service.ts";
import { canApply } from "../wire-changes.ts";
import { mapV2Event } from "./map-v2-event.ts";
import { ReplayBuffer, type ReplayedLine, type ReplayLimits } from "./replay-buffer.ts";
import { isSubscribed, type Subscription } from "./subscription.ts";
import { type FramePlace, getEventSeq, type NumberedFrame, numberFrames, toSseFrame } from "./v2-frame.ts";
import { createV2Memory, getV2Graph, type V2Graph, type V2Memory } from "./v2-memory.ts";

/** A thread, and what a client wants to read of it. */
export interface ThreadEventStream {
  readonly service: CallerService;
  readonly thread: string;
  readonly subscription: Subscription;
  readonly hitl: boolean;
  readonly signal: AbortSignal;
  readonly replayLimits?: Partial<ReplayLimits>;
}

/**
 * Opens the events of a thread from its start, also for a client that has read a part: the run, the state and the calls of
 * the rest are built from the events before.
 */
export async function openThreadEvents({
  service,
  thread,
  signal,
}: ThreadEventStream): Promise<AsyncIterable<ThreadFrame>> {
  return await service.streamEvents(thread, { after: 0, signal });
}

/** Yields the frames that a client has subscribed to, until the thread is deleted or the signal fires. */
export async function* streamThreadEvents(
  stream: ThreadEventStream,
  events: AsyncIterable<ThreadFrame>,
): AsyncGenerator<SseLine, undefined, undefined> {
  const reader = new V2Reader(stream);
  const { status } = await stream.service.getThread(stream.thread);
  // A thread without runs has no past, and no snapshot that ends it.
  let replay = status === undefined ? undefined : new ReplayBuffer(stream.replayLimits);
  for await (const event of events) {
    if (event.type === "thread.deleted") break;
    const lines = await reader.read(event);
    if (replay === undefined) {
      yield* lines.map(({ line }) => line);
      continue;
    }
    if (event.type === "step.committed" && event.within === undefined) replay.startCheckpoint();
    for (const line of lines) replay.push(line);
    if (event.type !== "snapshot") continue;
    yield* replay.read({ isAtWork: reader.isAtWork });
    replay = undefined;
  }
  if (replay !== undefined) yield* replay.read({ isAtWork: reader.isAtWork });
  return undefined;
}

/** Reads events for one client: loads states that events do not contain, maps, numbers and selects. */
export class V2Reader {
  readonly memory: V2Memory;
  readonly #stream: ThreadEventStream;
  /** Size of the state of each graph. */
  readonly #bytes: WeakMap<V2Graph, number> = new WeakMap();
  readonly #place: FramePlace = { seq: 0, position: -1 };

  constructor(stream: ThreadEventStream) {
    this.#stream = stream;
    this.memory = createV2Memory(stream);
  }

  /** True while a run of the thread goes on. */
  get isAtWork(): boolean {
    return [...this.memory.runs.values()].some(({ status }) => status === "running");
  }

  async read(event: RunEvent): Promise<readonly ReplayedLine[]> {
    if (event.type === "events.dropped" || event.type === "events.pruned")
      return [{ line: { comment: event.type }, isRoot: true, isRunning: false, bytes: 0 }];
    await this.#prepareState(event);
    const bytes = this.#addBytes(event);
    const { subscription } = this.#stream;
    return numberFrames(mapV2Event(event, this.memory), event.seq, this.#place)
      .filter((frame) => isSubscribed(subscription, frame) && isUnread(subscription, frame))
      .map((frame) => ({
        line: toSseFrame(frame),
        isRoot: frame.namespace.length === 0,
        isRunning: frame.run !== undefined && event.type === "run.started",
        bytes: frame.channel === "values" ? bytes : 0,
      }));
  }

  /** Returns the size of the state of a graph after a checkpoint, as the sum of its changes; 0 for other events. */
  #addBytes(event: RunEvent): number {
    if (event.type !== "step.committed") return 0;
    const graph = getV2Graph(this.memory, event);
    const bytes = (this.#bytes.get(graph) ?? 0) + event.bytes;
    this.#bytes.set(graph, bytes);
    return bytes;
  }

  /** Loads the state before a checkpoint, or at the checkpoint, where earlier events do not contain it. */
  async #prepareState(event: RunEvent): Promise<void> {
    if (event.type !== "step.committed") return await this.#prepareWork(event);
    const graph = getV2Graph(this.memory, event);
    const { checkpoint, parent, within } = event;
    if (checkpoint === undefined) return;
    const nesting = within === undefined ? {} : { nesting: within };
    if (parent !== undefined && graph.checkpoint !== parent)
      setState(graph, await this.#findState({ at: parent, ...nesting }));
    if (graph.values !== undefined && !canApply(graph.values, event.changes))
      setState(graph, await this.#findState({ at: checkpoint, ...nesting }));
  }

  /** A stream that begins in the middle of a run has not read the state that a retraction shows again. */
  async #prepareWork(event: RunEvent): Promise<void> {
    if (event.within !== undefined || event.type !== "message.retracted") return;
    const graph = getV2Graph(this.memory, event);
    if (graph.values === undefined) setState(graph, await this.#findState({ branch: event.branch }));
  }

  /** Reads a state; undefined before the first checkpoint, and for a checkpoint that retention has removed. */
  async #findState(place: Parameters<CallerService["getState"]>[1]): Promise<StateView | undefined> {
    const { service, thread } = this.#stream;
    try {
      return await service.getState(thread, place);
    } catch (error) {
      if (isStatewrightError(error, "unknown_checkpoint")) return undefined;
      throw error;
    }
  }
}

/** Transient frames are dropped by clients that have them: their numbers differ from stream to stream. */
function isUnread({ since }: Subscription, { id, seq }: NumberedFrame): boolean {
  if (since === undefined || since === null) return true;
  return id === undefined ? seq > since : getEventSeq(seq) >= getEventSeq(since);
}

function setState(graph: V2Graph, state: StateView | undefined): void {
  graph.values = state?.values;
  graph.checkpoint = state?.checkpoint;
}
