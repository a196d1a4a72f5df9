/** The events of a thread, from any number on: what was told before, and with `follow` what will be told. */
import { checkId } from "../base/ids.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import type { Store } from "../checkpoint/store.ts";
import { type EventView, isInView, type RunEvent } from "../run/events/events.ts";
import { storedEvents } from "../run/events/stored-events.ts";
import { checkCodec, checkStore } from "../run/session/check-run-options.ts";
import { type Codec, plainCodec } from "../state/codec.ts";
import { mustExist } from "./get-history.ts";

/** What `readEvents` takes. */
export interface ReadEventsOptions {
  readonly store: Store;
  readonly thread: string;
  /** The last number that was seen; everything above it is given. Default 0: from the beginning. */
  readonly after?: number;
  /** Only these; all durable events by default. */
  readonly views?: readonly EventView[];
  /** Go on with what other processes write, until it fires; without it the reading ends at the newest event. */
  readonly follow?: AbortSignal;
  /** How often the store is asked while there is nothing new, in milliseconds. Default 200. */
  readonly everyMs?: number;
  readonly world?: World;
  readonly codec?: Codec;
}

const names = optionNames<ReadEventsOptions>({
  store: true,
  thread: true,
  after: true,
  views: true,
  follow: true,
  everyMs: true,
  world: true,
  codec: true,
});

/**
 * Read the durable events of a thread, in the order of their numbers, none left out (rule E58): a reader that gives the
 * last number it saw misses nothing. Transient events are those of a run at work: `handle.events()`. Throws
 * `unknown_thread`.
 */
export async function* readEvents(options: ReadEventsOptions): AsyncGenerator<RunEvent, undefined, undefined> {
  checkOptions("readEvents", options, names);
  checkStore("readEvents", options.store ?? null);
  checkCodec("readEvents", options.codec);
  const { store, views, follow, everyMs = 200, world = systemWorld(), codec = plainCodec } = options;
  const thread = checkId("thread", options.thread);
  await mustExist(store, thread);
  let { after = 0 } = options;
  for (;;) {
    for await (const event of storedEvents(store, codec, thread, after)) {
      after = event.seq;
      if (isInView(event, views)) yield event;
    }
    if (follow === undefined || follow.aborted) return undefined;
    await quiet(world, everyMs, follow);
  }
}

/** Wait for the next look at the store, or for the end. */
function quiet(world: World, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = world.schedule.after(ms, end);
    signal.addEventListener("abort", end, { once: true });
  });
}
