/**
 * Persistence of a session: the claim on the store, the buffer of journal rows for the next commit, and the `once`
 * effects in progress.
 */
import { isStatewrightError, type StatewrightError, transientStoreCodes } from "../../../base/errors.ts";
import type { World } from "../../../base/world.ts";
import type { RunRow } from "../../../checkpoint/checkpoint.ts";
import type { StateWriter } from "../../../checkpoint/codec/saved-state.ts";
import type { EffectRow, InterruptRow } from "../../../checkpoint/journal.ts";
import { listNotices, mayNotify } from "../../../checkpoint/notification.ts";
import type { InputCounts } from "../../../checkpoint/run-request.ts";
import type { CheckpointWrite, Claim, Commit, Store } from "../../../checkpoint/store.ts";
import type { Codec } from "../../../state/codec.ts";
import type { ArtifactWrite } from "../../../tool/artifacts/artifact.ts";
import type { Sequence } from "../../events/events.ts";
import { checkPreemption } from "../check-preemption.ts";
import { checkRequests } from "../check-requests.ts";
import type { Arrivals } from "../inbox/arrivals.ts";
import type { Preemption } from "../preemption.ts";
import { addWakeTimer } from "../timers/timer-rows.ts";

/**
 * Journal row for the next commit. The outcome is encoded only when written: a superstep that reduces the outcome
 * first skips the row.
 */
export interface PendingEffect {
  readonly row: EffectRow;
  readonly encode?: (() => string) | undefined;
  readonly onCommitted?: ((failure?: StatewrightError) => void) | undefined;
  /** Artifacts stored in the same commit as the outcome. */
  readonly artifacts?: readonly ArtifactWrite[] | undefined;
}

/** Start of a `once` tool call, committed with the superstep that decided the call. */
export interface PlannedStart {
  readonly row: EffectRow;
  /** Arguments, parsed by the schema of the tool. */
  readonly args: unknown;
}

/** Persistence of a session; undefined for a run without a store. */
export interface Persistence {
  readonly store: Store;
  readonly codec: Codec;
  readonly writer: StateWriter;
  readonly claim: Claim;
  /** State shared by a graph and the inner graphs. */
  readonly thread: ActiveThread;
  /** Namespace of the rows in the store: the run's branch, or a child namespace. */
  readonly namespace: string;
  /** Persistence of the parent graphs, innermost first. */
  readonly parents: readonly Persistence[];
  parent: number | undefined;
  /** Journal rows of the current step, including rows from before a crash. */
  readonly rows: Map<string, EffectRow>;
  /** Interrupts of the branch by id, including interrupts of inner graphs. */
  readonly interrupts: Map<string, InterruptRow>;
  readonly pending: Map<string, PendingEffect>;
  /** Starts of `once` effects being committed. */
  readonly starts: Set<Promise<void>>;
  /** Starts of tool calls that are durable with the superstep before, by journal key, until the call takes its start. */
  readonly plannedStarts: Map<string, PlannedStart>;
  flushing: boolean;
}

/** Thread written by this process, on its branch and on the child namespaces of inner graphs. */
export interface ActiveThread extends Sequence {
  readonly run: RunRow;
  readonly world: World;
  /** Aborts the whole run. */
  readonly abort: AbortController;
  /** Stops the run for a new input or for a shutdown of the process. */
  readonly stop: (reason: Preemption) => void;
  /**
   * True when a graph of another shape wrote the newest checkpoint. Unused for user-written machines, which check
   * this themselves.
   */
  readonly changed: boolean;
  nextCheckpoint: number;
  /** Bytes of deltas that this process saved. */
  bytes: number;
  /** Failure of a background commit: the run stops with this error at the next boundary. */
  failure: StatewrightError | undefined;
  /** Queued runs, waiting inbox messages and open requests of the thread, as of the last commit. */
  queued: number;
  messages: number;
  requests: number;
  /** Arrivals of inbox messages. */
  readonly arrivals: Arrivals;
  /** Ids of the known pause requests of the run. */
  readonly pauseRequests: Set<string>;
  /** Time at which a run paused by a request continues by itself. */
  wakeAt: number | undefined;
  /** Stops the run at its next boundary. */
  readonly pause: (reason: string) => void;
  /** Namespaces loaded by this session since it claimed the thread of a dead or displaced owner; undefined for another claim. */
  readonly takenNamespaces: Set<string> | undefined;
  /** True when the first commit claims the thread. */
  readonly claimsOnCommit: boolean;
  /** `once` effects in progress. */
  readonly onceEffects: OnceEffects;
  /** Finished effects whose commit failed, by namespace and journal key. */
  readonly unsavedOutcomes: Map<string, { readonly namespace: string; readonly effect: PendingEffect }>;
}

