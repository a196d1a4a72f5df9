/** Pending work of an engine on a store with `claimRuns`: runs arrive with the claims of their threads. */
import { isStatewrightError } from "../base/errors.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { ClaimableKind } from "../checkpoint/claimable.ts";
import { findClaimingGraph } from "../checkpoint/run-claims.ts";
import type { ClaimedRun, ClaimingGraph, Store } from "../checkpoint/store.ts";
import { getPlan } from "../compile/plan.ts";
import { getProgram } from "../run/begin.ts";
import { launchQueued } from "../run/queue.ts";
import type { RunHandle } from "../run/session/options/options.ts";
import { getThreadRegistry, toRunKey } from "../run/session/thread-registry.ts";
import { getCodec, release } from "../run/task/open-session.ts";
import { createDueTimers } from "./due-timers.ts";
import { isHalt } from "./halted-runs.ts";
import { filterDeliverable } from "./notified-runs.ts";
import { createResumeWork, type PendingWorkScanner, type ScannerParts } from "./pending-work.ts";
import { continueRun, createCaller, listClaimingGraphs } from "./serving.ts";
import { createSkippedRuns } from "./skipped-runs.ts";

/** Maximum number of runs of a claim. */
const maxClaims = 256;

/** Time between two lists of runs that no graph here can continue, for the log. */
const listUnservedMs = 60_000;

/** Rows of a page of listed runs. */
const pageSize = 100;

/** Dependencies of a scanner that claims runs. */
export interface ClaimScannerParts extends ScannerParts {
  readonly claimRuns: NonNullable<Store["claimRuns"]>;
  /** Number of runs that can start now. */
  readonly countFreeSlots: () => number;
}

type Accept = Parameters<PendingWorkScanner["scan"]>[1];

