/** Claims of an open store: claimed threads, deferred claims, and releases that could not be written. */

import type { StatewrightError, World } from "@statewright/core";
import {
  type Claim,
  type ClaimableKind,
  type ClaimedRun,
  type ClaimRequest,
  type Commit,
  claimRules,
  type InputCounts,
  type RunClaimRequest,
  storeRules,
  type TimerClaimRequest,
  type TimerRow,
} from "@statewright/core/store";
import type { RunClaims, WrittenRunClaim } from "../claims/run-claims.ts";
import type { TimerClaims } from "../claims/timer-claims.ts";
import type { DiskReserve } from "../file/disk-reserve.ts";
import type { Owner } from "../file/owner.ts";
import { toStoreError } from "../file/store-errors.ts";
import type { Reader } from "../read/reader.ts";
import { type ClaimedThread, forgetNamespace } from "./claimed-thread.ts";
import type { DeferredClaim, WrittenClaim } from "./claims.ts";
import type { Job } from "./job-transactions.ts";
import type { Transactions } from "./transactions.ts";
import type { Writer } from "./writer.ts";

/** Called when a commit is durable or has failed, with the inputs that wait for the owner of the thread. */
type OnCommitted = (failure?: StatewrightError, counts?: InputCounts) => void;

/** Dependencies of the claims. */
export interface ClaimRegistryParts {
  readonly transactions: Transactions;
  readonly writer: Writer;
  readonly world: World;
  readonly owner: Owner;
  readonly reader: Reader;
  readonly reserve: DiskReserve;
  readonly runClaims: RunClaims;
  readonly timerClaims: TimerClaims;
}

/** Longest time between two questions to all owners while every request for runs finds as many as requested. */
const askEveryMs = 250;

/** Claims threads and commits to them, for a single open store. */
export class ClaimRegistry {
  readonly #parts: ClaimRegistryParts;
  readonly #threads: Map<string, ClaimedThread> = new Map();
  /** Released threads whose release could not be written: their rows still contain this owner. */
  readonly #failedReleases: Set<ClaimedThread> = new Set();
  /** True if the last request for runs found as many as requested. */
  #foundAll = false;
  /** Time of the last question to all owners, by the monotonic clock. */
  #askedAt: number = Number.NEGATIVE_INFINITY;
  /** Requests without a crashed run at the last question to all owners, by the names of their rotations. */
  readonly #withoutCrashed: Set<string> = new Set();
  /** Claims of starting runs, written with the first commit of the run. */
  readonly #deferred: Map<string, DeferredClaim> = new Map();

  constructor(parts: ClaimRegistryParts) {
    this.#parts = parts;
  }

  /** Claims a thread; the claim of a starting run is deferred if the thread has no owner. */
  async claim(request: ClaimRequest): Promise<Claim> {
    const { transactions } = this.#parts;
    const deferredClaim =
      request.startsRun === true ? await transactions.read(() => this.#defer(request), request.thread) : undefined;
    if (deferredClaim !== undefined) return deferredClaim;
    this.#askBeforeRegistration();
    const { claim } = await transactions.write(request.thread, () => this.#claim(request), {
      onDone: ({ claimed }) => void this.#threads.set(claimed.id, claimed),
    });
    return claim;
  }

