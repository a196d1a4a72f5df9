/** Tape of a thread: follows the thread once, and gives its events to all readers. */
import { isStatewrightError, type Relay, type RunEvent, type Store, streamEvents, type World } from "@statewright/core";
import { createOpenWork, isDurable, watchThreadChanges } from "@statewright/core/adapter";
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

/** Events of a thread for all its readers. */
export class ThreadTape {
  readonly thread: string;
  readonly #parts: TapeParts;
  readonly #onEmpty: (tape: ThreadTape) => void;
  readonly #readers: Set<TapeListener> = new Set();
  readonly #abort = new AbortController();
  #open = createOpenWork();
  /** Run at work within reach, and its branch. */
  #atWork: { readonly run: string; readonly branch: string } | undefined;
  #seq: number;
  #isLive = false;
  #unwatch: (() => void) | undefined;
  #end: TapeEnd | undefined;

  /** `seq` is the number of a stored event; the tape begins after it. */
  constructor(thread: string, parts: TapeParts, start: { readonly seq: number; onEmpty(tape: ThreadTape): void }) {
    this.thread = thread;
    this.#parts = parts;
    this.#seq = start.seq;
    this.#onEmpty = start.onEmpty;
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
    return this.#readers.size;
  }

  /** Adds a reader. The first one starts the tape. */
  join(reader: TapeListener): void {
    this.#readers.add(reader);
    if (this.#end !== undefined) reader.end(this.#end);
    else if (this.#readers.size === 1) void this.#follow();
    if (reader.needsChanges) this.#unwatch ??= this.#watchChanges();
  }

  leave(reader: TapeListener): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#abort.abort();
    this.#unwatch?.();
    this.#onEmpty(this);
  }

  drain(): void {
    for (const reader of [...this.#readers]) reader.drain();
  }

  /** Creates the event with everything that is open after the newest event of the tape. */
  createSnapshot(branch: string | undefined): Snapshot {
    const snapshot = { type: "snapshot", run: this.#atWork?.run, ...this.#open.read() } as const;
    const place = { seq: this.#seq, at: this.#parts.world.clock.now(), branch: this.#atWork?.branch ?? "main" };
    return selectBranch({ ...snapshot, ...place }, branch);
  }

  /** Reads the thread until the last reader has left. Never rejects. */
  async #follow(): Promise<void> {
    const { store, relay, world, codec } = this.#parts;
    const parts = { ...(relay === undefined ? {} : { relay }), ...(codec === undefined ? {} : { codec }) };
    try {
      const follow = this.#abort.signal;
      for await (const event of streamEvents({ store, world, ...parts, thread: this.thread, after: this.#seq, follow }))
        this.#receive(event);
      if (!this.#abort.signal.aborted) this.#finish({ kind: "deleted" });
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
    for (const reader of [...this.#readers]) reader.end(end);
    this.#onEmpty(this);
  }

  #receive(event: RunEvent): void {
    this.#apply(event);
    const added: TapeEvent = { event, bytes: undefined };
    for (const reader of this.#readers) reader.receive(added);
  }

  #apply(event: RunEvent): void {
    if (event.type === "snapshot") {
      this.#open = createOpenWork(event);
      this.#atWork = event.run === undefined ? undefined : { run: event.run, branch: event.branch };
      this.#isLive = true;
      return;
    }
    if (isDurable(event) || event.type === "events.pruned") this.#seq = Math.max(this.#seq, event.seq);
    if (event.type === "step.committed") this.#open.apply({ committed: event.withinId ?? "" });
    else this.#open.apply({ event });
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
