/**
 * Session: the run of one process on one branch of a thread. Holds the state in memory, the claim on the store, and
 * the buffer of journal rows for the next commit.
 */
import type { ErrorPlace, StatewrightError } from "../../base/errors.ts";
import type { SecretSource } from "../../base/injection.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import type { World } from "../../base/world.ts";
import type { Control, RunRow, Task } from "../../checkpoint/checkpoint.ts";
import type { StateWriter } from "../../checkpoint/codec/saved-state.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import type { CheckpointWrite, Claim, Commit, Store } from "../../checkpoint/store.ts";
import type { Migration } from "../../compile/migration.ts";
import type { Plan } from "../../compile/plan.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import type { Codec } from "../../state/codec.ts";
import type { ArtifactWrite } from "../../tool/artifacts/artifact.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import type { EventPosition, EventStream, RunEventBody } from "../events/events.ts";
import type { LedgerBook } from "../journal/ledger-registry.ts";
import type { Kernel, Snapshot } from "../kernel/kernel.ts";
import type { Breakpoints } from "./breakpoints.ts";
import { checkPreemption } from "./check-preemption.ts";
import type { Inbox } from "./inbox.ts";
import type { InboxBuffer } from "./inbox-buffer.ts";
import type { LongTermView } from "./long-term-view.ts";
import type { OnPriorEffect } from "./options.ts";
import type { Preemption } from "./preemption.ts";
import type { State } from "./returns.ts";

/**
 * Journal row for the next commit. The outcome is encoded only when written: a superstep that reduces the outcome
 * first skips the row.
 */
export interface PendingEffect {
  readonly row: EffectRow;
  readonly encode: (() => string) | undefined;
  readonly onCommitted: ((failure?: StatewrightError) => void) | undefined;
  /** Artifacts stored in the same commit as the outcome. */
  readonly artifacts?: readonly ArtifactWrite[] | undefined;
}

/** Persistence of a session; undefined for a run without a store. */
export interface Persistence {
  readonly store: Store;
  readonly codec: Codec;
  readonly writer: StateWriter;
  readonly claim: Claim;
  /** State shared by a graph and its inner graphs. */
  readonly thread: ActiveThread;
  /** Namespace of the rows in the store: the run's branch, or a child namespace. */
  readonly namespace: string;
  /** Persistence of the parent graphs, innermost first. */
  readonly parents: readonly Persistence[];
  parent: number | undefined;
  /** Journal rows of the current step, including rows from before a crash. */
  readonly journal: Map<string, EffectRow>;
  /** Interrupts of the branch by id, including interrupts of inner graphs. */
  readonly interrupts: Map<string, InterruptRow>;
  readonly pending: Map<string, PendingEffect>;
  /** Starts of `once` effects being committed. */
  readonly starts: Set<Promise<void>>;
  flushing: boolean;
}

/** Sequence numbers of durable events: next, last committed, last emitted. */
export interface Sequence {
  nextSeq: number;
  durableSeq: number;
  emittedSeq: number;
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
  /** Number of queued runs on the thread, as of the last commit. */
  queued: number;
  /** Finished effects whose commit failed, by namespace and journal key. */
  readonly unsavedOutcomes: Map<string, { readonly namespace: string; readonly effect: PendingEffect }>;
}

/** Position of an inner graph in the outermost graph. */
export interface Nesting {
  /** Nodes and tools on the path to the inner graph, outermost first. */
  readonly path: readonly string[];
  /** Namespace below the branch; distinguishes the calls of one node or tool. */
  readonly id: string;
  /** Prefix of interrupt ids: the tasks and calls on the path, each followed by a slash. */
  readonly idPrefix: string;
  /** Step and task of the outermost graph. */
  readonly step: number;
  readonly task: string;
  /** Caller: the task of the parent graph, and the checkpoint that scheduled the task. */
  readonly caller: NonNullable<Control["caller"]>;
  /** True when the inner graph persists nothing, although the run has a store. */
  readonly unsaved: boolean;
  /** Number of tool calls on the path. */
  readonly depth: number;
  /** Aborts the whole run. */
  readonly abort: AbortController;
  /**
   * Returns the controller aborted by a hook: of the current tool call, or of the whole run for run-level middleware.
   */
  readonly getHookController: (hook: Middleware) => AbortController;
}

