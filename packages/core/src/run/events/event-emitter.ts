/** Emits the events of a session, with their sequence numbers. */
import type { World } from "../../base/world.ts";
import type { EventStream } from "./events.ts";
import type { EventPosition, RunEventBody } from "./run-event.ts";

/** Events of a session: the stream of the run, the sequence numbers and the position of an inner graph. */
export interface EventEmitter {
  readonly stream: EventStream;
  /** Event sequence numbers, shared with inner graphs; the thread's numbers when the run has a store. */
  readonly sequence: Sequence;
  readonly world: World;
  /** Branch of the run. */
  readonly branch: string;
  /** Path and id of an inner graph; undefined for the outermost graph. */
  readonly nesting: { readonly path: readonly string[]; readonly id: string; readonly unsaved: boolean } | undefined;
}

/** Sequence numbers of durable events: next, last committed, last emitted. */
export interface Sequence {
  nextSeq: number;
  durableSeq: number;
  emittedSeq: number;
}

/**
 * Emits an event when there are listeners. A durable event has its own sequence number; other events get the number
 * of the newest durable event.
 */
export function emit(events: EventEmitter, body: RunEventBody, at?: Pick<EventPosition, "seq" | "at">): void {
  const { stream, sequence, branch, nesting } = events;
  if (at !== undefined) sequence.emittedSeq = at.seq;
  if (!stream.hasReaders()) {
    if (body.type === "message.delta" || body.type === "message.call_delta")
      stream.skipDelta({ withinId: nesting?.id, messageId: body.messageId });
    return;
  }
  const place = at ?? { seq: sequence.emittedSeq, at: events.world.clock.now() };
  stream.emit(
    nesting === undefined
      ? { ...body, ...place, branch }
      : { ...body, ...place, branch, within: nesting.path.join("."), withinId: nesting.id },
    at === undefined || nesting?.unsaved === true ? "transient" : "durable",
  );
}
