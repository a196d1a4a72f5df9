/** Readers of tapes that collect their frames. */
import { isDurable } from "@statewright/core/adapter";
import type { ThreadFrame } from "../../src/service/caller-service.ts";
import type { TapeRead, Tapes } from "../../src/tape/tapes.ts";

/** Reader of a tape in the background. */
export interface TapeReading {
  readonly frames: ThreadFrame[];
  /** Types of the frames so far. */
  readonly types: readonly string[];
  /** Number of the last durable event, with which a client comes back. */
  readonly last: number;
  /** Set when the stream has ended by itself or was stopped. */
  readonly hasEnded: boolean;
  readonly error: unknown;
  /** Ends the stream as a client that leaves. */
  stop(): Promise<void>;
}

/** Reads a thread until `stop`, or the end of its stream. `onFrame` may hold the reader back. */
export async function readTape(
  tapes: Tapes,
  thread: string,
  options: Omit<TapeRead, "signal"> & { readonly onFrame?: (frame: ThreadFrame) => unknown } = {},
): Promise<TapeReading> {
  const { onFrame, ...request } = options;
  const abort = new AbortController();
  const frames: ThreadFrame[] = [];
  let last = options.after ?? 0;
  let hasEnded = false;
  let failure: unknown;
  const stream = await tapes.read(thread, { ...request, signal: abort.signal });
  const reading = (async () => {
    try {
      for await (const frame of stream) {
        frames.push(frame);
        if (frame.type !== "thread.deleted" && isDurable(frame)) last = frame.seq;
        await onFrame?.(frame);
      }
    } catch (error) {
      failure = error;
    }
    hasEnded = true;
  })();
  return {
    frames,
    get types() {
      return frames.map(({ type }) => type);
    },
    get last() {
      return last;
    },
    get hasEnded() {
      return hasEnded;
    },
    get error() {
      return failure;
    },
    stop: async () => {
      abort.abort();
      await reading;
    },
  };
}
