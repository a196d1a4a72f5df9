/** Tapes of a server: one for each thread that has readers. */
import { type RunEvent, type Store, streamEvents } from "@statewright/core";
import { RequestProblem } from "../http/problem.ts";
import { createProblem } from "../http/problem-table.ts";
import type { EventRequest, ThreadFrame } from "../service/caller-service.ts";
import { getNewestSeq } from "../service/thread-timeline.ts";
import { TapeReader, type TapeRequest, type TapeSource } from "./tape-reader.ts";
import { type TapeList, type TapeParts, ThreadTape } from "./thread-tape.ts";
import type { WaitingLimits } from "./waiting-events.ts";

/** Parts and limits of the tapes. */
export interface TapesOptions extends TapeParts {
  /** Limits of the events that wait for a reader. Default: 5,000 events and 1 MiB. */
  readonly waiting?: WaitingLimits | undefined;
}

/** Request for the events of a thread. */
export interface TapeRead extends EventRequest {
  /**
   * Returns an event as the reader may see it; undefined hides the event. Called for each event in order, before `views`
   * are applied. An event for which the function throws is not sent. Default: all events unchanged.
   */
  readonly show?: ((event: RunEvent) => RunEvent | undefined) | undefined;
}

/** Reads the events of threads. All ids are stored ids. */
export interface Tapes {
  /**
   * Streams the stored events above `after`, a `snapshot` of what is open, and new events as they come. Throws
   * `unknown_thread`, `unknown_branch` and the problem `event_unknown` before the first frame, and a `SlowReaderError`
   * in the stream of a reader that does not read.
   */
  read(thread: string, request: TapeRead): Promise<AsyncGenerator<ThreadFrame, undefined, undefined>>;
  /**
   * Ends the streams with a `StreamDrainedError`: at once without a run at work, otherwise after the next superstep is
   * committed.
   */
  drain(): void;
  /** Number of threads with readers. */
  readonly threads: number;
  readonly readers: number;
  /** Number of events that were not sent since the start, because `show` threw. */
  readonly withheldEvents: number;
}

const defaultLimits: WaitingLimits = { maxEvents: 5_000, maxBytes: 1_048_576 };

/** Creates the tapes of a server. A tape exists while its thread has readers. */
export function createTapes(options: TapesOptions): Tapes {
  return new OpenTapes(options);
}

class OpenTapes implements Tapes, TapeSource, TapeList {
  readonly parts: TapesOptions;
  readonly #tapes: Map<string, ThreadTape> = new Map();
  #withheldEvents = 0;

  constructor(options: TapesOptions) {
    this.parts = options;
  }

  get threads(): number {
    return this.#tapes.size;
  }

  get readers(): number {
    return [...this.#tapes.values()].reduce((sum, { readers }) => sum + readers, 0);
  }

  get withheldEvents(): number {
    return this.#withheldEvents;
  }

  drain(): void {
    for (const tape of this.#tapes.values()) tape.drain();
  }

  async read(thread: string, request: TapeRead): Promise<AsyncGenerator<ThreadFrame, undefined, undefined>> {
    const { store, codec, waiting: limits = defaultLimits } = this.parts;
    const { after = 0, branch, views, end = "never", signal, show } = request;
    await checkPlace(store, { thread, branch, after });
    const seq = await getNewestSeq(store, thread);
    const place = { store, codec, thread, branch };
    const tapeRequest = { after, views, signal, limits, show, end: end === "never" ? undefined : end };
    return new TapeReader(this, seq, place, tapeRequest).read();
  }

  findTape(thread: string, seq: number): ThreadTape {
    const open = this.#tapes.get(thread);
    if (open !== undefined) return open;
    const tape = new ThreadTape(thread, seq, this);
    this.#tapes.set(thread, tape);
    return tape;
  }

  remove(tape: ThreadTape): void {
    if (this.#tapes.get(tape.thread) === tape) this.#tapes.delete(tape.thread);
  }

  show(event: RunEvent, { show }: TapeRequest, thread: string): RunEvent | undefined {
    if (show === undefined) return event;
    try {
      const shown = show(event);
      return shown === undefined || shown === event ? shown : keepPosition(shown, event);
    } catch (error) {
      this.#withheldEvents += 1;
      const fields = { thread, seq: event.seq, type: event.type, count: this.#withheldEvents, error: String(error) };
      this.parts.world.log("error", "redact threw for an event; the event was not sent", fields);
      return undefined;
    }
  }
}

/** Returns the shown event at the position of the original: a reader continues by its number. */
function keepPosition(shown: RunEvent, { seq, at, branch }: RunEvent): RunEvent {
  return { ...shown, seq, at, branch };
}

/** Throws `unknown_thread`, `unknown_branch`, and `event_unknown` for a number above the newest event. */
async function checkPlace(
  store: Store,
  { thread, branch, after }: { readonly thread: string; readonly branch: string | undefined; readonly after: number },
): Promise<void> {
  const parts = branch === undefined ? {} : { branch };
  await streamEvents({ store, thread, after: Number.MAX_SAFE_INTEGER, ...parts }).next();
  if (after === 0 || (await store.events(thread, { after: after - 1, limit: 1 })).length > 0) return;
  const newest = await getNewestSeq(store, thread);
  const detail = `Expected the number of an event, at most ${newest}, got ${after}. Read again from an earlier number.`;
  throw new RequestProblem(createProblem("event_unknown", { detail }));
}
