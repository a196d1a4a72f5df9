/**
 * Reader of a tape: the stored events above a number, then one snapshot of what is open, then the events of the tape,
 * without loss and without repetition.
 */
import { type EventView, type RunEvent, streamEvents } from "@statewright/core";
import { isDurable, isInView } from "@statewright/core/adapter";
import { SlowReaderError } from "../http/slow-reader.ts";
import { StreamDrainedError } from "../http/stream-drained.ts";
import type { ThreadFrame } from "../service/caller-service.ts";
import { RunEnd, type StreamEnd, type StreamPlace } from "./run-end.ts";
import { selectBranch } from "./select-branch.ts";
import { isDeleted, type TapeEnd, type TapeListener, type ThreadTape } from "./thread-tape.ts";
import { type TapeEvent, WaitingEvents, type WaitingLimits } from "./waiting-events.ts";

/** What a reader asks for. */
export interface TapeRequest {
  /** Number of the last durable event that was read. */
  readonly after: number;
  readonly views: readonly EventView[] | undefined;
  /** Undefined for a stream that stays open. */
  readonly end: StreamEnd | undefined;
  readonly signal: AbortSignal;
  readonly limits: WaitingLimits;
  /** Form of an event for the reader; undefined for an event that the reader may not see. */
  readonly show: ((event: RunEvent) => RunEvent | undefined) | undefined;
}

/** Tapes of a server, for their readers. */
export interface TapeSource {
  /** Returns the tape of the thread; a new one begins after the number. */
  findTape(thread: string, seq: number): ThreadTape;
  /** Returns the event as the request shows it; undefined for an event that is not sent. Never throws. */
  show(event: RunEvent, request: TapeRequest, thread: string): RunEvent | undefined;
}

/** Reader of a tape. */
export class TapeReader implements TapeListener {
  readonly #place: StreamPlace;
  readonly #request: TapeRequest;
  readonly #source: TapeSource;
  /** Number after which a new tape begins. */
  readonly #start: number;
  /** Events of the tape that wait for the reader; created with the first one. */
  #waiting: WaitingEvents | undefined;
  readonly #runEnd: RunEnd | undefined;
  /** Number up to which all durable events were read. */
  #seq: number;
  /** True from the snapshot on: events of the tape wait for the reader. */
  #isLive = false;
  /** True when the end of the stream must be checked before the next wait. */
  #mayHaveEnded = true;
  #wake: (() => void) | undefined;
  #end: TapeEnd | undefined;
  #isCut = false;
  #isDraining = false;

  constructor(source: TapeSource, start: number, place: StreamPlace, request: TapeRequest) {
    this.#source = source;
    this.#start = start;
    this.#place = place;
    this.#request = request;
    this.#runEnd = request.end === undefined ? undefined : new RunEnd(place, request.end);
    this.#seq = request.after;
  }

  get needsChanges(): boolean {
    return this.#runEnd !== undefined;
  }