/** Session of one active run or inner graph. */
export interface Session {
  readonly plan: Plan;
  /** Outermost graph, and the migrations from its older versions. */
  readonly versions: { readonly graph: GraphDefinition; readonly migrations: readonly Migration[] };
  /** Inbox of the run; shared with inner graphs. */
  readonly inbox: Inbox;
  /** Mailbox of the handle that started the run. */
  readonly mailbox: InboxBuffer | undefined;
  readonly kernel: Kernel;
  readonly world: World;
  readonly context: unknown;
  readonly secrets: SecretSource;
  /** Redacts the requested secrets from stored data and events. */
  readonly redactor: Redactor;
  /** True when partial results and progress events are enabled. */
  readonly emitsUpdates: boolean;
  /** Middleware of the graph and of its parent graphs, outermost first. */
  readonly graphMiddleware: readonly Middleware[];
  readonly events: EventStream;
  readonly abort: AbortController;
  /**
   * Fires when the tasks of this superstep must stop: with `abort`, or when a sibling failed and `onTaskFailure` is
   * `abort`.
   */
  halt: AbortSignal;
  readonly codec: Codec;
  readonly onTaskFailure: "finish" | "abort";
  readonly onPriorEffect: OnPriorEffect;
  readonly breakpoints: Breakpoints | undefined;
  readonly run: RunRow;
  /** Namespace of the rows in the store: the run's branch, or a child namespace. */
  readonly namespace: string;
  /** Position in the outermost graph; undefined for the outermost graph. */
  readonly nesting: Nesting | undefined;
  /** Session of the parent graph, and the parent task of this inner graph. */
  readonly parent: { readonly session: Session; readonly task: Task } | undefined;
  /**
   * Sessions of inner graphs in this process, by namespace: the next attempt continues where the last attempt
   * stopped.
   */
  readonly innerSessions: Map<string, Session>;
  /** Fires when the run must stop at the next boundary. */
  readonly drain: AbortSignal;
  /** Stops the run for a new input or for a shutdown of the process. */
  readonly stop: (reason: Preemption) => void;
  readonly saved: Persistence | undefined;
  /** Long-term store of the session's store. */
  readonly longTerm: LongTermView | undefined;
  /** Event sequence numbers, shared with inner graphs; the thread's numbers when the run has a store. */
  readonly sequence: Sequence;
  /** Outcomes of the current step's effects in this process by journal key, reused by the next attempt of a node. */
  readonly outcomes: Map<string, { readonly value: unknown } | { readonly error: unknown }>;
  readonly limits: { readonly maxSteps: number; readonly maxConcurrency: number };
  /** Nodes whose agents have started in this run; undefined when none started in this superstep. */
  startedAgents: readonly string[] | undefined;
  /** Model requests of agents with a turn limit; undefined when there were none in this superstep. */
  turns: Control["turns"];
  /** Ledger entries of hooks since the superstep began; undefined before the first access. */
  ledger: LedgerBook | undefined;
  state: State;
  control: Control;
  snapshot: Snapshot;
  step: number;
  /** Supersteps of this run in earlier processes, and in this process. */
  readonly stepsBefore: number;
  stepsOfRun: number;
}

/**
 * Emits an event when there are listeners. A durable event has its own sequence number; other events get the number
 * of the newest durable event.
 */
export function emit(session: Session, body: RunEventBody, at?: Pick<EventPosition, "seq" | "at">): void {
  const { nesting, sequence } = session;
  if (at !== undefined) sequence.emittedSeq = at.seq;
  if (!session.events.hasReaders()) return;
  const place = at ?? { seq: sequence.emittedSeq, at: session.world.clock.now() };
  session.events.emit(
    nesting === undefined
      ? { ...body, ...place }
      : { ...body, ...place, within: formatNestingPath(nesting), withinId: nesting.id },
  );
}

/** Returns the location in the run for errors. */
export function getErrorPlace(session: Session, more: ErrorPlace = {}): ErrorPlace {
  return {
    graph: session.plan.graph.name,
    thread: session.run.thread,
    branch: session.run.branch,
    ...(session.step < 0 ? {} : { step: session.step }),
    ...(session.nesting === undefined ? {} : { nesting: formatNestingPath(session.nesting) }),
    ...more,
  };
}

/** Returns the path of nodes and tools to an inner graph, such as `research.plan`. */
export function formatNestingPath({ path }: Nesting): string {
  return path.join(".");
}

/** Returns the path from the outermost graph to the session's machine. */
export function getMachinePath({ run, nesting }: Session): readonly string[] {
  return nesting === undefined ? [run.graph] : [run.graph, ...nesting.path];
}

/**
 * Merges the middleware of the graphs with the middleware of a node, which comes last. Middleware of both takes the
 * node's position.
 */
export function mergeMiddleware(
  { graphMiddleware }: Session,
  nodeMiddleware: readonly Middleware[] = [],
): readonly Middleware[] {
  if (graphMiddleware.length === 0) return nodeMiddleware;
  return [...graphMiddleware.filter((each) => !nodeMiddleware.includes(each)), ...nodeMiddleware];
}

/** Counts the supersteps of the run over all its resumes; for an inner graph, of its call. */
export function countSteps({ stepsBefore, stepsOfRun }: Session): number {
  return stepsBefore + stepsOfRun;
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

function toRowKey(row: EffectRow): string {
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
  saved.journal.set(key, effect.row);
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
 * Commits pending rows in the background. A failure is stored for the run loop and aborts the tasks at once: their
 * further effects could not be recorded, and would be repeated.
 */
function writeInBackground(saved: Persistence): void {
  writeCommit(saved, {}, (failure) => {
    if (failure === undefined) return;
    saved.thread.failure ??= failure;
    saved.thread.abort.abort(failure);
  });
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
 * Commits all pending rows with `parts` in one store commit. A checkpoint leaves out task outcomes that it has
 * already reduced.
 */
export function writeCommit(
  saved: Persistence,
  parts: SessionWrite,
  onCommitted: (failure?: StatewrightError) => void,
): void {
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
  saved.store.commit(
    {
      ...parts,
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
    (failure, queued = saved.thread.queued) => {
      if (failure === undefined) saved.thread.durableSeq = Math.max(saved.thread.durableSeq, seq);
      if (queued !== saved.thread.queued) {
        saved.thread.queued = queued;
        if (queued > 0 && parts.release !== true) void checkPreemption(saved);
      }
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
function retainUnsavedOutcomes(line: string, thread: ActiveThread, waiting: readonly PendingEffect[]): void {
  for (const effect of waiting)
    if (effect.row.endedAt !== undefined)
      thread.unsavedOutcomes.set(`${line} ${toRowKey(effect.row)}`, { namespace: line, effect });
}

/** Promise form of {@link writeCommit}, for callers that need no synchronous callback. */
export function awaitCommit(saved: Persistence, parts: SessionWrite): Promise<void> {
  return new Promise((resolve, reject) =>
    writeCommit(saved, parts, (failure) => (failure === undefined ? resolve() : reject(failure))),
  );
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
