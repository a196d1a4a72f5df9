/** Watches the open interrupts of a tenant. */
import { isStatewrightError } from "@statewright/core";
import { watchStore } from "@statewright/core/inspect";
import type { CallerScope } from "../caller-scope.ts";
import type { CallerService, Page, RunView, WaitingView } from "../caller-service.ts";
import { statusTable } from "../status-table.ts";

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

/** Time between two reads of a store without hints, in milliseconds. */
const pollMs = 500;

/** Creates the acts of a caller that wait. */
export function createWaitActs(scope: CallerScope, acts: WaitedActs): WaitActs {
  const { store, world } = scope;
  return {
    watchInterrupts: async (signal) => {
      await scope.ask({ action: "thread.read" });
      // The watch begins before the list is read: a change in between is seen twice, and reported once.
      const threads = watchStore(store, { signal, world, pollMs });
      return new InterruptWatch(scope, acts).watch(threads);
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

/** Interrupts of a page of the watch. */
const pageSize = 200;

class InterruptWatch {
  readonly #scope: CallerScope;
  readonly #acts: WaitedActs;
  /** Ids of the open interrupts by the thread. */
  readonly #known = new Map<string, ReadonlySet<string>>();

  constructor(scope: CallerScope, acts: WaitedActs) {
    this.#scope = scope;
    this.#acts = acts;
  }

  async *watch(threads: AsyncIterable<string>): AsyncGenerator<InterruptChange, undefined, undefined> {
    yield { type: "snapshot", page: await this.#loadAll() };
    for await (const stored of threads)
      if (stored.startsWith(this.#scope.party)) yield* this.#compare(this.#scope.toWireId(stored));
    return undefined;
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

  /** Yields the changes of a thread since its last read. */
  async *#compare(thread: string): AsyncGenerator<InterruptChange, undefined, undefined> {
    const open = await this.#listOpen(thread);
    const before = this.#known.get(thread) ?? new Set();
    const now = new Set(open.map(({ interrupt }) => interrupt.id));
    if (now.size === 0) this.#known.delete(thread);
    else this.#known.set(thread, now);
    for (const id of before) if (!now.has(id)) yield { type: "closed", id, thread };
    for (const waiting of open) if (!before.has(waiting.interrupt.id)) yield { type: "opened", interrupt: waiting };
    return undefined;
  }

  /** Lists the open interrupts of a thread, oldest first; none for a thread that was deleted. */
  async #listOpen(thread: string): Promise<readonly WaitingView[]> {
    const open: WaitingView[] = [];
    try {
      for (let before: string | undefined; ; ) {
        const page = await this.#acts.listInterrupts({ thread, limit: pageSize, before });
        open.unshift(...page.data.toReversed());
        before = page.next;
        if (before === undefined) return open;
      }
    } catch (error) {
      if (isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "invalid_id")) return [];
      throw error;
    }
  }
}