  /**
   * Claims runs with their threads. Owners are asked whether they live before the write: now and then, and whenever
   * fewer runs are found than requested, since threads of a dead owner may have more. Finding no run costs no write.
   * Crashed runs are searched before the write, when the owners are asked.
   */
  async claimRuns(request: RunClaimRequest): Promise<readonly ClaimedRun[]> {
    const { transactions, world } = this.#parts;
    transactions.refuseClosed();
    if (this.hasFailedReleases()) await this.retryReleases();
    const isTaken = (thread: string): boolean => this.#deferred.has(thread);
    const now = world.clock.monotonic();
    const asksFirst = this.#foundAll !== true || now - this.#askedAt >= askEveryMs;
    const kinds = asksFirst ? this.#askForKinds(request, isTaken) : this.#listLikelyKinds(request);
    if (asksFirst) this.#askedAt = now;
    this.#foundAll = false;
    const written = kinds.length === 0 ? [] : await this.#writeClaims({ ...request, kinds }, isTaken);
    const claimedRuns = written.map(({ claimedRun }) => claimedRun);
    this.#foundAll = written.length === request.limit;
    if (this.#foundAll || asksFirst) return claimedRuns;
    return [...claimedRuns, ...(await this.#claimMore({ ...request, limit: request.limit - written.length }))];
  }

  /** Asks all owners whether they live, then lists the kinds of runs to claim, none if there is no run. */
  #askForKinds(request: RunClaimRequest, isTaken: (thread: string) => boolean): readonly ClaimableKind[] {
    const { transactions, owner, runClaims } = this.#parts;
    const kinds = transactions.readNow(() => {
      owner.askAll();
      return runClaims.listKinds(request, isTaken);
    });
    this.#withoutCrashed.clear();
    if (request.kinds.includes("crashed") && !kinds.includes("crashed"))
      this.#withoutCrashed.add(claimRules.toRotationName(request.graphs));
    return kinds;
  }

  /** Lists the kinds of runs that the file had when the owners were asked. */
  #listLikelyKinds({ kinds, graphs }: RunClaimRequest): readonly ClaimableKind[] {
    if (!this.#withoutCrashed.has(claimRules.toRotationName(graphs))) return kinds;
    return kinds.filter((kind) => kind !== "crashed");
  }

  #writeClaims(request: RunClaimRequest, isTaken: (thread: string) => boolean): Promise<readonly WrittenRunClaim[]> {
    return this.#parts.transactions.write(undefined, () => this.#claimRuns(request, isTaken), {
      onDone: (claims) => {
        for (const { claimed } of claims) this.#threads.set(claimed.id, claimed);
      },
    });
  }

  /** Claims further runs. A failure is logged: the caller holds the claims before, and has to run them. */
  async #claimMore(request: RunClaimRequest): Promise<readonly ClaimedRun[]> {
    try {
      return await this.claimRuns(request);
    } catch (error) {
      const { world } = this.#parts;
      world.log("warn", "further runs could not be claimed", { error: toStoreError(error).message });
      return [];
    }
  }

  /** Claims due timers. Finding none, or only timers claimed before, costs no write. */
  async claimTimers(request: TimerClaimRequest): Promise<readonly TimerRow[]> {
    const { transactions, owner, timerClaims } = this.#parts;
    const { rows, unclaimed } = transactions.readNow(() => {
      owner.askAll();
      return timerClaims.find(request);
    });
    if (unclaimed.length === 0) return rows;
    return await transactions.write(undefined, () => timerClaims.claim(request));
  }

  /** Writes a commit, together with the deferred claim of its thread. */
  commit(commit: Commit, onCommitted: OnCommitted): void {
    const { transactions, writer, world } = this.#parts;
    if (transactions.isClosed()) {
      world.schedule.soon(() => onCommitted(storeRules.createClosedError("sqlite")));
      return;
    }
    const deferredClaim = this.#deferred.get(commit.thread);
    if (deferredClaim?.claim.epoch === commit.epoch && isReleaseOnly(commit)) {
      this.#deferred.delete(commit.thread);
      world.schedule.soon(() => onCommitted(undefined, deferredClaim.claim));
      return;
    }
    let claimed: ClaimedThread | undefined;
    let pendingClaim: DeferredClaim | undefined;
    let counts: InputCounts | undefined;
    transactions.add({
      thread: commit.thread,
      usesReserve: commit.release === true && commit.checkpoint === undefined,
      run: () => {
        pendingClaim = undefined;
        if (this.#deferred.get(commit.thread)?.claim.epoch === commit.epoch) {
          pendingClaim = this.#claimDeferred(commit.thread, commit);
          if (pendingClaim === undefined) throw storeRules.createFencedError(commit);
        }
        claimed = this.#threads.get(commit.thread);
        counts = writer.commits.write(commit, claimed);
      },
      undo: () => {
        this.#restoreDeferred(commit.thread, pendingClaim);
        if (claimed !== undefined) forgetNamespaces(claimed, commit);
      },
      onCommitted: (failure) => {
        this.#updateClaim(commit, failure);
        onCommitted(failure, counts);
        transactions.countCommit();
      },
    });
  }

  /** Writes to a thread, together with its deferred claim: a new thread exists only after the claim. */
  writeWithDeferredClaim<Value>(thread: string, run: () => Value): Promise<Value> {
    let pendingClaim: DeferredClaim | undefined;
    const put = (): Value => {
      pendingClaim = this.#claimDeferred(thread, undefined);
      return run();
    };
    return this.#parts.transactions.write(thread, put, { undo: () => this.#restoreDeferred(thread, pendingClaim) });
  }

  /** Returns true for a thread with a deferred claim, which is not in the file yet. */
  isDeferred(thread: string): boolean {
    return this.#deferred.has(thread);
  }

  /** Throws `thread_busy` for a thread with a deferred claim, which is not in the file yet. */
  refuseDeferred(thread: string): void {
    const { owner } = this.#parts;
    if (this.#deferred.has(thread)) throw storeRules.createBusyError(thread, owner.describe(owner.getId() ?? 0));
  }

  /** Returns the epoch of a release that could not be written. */
  getReleasedEpoch(thread: string): number | undefined {
    const claimed = this.#threads.get(thread);
    return claimed?.isReleased === true ? claimed.epoch : undefined;
  }

  /** Discards the claim of a deleted thread. */
  forget(thread: string): void {
    this.#threads.delete(thread);
  }

  /** Returns true if releases could not be written. */
  hasFailedReleases(): boolean {
    return this.#failedReleases.size > 0;
  }

  /** Retries failed releases, so that other processes can find and claim the threads. */
  async retryReleases(): Promise<void> {
    const { transactions, writer, world } = this.#parts;
    const pending = [...this.#failedReleases].filter((claimed) => this.#threads.get(claimed.id) === claimed);
    this.#failedReleases.clear();
    if (pending.length === 0) return;
    const release = (): void => {
      for (const claimed of pending) writer.threads.release(claimed);
    };
    const discardClaims = (): void => {
      for (const claimed of pending) if (this.#threads.get(claimed.id) === claimed) this.#threads.delete(claimed.id);
    };
    try {
      await transactions.write(undefined, release, { onDone: discardClaims });
    } catch (error) {
      for (const claimed of pending) this.#failedReleases.add(claimed);
      world.log("debug", "releasing threads failed again", {
        count: pending.length,
        error: toStoreError(error).message,
      });
    }
  }

  /** Creates the last write: releases all threads, so that this store does not count as crashed. */
  createFinalJob(): Job {
    const { writer, owner, world } = this.#parts;
    try {
      owner.askAll();
    } catch (error) {
      world.log("debug", "owners could not be asked, and keep their rows", { error: toStoreError(error).message });
    }
    return {
      run: () => {
        for (const claimed of this.#threads.values()) writer.threads.release(claimed);
        owner.deleteRows();
      },
      undo: () => undefined,
      onCommitted: (failure) => {
        if (failure === undefined) owner.removeFiles();
      },
    };
  }

  #claimRuns(request: RunClaimRequest, isTaken: (thread: string) => boolean): readonly WrittenRunClaim[] {
    const { runClaims, owner, reserve } = this.#parts;
    const written = runClaims.claim(request, isTaken);
    if (written.length > 0) reserve.acquire(owner.getId() ?? 0);
    return written;
  }

  /** The registration of this owner deletes the rows of owners that are known to be dead. */
  #askBeforeRegistration(): void {
    const { owner, transactions } = this.#parts;
    if (owner.getId() === undefined) transactions.readNow(() => owner.askAll());
  }

  #claim(request: ClaimRequest): WrittenClaim {
    const { writer, owner, reserve } = this.#parts;
    this.refuseDeferred(request.thread);
    const claimed = writer.claims.claim(request, { releasedEpoch: this.getReleasedEpoch(request.thread) });
    // Reserves disk space for the final write of a starting run.
    reserve.acquire(owner.getId() ?? 0);
    return claimed;
  }

  /** Defers the claim of a starting run if the thread has no owner. */
  #defer(request: ClaimRequest): Claim | undefined {
    const { transactions, writer, owner, reserve } = this.#parts;
    const self = owner.getId();
    if (self === undefined || transactions.isClosed()) return undefined;
    this.refuseDeferred(request.thread);
    const deferredClaim = writer.claims.defer(request);
    if (deferredClaim === undefined) return undefined;
    reserve.acquire(self);
    this.#deferred.set(request.thread, deferredClaim);
    return deferredClaim.claim;
  }

  /** Claims the thread of a starting run together with its first write; undefined if the thread has changed. */
  #claimDeferred(thread: string, commit: Commit | undefined): DeferredClaim | undefined {
    const deferredClaim = this.#deferred.get(thread);
    this.#parts.reader.ciphers.forget();
    const claimed = deferredClaim?.claimThread(commit);
    if (claimed === undefined) return undefined;
    this.#deferred.delete(thread);
    this.#threads.set(thread, claimed);
    return deferredClaim;
  }

  /** Restores a deferred claim after the write was rolled back. */
  #restoreDeferred(thread: string, pendingClaim: DeferredClaim | undefined): void {
    if (pendingClaim === undefined) return;
    this.#threads.delete(thread);
    this.#deferred.set(thread, pendingClaim);
  }

  /** Updates the claim of a thread after a commit. */
  #updateClaim({ thread, epoch, release }: Commit, failure: StatewrightError | undefined): void {
    if (failure?.code === "fenced" && this.#deferred.get(thread)?.claim.epoch === epoch) this.#deferred.delete(thread);
    const claimed = this.#threads.get(thread);
    if (claimed?.epoch !== epoch) return;
    if (failure === undefined ? release === true : failure.code === "fenced") this.#threads.delete(thread);
    // The row still contains this live owner: the next claim or fork in this store must not take it for an active
    // run.
    else if (release === true) {
      claimed.isReleased = true;
      this.#failedReleases.add(claimed);
    }
  }
}

/** Discards the cached state of the namespaces of a commit. */
function forgetNamespaces(claimed: ClaimedThread, { branch, parentJournals }: Commit): void {
  forgetNamespace(claimed, branch);
  for (const { namespace } of parentJournals ?? []) forgetNamespace(claimed, namespace);
}

/** Returns true if a commit only releases its thread. */
function isReleaseOnly({
  thread: _,
  branch: __,
  epoch: ___,
  seq: ____,
  after: _____,
  release,
  ...parts
}: Commit): boolean {
  const isEmpty = (part: unknown): boolean => part === undefined || (Array.isArray(part) && part.length === 0);
  return release === true && Object.values(parts).every(isEmpty);
}
