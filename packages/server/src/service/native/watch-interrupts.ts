/** Watches the open interrupts of a tenant. */
import { isStatewrightError, type WaitingInterrupt } from "@statewright/core";
import type { CallerScope } from "../caller-scope.ts";
import type { CallerService, Page, RunView, WaitingView } from "../caller-service.ts";
import { toWaitingView } from "../interrupts.ts";
import { statusTable } from "../status-table.ts";
import type { InterruptFeed } from "./interrupt-feed.ts";

/** Change of the open interrupts: what is open at first, then each that opens or closes. */
export type InterruptChange =
  | { readonly type: "snapshot"; readonly page: Page<WaitingView> }
  | { readonly type: "opened"; readonly interrupt: WaitingView }
  | { readonly type: "closed"; readonly id: string; readonly thread: string };

/** Acts that wait. */
export interface WaitActs {
  /** Yields the newest open interrupts, then their changes until the signal fires. */
  watchInterrupts(signal: AbortSignal): Promise<AsyncIterable<InterruptChange>>;
  /** Row of a run when it rests or has ended; undefined when `ms` milliseconds pass first, or the signal fires. */
  waitForRest(run: string, limits: { readonly ms: number; readonly signal: AbortSignal }): Promise<RunView | undefined>;
}

/** Acts of all protocols that the waiting acts use. */
export type WaitedActs = Pick<CallerService, "listInterrupts" | "waitForRun">;

/** Creates the acts of a caller that wait. `feed` is shared by all callers. */
export function createWaitActs(
  scope: CallerScope,
  { acts, feed }: { readonly acts: WaitedActs; readonly feed: InterruptFeed },
): WaitActs {
  const { world } = scope;
  return {
    watchInterrupts: async (signal) => {
      await scope.ask({ action: "thread.read" });
      return new InterruptWatch(scope, acts).watch(feed, signal);
    },
    waitForRest: async (run, { ms, signal }) => {
      const late = new AbortController();
      const stopTimer = world.schedule.after(ms, () => late.abort());
      try {
        const row = await acts.waitForRun(run, AbortSignal.any([signal, late.signal]));
        return statusTable[row.status].isResting ? row : undefined;
      } finally {
        stopTimer();
      }
    },
  };
}

/** Interrupts of a page. */
const pageSize = 200;

/** Watch of a caller: what it has shown, and the threads that have changed since. */
class InterruptWatch {
  readonly #scope: CallerScope;
  readonly #acts: WaitedActs;
  /** Ids of the open interrupts that were shown, by the thread. */
  readonly #known = new Map<string, ReadonlySet<string>>();
  /** Newest open interrupts of the changed threads, by their ids in the store. */
  readonly #changed = new Map<string, readonly WaitingInterrupt[]>();
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(scope: CallerScope, acts: WaitedActs) {
    this.#scope = scope;
    this.#acts = acts;
  }

  async *watch(feed: InterruptFeed, signal: AbortSignal): AsyncGenerator<InterruptChange, undefined, undefined> {
    const wake = (): void => this.#wake?.();
    // The feed begins before the list is read: a change in between comes twice, and is reported once.
    const remove = feed.add({
      prefix: this.#scope.party,
      receive: (thread, open) => {
        this.#changed.set(thread, open);
        wake();
      },
      fail: (error) => {
        this.#failure = { error };
        wake();
      },
    });
    signal.addEventListener("abort", wake, { once: true });
    try {
      yield { type: "snapshot", page: await this.#loadAll() };
      while (!signal.aborted) {
        if (this.#failure !== undefined) throw this.#failure.error;
        const [change] = this.#changed;
        if (change === undefined) await this.#waitForChange(signal);
        else {
          this.#changed.delete(change[0]);
          yield* this.#compare(...change);
        }
      }
      return undefined;
    } finally {
      signal.removeEventListener("abort", wake);
      remove();
    }
  }

  #waitForChange(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (signal.aborted) resolve();
    });
  }

  /** Loads all open interrupts; returns the newest page of them. */
  async #loadAll(): Promise<Page<WaitingView>> {
    const first = await this.#acts.listInterrupts({ limit: pageSize });
    for (let page = first; ; ) {
      for (const { thread, interrupt } of page.data)
        this.#known.set(thread, new Set([...(this.#known.get(thread) ?? []), interrupt.id]));
      if (page.next === undefined) return first;
      page = await this.#acts.listInterrupts({ limit: pageSize, before: page.next });
    }
  }

  /** Yields the changes of a thread since it was shown. Reads nothing when its open interrupts are the same. */
  async *#compare(
    stored: string,
    open: readonly WaitingInterrupt[],
  ): AsyncGenerator<InterruptChange, undefined, undefined> {
    const thread = this.#scope.toWireId(stored);
    const before = this.#known.get(thread) ?? new Set();
    const isSame = open.length === before.size && open.every(({ id }) => before.has(id));
    if (isSame) return undefined;
    const shown = open.length > 0 && (await this.#canRead(thread)) ? open : [];
    const now = new Set(shown.map(({ id }) => id));
    if (now.size === 0) this.#known.delete(thread);
    else this.#known.set(thread, now);
    for (const id of before) if (!now.has(id)) yield { type: "closed", id, thread };
    for (const waiting of shown)
      if (!before.has(waiting.id)) yield { type: "opened", interrupt: toWaitingView(this.#scope, waiting) };
    return undefined;
  }

  async #canRead(thread: string): Promise<boolean> {
    try {
      await this.#scope.requireThread(thread, { action: "thread.read" });
      return true;
    } catch (error) {
      if (isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "invalid_id")) return false;
      throw error;
    }
  }
}
