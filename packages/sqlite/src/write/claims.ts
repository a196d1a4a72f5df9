/** Claims of threads: immediate claims, and claims deferred to the first write of a run. */

import {
  type Claim,
  type ClaimedRows,
  type ClaimRequest,
  type Commit,
  type PreviousOwner,
  type RunRow,
  storeRules,
  threadRules,
} from "@statewright/core/store";
import {
  type CheckpointColumns,
  createCorruptError,
  type GraphVersion,
  toCheckpointRow,
  toStoredStatus,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Owner } from "../file/owner.ts";
import type { ClaimedBranch } from "../read/namespace-reader.ts";
import type { Reader } from "../read/reader.ts";
import type { ThreadState } from "../rows/thread-rows.ts";
import type { ClaimedThread } from "./claimed-thread.ts";
import { advanceHead, type Fence } from "./fence.ts";
import type { WriterRows } from "./writer-rows.ts";

/** Claim of an unowned thread, deferred to the first write. */
export interface DeferredClaim {
  /** Future claim. */
  readonly claim: Claim;
  /**
   * Claims the thread, inside the transaction of its first write; undefined if the thread has changed. A first write
   * that is a commit has the head of the thread written by its claim.
   */
  claimThread(commit: Commit | undefined): ClaimedThread | undefined;
}

/** Written claim. */
export interface WrittenClaim {
  readonly claim: Claim;
  readonly claimed: ClaimedThread;
}

/** Stored state of a branch at the time of a claim. */
interface StoredBranch {
  readonly branch: string;
  readonly namespaceKey: number;
  readonly namespace: ClaimedBranch | undefined;
  readonly head: CheckpointColumns | undefined;
  readonly run: RunRow | undefined;
  /** Rows of the newest checkpoint, for a claim that asks for them. */
  readonly loaded: (ClaimedRows & { readonly channels: ReadonlyMap<string, number> }) | undefined;
  readonly previousOwner: PreviousOwner;
}

/** Thread at the time of a claim. */
interface ClaimSource {
  readonly thread: string;
  readonly state: ThreadState;
  readonly epoch: number;
  readonly writer: ClaimedThread["writer"];
}

function prepareStatements(db: Database) {
  return {
    claim: db
      .prepare<[number, number, number], number>(
        "UPDATE threads SET owner = ?, epoch = epoch + 1, graph = coalesce(graph, ?) WHERE key = ? RETURNING epoch",
      )
      .pluck(),
    claimUnchanged: db.prepare<[number, number, string, number, number, number, number]>(
      "UPDATE threads SET owner = ?, epoch = epoch + 1" +
        " WHERE key = ? AND id = ? AND epoch = ? AND owner IS NULL AND seq = ? AND checkpoint = ? AND updated = ?",
    ),
  };
}

/** Dependencies of the claims. */
interface ClaimParts {
  readonly rows: WriterRows;
  readonly owner: Owner;
  readonly reader: Reader;
  readonly fence: Fence;
}

/** Claims threads for the owner of this store. */
export class Claims {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #rows: WriterRows;
  readonly #owner: Owner;
  readonly #reader: Reader;
  readonly #fence: Fence;

  constructor(db: Database, { rows, owner, reader, fence }: ClaimParts) {
    this.#sql = prepareStatements(db);
    this.#rows = rows;
    this.#owner = owner;
    this.#reader = reader;
    this.#fence = fence;
  }

