/** Work that an engine performs: the runs of each thread one after the other, as slots become free. */
import { toErrorRecord } from "../base/errors.ts";
import type { World } from "../base/world.ts";
import { createSlots } from "../run/session/concurrency.ts";
import type { ActiveRuns } from "./active-runs.ts";
import { createClaimAhead } from "./claim-ahead.ts";
import { createCurrentWork } from "./current-work.ts";
import type { PendingWork } from "./pending-work.ts";

/** Time in milliseconds between two releases of claims that have found no slot: such a run waits at most twice as long. */
const releaseMs = 1_000;

export interface WorkPool {
  /** Number of works that are active or wait for a slot. */
  readonly size: () => number;
  /** Number of runs to claim now: one for each free slot, and runs for slots that are free soon. */
  readonly countClaimable: () => number;
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
  onRelease,
}: {
  readonly world: World;
  readonly concurrency: number;
  readonly activeRuns: ActiveRuns;
  readonly isServing: () => boolean;
  /** Called when the runs of a work have ended. */
  readonly onDone: () => void;
  /** Called when the claim of a run without a slot is released: the run waits in the store again. */
  readonly onRelease: () => void;
}): WorkPool {
  const slots = createSlots(concurrency);
  const currentWork = createCurrentWork();
  const claimAhead = createClaimAhead(world.clock, concurrency);
  let cancelRelease: (() => void) | undefined;

  async function perform(work: PendingWork): Promise<void> {
    if (!currentWork.start(work)) return;
    for (const start of work.starters) await startAndAwait(work.thread, start);
    currentWork.delete(work);
    if (work.isBounded) claimAhead.recordEnd();
    onDone();
  }

  /** Releases the claims that find no slot until then, for other engines. Repeats while newer claims wait. */
  function scheduleRelease(): void {
    if (cancelRelease !== undefined) return;
    const waiting = currentWork.listUnstarted();
    cancelRelease = world.schedule.after(releaseMs, () => {
      cancelRelease = undefined;
      const late = new Set(waiting);
      const unstarted = currentWork.listUnstarted();
      for (const work of unstarted) if (late.has(work)) releaseClaim(work);
      if (unstarted.some((work) => !late.has(work))) scheduleRelease();
    });
  }

  function releaseClaim(work: PendingWork): void {
    if (work.cancel === undefined) return;
    currentWork.delete(work);
    void work.cancel().then(onRelease);
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
    countClaimable: () => {
      const free = concurrency - currentWork.countBounded();
      const ahead = claimAhead.count();
      if (free > 0) return free + ahead;
      const waiting = -free;
      // A claim for half of them at once, instead of a claim for each.
      return waiting <= ahead / 2 ? ahead - waiting : 0;
    },
    hasThread: currentWork.hasThread,
    accept: (work) => {
      if (!isServing()) return work.cancel?.();
      currentWork.add(work);
      if (work.isBounded) slots.add(() => perform(work));
      else void perform(work);
      if (currentWork.countBounded() > concurrency) scheduleRelease();
      return undefined;
    },
    cancelUnstarted: async () => {
      cancelRelease?.();
      cancelRelease = undefined;
      slots.clear();
      await Promise.all(currentWork.clear().map((work) => work.cancel?.()));
    },
  };
}
