/** Delayed runs: armed by their timers, replaced by their debounce names, and moved into the queues when due. */

import {
  delayedRunRules,
  type QueueWrite,
  type RunRow,
  type Store,
  storeRules,
  type TimerRow,
  toStartTimerId,
} from "@statewright/core/store";
import { isUnreadable } from "@statewright/store-kit";
import type { NamespaceRow } from "../read/namespace-reader.ts";
import type { Reader } from "../read/reader.ts";
import type { WriterRows } from "../write/writer-rows.ts";

/** Page of due runs. */
export type DuePage = Parameters<Store["enqueueDue"]>[0];

/** Returns true for a thread that is at work or has work. */
type IsBusy = (thread: string, namespace: NamespaceRow) => boolean;

interface DelayedRun {
  readonly key: number;
  readonly thread: number;
  readonly namespace: NamespaceRow;
  readonly row: RunRow;
}

/** Writes delayed runs; call inside a transaction. */
export class DelayedRuns {
  readonly #rows: WriterRows;
  readonly #reader: Reader;

  constructor(rows: WriterRows, reader: Reader) {
    this.#rows = rows;
    this.#reader = reader;
  }

  /** Writes the timer of a delayed run. */
  arm(namespaceKey: number, run: RunRow, debounce?: string): void {
    this.#rows.timers.change(namespaceKey, { arm: delayedRunRules.toStartTimer(run, debounce) });
  }

  /** Removes the timer of a delayed run. */
  disarm({ thread, branch, id }: RunRow): void {
    const namespace = this.#reader.namespaces.find(thread, branch);
    if (namespace !== undefined)
      this.#rows.timers.change(namespace.key, { drop: { id: toStartTimerId(id), generation: 0 } });
  }

  /**
   * Replaces the delayed run of a debounce name. Returns the run of a known key instead, and undefined when no delayed
   * run has the name.
   */
  replace({ run }: QueueWrite, debounce: string): RunRow | undefined {
    const timer = this.#reader.timers.findDebounced(debounce);
    const delayed = timer === undefined ? undefined : this.#find(timer);
    if (delayed === undefined) return undefined;
    const known = run.key === undefined ? undefined : this.#reader.runs.findByKey(delayed.thread, run.key);
    if (known !== undefined) return known;
    const row = delayedRunRules.replaceDelayedRun(delayed.row, run);
    this.#put(delayed, row);
    this.arm(delayed.namespace.key, row, debounce);
    return row;
  }

  /** Moves the due runs into their queues. */
  enqueueDue({ at, limit }: DuePage, isBusy: IsBusy): readonly RunRow[] {
    return this.#reader.timers.list({ kinds: ["start"], dueBy: at, limit }).flatMap((timer) => {
      const due = this.#releaseReadable(timer, at, isBusy);
      if (due === undefined) return [];
      const { delayed, released } = due;
      this.#put(delayed, released);
      this.disarm(delayed.row);
      if (released.status === "queued") this.#rows.threads.addInput(delayed.thread, "queued", 1);
      return [released];
    });
  }

  #put({ key, thread, namespace }: DelayedRun, row: RunRow): void {
    const claimed = { key: thread, cipher: this.#reader.ciphers.get(row.thread) };
    const preempts = row.stops === undefined ? undefined : (namespace.run ?? undefined);
    this.#rows.runs.replaceDelayed(key, claimed, { key: namespace.key, preempts }, row);
  }

  /** Reads a due run and decides about its start, without a write. Skips a damaged thread: the others start in time. */
  #releaseReadable(
    timer: TimerRow,
    at: number,
    isBusy: IsBusy,
  ): { readonly delayed: DelayedRun; readonly released: RunRow } | undefined {
    try {
      const delayed = this.#find(timer);
      if (delayed === undefined) return undefined;
      const { namespace, row } = delayed;
      const newest = namespace.run === null ? undefined : this.#reader.runs.get(namespace.run)?.id;
      const busy = row.onBusy === "reject" && isBusy(row.thread, namespace);
      return { delayed, released: delayedRunRules.releaseDelayedRun(row, { at, newest, isBusy: busy }) };
    } catch (thrown) {
      if (!isUnreadable(thrown)) throw thrown;
      this.#reader.onFault(thrown);
      return undefined;
    }
  }

  #find({ thread: id, branch, id: timer }: TimerRow): DelayedRun | undefined {
    const { key: thread } = this.#rows.threads.get(id);
    const namespace = this.#reader.namespaces.find(id, branch);
    const known = this.#rows.runs.find(thread, timer.slice(toStartTimerId("").length));
    const row = known?.status === "delayed" ? this.#reader.runs.get(known.key) : undefined;
    if (namespace === undefined || known === undefined || row === undefined || storeRules.isChildNamespace(branch))
      return undefined;
    return { key: known.key, thread, namespace, row };
  }
}
