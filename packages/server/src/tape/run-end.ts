/** End of a stream of events: after the last event of a run, or when no run is at work or queued. */
import { type RunEvent, streamEvents } from "@statewright/core";
import { type Codec, getClaimableKind, type RunRow, type Store } from "@statewright/core/store";
import { findRunRow } from "../service/find-run-row.ts";

/** When a stream ends by itself. */
export type StreamEnd = "idle" | { readonly run: string };

/** Thread of a stream, and the branch of its events; undefined for all branches. */
export interface StreamPlace {
  readonly store: Store;
  readonly codec: Codec | undefined;
  readonly thread: string;
  readonly branch: string | undefined;
}

const restTypes: ReadonlySet<RunEvent["type"]> = new Set([
  "run.waiting",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "run.paused",
]);

/** Returns true for an event after which the run of its branch is no longer at work. */
export function isRest(event: RunEvent): boolean {
  const isOfOtherRun = event.type === "run.cancelled" && event.run !== undefined;
  return event.within === undefined && !isOfOtherRun && restTypes.has(event.type);
}

type RunStarted = Extract<RunEvent, { readonly type: "run.started" }>;

/** Returns true for the first event of a run, or of a further attempt. */
function isStart(event: RunEvent): event is RunStarted {
  return event.type === "run.started" && event.within === undefined;
}

/** Decides when the stream of a reader ends. */
export class RunEnd {
  readonly #place: StreamPlace;
  readonly #end: StreamEnd;
  /** Newest start on each branch, as far as the reader has read. */
  readonly #started: Map<string, RunStarted> = new Map();

  constructor(place: StreamPlace, end: StreamEnd) {
    this.#place = place;
    this.#end = end;
  }

  /** Returns true for an event that can be the last, or that can follow the last. */
  mayEndAt(event: RunEvent): boolean {
    return isStart(event) || isRest(event);
  }

  /** Returns true if the stream ends before the event: another run begins, and the run of the stream is over. */
  async endsBefore(event: RunEvent): Promise<boolean> {
    if (!isStart(event)) return false;
    const previous = this.#started.get(event.branch);
    this.#started.set(event.branch, event);
    if (this.#end === "idle" || event.run === this.#end.run) return false;
    const row = await this.#findRow(this.#end.run);
    return row === undefined || (row.branch === event.branch && (await this.#isOver(row, previous, event.seq)));
  }

  /** Returns true if the event is the last of the run of the stream. */
  async endsAfter(event: RunEvent): Promise<boolean> {
    if (this.#end === "idle" || !isRest(event)) return false;
    const started = this.#started.get(event.branch);
    if (started !== undefined && started.run !== this.#end.run) return false;
    const row = await this.#findRow(this.#end.run);
    return row === undefined || (row.branch === event.branch && (await this.#isOver(row, started, event.seq)));
  }

  /** Returns true if nothing follows for a reader that has read all events up to the number. */
  async isReached(seq: number): Promise<boolean> {
    const { store, thread } = this.#place;
    if (this.#end === "idle") {
      if (await hasActiveRun(this.#place)) return false;
      return (await store.events(thread, { after: seq, limit: 1 })).length === 0;
    }
    const row = await this.#findRow(this.#end.run);
    return row === undefined || (!isActive(row) && !(await this.#hasUnreadEvents(row, seq)));
  }

  /** Returns true if the run is at rest, and no later attempt of it is stored above the number. */
  async #isOver(row: RunRow, started: RunStarted | undefined, seq: number): Promise<boolean> {
    if (isActive(row)) return false;
    if (started?.run === row.id && started.attempt === row.attempt) return true;
    for await (const event of this.#readStored(seq)) if (isStart(event) && event.run === row.id) return false;
    return true;
  }

  /** Returns true if events of a run at rest are stored above the number. */
  async #hasUnreadEvents(row: RunRow, seq: number): Promise<boolean> {
    let atWork = this.#started.get(row.branch)?.run ?? row.id;
    for await (const event of this.#readStored(seq)) {
      if (event.branch !== row.branch) continue;
      if (isStart(event)) atWork = event.run;
      if ((isStart(event) || isRest(event)) && atWork === row.id) return true;
    }
    return false;
  }

  #findRow(run: string): Promise<RunRow | undefined> {
    return findRunRow(this.#place.store, this.#place.thread, run);
  }

  #readStored(after: number): AsyncIterable<RunEvent> {
    const { store, thread, codec } = this.#place;
    return streamEvents({ store, thread, after, ...(codec === undefined ? {} : { codec }) });
  }
}

/** Returns true for a run that works, or that a process continues without a caller. */
function isActive(row: RunRow): boolean {
  const kind = getClaimableKind(row);
  return row.status === "running" || kind === "queued" || kind === "crashed" || kind === "drained";
}

async function hasActiveRun({ store, thread, branch }: StreamPlace): Promise<boolean> {
  const filter = { thread, ...(branch === undefined ? {} : { branch }), delayed: "exclude", limit: 1 } as const;
  if ((await store.runs({ ...filter, status: ["queued", "running", "crashed"] })).length > 0) return true;
  const [newest] = await store.runs(filter);
  return newest !== undefined && isActive(newest);
}