/** Returns true for the error of a first commit that was to claim the thread, and found it changed. */
export function isLostClaim({ thread, claim }: Persistence, error: unknown): boolean {
  return thread.claimsOnCommit && thread.durableSeq < claim.nextSeq && isStatewrightError(error, "fenced");
}

/** Returns the key of a journal row in its namespace. */
export function toJournalKey(step: number, task: string, key: string): string {
  return `${step}/${task}/${key}`;
}

/**
 * Journal key of a task's outcome. Steps and model calls cannot use this key; a model may emit a call with an empty
 * id, which differs by kind.
 */
export const taskKey = "";

/** Returns the key of a row in the journal of the namespace. */
export function toRowKey(row: EffectRow): string {
  return toJournalKey(row.step, row.task, row.key);
}

/**
 * Buffers a journal row for the next commit: with the superstep, or at the end of the current turn of the event loop.
 * `onCommitted` is called when the row is durable or the commit failed.
 */
export function recordEffect(saved: Persistence, effect: PendingEffect): void {
  bufferEffect(saved, effect);
  scheduleWrite(saved);
}

/** Buffers a journal row for the next commit, without scheduling one. */
export function recordLater(saved: Persistence, effect: PendingEffect): void {
  bufferEffect(saved, effect);
}

/**
 * Buffers a row for the journal of a parent graph. The row is committed with the next commit of the inner graph, or
 * before it, so later rows of the inner graph never become durable first.
 */
export function recordInParent(saved: Persistence | undefined, parent: Persistence, effect: PendingEffect): void {
  bufferEffect(parent, effect);
  scheduleWrite(saved ?? parent);
}

function bufferEffect(saved: Persistence, effect: PendingEffect): void {
  const key = toRowKey(effect.row);
  const previous = saved.pending.get(key)?.onCommitted;
  const { onCommitted } = effect;
  saved.pending.set(key, {
    ...effect,
    onCommitted: previous === undefined ? onCommitted : combineCallbacks(previous, onCommitted),
  });
  saved.rows.set(key, effect.row);
}

/** Commits pending rows at the end of the current turn of the event loop, with the pending rows of parent graphs. */
function scheduleWrite(saved: Persistence): void {
  if (saved.flushing) return;
  saved.flushing = true;
  saved.thread.world.schedule.soon(() => {
    saved.flushing = false;
    if (saved.pending.size > 0) writeInBackground(saved);
    else for (const parent of saved.parents) if (parent.pending.size > 0) writeInBackground(parent);
  });
}

/** Commits a journal row immediately; `onCommitted` runs in the same turn as the store's callback. */
export function commitEffect(saved: Persistence, effect: PendingEffect): void {
  recordEffect(saved, effect);
  writeInBackground(saved);
}

/**
 * Commits pending rows in the background. A failure is stored for the run loop and aborts the tasks: their further
 * effects could not be recorded, and would be repeated. `once` effects in progress end first if the store may accept
 * their outcomes later.
 */
function writeInBackground(saved: Persistence): void {
  writeCommit(saved, {}, (failure) => {
    if (failure === undefined) return;
    const { thread } = saved;
    thread.failure ??= failure;
    if (!hasNoRoom(failure) || thread.onceEffects.active.size === 0) thread.abort.abort(failure);
    else void waitForOnceEffects(thread.onceEffects, thread.world).then(() => thread.abort.abort(failure));
  });
}

/** Returns true for a failure of the store. A value that cannot be saved is a failure of the graph. */
export function isStoreFailure(error: unknown): boolean {
  return isStatewrightError(error) && error.kind === "store" && error.code !== "unencodable_value";
}

/** Parts of a commit besides pending journal rows. */
export type SessionWrite = Pick<
  Commit,
  | "run"
  | "checkpoint"
  | "interrupts"
  | "timers"
  | "events"
  | "deliveredMessages"
  | "rolledBackRun"
  | "longTerm"
  | "release"
>;

/**
 * Commits all pending rows with `parts` in a single store commit. A checkpoint leaves out task outcomes that it has
 * already reduced.
 */
