/** Reads durable events from the store, equal to the events emitted when they were committed. */
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import { parseDelta } from "../../checkpoint/codec/saved-state.ts";
import { parseControl } from "../../checkpoint/control.ts";
import type { EventRow } from "../../checkpoint/event.ts";
import { getBranchName } from "../../checkpoint/rules.ts";
import type { CheckpointWithDeltas, Store, StoredEvent } from "../../checkpoint/store.ts";
import { END } from "../../define/edge.ts";
import type { Codec } from "../../state/codec.ts";
import { describeCheckpoint } from "../events/events.ts";
import type { RunEvent } from "../events/run-event.ts";
import type { DurableEventBody } from "./durable-event.ts";

const pageSize = 100;

/** Reader of the durable events of a thread, equal to the events emitted when they were committed. */
export interface StoredEventReader {
  /**
   * Streams the events above the last event read so far, in order of their sequence numbers, up to the number `upTo`
   * or the last event at the time of reading. Missing numbers are reported by `events.pruned`.
   */
  readNew(upTo?: number): AsyncGenerator<RunEvent, undefined, undefined>;
  /** Returns true if the store has events above the last event read so far. */
  hasNew(): Promise<boolean>;
  /** Returns the number of the last event read so far. */
  getLastSeq(): number;
}

interface StoredEventsOptions {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
  /** Last sequence number already read. */
  readonly after: number;
  /** Highest sequence number of each branch to read; other branches are left out. Default: all events. */
  readonly lastSeqs?: ReadonlyMap<string, number> | undefined;
}

/** Creates a reader of the stored events of a thread. */
export function createStoredEventReader(options: StoredEventsOptions): StoredEventReader {
  return new StoredEvents(options);
}

class StoredEvents implements StoredEventReader {
  readonly #options: StoredEventsOptions;
  #lastSeq: number;
  /** Newest checkpoint read so far. */
  #from: number | undefined;

  constructor(options: StoredEventsOptions) {
    this.#options = options;
    this.#lastSeq = options.after;
  }

  getLastSeq(): number {
    return this.#lastSeq;
  }

  async hasNew(): Promise<boolean> {
    return (await this.#readPage(1)).length > 0;
  }

  async *readNew(upTo = Number.POSITIVE_INFINITY): AsyncGenerator<RunEvent, undefined, undefined> {
    while (this.#lastSeq < upTo) {
      const page = await this.#readPage(pageSize);
      for (const stored of page) {
        const { seq, at, branch } = getEventRow(stored);
        if (seq > upTo) return undefined;
        const gap = { from: this.#lastSeq + 1, to: seq - 1 };
        this.#lastSeq = seq;
        if ("checkpoint" in stored) this.#from = stored.checkpoint.id;
        if (gap.from <= gap.to) yield { type: "events.pruned", ...gap, seq: gap.to, at, branch: getBranchName(branch) };
        if (this.#isIncluded(branch, seq)) yield toRunEvent(this.#options.codec, stored);
      }
      if (page.length < pageSize) return undefined;
    }
    return undefined;
  }

  #readPage(limit: number): Promise<readonly StoredEvent[]> {
    const { store, thread } = this.#options;
    return store.events(thread, { after: this.#lastSeq, from: this.#from, limit });
  }

  #isIncluded(namespace: string, seq: number): boolean {
    const { lastSeqs } = this.#options;
    return lastSeqs === undefined || seq <= (lastSeqs.get(getBranchName(namespace)) ?? 0);
  }
}

function getEventRow(stored: StoredEvent): Pick<EventRow, "seq" | "at" | "branch"> {
  return "checkpoint" in stored ? stored.checkpoint : stored.durableEvent;
}

function toRunEvent(codec: Codec, stored: StoredEvent): RunEvent {
  if ("checkpoint" in stored) return toCommittedEvent(codec, stored.checkpoint);
  const { seq, at, branch } = stored.durableEvent;
  return { ...deepFreeze(parseDurableEvent(codec, stored.durableEvent)), seq, at, branch: getBranchName(branch) };
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
    ...describeCheckpoint(row),
    nodes: row.nodes,
    next: next.length === 0 ? [END] : next,
    changes: deepFreeze(Object.fromEntries(row.deltas.map((delta) => [delta.channel, parseDelta(codec, delta)]))),
    seq: row.seq,
    at: row.at,
    branch: getBranchName(row.branch),
    ...(caller === undefined
      ? {}
      : { within: caller.nesting, withinId: row.branch.slice(row.branch.indexOf("/") + 1) }),
  };
}
