/**
 * Hints about changed threads. Writes of this store are reported at once. Writes of other processes are found by
 * polling the data version of the file, which costs a few microseconds, and then a single query by index for each kind
 * of hint. Nothing is polled without a listener.
 */
import type { World } from "@statewright/core";
import type { HintKind, HintListener, WatchOptions } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { isNotDone } from "./list-filters.ts";
import { threadHeadCheckpoint } from "./thread-head.ts";

/** Shortest time between two polls, in milliseconds. A slow poll is followed by a longer pause. */
const pollMs = 25;

/**
 * Without a start, because the file was locked: how far back the first poll that can read reports changes, in
 * milliseconds, and inputs, in numbers. Hints about earlier changes are harmless.
 */
const reportedBeforeStart = { ms: 60_000, inputs: 100 } as const;

/** Maximum share of the time that polls take. */
const maxPollShare = 0.05;

/** Changed thread; `mark` differs after each change. */
interface ChangedThread {
  readonly id: string;
  readonly at: number;
  readonly mark: string;
}

function prepareStatements(db: Database) {
  return {
    version: db.prepare<[], number>("PRAGMA data_version").pluck(),
    newestInput: db
      .prepare<[], number>("SELECT coalesce(max(input), 0) FROM threads INDEXED BY threads_by_input WHERE input > 0")
      .pluck(),
    inputs: db
      .prepare<[number], string>(
        "SELECT id FROM threads INDEXED BY threads_by_input WHERE input > ? AND input > 0 ORDER BY input",
      )
      .pluck(),
    newestChange: db.prepare<[], number>("SELECT coalesce(max(updated), 0) FROM threads").pluck(),
    changes: db.prepare<[number], ChangedThread>(
      "SELECT id, updated AS at, seq || ' ' || checkpoint || ' ' || status AS mark FROM threads INDEXED BY threads_by_change WHERE updated >= ?",
    ),
    running: db.prepare<[], ChangedThread>(
      "SELECT DISTINCT t.id, 0 AS at, " +
        threadHeadCheckpoint +
        " || '' AS mark FROM runs r INDEXED BY runs_by_status CROSS JOIN threads t ON t.key = r.thread" +
        " WHERE r.status = 'running'" +
        isNotDone +
        " AND t.owner IS NOT NULL",
    ),
  };
}

/** Dependencies of the watch. */
export interface ThreadWatchParts {
  readonly world: World;
  readonly isClosed: () => boolean;
  /** True if no other process can write to the database. */
  readonly isLocal: boolean;
}

/** Listeners of an open store. */
export class ThreadWatch {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #parts: ThreadWatchParts;
  readonly #listeners: Map<HintListener, readonly HintKind[] | undefined> = new Map();
  #watched: Readonly<Record<HintKind, boolean>> = { input: false, change: false };
  #cancelPoll: (() => void) | undefined;
  #version = -1;
  /** Time of the first listener. */
  #startedAt = 0;
  /** Number of the last input, and time of the last change; undefined before the first read. */
  #lastInput: number | undefined;
  #lastChange: number | undefined;
  /** Marks of the threads changed at the time of the last change. */
  #marksAtLastChange: ReadonlyMap<string, string> = new Map();
  /** Newest checkpoints of the threads with an active run. */
  #running: ReadonlyMap<string, string> = new Map();

  constructor(db: Database, parts: ThreadWatchParts) {
    this.#sql = prepareStatements(db);
    this.#parts = parts;
  }