function writeCommit(saved: Persistence, parts: SessionWrite, onCommitted: (failure?: StatewrightError) => void): void {
  const {
    effects,
    entries: waiting,
    artifacts,
    failure,
  } = saved.pending.size === 0 ? noEffects : encodeEffects([...saved.pending.values()], parts.checkpoint);
  saved.pending.clear();
  if (failure !== undefined) {
    saved.thread.failure ??= failure;
    if (parts.checkpoint !== undefined || parts.interrupts !== undefined) {
      for (const effect of waiting) saved.pending.set(toRowKey(effect.row), effect);
      onCommitted(failure);
      return;
    }
  }
  const { after, seq } = getSeqRange(parts) ?? { after: undefined, seq: saved.thread.durableSeq };
  const parents = encodeParentEffects(saved);
  const outbox = mayNotify(parts) ? listSessionNotices(saved, parts) : undefined;
  saved.store.commit(
    {
      ...addWakeTimer(parts, saved.claim.run),
      ...(outbox === undefined ? {} : { outbox }),
      handledRequests: listHandledRequests(saved.thread, parts.run),
      effects,
      artifacts:
        parents === undefined ? artifacts : joinArtifacts([artifacts, ...parents.map((each) => each.artifacts)]),
      parentJournals: parents?.map(({ namespace, effects }) => ({ namespace, effects })),
      thread: saved.thread.run.thread,
      branch: saved.namespace,
      epoch: saved.claim.epoch,
      after,
      seq,
    },
    (failure, counts) => {
      if (failure === undefined) saved.thread.durableSeq = Math.max(saved.thread.durableSeq, seq);
      if (counts !== undefined) updateInputs(saved, counts, parts);
      if (failure !== undefined) {
        // The first failure is the cause; later failures, also of inner graphs, follow from it.
        saved.thread.failure ??= failure;
        retainUnsavedOutcomes(saved.namespace, saved.thread, waiting);
        for (const { namespace, entries } of parents ?? []) retainUnsavedOutcomes(namespace, saved.thread, entries);
      }
      for (const { entries } of parents ?? []) for (const effect of entries) effect.onCommitted?.(failure);
      for (const effect of waiting) effect.onCommitted?.(failure);
      onCommitted(failure);
    },
  );
}

/** Lists the notifications of a commit. */
function listSessionNotices({ namespace, claim, thread }: Persistence, parts: SessionWrite): Commit["outbox"] {
  const { run, world } = thread;
  return listNotices({ ...parts, namespace }, { claim, run, clock: world.clock });
}

/** Lists the pause requests that a resting run handles. A store removes the requests of a run that ends. */
function listHandledRequests({ pauseRequests }: ActiveThread, run: RunRow | undefined): readonly string[] | undefined {
  if (run === undefined || pauseRequests.size === 0) return undefined;
  const rests = run.status === "paused" || run.status === "parked" || run.status === "failed";
  return rests ? [...pauseRequests] : undefined;
}

/** Updates the numbers of waiting inputs after a commit, and reads the new inputs that may stop the run. */
function updateInputs(
  { thread, store }: Persistence,
  { queued, messages, requests }: InputCounts,
  { deliveredMessages = [], release: isReleased = false }: SessionWrite,
): void {
  if (messages !== thread.messages - deliveredMessages.length) thread.arrivals.version += 1;
  const hasNewInput = queued !== thread.queued && queued > 0;
  const hasNewRequest = requests !== thread.requests && requests > 0;
  thread.queued = queued;
  thread.messages = messages;
  thread.requests = requests;
  if (isReleased) return;
  if (hasNewInput) void checkPreemption(thread, store);
  if (hasNewRequest) void checkRequests(thread, store);
}

/** Encodes the pending rows of parent graphs for this commit; the checkpoint reduces none of them. */
function encodeParentEffects({
  parents,
}: Persistence): readonly (EncodedEffects & { readonly namespace: string })[] | undefined {
  let encodedParents: (EncodedEffects & { readonly namespace: string })[] | undefined;
  for (const { pending, thread, namespace } of parents) {
    if (pending.size === 0) continue;
    const rows = encodeEffects([...pending.values()], undefined);
    pending.clear();
    if (rows.failure !== undefined) thread.failure ??= rows.failure;
    encodedParents = [...(encodedParents ?? []), { ...rows, namespace }];
  }
  return encodedParents;
}

function joinArtifacts(parts: readonly (readonly ArtifactWrite[] | undefined)[]): readonly ArtifactWrite[] | undefined {
  const all = parts.flatMap((part = []) => part);
  return all.length === 0 ? undefined : all;
}

/**
 * Returns the range of sequence numbers of a commit. A commit without events uses none, since concurrent commits may
 * still fail.
 */
function getSeqRange({ checkpoint, events = [] }: SessionWrite): Pick<Commit, "after" | "seq"> | undefined {
  if (events.length === 0) return checkpoint && { after: checkpoint.row.seq - 1, seq: checkpoint.row.seq };
  const numbers = events.map(({ seq }) => seq);
  if (checkpoint !== undefined) numbers.push(checkpoint.row.seq);
  return numbers.length === 0 ? undefined : { after: Math.min(...numbers) - 1, seq: Math.max(...numbers) };
}

