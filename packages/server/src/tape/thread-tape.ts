/** Tape of a thread: follows the thread once, and gives its events to all readers. */
import { isStatewrightError, type Relay, type RunEvent, type Store, type World } from "@statewright/core";
import {
  createOpenWork,
  isDurable,
  type OpenWork,
  type OpenWorkFold,
  openEvents,
  type StopSignal,
  watchThreadChanges,
} from "@statewright/core/adapter";
import type { Codec } from "@statewright/core/store";
import { isRest } from "./run-end.ts";
import { type Snapshot, selectBranch } from "./select-branch.ts";
import type { TapeEvent } from "./waiting-events.ts";

/** Parts of all tapes of a server. */
export interface TapeParts {
  readonly store: Store;
  /** Default: the relay of the store, with the events of runs in this process. */
  readonly relay?: Relay | undefined;
  readonly world: World;
  readonly codec?: Codec | undefined;
}

const nothingOpen: OpenWork = { messages: [], tools: [] };

/** Why a tape ends while it has readers. */
export type TapeEnd = { readonly kind: "deleted" } | { readonly kind: "failed"; readonly error: unknown };

/** Reader of a tape. Its functions never throw. */
export interface TapeListener {
  /** True if a change of the thread without an event may end the stream of the reader. */
  readonly needsChanges: boolean;
  /** Takes an event of the tape. */
  receive(added: TapeEvent): void;
  /** Notes that the thread may have changed. */
  noteChange(): void;
  /** Ends the stream of the reader after the next committed superstep, or at once without a run at work. */
  drain(): void;
  /** Takes the end of the tape. */
  end(end: TapeEnd): void;
}

/** Tapes of a server. */
export interface TapeList {
  readonly parts: TapeParts;
  /** Removes a tape without readers. */
  remove(tape: ThreadTape): void;
}

/** Signal of a tape with its follower as the only listener: smaller than an `AbortController`. */
class TapeStop implements StopSignal {
  aborted = false;
  #listener: (() => void) | undefined;

  addEventListener(_: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(): void {
    this.#listener = undefined;
  }

  fire(): void {
    this.aborted = true;
    this.#listener?.();
  }
}

/** Events of a thread for all its readers. */
export class ThreadTape {
  readonly thread: string;
  readonly #parts: TapeParts;
  readonly #list: TapeList;
  /** List, not a set: most threads have a single reader. Replaced at each change. */
  #readers: readonly TapeListener[] = [];
  readonly #stop = new TapeStop();
  /** Undefined while nothing is open. */
  #open: OpenWorkFold | undefined;
  /** Run at work within reach, and its branch. */
  #atWork: { readonly run: string; readonly branch: string } | undefined;
  #seq: number;
  #isLive = false;
  #unwatch: (() => void) | undefined;
  #end: TapeEnd | undefined;

  /** `seq` is the number of a stored event; the tape begins after it. */
  constructor(thread: string, seq: number, list: TapeList) {
    this.thread = thread;
    this.#parts = list.parts;
    this.#seq = seq;
    this.#list = list;
  }

  /** Number of the newest durable event of the tape. */
  get seq(): number {
    return this.#seq;
  }

  /** True when the tape has reached the newest stored event. */
  get isLive(): boolean {
    return this.#isLive;
  }

  /** True while a run within reach is at work. */
  get isAtWork(): boolean {
    return this.#atWork !== undefined;
  }

  get readers(): number {
    return this.#readers.length;
  }

  /** Adds a reader. The first one starts the tape. */
  join(reader: TapeListener): void {
    this.#readers = [...this.#readers, reader];
    if (this.#end !== undefined) reader.end(this.#end);
    else if (this.#readers.length === 1) void this.#follow();
    if (reader.needsChanges) this.#unwatch ??= this.#watchChanges();
  }

  leave(reader: TapeListener): void {
    this.#readers = this.#readers.filter((each) => each !== reader);
    if (this.#readers.length > 0) return;
    this.#stop.fire();
    this.#unwatch?.();
    this.#list.remove(this);
  }

  drain(): void {
    for (const reader of this.#readers) reader.drain();
  }

  /** Creates the event with everything that is open after the newest event of the tape. */
  createSnapshot(branch: string | undefined): Snapshot {
    const snapshot = { type: "snapshot", run: this.#atWork?.run, ...(this.#open?.read() ?? nothingOpen) } as const;
    const place = { seq: this.#seq, at: this.#parts.world.clock.now(), branch: this.#atWork?.branch ?? "main" };
    return selectBranch({ ...snapshot, ...place }, branch);
  }

  /** Reads the thread until the last reader has left. Never rejects. */
  async #follow(): Promise<void> {
    const { store, relay, world, codec } = this.#parts;
    const parts = { ...(relay === undefined ? {} : { relay }), ...(codec === undefined ? {} : { codec }) };
    try {
      const follow = this.#stop;
      const events = openEvents({ store, world, ...parts, thread: this.thread, after: this.#seq, follow });
      for await (const event of await events) this.#receive(event);
      if (!this.#stop.aborted) this.#finish({ kind: "deleted" });
    } catch (error) {
      this.#finish(isDeleted(error) ? { kind: "deleted" } : { kind: "failed", error });
    }
  }

  #watchChanges(): () => void {
    const { store, world } = this.#parts;
    const noteChange = (): void => {
      for (const reader of this.#readers) if (reader.needsChanges) reader.noteChange();
    };
    return watchThreadChanges(store, { thread: this.thread, world }, noteChange) ?? repeat(world, noteChange);
  }

  #finish(end: TapeEnd): void {
    this.#end = end;
    for (const reader of this.#readers) reader.end(end);
    this.#list.remove(this);
  }

  #receive(event: RunEvent): void {
    this.#apply(event);
    const added: TapeEvent = { event, bytes: undefined };
    for (const reader of this.#readers) reader.receive(added);
  }

  #apply(event: RunEvent): void {
    if (event.type === "snapshot") {
      this.#open = event.messages.length + event.tools.length === 0 ? undefined : createOpenWork(event);
      this.#atWork = event.run === undefined ? undefined : { run: event.run, branch: event.branch };
      this.#isLive = true;
      return;
    }
    if (isDurable(event) || event.type === "events.pruned") this.#seq = Math.max(this.#seq, event.seq);
    if (event.type === "step.committed") this.#open?.apply({ committed: event.withinId ?? "" });
    else if ("task" in event) {
      this.#open ??= createOpenWork();
      this.#open.apply({ event });
    }
    if (this.#open?.isEmpty() === true) this.#open = undefined;
    if (event.within !== undefined) return;
    if (event.type === "run.started") this.#atWork = { run: event.run, branch: event.branch };
    else if (isRest(event)) this.#atWork = undefined;
  }
}

/** Returns true for the error of a read of a thread that was deleted after the reader had found it. */
export function isDeleted(error: unknown): boolean {
  return isStatewrightError(error) && error.code === "unknown_thread";
}

/** Time between two checks of a store without hints, in milliseconds. */
const repeatMs = 1_000;

/** Calls `work` at intervals, until the returned function is called. */
function repeat(world: World, work: () => void): () => void {
  let cancel = world.schedule.after(repeatMs, function next() {
    work();
    cancel = world.schedule.after(repeatMs, next);
  });
  return () => cancel();
}
