/** Maps tapes to frames of the streaming events protocol, and reads frames as its clients do. */
import type { OpenWork, RunEvent } from "@statewright/core";
import { createOpenWork, isDurable } from "@statewright/core/adapter";
import * as z from "zod";
import { mapV2Event } from "../../src/langgraph/v2/map-v2-event.ts";
import { type FramePlace, type NumberedFrame, numberFrames } from "../../src/langgraph/v2/v2-frame.ts";
import { createV2Memory, getV2Graph, type V2Graph } from "../../src/langgraph/v2/v2-memory.ts";

/** Maps the events of a thread, numbered as on the wire. A fork begins with the state of its parent, as a reader loads it. */
export function mapV2Tape(
  events: readonly RunEvent[],
  { hitl = true }: { readonly hitl?: boolean } = {},
): readonly NumberedFrame[] {
  const memory = createV2Memory({ hitl });
  const place: FramePlace = { seq: 0, position: -1 };
  const states = new Map<number, V2Graph["values"]>();
  return events.flatMap((event) => {
    if (event.type !== "step.committed" || event.within !== undefined)
      return numberFrames(mapV2Event(event, memory), event.seq, place);
    const graph = getV2Graph(memory, event);
    const { checkpoint, parent } = event;
    if (parent !== undefined && graph.checkpoint !== parent)
      Object.assign(graph, { values: states.get(parent), checkpoint: parent });
    const frames = numberFrames(mapV2Event(event, memory), event.seq, place);
    if (checkpoint !== undefined) states.set(checkpoint, graph.values);
    return frames;
  });
}

/** Formats frames, one on a line: id, channel, namespace, data. */
export function formatV2Tape(frames: readonly NumberedFrame[]): string {
  return frames
    .map(
      ({ seq, eventId, method, namespace, node = "-", data }) =>
        `${[seq, eventId, method, JSON.stringify(namespace), node, JSON.stringify(data)].join(" ")}\n`,
    )
    .join("");
}

/** Events that a reader gets who joins before the event `index`: the durable ones, a snapshot of open work, the rest. */
export function rejoinTape(events: readonly RunEvent[], index: number): readonly RunEvent[] {
  const past = events.slice(0, index);
  const last = past.at(-1);
  if (last === undefined) return events;
  const { seq, at, branch } = last;
  const snapshot: RunEvent = { type: "snapshot", run: undefined, seq, at, branch, ...foldOpenWork(past) };
  return [...past.filter(isDurable), snapshot, ...events.slice(index)];
}

/** Events that a reader gets who misses the transient events between two places, and then gets a snapshot. */
export function dropEvents(events: readonly RunEvent[], from: number, to: number): readonly RunEvent[] {
  const rejoined = rejoinTape(events, to);
  const durable = events.slice(from, to).filter(isDurable);
  return [
    ...events.slice(0, from),
    ...durable,
    ...rejoined.slice(rejoined.findIndex(({ type }) => type === "snapshot")),
  ];
}

function foldOpenWork(events: readonly RunEvent[]): OpenWork {
  let work = createOpenWork();
  for (const event of events) {
    // Open work ends with the process of its run.
    if (event.type === "run.started" && event.recovered) work = createOpenWork();
    work.apply(event.type === "step.committed" ? { committed: event.withinId ?? "" } : { event });
  }
  return work.read();
}

const messageData = z.looseObject({
  event: z.string(),
  run_id: z.string(),
  id: z.string().optional(),
  index: z.number().optional(),
  delta: z.looseObject({ type: z.string(), text: z.string().optional() }).optional(),
  content: z.looseObject({ type: z.string(), text: z.string().optional() }).optional(),
});

/** Message as a client assembles it. */
export interface AssembledMessage {
  readonly key: string;
  readonly id: string;
  /** Joined deltas of text, as a program reads them. */
  text: string;
  /** Text of the blocks, as a page shows them. */
  readonly blocks: Map<number, string>;
  end: "open" | "finished" | "error";
}

/** Client that drops the frames whose id it has seen, and assembles the others. */
export class V2TestClient {
  readonly #seen: Set<string> = new Set();
  readonly #active: Map<string, AssembledMessage> = new Map();
  /** Messages in the order of their starts. */
  readonly messages: AssembledMessage[] = [];
  readonly frames: NumberedFrame[] = [];

  read(frames: readonly NumberedFrame[]): void {
    for (const frame of frames) {
      if (this.#seen.has(frame.eventId)) continue;
      this.#seen.add(frame.eventId);
      this.frames.push(frame);
      if (frame.channel === "messages") this.#assemble(frame);
    }
  }

  #assemble({ namespace, node, data }: NumberedFrame): void {
    const { event, run_id: run, id = "", index = 0, delta, content } = messageData.parse(data);
    const key = `${namespace.join("/")} ${node} ${run}`;
    if (event === "message-start") {
      const started: AssembledMessage = { key, id, text: "", blocks: new Map(), end: "open" };
      this.#active.set(key, started);
      this.messages.push(started);
      return;
    }
    const active = this.#active.get(key);
    if (active === undefined) {
      if (event === "error") return;
      throw new Error(`a client got ${event} of a message that has not started`);
    }
    if (event === "content-block-start" || event === "content-block-finish")
      active.blocks.set(index, content?.text ?? "");
    if (event === "content-block-delta" && delta?.type === "text-delta") {
      active.text += delta.text ?? "";
      active.blocks.set(index, (active.blocks.get(index) ?? "") + (delta.text ?? ""));
    }
    if (event !== "message-finish" && event !== "error") return;
    active.end = event === "error" ? "error" : "finished";
    this.#active.delete(key);
  }
}
