/**
 * Follows a thread: durable events from the store, and transient events from a relay, joined in the order of the
 * publisher. Each frame states the newest durable event before the frame, so the follower yields exactly these durable
 * events first. A follower ahead of the publisher folds frames until both meet, and then yields a snapshot.
 */
import { toErrorRecord } from "../base/errors.ts";
import type { World } from "../base/world.ts";
import type { Store } from "../checkpoint/store.ts";
import { createOpenWork, type OpenWorkFold } from "../run/events/open-work.ts";
import type { Relay, RelayFrame, RelayGap, RelaySnapshot } from "../run/events/relay.ts";
import type { RunEvent } from "../run/events/run-event.ts";
import type { StoredEventReader } from "../run/session/stored-events.ts";
import { watchThreadChanges } from "./thread-changes.ts";

/** Signal that ends a follower; an `AbortSignal` is one. */
export interface StopSignal {
  readonly aborted: boolean;
  /** Calls the listener when the signal fires. */
  addEventListener(type: "abort", listener: () => void, options?: { readonly once?: boolean }): void;
  /** Removes a listener. */
  removeEventListener(type: "abort", listener: () => void): void;
}

interface FollowOptions {
  readonly thread: string;
  /** Branch of the transient events; default: all branches. */
  readonly branch: string | undefined;
  /** Undefined for durable events only. */
  readonly relay: Relay | undefined;
  readonly signal: StopSignal;
  /** Poll interval in milliseconds. Undefined for a follower that polls after hints only. */
  readonly everyMs: number | undefined;
  readonly store: Store;
  /** Time of creation of the thread: a thread that was deleted and made again is another one. */
  readonly createdAt: number;
  readonly world: World;
}

/** Frames that wait for a slow reader; above this number the reader continues with a snapshot. */
const maxWaitingFrames = 10_000;

/**
 * Milliseconds between a hint and the poll. A publisher within reach reports the change by itself: its events then come
 * in their order. A publisher that the follower reads already gets more time.
 */
const hintDelays = { unknown: 25, known: 200 } as const;

/** Polls with unreported durable events after which the follower stops waiting for its publisher. */
const maxLaggingPolls = 2;

/**
 * Yields the durable events of `stored` and the transient events of the relay until the signal fires, then the durable
 * events up to that moment. Ends when the thread was deleted.
 */
export function followThread(stored: StoredEventReader, options: FollowOptions): Events {
  return new Follower(stored, options).follow();
}

type Position = Pick<RelaySnapshot, "source" | "run" | "branch" | "epoch" | "index" | "seq">;
type Events = AsyncGenerator<RunEvent, undefined, undefined>;

class Follower {
  readonly #stored: StoredEventReader;
  readonly #options: FollowOptions;
  #frames: RelayFrame[] = [];
  #wake: (() => void) | undefined;
  /** Publisher that the follower reads, after its newest applied frame; undefined without a publisher. */
  #position: Position | undefined;
  /** Undefined while nothing is open. */
  #open: OpenWorkFold | undefined;
  /** True when the next yielded event must be a snapshot. */
  #owesSnapshot: boolean;
  #needsSync = true;
  /** Source whose snapshot could not be loaded: its frames cannot be joined. */
  #unknownSource: string | undefined;
  #laggingPolls = 0;
  /** True after a hint, until a poll has found no unreported durable event. */
  #isHinted = false;
  #isDeleted = false;

  constructor(stored: StoredEventReader, options: FollowOptions) {
    this.#stored = stored;
    this.#options = options;
    this.#owesSnapshot = options.relay !== undefined;
  }

  async *follow(): Events {
    const { relay, thread, store, world, everyMs, signal } = this.#options;
    const unsubscribe = relay?.subscribe(thread, (received) => this.#push(received));
    const unwatch =
      everyMs === undefined ? watchThreadChanges(store, { thread, world }, () => this.#noteHint()) : undefined;
    const wake = (): void => this.#wake?.();
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!signal.aborted && !this.#isDeleted) {
        if (this.#needsSync) yield* this.#synchronize();
        const frame = this.#frames.shift();
        if (frame !== undefined) yield* this.#receive(frame);
        else if (!this.#needsSync && (await this.#wait()) === "poll") yield* this.#poll();
      }
      yield* this.#stored.readNew();
      return undefined;
    } finally {
      signal.removeEventListener("abort", wake);
      unsubscribe?.();
      unwatch?.();
    }
  }

  #push(received: RelayFrame | RelayGap): void {
    if ("missing" in received || this.#frames.length >= maxWaitingFrames) {
      if (!("missing" in received)) this.#frames = [];
      this.#needsSync = true;
    } else this.#frames.push(received);
    this.#wake?.();
  }

  #noteHint(): void {
    if (this.#isHinted) return;
    this.#isHinted = true;
    this.#wake?.();
  }

  /** Joins the publisher at its snapshot. Frames that arrive meanwhile wait, and those in the snapshot are skipped. */
  async *#synchronize(): Events {
    this.#needsSync = false;
    const snapshot = await this.#loadSnapshot();
    const before = this.#position;
    if (snapshot === undefined) {
      this.#position = undefined;
      this.#dropOpenWork();
    } else if (snapshot.source !== before?.source || snapshot.index > before.index) {
      const { open, ...position } = snapshot;
      this.#position = position;
      this.#open = open.messages.length + open.tools.length === 0 ? undefined : createOpenWork(open);
      this.#owesSnapshot = true;
    }
    yield* this.#stored.readNew(this.#position?.seq);
    yield* this.#yieldSnapshot();
    return undefined;
  }