  /** Claims a thread without a live owner; a thread with the epoch `releasedEpoch` counts as released. */
  claim(request: ClaimRequest, { releasedEpoch }: { readonly releasedEpoch: number | undefined }): WrittenClaim {
    const { threads, namespaces, graphs } = this.#rows;
    const { thread, at } = request;
    const found = threads.find(thread);
    if (found === undefined && request.mustExist === true) throw storeRules.createUnknownThreadError(thread);
    checkClaimTenant(request, found);
    const previousOwner =
      found === undefined ? "new" : threads.replaceOwner(thread, found, { releasedEpoch, claim: request.claim });
    const known = found && threads.updateStoredHead(thread, found);
    const writer = graphs.getWriter(request, request.outline);
    const state = known ?? this.#createThread(request, writer.key);
    const branch = request.branch ?? state.head;
    // A new thread has no branch yet.
    const namespace = known === undefined ? undefined : this.#reader.namespaces.findClaimed(thread, branch);
    if (namespace === undefined) refuseMissingBranch(request, branch, known);
    const namespaceKey = namespace?.key ?? namespaces.add(state.key, branch);
    const epoch = this.#sql.claim.get(this.#owner.getId() ?? this.#owner.register(at), writer.key, state.key) as number;
    const stored = { branch, namespaceKey, namespace, ...this.#readBranch(request, namespace), previousOwner };
    const source = { thread, state, epoch, writer };
    return { claimed: this.#createClaimedThread(source, stored), claim: createClaim(state, epoch, writer, stored) };
  }

  /**
   * Prepares a claim without a write, inside a read transaction; undefined if the thread must be claimed immediately.
   */
  defer(request: ClaimRequest): DeferredClaim | undefined {
    const { thread, graph, version, shape } = request;
    const self = this.#owner.getId();
    if (self === undefined) return undefined;
    const state = this.#rows.threads.find(thread);
    checkClaimTenant(request, state);
    if (state === undefined) return request.mustExist === true ? undefined : this.#deferNew(request);
    // An imported or created thread has epoch 0, like every such thread: a replaced thread would not be detected.
    if (state.owner !== null || state.displaced !== null || state.epoch === 0 || state.graph === null) return undefined;
    const branch = request.branch ?? state.head;
    const namespace = this.#reader.namespaces.findClaimed(thread, branch);
    const key = this.#rows.graphs.findSavedKey(request);
    if (namespace === undefined || key === undefined) return undefined;
    const writer = { key, graph, version, shape };
    const read = this.#readBranch(request, namespace);
    const previousOwner = "released";
    const stored = { branch, namespaceKey: namespace.key, namespace, ...read, previousOwner } as const;
    const source = { thread, state, epoch: state.epoch + 1, writer };
    return {
      claim: createClaim(state, source.epoch, writer, stored),
      claimThread: (commit) => {
        const claimed = this.#createClaimedThread(source, stored);
        const isClaimed =
          commit === undefined
            ? this.#claimUnchanged(self, source)
            : this.#fence.claimUnchanged(commit, claimed, self, state);
        return isClaimed ? claimed : undefined;
      },
    };
  }

  /** Prepares the claim of a new thread, which is created by the claim. */
  #deferNew(request: ClaimRequest): DeferredClaim {
    const { keySalt: salt = "", tenant = null } = request;
    const branch = request.branch ?? "main";
    return {
      claim: createClaim({ seq: 0, checkpoint: 0, queued: 0, messages: 0, requests: 0, salt, tenant }, 1, request, {
        ...emptyBranch,
        branch,
      }),
      claimThread: (commit) => {
        if (commit?.run !== undefined) return this.#claimNew(request, { commit, run: commit.run });
        const isTaken = this.#rows.threads.find(request.thread) !== undefined;
        return isTaken ? undefined : this.claim(request, { releasedEpoch: undefined }).claimed;
      },
    };
  }

  /** Creates a thread with its first run; undefined if the thread exists. */
  #claimNew(
    request: ClaimRequest,
    { commit, run }: { readonly commit: Commit; readonly run: RunRow },
  ): ClaimedThread | undefined {
    const { threads, namespaces, graphs, runs } = this.#rows;
    const { thread: id, branch = "main", keySalt: salt = "", at, tenant, owner: user } = request;
    const owner = this.#owner.getId() ?? this.#owner.register(at);
    const writer = graphs.getWriter(request, request.outline);
    const details = threadRules.toThreadDetails({ tenant, owner: user });
    const firstRun = runs.getNextKey();
    const state = threads.createClaimed(
      { id, salt, head: branch, graph: writer.key, at, details },
      {
        run: firstRun,
        status: toStoredStatus(run),
        owner: commit.release === true ? null : owner,
        head: advanceHead(commit, { seq: 0, checkpoint: 0, updated: at }),
      },
    );
    if (state === undefined) return undefined;
    if (tenant !== undefined || user !== undefined) this.#rows.details.put({ key: state.key, id }, undefined, details);
    const namespaceKey = namespaces.add(state.key, branch, { run: firstRun });
    const source = { thread: id, state, epoch: 1, writer };
    return {
      ...this.#createClaimedThread(source, { ...emptyBranch, branch, namespaceKey }),
      firstRun,
      claimedBy: commit,
    };
  }

