/** Work that an engine performs: the runs of each thread one after the other, as slots become free. */
import { toErrorRecord } from "../base/errors.ts";
import type { World } from "../base/world.ts";
import { createSlots } from "../run/session/concurrency.ts";
import type { ActiveRuns } from "./active-runs.ts";
import { createCurrentWork } from "./current-work.ts";
import type { PendingWork } from "./pending-work.ts";

export interface WorkPool {
  /** Number of works that are active or wait for a slot. */
  readonly size: () => number;
  readonly countFreeSlots: () => number;
  readonly hasThread: (thread: string) => boolean;
  /** Performs the work of a thread when a slot is free; an engine that stops releases the claim of the work. */
  accept(work: PendingWork): Promise<void> | undefined;
  /** Releases the claims of runs that have not started. */
  cancelUnstarted(): Promise<void>;
}

export function createWorkPool({
  world,
  concurrency,
  activeRuns,
  isServing,
  onDone,
}: {
  readonly world: World;
  readonly concurrency: number;
  readonly activeRuns: ActiveRuns;
  readonly isServing: () => boolean;
  /** Called when the runs of a work have ended. */
  readonly onDone: () => void;
}): WorkPool {
  const slots = createSlots(concurrency);
  const currentWork = createCurrentWork();

  async function perform(work: PendingWork): Promise<void> {
    currentWork.start(work);
    for (const start of work.starters) await startAndAwait(work.thread, start);
    currentWork.delete(work);
    onDone();
  }

  async function startAndAwait(thread: string, start: PendingWork["starters"][number]): Promise<void> {
    try {
      const handle = isServing() ? await start() : undefined;
      if (handle !== undefined) await activeRuns.track(handle);
    } catch (error) {
      world.log("warn", "a run could not be started", { thread, error: toErrorRecord(error) });
    }
  }

  return {
    size: currentWork.size,
    countFreeSlots: () => concurrency - currentWork.countBounded(),
    hasThread: currentWork.hasThread,
    accept: (work) => {
      if (!isServing()) return work.cancel?.();
      currentWork.add(work);
      if (work.isBounded) slots.add(() => perform(work));
      else void perform(work);
      return undefined;
    },
    cancelUnstarted: async () => {
      slots.clear();
      await Promise.all(currentWork.clear().map((work) => work.cancel?.()));
    },
  };
}