/** Retains the finished effects of a failed commit. */
function retainUnsavedOutcomes(namespace: string, thread: ActiveThread, waiting: readonly PendingEffect[]): void {
  for (const effect of waiting)
    if (effect.row.endedAt !== undefined)
      thread.unsavedOutcomes.set(`${namespace} ${toRowKey(effect.row)}`, { namespace, effect });
}

/** Resolves when all pending rows are durable together with `parts`; rejects with the failure of the commit. */
export function awaitCommit(saved: Persistence, parts: SessionWrite): Promise<void> {
  return awaitDurable((onCommitted) => writeCommit(saved, parts, onCommitted));
}

/**
 * Waits for a write: resolves when the write calls `onCommitted` without a failure, rejects with its failure. Every
 * caller that needs no synchronous callback waits here.
 */
export function awaitDurable(write: (onCommitted: (failure?: StatewrightError) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => write((failure) => (failure === undefined ? resolve() : reject(failure))));
}

interface EncodedEffects {
  readonly effects: readonly EffectRow[];
  readonly entries: readonly PendingEffect[];
  readonly artifacts: readonly ArtifactWrite[] | undefined;
  readonly failure: StatewrightError | undefined;
}

const noEffects: EncodedEffects = { effects: [], entries: [], artifacts: undefined, failure: undefined };

/**
 * Encodes pending rows. Leaves out an outcome that cannot be encoded and reports its error; the other rows are
 * committed.
 */
function encodeEffects(pending: readonly PendingEffect[], checkpoint: CheckpointWrite | undefined): EncodedEffects {
  const effects: EffectRow[] = [];
  const waiting: PendingEffect[] = [];
  let artifacts: ArtifactWrite[] | undefined;
  let failure: StatewrightError | undefined;
  for (const effect of pending) {
    try {
      effects.push(...toRows(effect, checkpoint));
      waiting.push(effect);
      if (effect.artifacts !== undefined) artifacts = [...(artifacts ?? []), ...effect.artifacts];
    } catch (error) {
      failure ??= error as StatewrightError;
      effect.onCommitted?.(error as StatewrightError);
    }
  }
  return { effects, entries: waiting, artifacts, failure };
}

function toRows(effect: PendingEffect, checkpoint: CheckpointWrite | undefined): readonly EffectRow[] {
  const { row, encode } = effect;
  if (checkpoint === undefined) return [encode === undefined ? row : { ...row, outcome: encode() }];
  if (row.kind === "task" && row.effect !== "once") return [];
  return [row.effect === "once" && encode !== undefined ? { ...row, outcome: encode() } : row];
}

function combineCallbacks(
  first: (failure?: StatewrightError) => void,
  second: ((failure?: StatewrightError) => void) | undefined,
): (failure?: StatewrightError) => void {
  return (failure) => {
    first(failure);
    second?.(failure);
  };
}

/** `once` effects in progress on a thread. */
export interface OnceEffects {
  readonly active: Set<Promise<unknown>>;
  /** Resolves when the effects have ended; set after a write without room. */
  settled: Promise<void> | undefined;
}

/** Longest wait for `once` effects in progress after a write without room, in milliseconds. */
const longestWaitMs = 30_000;

/** Creates the empty set of effects. */
export function createOnceEffects(): OnceEffects {
  return { active: new Set(), settled: undefined };
}

/** Tracks an effect until its promise settles; returns the same promise. */
export function trackOnceEffect<Value>({ active }: OnceEffects, effect: Promise<Value>): Promise<Value> {
  active.add(effect);
  const remove = (): void => {
    active.delete(effect);
  };
  effect.then(remove, remove);
  return effect;
}

/** Returns true if a store may accept the refused write later. */
export function hasNoRoom(error: unknown): boolean {
  return transientStoreCodes.some((code) => isStatewrightError(error, code));
}

/** Resolves when the active effects have ended and recorded their outcomes, at the latest after 30 s. Never rejects. */
export function waitForOnceEffects(effects: OnceEffects, { schedule }: World): Promise<void> {
  effects.settled ??= new Promise((resolve) => {
    const cancel = schedule.after(longestWaitMs, resolve);
    // The callers of an effect record its outcome in later microtasks.
    const end = (): void => schedule.soon(resolve);
    Promise.allSettled(effects.active).then(() => {
      cancel();
      end();
    });
  });
  return effects.settled;
}
