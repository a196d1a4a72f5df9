/** Claims of runs: selects claimable runs and claims their threads, in a single write. */

import type { StatewrightError } from "@statewright/core";
import { type ClaimableKind, type ClaimedRun, claimRules, type RunClaimRequest } from "@statewright/core/store";
import { isUnreadable } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Owner } from "../file/owner.ts";
import { toStoreError } from "../file/store-errors.ts";
import type { Reader } from "../read/reader.ts";
import type { ClaimedThread } from "../write/claimed-thread.ts";
import type { Claims } from "../write/claims.ts";
import { type RunCandidate, StartableRuns } from "./startable-runs.ts";

/** Claimed run, with the claimed thread of this store. */
export interface WrittenRunClaim {
  readonly claimedRun: ClaimedRun;
  readonly claimed: ClaimedThread;
}

/** Returns true for a thread that a run of this store is about to claim. */
type IsTaken = (thread: string) => boolean;

function prepareStatements(db: Database) {
  return {
    savepoint: db.prepare("SAVEPOINT claim_of_run"),
    release: db.prepare("RELEASE claim_of_run"),
    rollBack: db.prepare("ROLLBACK TO claim_of_run"),
  };
}

/** Claims runs; call inside a transaction. */
export class RunClaims {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #startable: StartableRuns;
  readonly #claims: Claims;
  readonly #owner: Owner;
  readonly #reader: Reader;
  readonly #onFault: (fault: StatewrightError) => void;

  constructor(
    db: Database,
    {
      claims,
      owner,
      reader,
      onFault,
    }: {
      readonly claims: Claims;
      readonly owner: Owner;
      readonly reader: Reader;
      /** Called for a damaged run, which is not claimed. */
      readonly onFault: (fault: StatewrightError) => void;
    },
  ) {
    this.#sql = prepareStatements(db);
    this.#startable = new StartableRuns(db);
    this.#claims = claims;
    this.#owner = owner;
    this.#reader = reader;
    this.#onFault = onFault;
  }

  /**
   * Lists the kinds to claim, none if the request would find no run. Crashed runs are among all runs at work, of which
   * nearly all have a living owner: without a crashed run, a claim does not search them inside its write.
   */
  listKinds(request: RunClaimRequest, isTaken: IsTaken): readonly ClaimableKind[] {
    const living = this.#owner.listLiving();
    const isFound = (kind: ClaimableKind): boolean => {
      for (const candidate of this.#startable.select(kind, request, living))
        if (isFree(candidate, request, isTaken)) return true;
      return false;
    };
    const kinds = request.kinds.filter((kind) => kind !== "crashed" || isFound(kind));
    return kinds.includes("crashed") || kinds.some(isFound) ? kinds : [];
  }

  /** Claims up to `limit` runs. */
  claim(request: RunClaimRequest, isTaken: IsTaken): readonly WrittenRunClaim[] {
    const living = this.#owner.listLiving();
    const written: WrittenRunClaim[] = [];
    const served = new Map<number, string>();
    for (const kind of request.kinds) {
      for (const candidate of this.#startable.select(kind, request, living)) {
        if (!isFree(candidate, request, isTaken)) continue;
        const claim = this.#claimRun(kind, candidate, request);
        if (claim === undefined) continue;
        written.push(claim);
        if (candidate.turn !== undefined) served.set(candidate.turn.priority, candidate.turn.tenant);
        if (written.length === request.limit) break;
      }
      if (written.length === request.limit) break;
    }
    if (served.size > 0) this.#startable.saveRotation(request, served, { isComplete: written.length < request.limit });
    return written;
  }

  /** Claims the thread of a run; undefined for a damaged run, whose thread is unchanged. */
  #claimRun(kind: ClaimableKind, candidate: RunCandidate, request: RunClaimRequest): WrittenRunClaim | undefined {
    const graph = claimRules.findClaimingGraph(request.graphs, candidate);
    if (graph === undefined) return undefined;
    // Before the savepoint: the claims of the other runs need the row of the owner.
    if (this.#owner.getId() === undefined) this.#owner.register(request.at);
    this.#sql.savepoint.run();
    try {
      const stored = this.#reader.runs.get(candidate.key);
      if (stored === undefined) return undefined;
      const run = kind === "crashed" ? { ...stored, status: kind } : stored;
      const thread = claimRules.toThreadClaim(graph, run, request.at);
      const { claim, claimed } = this.#claims.claim(thread, { releasedEpoch: undefined });
      return { claimedRun: { kind, run, claim }, claimed };
    } catch (thrown) {
      if (!isUnreadable(thrown)) throw thrown;
      this.#sql.rollBack.run();
      this.#onFault(toStoreError(thrown, { thread: candidate.thread }));
      return undefined;
    } finally {
      this.#sql.release.run();
    }
  }
}

function isFree({ thread, id }: RunCandidate, { isSkipped }: RunClaimRequest, isTaken: IsTaken): boolean {
  return !isTaken(thread) && isSkipped?.({ thread, id }) !== true;
}
