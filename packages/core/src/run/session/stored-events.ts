/** Reads durable events from the store, equal to the events emitted when they were committed. */
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import { parseDelta } from "../../checkpoint/codec/saved-state.ts";
import { parseControl } from "../../checkpoint/control.ts";
import type { EventRow } from "../../checkpoint/event.ts";
import type { CheckpointWithDeltas, Store, StoredEvent } from "../../checkpoint/store.ts";
import { END } from "../../define/edge.ts";
import type { Codec } from "../../state/codec.ts";
import type { RunEvent } from "../events/run-event.ts";
import type { DurableEventBody } from "./durable-event.ts";

const pageSize = 100;

/**
 * Streams the durable events of a thread with sequence numbers above `after`, in order, up to the last event at the
 * time of reading.
 */
export async function* streamStoredEvents(
  store: Store,
  codec: Codec,
  thread: string,
  after: number,
): AsyncGenerator<RunEvent, undefined, undefined> {
  let lastSeq = after;
  for (let from: number | undefined; ; ) {
    const page = await store.events(thread, { after: lastSeq, from, limit: pageSize });
    for (const stored of page) {
      const event = toRunEvent(codec, stored);
      lastSeq = event.seq;
      if ("checkpoint" in stored) from = stored.checkpoint.id;
      yield event;
    }
    if (page.length < pageSize) return undefined;
  }
}

function toRunEvent(codec: Codec, stored: StoredEvent): RunEvent {
  if ("checkpoint" in stored) return toCommittedEvent(codec, stored.checkpoint);
  const { seq, at } = stored.durableEvent;
  return { ...deepFreeze(parseDurableEvent(codec, stored.durableEvent)), seq, at };
}

/** Parses a durable event. Throws `store_corrupt`. */
export function parseDurableEvent(codec: Codec, { seq, text }: Pick<EventRow, "seq" | "text">): DurableEventBody {
  const body = codec.decode(text);
  if (!isFactBody(body)) throw createInvalidEventError(seq);
  return body;
}

function isFactBody(data: unknown): data is DurableEventBody {
  return isPlainObject(data) && typeof data["type"] === "string";
}

function createInvalidEventError(seq: number): StatewrightError {
  return new StatewrightError("store_corrupt", {
    what: `the stored event ${seq} is invalid`,
    next: "Restore the file from a backup, or read on from the next sequence number",
  });
}

function toCommittedEvent(codec: Codec, row: CheckpointWithDeltas): RunEvent {
  const { tasks, caller } = parseControl(codec, row);
  const next = [...new Set(tasks.map(({ node }) => node))];
  return {
    type: "step.committed",
    step: row.step,
    checkpoint: row.id,
    nodes: row.nodes,
    next: next.length === 0 ? [END] : next,
    changes: deepFreeze(Object.fromEntries(row.deltas.map((delta) => [delta.channel, parseDelta(codec, delta)]))),
    bytes: row.bytes,
    durationMs: row.durationMs,
    seq: row.seq,
    at: row.at,
    ...(caller === undefined
      ? {}
      : { within: caller.nesting, withinId: row.branch.slice(row.branch.indexOf("/") + 1) }),
  };
}
