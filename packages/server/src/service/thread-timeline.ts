/** Places in the durable events of a thread. */
import type { Store } from "@statewright/core";
import type { Codec, EventRow, StoredEvent, TimelineEntry } from "@statewright/core/store";
import * as z from "zod";

const pageSize = 100;

/** Returns the number of the newest durable event of a thread; 0 without one. */
export async function getNewestSeq(store: Store, thread: string): Promise<number> {
  if (store.supersteps !== undefined) {
    const [newest] = await store.supersteps(thread, { limit: 1 });
    return newest === undefined ? 0 : getEntrySeq(newest);
  }
  let after = 0;
  for (;;) {
    const page = await store.events(thread, { after, limit: pageSize });
    const last = page.at(-1);
    if (last !== undefined) after = getStoredSeq(last);
    if (page.length < pageSize) return after;
  }
}

/**
 * Returns the number of the event before the start of a run; undefined for a run that has not started, and for a start
 * that was pruned. Reads the newest events first.
 */
export async function findSeqBeforeStart(
  { store, codec }: { readonly store: Store; readonly codec: Codec },
  thread: string,
  run: string,
): Promise<number | undefined> {
  for await (const row of streamEventRows(store, thread)) {
    const started = parseStart(codec, row);
    if (started?.run === run && started.attempt === 1) return row.seq - 1;
  }
  return undefined;
}

const startShape = z.object({ type: z.literal("run.started"), run: z.string(), attempt: z.number() });

function parseStart(codec: Codec, { text }: EventRow): z.infer<typeof startShape> | undefined {
  return startShape.safeParse(codec.decode(text)).data;
}

/** Streams the rows of durable events that are no checkpoints: newest first where the store has an index. */
async function* streamEventRows(store: Store, thread: string): AsyncGenerator<EventRow, undefined, undefined> {
  if (store.supersteps === undefined) {
    for (let after = 0; ; ) {
      const page = await store.events(thread, { after, limit: pageSize });
      for (const stored of page) if ("durableEvent" in stored) yield stored.durableEvent;
      const last = page.at(-1);
      if (last === undefined || page.length < pageSize) return undefined;
      after = getStoredSeq(last);
    }
  }
  for (let before: number | undefined; ; ) {
    const page: readonly TimelineEntry[] = await store.supersteps(thread, { before, limit: pageSize });
    for (const entry of page) if ("durableEvent" in entry) yield entry.durableEvent;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return undefined;
    before = getEntrySeq(last);
  }
}

function getEntrySeq(entry: TimelineEntry): number {
  return "superstep" in entry ? entry.superstep.checkpoint.seq : entry.durableEvent.seq;
}

function getStoredSeq(stored: StoredEvent): number {
  return "checkpoint" in stored ? stored.checkpoint.seq : stored.durableEvent.seq;
}
