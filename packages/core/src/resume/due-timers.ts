/** Due timers of an engine: each is claimed, so that one process works on it, and resumes its run. */
import type { World } from "../base/world.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import { getBranchName } from "../checkpoint/rules.ts";
import type { ClaimingGraph, Store } from "../checkpoint/store.ts";
import type { TimerKind, TimerRow } from "../checkpoint/timer.ts";
import { isResting } from "./notified-runs.ts";
import { readUnlessDamaged } from "./read-unless-damaged.ts";

/** Time after which another process may work on a timer that this process has not fired, in milliseconds. */
const claimMs = 60_000;

/** Timers of a page. */
const pageSize = 500;

/** Timers that resume a run. */
const kinds: readonly TimerKind[] = ["after", "expiry", "wake"];

export interface DueTimers {
  /** Returns the runs with a due timer of the next page, each once. A run paused by a user waits for its wake time. */
  listRuns(): Promise<readonly RunRow[]>;
}

export function createDueTimers({
  store,
  world,
  graphs,
}: {
  readonly store: Store;
  readonly world: World;
  readonly graphs: readonly ClaimingGraph[];
}): DueTimers {
  /** Last timer of a full page; the next page follows. */
  let after: TimerRow | undefined;

  async function listTimers(dueBy: number): Promise<readonly TimerRow[]> {
    if (store.claimTimers === undefined) return await store.timers({ kinds, dueBy });
    const page = await store.claimTimers({ graphs, kinds, dueBy, until: dueBy + claimMs, limit: pageSize, after });
    after = page.length < pageSize ? undefined : page.at(-1);
    return page;
  }

  return {
    listRuns: async () => {
      const now = await readStoreTime(store, world);
      return await listDueRuns({ store, world }, await listTimers(now), now);
    },
  };
}

async function listDueRuns(
  { store, world }: { readonly store: Store; readonly world: World },
  timers: readonly TimerRow[],
  now: number,
): Promise<readonly RunRow[]> {
  const branches = new Map(timers.map((row) => [`${row.thread} ${getBranchName(row.branch)}`, row]));
  const rows = await Promise.all(
    [...branches.values()].map(async (timer) => {
      const { thread } = timer;
      const resting = await readUnlessDamaged(world, thread, () =>
        store.runs({ thread, status: ["waiting", "paused"] }),
      );
      return (resting ?? []).filter(
        (run) => run.branch === getBranchName(timer.branch) && (isResting(run) || isWoken(run, now)),
      );
    }),
  );
  return rows.flat();
}

/** Returns true for a paused run whose wake time has come. */
function isWoken({ status, wakeAt }: RunRow, now: number): boolean {
  return status === "paused" && wakeAt !== undefined && wakeAt <= now;
}
