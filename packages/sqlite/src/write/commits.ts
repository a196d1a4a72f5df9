/** Commits of runs. */

import { type Commit, type InputCounts, type RunRow, storeRules } from "@statewright/core/store";
import type { Owner } from "../file/owner.ts";
import type { Outbox } from "../outbox/outbox.ts";
import type { Reader } from "../read/reader.ts";
import type { Artifacts } from "./artifacts.ts";
import {
  type ClaimedThread,
  cacheNamespace,
  getInputs,
  type NamespaceState,
  type ThreadHead,
} from "./claimed-thread.ts";
import { advanceHead, type Fence, isRowUnchanged } from "./fence.ts";
import type { Inbox } from "./inbox.ts";
import { selectFold } from "./journal.ts";
import type { LongTermTable } from "./long-term.ts";
import type { Requests } from "./requests.ts";
import type { WriterRows } from "./writer-rows.ts";

/** Parts of a commit that are written by other aggregates. */
export interface CommitParts {
  readonly owner: Owner;
  readonly reader: Reader;
  readonly fence: Fence;
  readonly inbox: Inbox;
  readonly requests: Requests;
  readonly outbox: Outbox;
  readonly artifacts: Artifacts;
  readonly longTerm: Pick<LongTermTable, "apply">;
}

function mayHandleRequests({ handledRequests, run }: Commit): boolean {
  return handledRequests !== undefined || run?.status === "done" || run?.status === "cancelled";
}

/** Writes commits; call inside a transaction. */
export class Commits {
  readonly #rows: WriterRows;
  readonly #parts: CommitParts;

  constructor(rows: WriterRows, parts: CommitParts) {
    this.#rows = rows;
    this.#parts = parts;
  }

  /** Writes a commit; returns the inputs that wait for its owner. Throws `fenced` for a lost claim. */
  write(commit: Commit, claimed: ClaimedThread | undefined): InputCounts {
    const self = this.#parts.owner.getId();
    if (claimed === undefined || self === undefined || claimed.epoch !== commit.epoch)
      throw storeRules.createFencedError(commit);
    const oldHead = this.#parts.fence.getHead(claimed);
    const newHead = advanceHead(commit, oldHead);
    if (claimed.claimedBy === commit) this.#parts.fence.finishClaim(claimed);
    else if (isRowUnchanged(commit, claimed, oldHead, newHead)) this.#parts.fence.check(commit, claimed, self);
    else this.#parts.fence.checkAndWriteHead(commit, claimed, self, newHead);
    if (commit.after !== undefined && commit.after > oldHead.seq) throw storeRules.createGapError(commit);
    this.#refreshCipher(claimed);
    const namespace = claimed.namespaces.get(commit.branch) ?? this.#rows.namespaces.readState(claimed, commit);
    for (const parentJournal of commit.parentJournals ?? []) this.#rows.journal.writeParent(claimed, parentJournal);
    if (commit.run !== undefined) this.#writeRun(claimed, namespace, commit.run);
    const state = this.#writeSuperstep(claimed, namespace, commit, oldHead);
    this.#writeOther(claimed, state, commit);
    claimed.head = newHead;
    if (commit.checkpoint !== undefined) claimed.hasGraph = true;
    cacheNamespace(claimed, state);
    return getInputs(claimed);
  }

  /** Reads the keys of a thread again after a rotation. */
  #refreshCipher(claimed: ClaimedThread): void {
    if (claimed.cipher?.hasNewestKey() !== false) return;
    this.#parts.reader.ciphers.forget();
    claimed.cipher = this.#parts.reader.ciphers.get(claimed.id);
  }

  #writeRun(claimed: ClaimedThread, state: NamespaceState, run: RunRow): void {
    const put = this.#rows.runs.put(claimed, state, run);
    claimed.run = { id: run.id, key: put.key };
    if (put.starts) claimed.queued -= 1;
    if (claimed.queued > 0) this.#rows.runs.refreshTurn(claimed.key, state.key);
  }

  /** Removes interrupts from the list of open interrupts. */
  #closeInterrupts(claimed: ClaimedThread, state: NamespaceState, commit: Commit): void {
    const closed = claimed.mayAwaitAnswers ? storeRules.findClosedInterrupts(commit) : undefined;
    if (closed === undefined) return;
    this.#rows.interrupts.clearAwaited(state.key, closed.exceptStep);
    claimed.mayAwaitAnswers = closed.exceptStep !== undefined && this.#rows.interrupts.hasAwaited(state.key);
  }

  /** Writes the effects and the checkpoint of a commit; returns the new state of the namespace. */
  #writeSuperstep(
    claimed: ClaimedThread,
    namespace: NamespaceState,
    commit: Commit,
    oldHead: ThreadHead,
  ): NamespaceState {
    const { checkpoint } = commit;
    const fold = selectFold(namespace, commit);
    const state = this.#rows.journal.write(claimed.cipher, namespace, commit.effects, fold);
    if (checkpoint === undefined) return state;
    storeRules.checkFollows(checkpoint, state.head?.id, oldHead.checkpoint, commit);
    // Rows of this commit are written without what the fold removes.
    if (fold.step !== undefined && namespace.journal >= fold.step && namespace.hasFoldableRows)
      this.#rows.journal.dropFolded(state.key, fold.step);
    return this.#rows.checkpoints.write(claimed, state, checkpoint, fold.effects);
  }

  #writeOther(claimed: ClaimedThread, state: NamespaceState, commit: Commit): void {
    const { interrupts, timers, events, deliveredMessages, rolledBackRun } = commit;
    this.#closeInterrupts(claimed, state, commit);
    if (interrupts !== undefined && interrupts.length > 0) claimed.mayAwaitAnswers = true;
    for (const interrupt of interrupts ?? []) this.#rows.interrupts.write(claimed.cipher, state, interrupt);
    for (const change of timers ?? []) this.#rows.timers.change(state.key, change);
    if (claimed.mayHaveTakenMessages || deliveredMessages !== undefined || rolledBackRun !== undefined)
      this.#parts.inbox.move(claimed, state, commit);
    if (claimed.requests > 0 && mayHandleRequests(commit)) this.#parts.requests.handle(claimed, commit);
    for (const event of events ?? []) this.#rows.events.write(claimed, state.key, event);
    for (const artifact of commit.artifacts ?? []) this.#parts.artifacts.put(claimed, artifact);
    if (commit.longTerm !== undefined) this.#parts.longTerm.apply(commit.longTerm, storeRules.getLatestTime(commit));
    if (commit.outbox !== undefined) this.#parts.outbox.write(claimed, commit);
  }
}
