/** Frames of the streaming events protocol of LangGraph (v2), and their numbers. */
import type { SseFrame } from "../../http/route.ts";

/** Channels that a client subscribes to. */
export const v2Channels = [
  "values",
  "updates",
  "messages",
  "tools",
  "lifecycle",
  "input",
  "checkpoints",
  "tasks",
  "custom",
] as const;

/** Channel of a frame. */
export type V2Channel = (typeof v2Channels)[number];

/** Frame before it is numbered. */
export interface V2Frame {
  readonly method: string;
  readonly channel: V2Channel;
  /** Path of the inner graph; empty for the outermost graph. */
  readonly namespace: readonly string[];
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly node?: string | undefined;
  readonly data: unknown;
  /**
   * Identity of a frame of a transient event, the same in every process. A frame without an identity belongs to a durable
   * event and is identified by its number.
   */
  readonly id?: string | undefined;
  /** Run of a lifecycle frame: clients read the id of the run from the id of the frame. */
  readonly run?: string | undefined;
}

/** Place of the newest frame of a stream: `position` counts the frames at the durable event `seq`. */
export interface FramePlace {
  seq: number;
  position: number;
}

const framesPerEvent = 16;
const eventsPerSeq = 100_000;

/** Numbers of frames between two durable events. */
const positions = framesPerEvent * eventsPerSeq;

/** Returns the number of a frame: `(seq * 100000 + n) * 16 + i`, with `position = n * 16 + i`. */
function toFrameSeq({ seq, position }: FramePlace): number {
  return seq * positions + position;
}

/** Returns the number of the durable event of a frame. */
export function getEventSeq(frameSeq: number): number {
  return Math.floor(frameSeq / positions);
}

/** Returns the highest number of a frame at a durable event. */
export function getLastFrameSeq(seq: number): number {
  return (seq + 1) * positions - 1;
}

/** Frame with its number and its id. */
export interface NumberedFrame extends V2Frame {
  readonly seq: number;
  readonly eventId: string;
}

/**
 * Numbers the frames of an event. Frames of a durable event have the same numbers for every reader: frames of transient
 * events take numbers after the durable event before.
 */
export function numberFrames(
  frames: readonly V2Frame[],
  eventSeq: number,
  place: FramePlace,
): readonly NumberedFrame[] {
  return frames.map((frame) => {
    if (frame.id === undefined && eventSeq > place.seq) Object.assign(place, { seq: eventSeq, position: -1 });
    place.position += 1;
    const seq = toFrameSeq(place);
    return { ...frame, seq, eventId: frame.id ?? (frame.run === undefined ? `e.${seq}` : `synth:${frame.run}:${seq}`) };
  });
}

/** Converts a frame to the event of the stream. */
export function toSseFrame({ method, namespace, at, node, data, seq, eventId }: NumberedFrame): SseFrame {
  const params = { namespace, timestamp: at, ...(node === undefined ? {} : { node }), data };
  return { id: String(seq), event: method, data: { type: "event", event_id: eventId, seq, method, params } };
}