  receive(added: TapeEvent): void {
    if (this.#isLive && !this.#isCut && this.#isIncluded(added.event)) {
      this.#waiting ??= new WaitingEvents(this.#request.limits);
      this.#isCut = !this.#waiting.push(this.#toBranch(added));
      if (this.#isCut) this.#waiting = undefined;
    }
    this.#wake?.();
  }

  noteChange(): void {
    this.#mayHaveEnded = true;
    this.#wake?.();
  }

  drain(): void {
    this.#isDraining = true;
    this.#wake?.();
  }

  /** Ends the reader after the events that wait. */
  end(end: TapeEnd): void {
    this.#end = end;
    this.#wake?.();
  }

  /**
   * Streams the frames. Throws `SlowReaderError` for a reader above its limits, `StreamDrainedError` at a drain, and the
   * failure of the tape.
   */
  async *read(): AsyncGenerator<ThreadFrame, undefined, undefined> {
    const { signal } = this.#request;
    // A stream that is never read leaves nothing behind.
    const tape = this.#source.findTape(this.#place.thread, this.#start);
    signal.addEventListener("abort", this, { once: true });
    tape.join(this);
    // One generator: each further one would cost every silent stream about half a kilobyte.
    try {
      while (!signal.aborted) {
        if (this.#isCut) throw new SlowReaderError();
        const event = this.#waiting?.shift();
        if (event !== undefined) {
          this.#pass(event);
          if (yield* this.#yieldEvent(event)) return undefined;
          if (this.#isDraining && event.type === "step.committed" && event.within === undefined)
            throw new StreamDrainedError();
        } else if (this.#end !== undefined) {
          if (this.#end.kind === "failed") throw this.#end.error;
          yield { type: "thread.deleted" };
          return undefined;
        } else if (!this.#isLive) {
          if (yield* this.#catchUpOrEnd(tape)) return undefined;
        } else if (this.#isDraining && !tape.isAtWork) throw new StreamDrainedError();
        else if (await this.#hasEnded()) return undefined;
        else await this.#wait(tape);
      }
      return undefined;
    } finally {
      signal.removeEventListener("abort", this);
      tape.leave(this);
    }
  }

  /** Returns true if the stream has ended. */
  async *#yieldEvent(event: RunEvent): AsyncGenerator<ThreadFrame, boolean, undefined> {
    const end = this.#runEnd?.mayEndAt(event) === true ? this.#runEnd : undefined;
    if (end !== undefined && (await end.endsBefore(event))) return true;
    const shown = this.#source.show(event, this.#request, this.#place.thread);
    if (shown !== undefined && isInView(shown, this.#request.views)) yield shown;
    return end !== undefined && (await end.endsAfter(event));
  }

  /** Moves the reader past an event of the tape. */
  #pass(event: RunEvent): void {
    if (!isDurable(event) && event.type !== "events.pruned") return;
    this.#seq = Math.max(this.#seq, event.seq);
    this.#mayHaveEnded = true;
  }

  /** Catches up; a thread that was deleted meanwhile ends the reader. */
  async *#catchUpOrEnd(tape: ThreadTape): AsyncGenerator<ThreadFrame, boolean, undefined> {
    try {
      return yield* this.#catchUp(tape);
    } catch (error) {
      if (!isDeleted(error)) throw error;
      this.end({ kind: "deleted" });
      return false;
    }
  }

  /** Reads stored events up to the place of the tape, and joins the tape there. Returns true if the stream has ended. */
  async *#catchUp(tape: ThreadTape): AsyncGenerator<ThreadFrame, boolean, undefined> {
    if (!tape.isLive || tape.seq < this.#seq) {
      await this.#wait(tape);
      return false;
    }
    if (tape.seq > this.#seq) {
      const { store, thread, branch, codec } = this.#place;
      const target = tape.seq;
      const parts = { ...(branch === undefined ? {} : { branch }), ...(codec === undefined ? {} : { codec }) };
      let isPastTape = false;
      for await (const event of streamEvents({ store, thread, after: this.#seq, ...parts })) {
        if (this.#request.signal.aborted) return true;
        isPastTape = event.seq > tape.seq;
        if (isPastTape) {
          const gap = event.type === "events.pruned" ? { ...event, to: tape.seq, seq: tape.seq } : undefined;
          this.#seq = tape.seq;
          if (gap !== undefined && gap.from <= gap.to) yield* this.#yieldEvent(gap);
          break;
        }
        this.#seq = event.seq;
        if (yield* this.#yieldEvent(event)) return true;
      }
      if (!isPastTape) this.#seq = Math.max(this.#seq, target);
    }
    if (this.#seq === tape.seq) {
      // Nothing is awaited between the snapshot and the first event of the tape that waits.
      this.#isLive = true;
      const snapshot = tape.createSnapshot(this.#place.branch);
      yield* this.#yieldEvent(snapshot);
    }
    return false;
  }

  async #hasEnded(): Promise<boolean> {
    if (this.#runEnd === undefined || !this.#mayHaveEnded) return false;
    this.#mayHaveEnded = false;
    if (!(await this.#runEnd.isReached(this.#seq))) return false;
    this.#mayHaveEnded = true;
    return !this.#hasWaiting();
  }

  #isIncluded(event: RunEvent): boolean {
    const { branch } = this.#place;
    if (branch === undefined || event.branch === branch) return true;
    return event.type === "events.pruned" || event.type === "snapshot";
  }

  #toBranch(added: TapeEvent): TapeEvent {
    const { event } = added;
    const { branch } = this.#place;
    if (event.type !== "snapshot" || branch === undefined) return added;
    return { event: selectBranch(event, branch), bytes: undefined };
  }

  #hasWaiting(): boolean {
    return this.#waiting !== undefined && this.#waiting.size > 0;
  }

  /** Called by the signal of the request. */
  handleEvent(): void {
    this.#wake?.();
  }

  /** Resolves at the next event of the tape, its end, or the abort of the reader. */
  #wait(tape: ThreadTape): Promise<void> {
    if (this.#isPending(tape) || this.#request.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Returns true if the reader has something to do without a further event of the tape. */
  #isPending(tape: ThreadTape): boolean {
    if (this.#hasWaiting() || this.#end !== undefined || this.#isCut) return true;
    if (!this.#isLive) return tape.isLive && tape.seq > this.#seq;
    return (this.#runEnd !== undefined && this.#mayHaveEnded) || (this.#isDraining && !tape.isAtWork);
  }
}
