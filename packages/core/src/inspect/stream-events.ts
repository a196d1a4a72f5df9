/** Streams stored events of a thread after a sequence number, and with `follow` also new events and text at work. */
import { checkId } from "../base/ids.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import { createUnknownBranchError } from "../checkpoint/rules.ts";
import type { Store } from "../checkpoint/store.ts";
import { type EventView, isInView } from "../run/events/events.ts";
import type { Relay } from "../run/events/relay.ts";
import { getStoreRelay } from "../run/events/relay-publisher.ts";
import type { RunEvent } from "../run/events/run-event.ts";
import {
  checkCodecOption,
  checkPort,
  checkRelayOption,
  checkStoreOption,
} from "../run/session/options/check-run-options.ts";
import { createStoredEventReader } from "../run/session/stored-events.ts";
import type { Codec } from "../state/codec.ts";
import { lenientCodec } from "../state/lenient-codec.ts";
import type { Tool } from "../tool/definition/tool.ts";
import { followThread, type StopSignal } from "./follow-thread.ts";
import { requireThread } from "./get-history.ts";
import { createReadRedactor } from "./read/read-redactor.ts";

/** Options of `streamEvents`. */
export interface StreamEventsOptions {
  /** Store of the thread. */
  readonly store: Store;
  /** Id of the thread. */
  readonly thread: string;
  /** Last sequence number already read; exclusive. Default 0: all events. */
  readonly after?: number;
  /**
   * Only the history of this branch: its own events, and those of its ancestors up to the checkpoint of the fork. An
   * ancestor's run that was at work at the fork has no end on this branch. Default: all branches.
   */
  readonly branch?: string;
  /** Only events of these views; default: all. Only the views `updates` and `checkpoints` need no relay. */
  readonly views?: readonly EventView[];
  /**
   * Follows new events, also of other processes, until this signal fires or the thread is deleted; without a signal the
   * stream ends at the newest event.
   */
  readonly follow?: AbortSignal;
  /**
   * With `follow`: the relay of the processes that run the thread. Default: the relay of the store, which carries the
   * events of runs in this process.
   */
  readonly relay?: Relay;
  /**
   * Poll interval in milliseconds while no event is new. Default: a poll after each hint of the store, and one a minute
   * for all; 200 for a store without hints.
   */
  readonly everyMs?: number;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
  /** Codec of values other than plain data. Default: `createLenientCodec()`, which shows unknown classes as foreign. */
  readonly codec?: Codec;
  /** Texts and patterns to redact in every event, as in the readers of a thread. Default: events are shown as saved. */
  readonly redact?: readonly (string | RegExp)[];
  /** Tools whose `safety.redact` applies to calls and results in saved changes. Default: none. */
  readonly tools?: readonly Tool<never, never>[];
}

/** Poll interval in milliseconds for a store without hints. */
const defaultPollMs = 200;

const optionKeys = listOptionNames<StreamEventsOptions>({
  store: true,
  thread: true,
  after: true,
  branch: true,
  views: true,
  follow: true,
  relay: true,
  everyMs: true,
  world: true,
  codec: true,
  redact: true,
  tools: true,
});

/**
 * Streams the durable events of a thread in the order of their sequence numbers, without gaps (rule E58): a reader
 * that passes the last sequence number misses no event. In place of events that `pruneThread` removed comes an event
 * `events.pruned` with the removed numbers, in every view.
 *
 * With `follow`, also the transient events of runs within reach of the relay: after the durable events above `after`
 * comes an event `snapshot` with the open messages of the run at work, then new events. A `snapshot` comes again after a
 * gap. A reader that drops open messages at `snapshot` shows every word once. A transient event
 * repeats the number of the newest durable event, so that `after: event.seq` continues after any event. Without a
 * reachable relay, text arrives with the commit. Throws `unknown_thread`, `unknown_branch`.
 *
 * @example
 * for await (const { seq, type } of streamEvents({ store, thread: "t1", branch: "main" })) console.log(seq, type);
 */
export async function* streamEvents(options: StreamEventsOptions): AsyncGenerator<RunEvent, undefined, undefined> {
  const events = await openEvents(options);
  const { views } = options;
  const { redact } = createReadRedactor("streamEvents", options);
  for await (const event of events) if (isInView(event, views)) yield redact(event);
  return undefined;
}

/**
 * Opens the events of `streamEvents`: checks the options and the thread, and returns the events of all views. For readers
 * by the thousand: a stream costs less memory than `streamEvents`.
 */
export async function openEvents(
  options: Omit<StreamEventsOptions, "follow" | "redact" | "tools"> & { readonly follow?: StopSignal },
): Promise<AsyncGenerator<RunEvent, undefined, undefined>> {
  checkOptions("streamEvents", options, optionKeys);
  checkStoreOption("streamEvents", options.store ?? null);
  checkCodecOption("streamEvents", options.codec);
  checkRelayOption("streamEvents", options.relay);
  checkPort("streamEvents", "follow", options.follow, {
    members: ["aborted", "addEventListener"],
    expected: "the signal of an AbortController that ends the stream",
  });
  const { store, after = 0, views, follow, everyMs, world = systemWorld(), codec = lenientCodec } = options;
  const thread = checkId("thread", options.thread);
  const { createdAt } = await requireThread(store, thread);
  const branch = options.branch === undefined ? undefined : checkId("branch", options.branch);
  const lastSeqs = branch === undefined ? undefined : await loadLastSeqs(store, thread, branch);
  const stored = createStoredEventReader({ store, codec, thread, after, lastSeqs });
  if (follow === undefined) return stored.readNew();
  return followThread(stored, {
    ...{ store, thread, createdAt, branch, world, signal: follow },
    everyMs: everyMs ?? (store.watch === undefined ? defaultPollMs : undefined),
    relay: hasTransientEvents(views) ? (options.relay ?? getStoreRelay(store)) : undefined,
  });
}

function hasTransientEvents(views: readonly EventView[] | undefined): boolean {
  return views === undefined || views.some((view) => view !== "updates" && view !== "checkpoints");
}

/**
 * Loads the last sequence number of a branch and of each of its ancestors that belongs to the history of the branch.
 * Throws `unknown_branch`.
 */
async function loadLastSeqs(store: Store, thread: string, branch: string): Promise<ReadonlyMap<string, number>> {
  const origins = new Map((await store.branches(thread)).map(({ name, from }) => [name, from]));
  if (!origins.has(branch)) throw createUnknownBranchError(thread, branch);
  const lastSeqs = new Map([[branch, Number.POSITIVE_INFINITY]]);
  let from = origins.get(branch);
  while (from !== undefined) {
    const origin = await store.checkpoint(thread, from);
    if (origin === undefined || lastSeqs.has(origin.branch)) break;
    lastSeqs.set(origin.branch, origin.seq);
    from = origins.get(origin.branch);
  }
  return lastSeqs;
}