  #createThread(
    { thread: id, branch: head = "main", keySalt: salt = "", ...request }: ClaimRequest,
    graph: number,
  ): ThreadState {
    const { at, tenant, owner } = request;
    const details = threadRules.toThreadDetails({ tenant, owner });
    const state = this.#rows.threads.create({ id, salt, head, graph, at, details });
    if (tenant !== undefined || owner !== undefined) this.#rows.details.put({ key: state.key, id }, undefined, details);
    return state;
  }

  /** Claims a thread without an owner; false if the thread has changed. */
  #claimUnchanged(self: number, { thread, state }: ClaimSource): boolean {
    const { key, epoch, seq, checkpoint, updated } = state;
    return this.#sql.claimUnchanged.run(self, key, thread, epoch, seq, checkpoint, updated).changes > 0;
  }

  /** Reads the newest checkpoint and the newest run of a branch, with the rows of the checkpoint if a claim asks for them. */
  #readBranch(
    { thread, loads = false }: ClaimRequest,
    namespace: ClaimedBranch | undefined,
  ): Pick<StoredBranch, "head" | "run" | "loaded"> {
    if (namespace === undefined) return { head: undefined, run: undefined, loaded: undefined };
    const { checkpoints, runs } = this.#reader;
    const run = namespace.run === null ? undefined : runs.get(namespace.run);
    if (!loads) return { head: checkpoints.getNamespaceHead(thread, namespace.key), run, loaded: undefined };
    const unverified = checkpoints.findNamespaceHead(namespace.key);
    return unverified === undefined
      ? { head: undefined, run, loaded: undefined }
      : { ...this.#loadHead(thread, namespace, unverified), run };
  }

  #loadHead(
    thread: string,
    namespace: ClaimedBranch,
    unverified: CheckpointColumns,
  ): Required<Pick<StoredBranch, "head" | "loaded">> {
    const { states, effects, interrupts, checkpoints } = this.#reader;
    const { state, channels, deltas } = states.getHead(thread, namespace, unverified.id);
    return {
      head: checkpoints.verifyWithDeltas(thread, unverified, deltas),
      loaded: {
        state,
        channels,
        effects: effects.listHead(thread, namespace, unverified.step),
        interrupts: interrupts.listOfNamespace(thread, namespace),
        isOnlyBranch: namespace.isOnlyBranch,
      },
    };
  }

  #createClaimedThread(
    { thread, state, epoch, writer }: ClaimSource,
    { branch, namespaceKey, namespace, head, run, loaded }: StoredBranch,
  ): ClaimedThread {
    return {
      id: thread,
      key: state.key,
      epoch,
      writer,
      namespaces: new Map([
        [
          branch,
          namespace === undefined
            ? this.#rows.namespaces.createEmpty(branch, namespaceKey)
            : this.#rows.namespaces.createState(branch, namespaceKey, { head, loaded }),
        ],
      ]),
      head: state,
      hasGraph: false,
      run: run === undefined ? undefined : { id: run.id, key: namespace?.run as number },
      firstRun: undefined,
      claimedBy: undefined,
      queued: state.queued,
      messages: state.messages,
      requests: state.requests,
      input: state.input,
      inputs: { queued: state.queued, messages: state.messages, requests: state.requests },
      isReleased: false,
      mayHaveTakenMessages: namespace?.hasTakenMessages === true,
      mayAwaitAnswers: run === undefined ? head !== undefined : run.status !== "done",
      cipher: this.#reader.ciphers.get(thread),
    };
  }
}

const emptyBranch = {
  namespace: undefined,
  head: undefined,
  run: undefined,
  loaded: undefined,
  previousOwner: "new",
} as const;

/** Throws `invalid_option` for an invalid tenant or owner, or a tenant other than that of the thread. */
function checkClaimTenant({ thread, tenant, owner }: ClaimRequest, known?: ThreadState): void {
  threadRules.checkParties("run", { tenant, owner });
  if (known !== undefined) threadRules.checkTenant("run", { id: thread, tenant: known.tenant ?? undefined }, tenant);
}

/** Throws for a missing branch that the claim must not create. */
function refuseMissingBranch(
  { thread, mustExist }: ClaimRequest,
  branch: string,
  known: ThreadState | undefined,
): void {
  if (known !== undefined && mustExist === true) throw storeRules.createUnknownBranchError(thread, branch);
  // A thread is created with its head branch: without this check, a damaged thread would restart over its existing
  // data.
  if (known?.head === branch) throw createCorruptError("the head branch is missing", { thread });
}

function createClaim(
  state: Pick<ThreadState, "seq" | "checkpoint" | "queued" | "messages" | "requests" | "salt" | "tenant">,
  epoch: number,
  { graph, version, shape }: GraphVersion,
  {
    branch,
    head,
    run,
    loaded,
    previousOwner,
  }: Pick<StoredBranch, "branch" | "head" | "run" | "loaded" | "previousOwner">,
): Claim {
  return {
    epoch,
    keySalt: state.salt,
    ...(state.tenant === null ? {} : { tenant: state.tenant }),
    branch,
    nextSeq: state.seq + 1,
    nextCheckpoint: state.checkpoint + 1,
    writtenBy:
      head === undefined ? { graph, version, shape } : { graph: head.graph, version: head.version, shape: head.shape },
    head: head === undefined ? undefined : toCheckpointRow(head),
    run,
    previousOwner,
    queued: state.queued,
    messages: state.messages,
    requests: state.requests,
    ...(loaded === undefined ? {} : { loaded: toClaimedRows(loaded) }),
  };
}

function toClaimedRows({ state, effects, interrupts, isOnlyBranch }: ClaimedRows): ClaimedRows {
  return { state, effects, interrupts, isOnlyBranch };
}