  /** Calls the listener for each change of these kinds, until the returned function is called. */
  watch(listener: HintListener, { kinds }: WatchOptions = {}): () => void {
    // The same function may listen twice.
    const own: HintListener = (thread, kind) => listener(thread, kind);
    if (this.#listeners.size === 0) this.#startedAt = this.#parts.world.clock.now();
    this.#listeners.set(own, kinds);
    this.#updateWatched();
    if (this.#watched.change) this.#readQuietly(() => this.#readStart());
    this.#schedulePoll(pollMs);
    return () => {
      this.#listeners.delete(own);
      this.#updateWatched();
      if (this.#listeners.size === 0) this.close();
    };
  }

  /** Returns true if a listener waits for hints of this kind. */
  isWatched(kind: HintKind): boolean {
    return this.#watched[kind];
  }

  /** Reports a write of this store. */
  report(thread: string, kind: HintKind): void {
    for (const [listener, kinds] of [...this.#listeners]) if (kinds?.includes(kind) !== false) listener(thread, kind);
  }

  /** Ends all polling. */
  close(): void {
    this.#listeners.clear();
    this.#updateWatched();
    this.#cancelPoll?.();
    this.#cancelPoll = undefined;
    this.#lastInput = undefined;
    this.#lastChange = undefined;
  }

  /** Every commit asks for the kinds that listeners wait for. */
  #updateWatched(): void {
    const all = [...this.#listeners.values()];
    const isWatched = (kind: HintKind): boolean => all.some((kinds) => kinds?.includes(kind) !== false);
    this.#watched = { input: isWatched("input"), change: isWatched("change") };
  }

  #schedulePoll(delayMs: number): void {
    const { world, isLocal } = this.#parts;
    if (isLocal || this.#cancelPoll !== undefined || this.#listeners.size === 0) return;
    this.#cancelPoll = world.schedule.after(delayMs, () => {
      this.#cancelPoll = undefined;
      const startMs = world.clock.monotonic();
      this.#readQuietly(() => this.#poll());
      this.#schedulePoll(Math.max(pollMs, (world.clock.monotonic() - startMs) / maxPollShare));
    });
  }

  /** A locked or damaged file sends no hints: the operations of the store report its errors. */
  #readQuietly(read: () => void): void {
    const { world, isClosed } = this.#parts;
    if (isClosed()) return;
    try {
      read();
    } catch (error) {
      world.log("debug", "the changes of a store could not be read", { error: String(error) });
    }
  }

  /** Reads the state before the first poll: only later changes are reported. */
  #readStart(): void {
    if (this.#lastInput === undefined) {
      this.#version = this.#sql.version.get() ?? -1;
      this.#lastInput = this.#sql.newestInput.get() ?? 0;
    }
    if (this.#lastChange !== undefined || !this.#watched.change) return;
    this.#lastChange = this.#sql.newestChange.get() ?? 0;
    this.#findChanges(this.#lastChange);
  }

  #poll(): void {
    const version = this.#sql.version.get() ?? -1;
    const hasStart = this.#lastInput !== undefined && (this.#lastChange !== undefined || !this.#watched.change);
    if (hasStart && version === this.#version) return;
    for (const thread of this.#findInputs(this.#lastInput)) this.report(thread, "input");
    if (this.#watched.change) {
      const since = this.#lastChange ?? this.#findStart();
      for (const thread of this.#findChanges(since)) this.report(thread, "change");
    }
    this.#version = version;
  }

  /** Time of the oldest reported change when the start could not be read, also by clocks that are behind. */
  #findStart(): number {
    return Math.min(this.#sql.newestChange.get() ?? 0, this.#startedAt - reportedBeforeStart.ms);
  }

  #findInputs(known: number | undefined): readonly string[] {
    // The newest number is lower after the deletion of its thread.
    const newest = this.#sql.newestInput.get() ?? 0;
    const last = known ?? Math.max(0, newest - reportedBeforeStart.inputs);
    const threads = newest > last ? this.#sql.inputs.all(last) : [];
    this.#lastInput = newest;
    return threads;
  }

  /** Returns the threads changed since, and those whose active run has a new checkpoint. */
  #findChanges(since: number): readonly string[] {
    const known = this.#marksAtLastChange;
    const rows = this.#sql.changes.all(since);
    const newest = rows.reduce((latest, { at }) => Math.max(latest, at), since);
    this.#lastChange = newest;
    this.#marksAtLastChange = new Map(rows.flatMap(({ id, at, mark }) => (at === newest ? [[id, mark]] : [])));
    const changed = new Set(rows.flatMap(({ id, mark }) => (known.get(id) === mark ? [] : [id])));
    const running = this.#sql.running.all();
    for (const { id, mark } of running) if (this.#running.get(id) !== mark) changed.add(id);
    this.#running = new Map(running.map(({ id, mark }) => [id, mark]));
    return [...changed];
  }
}
