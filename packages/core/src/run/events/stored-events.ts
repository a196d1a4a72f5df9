/** Durable events read from the store: the same events that were told when they became true. */
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import { deltaOf } from "../../checkpoint/codec/saved-state.ts";
import { controlOf } from "../../checkpoint/control.ts";
import type { CheckpointWithDeltas, Store, StoredEvent } from "../../checkpoint/store.ts";
import { END } from "../../define/edge.ts";
import type { Codec } from "../../state/codec.ts";
import type { FactBody } from "../session/durable-event.ts";
import type { RunEvent } from "./events.ts";

const pageSize = 100;

/** Every durable event of a thread whose number is above `after`, in order, up to what is durable when the end is reached. */
export async function* storedEvents(
  store: Store,
  codec: Codec,
  thread: string,
  after: number,
): AsyncGenerator<RunEvent, undefined, undefined> {
  let seen = after;
  for (let from: number | undefined; ; ) {
    const page = await store.events(thread, { after: seen, from, limit: pageSize });
    for (const stored of page) {
      const event = eventOf(codec, stored);
      seen = event.seq;
      if ("checkpoint" in stored) from = stored.checkpoint.id;
      yield event;
    }
    if (page.length < pageSize) return undefined;
  }
}

function eventOf(codec: Codec, stored: StoredEvent): RunEvent {
  if ("checkpoint" in stored) return committed(codec, stored.checkpoint);
  const { seq, at, text } = stored.fact;
  const body = codec.decode(text);
  if (!isFactBody(body)) throw noFact(seq);
  return { ...deepFreeze(body), seq, at };
}

function isFactBody(data: unknown): data is FactBody {
  return isPlainObject(data) && typeof data["type"] === "string";
}

function noFact(seq: number): StatewrightError {
  return new StatewrightError("store_corrupt", {
    what: `what stands there as the event ${seq} is none`,
    next: "Restore the file from a backup, or read on from the next number",
  });
}

function committed(codec: Codec, row: CheckpointWithDeltas): RunEvent {
  const { tasks, caller } = controlOf(codec, row);
  const next = [...new Set(tasks.map(({ node }) => node))];
  return {
    type: "step.committed",
    step: row.step,
    checkpoint: row.id,
    nodes: row.nodes,
    next: next.length === 0 ? [END] : next,
    changes: deepFreeze(Object.fromEntries(row.deltas.map((delta) => [delta.channel, deltaOf(codec, delta)]))),
    bytes: row.bytes,
    durationMs: row.durationMs,
    seq: row.seq,
    at: row.at,
    ...(caller === undefined ? {} : { within: caller.within, withinId: row.branch.slice(row.branch.indexOf("/") + 1) }),
  };
}