export function createClaimScanner(parts: ClaimScannerParts): PendingWorkScanner {
  const { options, host, world, claimRuns, countFreeSlots, isClaimed, listHalted, track } = parts;
  const { store, parkAfter, graphs } = options;
  const all = listClaimingGraphs(graphs);
  const bounded = all.filter(({ graph }) => getProgram(getPlan(graph)).isBounded);
  const unbounded = all.filter((each) => !bounded.includes(each));
  const skipped = createSkippedRuns(world);
  const dueTimers = createDueTimers({ store, world, graphs: all });
  const unserved = new Map<ClaimableKind, UnservedRuns>();
  const cursors = new Map<ClaimableKind, RunRow>();
  let listsUnservedAt = Number.NEGATIVE_INFINITY;

  /** Claims runs and hands them on; returns true if more runs may wait. */
  async function claim(
    kinds: readonly ClaimableKind[],
    { served, limit, isIncluded, accept }: ClaimOptions,
  ): Promise<boolean> {
    if (served.length === 0 || limit <= 0) return false;
    const waitingHere = new Set<string>();
    const isSkipped = (run: Pick<RunRow, "thread" | "id">): boolean => {
      const key = toRunKey(run);
      if (skipped.has(key) || isIncluded?.(key) === false) return true;
      if (!isStartedHere(store, key)) return false;
      waitingHere.add(key);
      return true;
    };
    const claimed = await claimRuns.call(store, { graphs: served, kinds, limit, at: world.clock.now(), isSkipped });
    for (const each of claimed) await acceptClaim(each, accept);
    for (const key of waitingHere) wakeCaller(store, key);
    return claimed.length === limit;
  }

  async function acceptClaim(claimed: ClaimedRun, accept: Accept): Promise<void> {
    const { kind, run, claim } = claimed;
    const cancel = async (): Promise<void> => void (await release(store, run.thread, claim, { world }));
    const caller = createCaller(options, host, run);
    if (kind === "incompatible" || caller === undefined) skipped.add(toRunKey(run));
    if (caller === undefined) return await cancel();
    const start = async (): Promise<RunHandle<unknown>> => {
      const handle =
        kind === "queued"
          ? launchQueued(caller, run, claim)
          : continueRun(caller, run, { parkAfter, heldClaim: claim });
      track(handle);
      watchStart(run, handle);
      return handle;
    };
    const { isBounded } = getProgram(getPlan(caller.graph));
    await accept({ thread: run.thread, starters: [start], isBounded, cancel });
  }

  /** Skips a run for some time that could not be continued here. */
  function watchStart(run: RunRow, handle: RunHandle<unknown>): void {
    const key = toRunKey(run);
    handle.result.then(
      ({ status }) => {
        if (status === "queued") skipped.add(key);
      },
      (error: unknown) => skipped.add(key, isTransient(error) ? "briefly" : "long"),
    );
  }

  async function claimQueue(accept: Accept): Promise<void> {
    const kinds = ["crashed", "drained", "queued"] as const;
    const limit = Math.min(countFreeSlots(), maxClaims);
    const hasMoreBounded = await claim(kinds, { served: bounded, limit, accept });
    const hasMoreUnbounded = await claim(kinds, { served: unbounded, limit: maxClaims, accept });
    scanner.hasMore = limit <= 0 || hasMoreBounded || hasMoreUnbounded;
  }

  /** Claims runs of a kind that are listed first: only some of them can be continued. */
  async function claimListed(kind: "notified" | "incompatible", accept: Accept): Promise<void> {
    const page = await readNextPage(kind);
    const served = page.filter((run) => findClaimingGraph(all, run) !== undefined && !skipped.has(toRunKey(run)));
    const found = kind === "incompatible" ? served : await filterDeliverable(store, getCodec(options), served, world);
    if (found.length === 0) return;
    const keys = new Set(found.map(toRunKey));
    await claim([kind], { served: all, limit: found.length, isIncluded: (key) => keys.has(key), accept });
  }

  /** Logs the runs that no graph here can continue, once while they are listed. */
  async function logUnserved(): Promise<void> {
    const now = world.clock.monotonic();
    if (now < listsUnservedAt) return;
    listsUnservedAt = now + listUnservedMs;
    for (const kind of ["queued", "crashed", "drained"] as const) {
      const { logged, found } = unserved.get(kind) ?? { logged: new Set(), found: new Set() };
      for (const run of await readNextPage(kind)) {
        if (findClaimingGraph(all, run) !== undefined) continue;
        const key = toRunKey(run);
        if (!logged.has(key) && !found.has(key)) createCaller(options, host, run);
        found.add(key);
      }
      unserved.set(kind, cursors.has(kind) ? { logged, found } : { logged: found, found: new Set() });
    }
  }

  async function readNextPage(kind: ClaimableKind): Promise<readonly RunRow[]> {
    const page = await store.claimable({ kind, limit: pageSize, after: cursors.get(kind) });
    const last = page.length < pageSize ? undefined : page.at(-1);
    if (last === undefined) cursors.delete(kind);
    else cursors.set(kind, last);
    return page;
  }

  async function scanAll(accept: Accept): Promise<void> {
    skipped.removeExpired();
    await logUnserved();
    for (const run of [...(await dueTimers.listRuns()), ...(await listHalted())])
      if (!isClaimed(run.thread) && !skipped.has(toRunKey(run))) {
        const work = createResumeWork(parts, run);
        if (work === undefined) skipped.add(toRunKey(run));
        else await accept(work);
      }
    await claimListed("notified", accept);
    await claimListed("incompatible", accept);
  }

  const scanner: PendingWorkScanner = {
    scan: async (extent, accept) => {
      if (extent === "all") await scanAll(accept);
      await claimQueue(accept);
    },
    reset: () => {
      skipped.clear();
      listsUnservedAt = Number.NEGATIVE_INFINITY;
    },
    hasMore: false,
  };
  return scanner;
}

/** Runs that no graph here can continue: those of the last complete list, and those found since. */
interface UnservedRuns {
  readonly logged: ReadonlySet<string>;
  readonly found: Set<string>;
}

interface ClaimOptions {
  readonly served: readonly ClaimingGraph[];
  readonly limit: number;
  /** Default: all runs. */
  readonly isIncluded?: (key: string) => boolean;
  readonly accept: Accept;
}

/** Returns true for a queued run whose caller waits in this process, or that starts here already. */
function isStartedHere(store: Store, key: string): boolean {
  const { waiting, starting } = getThreadRegistry(store);
  return waiting.has(key) || starting.has(key);
}

/** Starts a queued run in the caller that waits for it. */
function wakeCaller(store: Store, key: string): void {
  const { waiting, starting } = getThreadRegistry(store);
  const start = starting.get(key);
  if (start !== undefined) start.needsRecheck = true;
  else waiting.get(key)?.start();
}

/** Returns true for an error after which the same run can start soon. */
function isTransient(error: unknown): boolean {
  return isHalt(error) || isStatewrightError(error, "thread_busy") || isStatewrightError(error, "fenced");
}