  async #loadSnapshot(): Promise<RelaySnapshot | undefined> {
    const { relay, thread, world } = this.#options;
    try {
      return await relay?.snapshot(thread);
    } catch (error) {
      world.log("warn", "a snapshot could not be loaded; text arrives with its commit", {
        thread,
        error: toErrorRecord(error),
      });
      return undefined;
    }
  }

  async *#receive(frame: RelayFrame): Events {
    if (!this.#advance(frame)) return undefined;
    this.#laggingPolls = 0;
    if (frame.event !== undefined) this.#open ??= createOpenWork();
    this.#open?.apply(frame);
    if (frame.ended === true) {
      this.#position = undefined;
      this.#dropOpenWork();
    }
    // After the last frame of a publisher, the next one has its own: nothing is read ahead of them.
    yield* this.#stored.readNew(this.#position?.seq ?? frame.seq);
    if (this.#owesSnapshot) yield* this.#yieldSnapshot();
    else if (this.#hasReadAhead()) this.#owesSnapshot = frame.event !== undefined;
    else if (frame.event !== undefined && this.#isIncluded(frame.event)) yield frame.event;
    return undefined;
  }

  /** Moves the position to the frame. Returns false for a frame that cannot follow the position. */
  #advance(frame: RelayFrame): boolean {
    const { event: _, committed: __, ended: ___, ...next } = frame;
    const position = this.#position;
    if (position?.source === frame.source) {
      if (frame.index > position.index + 1) this.#needsSync = true;
      if (frame.index !== position.index + 1) return false;
    } else {
      if (position !== undefined && frame.epoch < position.epoch) return false;
      if (frame.index !== 1) {
        if (this.#unknownSource !== frame.source) this.#needsSync = true;
        this.#unknownSource = frame.source;
        return false;
      }
      this.#dropOpenWork();
    }
    this.#unknownSource = undefined;
    this.#position = { ...next, seq: Math.max(next.seq, position?.source === frame.source ? position.seq : 0) };
    return true;
  }

  /** Forgets the open work of a publisher that is gone. */
  #dropOpenWork(): void {
    const hadOpenWork = this.#open?.isEmpty() === false;
    this.#open = undefined;
    if (hadOpenWork) this.#owesSnapshot = true;
  }

  /** True when durable events were read that the publisher has not reported yet: its next frames belong before them. */
  #hasReadAhead(): boolean {
    return this.#position !== undefined && this.#position.seq < this.#stored.getLastSeq();
  }

  async *#yieldSnapshot(): Events {
    if (!this.#owesSnapshot || this.#hasReadAhead()) return undefined;
    this.#owesSnapshot = false;
    const { messages = [], tools = [] } = this.#open?.read() ?? {};
    yield {
      type: "snapshot",
      run: this.#position?.run,
      messages: messages.filter((message) => this.#isIncluded(message)),
      tools: tools.filter((call) => this.#isIncluded(call)),
      seq: this.#stored.getLastSeq(),
      at: this.#options.world.clock.now(),
      branch: this.#position?.branch ?? this.#options.branch ?? "main",
    };
    return undefined;
  }

  #isIncluded({ branch }: { readonly branch: string }): boolean {
    return this.#options.branch === undefined || this.#options.branch === branch;
  }

  /** Yields durable events that no frame has reported: of a writer without a relay, or out of reach. */
  async *#poll(): Events {
    const before = this.#stored.getLastSeq();
    this.#isHinted = false;
    if (this.#unknownSource !== undefined) {
      this.#unknownSource = undefined;
      yield* this.#synchronize();
    }
    if (this.#position === undefined) yield* this.#stored.readNew();
    else if (await this.#stored.hasNew()) {
      this.#isHinted = true;
      this.#laggingPolls += 1;
      if (this.#laggingPolls < maxLaggingPolls) return undefined;
      this.#laggingPolls = 0;
      yield* this.#synchronize();
      yield* this.#stored.readNew();
    } else this.#laggingPolls = 0;
    if (this.#stored.getLastSeq() === before) this.#isDeleted = await this.#findDeleted();
    return undefined;
  }

  async #findDeleted(): Promise<boolean> {
    const { store, thread, createdAt } = this.#options;
    return (await store.thread(thread))?.createdAt !== createdAt;
  }

  /** Time until the next poll; undefined while nothing hints at a change. */
  #getPollDelay(): number | undefined {
    const { everyMs } = this.#options;
    if (everyMs !== undefined || !this.#isHinted) return everyMs;
    return this.#position === undefined ? hintDelays.unknown : hintDelays.known;
  }

  /** Resolves at the next frame, at the next poll, or when the signal fires. */
  async #wait(): Promise<"poll" | "received"> {
    const delayMs = this.#getPollDelay();
    let isDue = false;
    const cancel =
      delayMs === undefined
        ? undefined
        : this.#options.world.schedule.after(delayMs, () => {
            isDue = true;
            this.#wake?.();
          });
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
    cancel?.();
    return isDue ? "poll" : "received";
  }
}
