/**
 * Runs of an engine that the store paused, because the disk was full, the file locked or the server unreachable. The
 * engine resumes these runs until the runs continue, with growing delays.
 */
import { transientStoreCodes } from "../base/errors.ts";
import { isPlainObject } from "../base/json.ts";
import type { World } from "../base/world.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { Store } from "../checkpoint/store.ts";
import { readUnlessDamaged } from "./read-unless-damaged.ts";

export interface HaltedRuns {
  /** Records that the store paused a run. */
  add(thread: string, run: string): void;
  /** Records that a thread could not be resumed because of its store. Ignored for a thread without a halted run. */
  delay(thread: string): void;
  /** Records that a run of the thread ended or suspended otherwise. */
  remove(thread: string): void;
  /**
   * Lists the halted runs whose delay is over. Their rows read `paused`, or `running` when even the pause was not
   * saved. Rejects with the error of the store, and keeps the runs.
   */
  list(isClaimed: (thread: string) => boolean): Promise<readonly RunRow[]>;
}

const haltCodes: readonly unknown[] = transientStoreCodes;

/** Returns true if the store paused the run, or refused to resume it, with an error that ends by itself. */
export function isHalt(error: unknown): boolean {
  return isPlainObject(error) || error instanceof Error ? haltCodes.includes(getCode(error)) : false;
}

function getCode(error: object): unknown {
  return "code" in error ? error.code : undefined;
}

/** Longest delay between two resumes of a halted run, in milliseconds. */
const longestDelayMs = 60_000;

interface HaltedRun {
  readonly run: string;
  readonly halts: number;
  readonly nextAt: number;
}

/** Creates an empty registry. The first resume of a run comes after `firstDelayMs`; each delay doubles the last. */
export function createHaltedRuns({
  store,
  world,
  firstDelayMs,
}: {
  readonly store: Store;
  readonly world: World;
  readonly firstDelayMs: number;
}): HaltedRuns {
  const { clock } = world;
  const byThread = new Map<string, HaltedRun>();

  function halt(thread: string, run: string, halts: number): void {
    const delayMs = halts === 1 ? 0 : Math.min(firstDelayMs * 2 ** (halts - 2), longestDelayMs);
    byThread.set(thread, { run, halts, nextAt: clock.monotonic() + delayMs });
  }

  async function findHaltedRow(thread: string, { run, nextAt }: HaltedRun): Promise<RunRow | undefined> {
    if (clock.monotonic() < nextAt) return undefined;
    const rows = await readUnlessDamaged(world, thread, () => store.runs({ thread, status: ["running", "paused"] }));
    const row = rows?.find(({ id, status, error }) => id === run && (status === "running" || isHalt(error)));
    // Continued or ended by another caller meanwhile.
    if (row === undefined) byThread.delete(thread);
    return row;
  }

  return {
    add: (thread, run) => {
      const known = byThread.get(thread);
      halt(thread, run, known?.run === run ? known.halts + 1 : 1);
    },
    delay: (thread) => {
      const known = byThread.get(thread);
      if (known !== undefined) halt(thread, known.run, known.halts + 1);
    },
    remove: (thread) => {
      byThread.delete(thread);
    },
    list: async (isClaimed) => {
      const unclaimed = [...byThread].filter(([thread]) => !isClaimed(thread));
      const rows = await Promise.all(unclaimed.map(([thread, halted]) => findHaltedRow(thread, halted)));
      return rows.filter((row) => row !== undefined);
    },
  };
}
