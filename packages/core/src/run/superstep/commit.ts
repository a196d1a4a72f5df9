/** Commits a superstep: the state machine transitions, the superstep becomes durable, then its events are emitted. */

import { type ErrorRecord, toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type {
  CheckpointRow,
  CheckpointSource,
  Control,
  RunRow,
  SavedWriters,
  Task,
} from "../../checkpoint/checkpoint.ts";
import type { EventRow } from "../../checkpoint/event.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { END, START } from "../../define/edge.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import { encodeWrapper } from "../../state/codec.ts";
import {
  describeCheckpoint,
  describeStep,
  describeUnsavedStep,
  type EventEmitter,
  emit,
  noCheckpoint,
} from "../events/events.ts";
import type { EventPosition, Transition } from "../events/run-event.ts";
import { listOrphanEntries } from "../journal/ledger.ts";
import { collectChanges } from "../journal/long-term-writes.ts";
import type { Snapshot, Step } from "../kernel/kernel.ts";
import {
  createDurableEvent,
  createStartEvent,
  type DurableEvent,
  type DurableEventBody,
} from "../session/durable-event.ts";
import type { QueuedMessage } from "../session/inbox/inbox.ts";
import type { Journal } from "../session/parts/journal.ts";
import { awaitCommit, type Persistence, type PlannedStart, toRowKey } from "../session/parts/persistence.ts";
import { countSteps, getMachinePath, getTurns, type Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import type { State, Write } from "../session/returns.ts";
import { readOutput, toRunRow } from "../session/run-row.ts";
import type { Lineage, Session } from "../session/session.ts";
import type { FinishedTask, StepResult } from "../session/step-result.ts";
import { disarmTimers } from "../session/timers/interrupt-timers.ts";
import { listTimerChanges } from "../session/timers/timer-rows.ts";
import { validateStep } from "../session/validate-writes.ts";
import { drainInbox } from "./drain-inbox.ts";
import { cacheFinalState } from "./final-state-cache.ts";
import { inspectTransition } from "./inspect-run.ts";
import { listWriters } from "./list-writers.ts";
import { reduceResults, reduceSuperstep } from "./superstep.ts";

/** Writes the checkpoint that starts a run or an inner graph, together with the run row. */
export function commitInput(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "lineage">,
  result: StepResult,
  source: CheckpointSource,
  {
    inboxMessages = [],
    longTerm,
  }: {
    readonly inboxMessages?: readonly QueuedMessage[] | undefined;
    readonly longTerm?: readonly LongTermChange[] | undefined;
  } = {},
): Promise<void> {
  const began = session.env.world.clock.monotonic();
  return commit(session, result, { nodes: [], source, startedAt: began, isFirst: true, inboxMessages, longTerm });
}

interface MachineEvent {
  readonly type: string;
  readonly node?: string;
  readonly to?: readonly string[];
}

/**
 * Applies an event to the machine of the graph, and emits the transition. `shown` is false when the event only
 * repeats an emitted transition.
 */
export function applyMachineEvent(
  session: Pick<Session, "position" | "progress" | "events">,
  event: MachineEvent,
  { shown }: { readonly shown: boolean },
): void {
  const from = session.progress.snapshot;
  const step = session.progress.kernel.step(from, event);
  [session.progress.snapshot] = step;
  inspectTransition(session.position, session.events, from, { event, step });
  if (shown) emitTransition(session.position, session.events, event, { from, step, saved: noCheckpoint });
}

/** Options of `emitTransition`. */
interface EmitTransitionOptions {
  readonly from: Snapshot;
  readonly step: Step;
  readonly saved: Pick<Transition, "changes" | "bytes" | "durationMs">;
}

function emitTransition(
  position: Position,
  events: EventEmitter,
  event: MachineEvent,
  { from, step, saved }: EmitTransitionOptions,
): void {
  if (!events.stream.hasReaders()) return;
  emit(events, {
    type: "transition.taken",
    path: getMachinePath(position),
    event: event.type,
    from: from.value,
    ...describeStep(step),
    ...saved,
  });
}

/** Resumes pending tasks with answered interrupts: their nodes become active in the machine again. */
export function resumeTasks(
  session: Pick<Session, "position" | "progress" | "events">,
  answered: ReadonlySet<string>,
): void {
  const waiting = new Set(session.progress.control.tasks.flatMap(({ id, node }) => (answered.has(id) ? [node] : [])));
  if (waiting.size === 0) return;
  for (const node of waiting) applyMachineEvent(session, { type: "task.interrupted", node }, { shown: false });
  applyMachineEvent(session, { type: "run.resumed" }, { shown: true });
}

/**
 * Reduces the finished tasks into the state, makes the superstep durable and emits its events. With `failure` the run
 * fails in the same write; a resume starts from this checkpoint.
 */
export async function commitStep(
  session: Session,
  finished: readonly FinishedTask[],
  {
    startedAt,
    failure,
    planStarts,
  }: {
    readonly startedAt: number;
    readonly failure: ErrorRecord | undefined;
    /** Lists the starts of the next superstep that become durable with this one. */
    readonly planStarts: (
      session: Session,
      finished: readonly FinishedTask[],
      result: StepResult,
    ) => readonly PlannedStart[] | undefined;
  },
): Promise<void> {
  const { context } = session.env;
  const before = { state: session.progress.state, ...session.progress.control, context };
  let externalWrites: Map<StepResult, readonly Write[]> | undefined;
  const reduceStep = (outside: readonly Write[]): StepResult => {
    const reduced = reduceSuperstep(session.position.plan, session.position.step + 1, before, {
      results: finished,
      externalWrites: outside,
    });
    if (outside.length === 0) return reduced;
    externalWrites ??= new Map();
    externalWrites.set(reduced, outside);
    return reduced;
  };
  const withoutMessages = reduceStep([]);
  const { result, delivered } = session.inboxes.inbox.mayHaveMessages()
    ? await drainInbox(session, withoutMessages, reduceStep)
    : { result: withoutMessages, delivered: [] };
  validateStep(session.position, session.env.codec, finished, result);
  const nodes = listNodes(finished.map(({ task }) => task));
  const final = failure === undefined ? {} : { final: createFailure(session.position, session.env.world, failure) };
  const longTerm = collectChanges(finished);
  await commit(session, result, {
    nodes,
    source: "step",
    startedAt,
    isFirst: false,
    inboxMessages: delivered,
    longTerm,
    writers: listWriters(session.position.plan, {
      tasks: before.tasks,
      finished,
      externalWrites: externalWrites?.get(result),
    }),
    starts: failure === undefined ? planStarts(session, finished, result) : undefined,
    ...final,
  });
  if (session.position.nesting === undefined) session.inboxes.inbox.acknowledge(delivered);
}

/** Lists the nodes of tasks without duplicates. */
function listNodes(tasks: readonly Task[]): readonly string[] {
  const nodes = tasks.map(({ node }) => node);
  return nodes.length < 2 ? nodes : [...new Set(nodes)];
}

function createFailure(position: Position, world: World, error: ErrorRecord): NonNullable<CommitOptions["final"]> {
  return { run: { ...toRunRow(position, world, "failed"), error }, body: { type: "run.failed", error } };
}

interface CommitOptions {
  readonly nodes: readonly string[];
  readonly source: CheckpointSource;
  readonly startedAt: number;
  /** True when the run row is new and must be inserted. */
  readonly isFirst: boolean;
  /** Inbox messages that the superstep delivers. */
  readonly inboxMessages?: readonly QueuedMessage[];
  /** Long-term store changes of the tasks. */
  readonly longTerm?: readonly LongTermChange[] | undefined;
  /**
   * True when tasks of the step still have to run with their recorded effects: the checkpoint keeps the step number.
   */
  readonly isPartial?: boolean;
  /** Interrupts that the commit closes. */
  readonly interrupts?: readonly InterruptRow[];
  /** Writers of the superstep, for readers. */
  readonly writers?: SavedWriters | undefined;
  /** Starts of the next superstep. */
  readonly starts?: readonly PlannedStart[] | undefined;
  /** Final run row and event: the commit releases the thread, and no next step starts here. */
  readonly final?: { readonly run: RunRow | undefined; readonly body?: DurableEventBody };
}

/** Makes a superstep durable, then emits its events. No work of the next step starts before. */
export async function commit(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "lineage">,
  result: StepResult,
  options: CommitOptions,
): Promise<void> {
  const { nesting } = session.position;
  const next = listNodes(result.tasks);
  const from = session.progress.snapshot;
  const event = { type: "step.commit", to: next };
  const step = session.progress.kernel.step(from, event);
  const [snapshot] = step;
  const { startedAgents = session.progress.control.startedAgents ?? [] } = session.progress;
  // New input or inbox messages expect an answer: reset the turn count.
  const turns =
    options.source === "input" || (options.inboxMessages ?? []).some(({ error }) => error === undefined)
      ? undefined
      : getTurns(session.position, session.progress);
  const control: Control = {
    machine: snapshot.value,
    tasks: result.tasks,
    ...(result.free === undefined ? {} : { free: result.free }),
    inputs: result.inputs,
    joins: result.joins,
    ...(result.deferred === undefined ? {} : { deferred: result.deferred }),
    steps: countSteps(session.position) + (options.source === "step" ? 1 : 0),
    ...(options.source === "input" || startedAgents.length === 0 ? {} : { startedAgents }),
    ...(turns === undefined ? {} : { turns }),
    ...(nesting === undefined ? {} : { caller: nesting.caller }),
    ...(options.writers === undefined ? {} : { writers: options.writers }),
  };
  const done = result.tasks.length === 0;
  if (done) readOutput(session.position.plan, result.state);
  const durationMs = session.env.world.clock.monotonic() - options.startedAt;
  const run =
    options.final !== undefined
      ? options.final.run
      : done
        ? toRunRow(session.position, session.env.world, "done")
        : options.isFirst
          ? session.position.run
          : undefined;
  const release = done || options.final !== undefined;
  const steps = session.position.stepsOfRun + (options.source === "step" ? 1 : 0);
  const number = (): EventNumbers => ({
    started: options.isFirst && nesting === undefined ? createStartEvent(session) : undefined,
    place: allocateEventPlace(session.events),
    ended:
      nesting === undefined ? createEndEvent(session.events, session.journal, options, { done, steps }) : undefined,
  });
  const saving = nesting === undefined ? { ...options, durationMs, run, release } : { ...options, durationMs };
  const { row, started, place, ended } =
    session.journal.saved === undefined
      ? { row: undefined, ...number() }
      : await saveCheckpoint(session.position, session.progress, session.journal.saved, {
          result,
          control,
          options: {
            ...saving,
            assignNumbers: number,
          },
        });
  if (session.journal.saved === undefined && options.longTerm !== undefined)
    session.journal.longTerm?.buffered?.push(...options.longTerm);
  advance(session, result.state, control, { snapshot, isPartial: options.isPartial });
  if (done && session.journal.saved !== undefined && row !== undefined)
    cacheFinalState(session.position, session.progress, session.journal.saved, row);
  if (options.source === "step") session.position.stepsOfRun += 1;
  inspectTransition(session.position, session.events, from, { event, step });
  logUnreadable(session.position, session.env.world, options.inboxMessages ?? []);
  if (!session.events.stream.hasReaders()) {
    session.events.sequence.emittedSeq = place.seq + (ended === undefined ? 0 : 1);
    return;
  }
  started?.emit();
  emitDelivered(session.events, options.inboxMessages ?? []);
  // Model arguments are saved without masking, since the run acts on them, and emitted with secrets masked.
  const changes = session.env.redactor.redactUncommon(result.deltas);
  const committed =
    row === undefined ? describeUnsavedStep(session.position, options.source, durationMs) : describeCheckpoint(row);
  emit(session.events, { ...committed, nodes: options.nodes, next: done ? [END] : next, changes }, place);
  const saved = { changes, bytes: committed.bytes, durationMs: committed.durationMs };
  emitTransition(session.position, session.events, event, { from, step, saved });
  ended?.emit();
}

/** Emits the delivery of inbox messages to the senders, and the failure of unreadable rows. */
function emitDelivered(events: EventEmitter, inboxMessages: readonly QueuedMessage[]): void {
  for (const { id, kind, messages, error } of inboxMessages)
    if (error === undefined) emit(events, { type: "inbox.delivered", inboxMessageId: id, kind, messages });
    else emit(events, { type: "inbox.failed", error: toErrorRecord(error) });
}

/** Logs the rows that this commit removes from the inbox although no run can read them. */
function logUnreadable({ run }: Position, { log }: World, inboxMessages: readonly QueuedMessage[]): void {
  for (const { id, error } of inboxMessages)
    if (error !== undefined)
      log("error", "an unreadable inbox message was removed", {
        thread: run.thread,
        inboxMessage: id,
        error: toErrorRecord(error),
      });
}

function createEndEvent(
  events: EventEmitter,
  journal: Journal,
  { final }: CommitOptions,
  { done, steps }: { readonly done: boolean; readonly steps: number },
): DurableEvent | undefined {
  if (final !== undefined)
    return final.body === undefined ? undefined : createDurableEvent(events, journal, final.body);
  return done ? createDurableEvent(events, journal, { type: "run.completed", steps }) : undefined;
}

/**
 * Allocates the sequence number of the next checkpoint among the durable events. An unsaved inner graph allocates no
 * number.
 */
export function allocateEventPlace({ sequence, world, nesting }: EventEmitter): Pick<EventPosition, "seq" | "at"> {
  const at = world.clock.now();
  if (nesting?.unsaved === true) return { seq: sequence.emittedSeq, at };
  sequence.nextSeq += 1;
  return { seq: sequence.nextSeq - 1, at };
}

/** Moves the session to the result of a durable superstep. */
function advance(
  session: Pick<Session, "position" | "progress" | "journal" | "lineage">,
  state: State,
  control: Control,
  {
    snapshot,
    isPartial = false,
  }: { readonly snapshot: Progress["snapshot"]; readonly isPartial?: boolean | undefined },
): void {
  session.journal.outcomes.clear();
  session.journal.ledger = undefined;
  session.progress.startedAgents = undefined;
  session.progress.turns = undefined;
  dropInnerSessions(session.position, session.lineage);
  session.progress.state = state;
  session.progress.control = control;
  session.progress.snapshot = snapshot;
  if (!isPartial) session.position.step += 1;
}

/** Removes the inner sessions of the finished superstep; persistent subgraphs continue from the same state. */
function dropInnerSessions({ plan, namespace }: Position, { innerSessions }: Lineage): void {
  if (innerSessions.size === 0) return;
  for (const called of innerSessions.keys())
    if (!plan.nodes.has(called.slice(namespace.length + 1))) innerSessions.delete(called);
}

interface SaveOptions
  extends Pick<CommitOptions, "nodes" | "source" | "longTerm" | "isPartial" | "interrupts" | "starts"> {
  /** Inbox messages that the checkpoint receives. */
  readonly inboxMessages?: readonly { readonly id: string }[] | undefined;
  readonly rolledBackRun?: string | undefined;
  readonly durationMs: number;
  /** Undefined for an inner graph: the outermost graph owns the run. */
  readonly run?: RunRow | undefined;
  readonly release?: boolean;
  /** Assigns the sequence numbers; called when only the write itself can still fail. */
  readonly assignNumbers: () => EventNumbers;
}

/** Sequence number of a checkpoint, and the durable events committed with it. */
export interface EventNumbers {
  readonly started?: DurableEvent | undefined;
  /** Events about inbox messages that the checkpoint receives. */
  readonly received?: readonly DurableEvent[];
  readonly place: Pick<EventPosition, "seq" | "at">;
  readonly ended?: DurableEvent | undefined;
}

/** Options of `saveCheckpoint`. */
interface SaveCheckpointOptions {
  readonly result: Pick<StepResult, "deltas" | "state">;
  readonly control: Control;
  readonly options: SaveOptions;
}

/** Writes a checkpoint as the next step of the branch, and deletes the journal of the step before. */
export async function saveCheckpoint(
  position: Position,
  progress: Progress,
  saved: Persistence,
  { result, control, options }: SaveCheckpointOptions,
): Promise<EventNumbers & { readonly row: CheckpointRow }> {
  const { thread } = saved;
  const deltas = saved.writer.rows(result.deltas, result.state);
  const text = encodeWrapper(saved.codec, control, "the control state");
  const numbers = options.assignNumbers();
  const row: CheckpointRow = {
    id: thread.nextCheckpoint,
    branch: position.namespace,
    step: options.isPartial === true ? position.step : position.step + 1,
    parent: saved.parent,
    source: options.source,
    nodes: options.nodes,
    control: text,
    run: position.run.id,
    at: numbers.place.at,
    durationMs: Math.round(options.durationMs),
    seq: numbers.place.seq,
    bytes: deltas.reduce((sum, delta) => sum + delta.text.length, 0),
  };
  thread.nextCheckpoint += 1;
  const { run, release = false, interrupts, longTerm, rolledBackRun } = options;
  const interruptPart = interrupts === undefined ? {} : { interrupts };
  const events = listEventRows(numbers);
  const timerMoves = listTimerChanges(progress.control, control);
  // Interrupts belong to the namespace of the outermost graph and end with its superstep, whether closed or not.
  const closingInterrupts = options.isPartial === true ? (interrupts ?? []) : saved.interrupts.values();
  const disarmedTimers =
    position.nesting === undefined && saved.interrupts.size > 0 ? disarmTimers(closingInterrupts) : [];
  const timers = disarmedTimers.length === 0 ? timerMoves : [...(timerMoves ?? []), ...disarmedTimers];
  const deliveredMessages =
    options.inboxMessages === undefined || options.inboxMessages.length === 0
      ? undefined
      : options.inboxMessages.map(({ id }) => id);
  const parts = {
    checkpoint: { row, deltas },
    timers,
    run,
    events,
    deliveredMessages,
    rolledBackRun,
    longTerm,
    release,
    ...interruptPart,
  };
  const { starts } = options;
  if (starts !== undefined) bufferStarts(saved, starts);
  const durable = awaitCommit(saved, parts);
  // Clear synchronously: effects recorded from here on belong to the next step.
  saved.rows.clear();
  if (starts !== undefined) durable.catch(() => dropStarts(saved, starts));
  await durable;
  if (starts !== undefined) planDurableStarts(saved, starts);
  saved.parent = row.id;
  if (position.nesting === undefined) saved.interrupts.clear();
  thread.bytes += row.bytes;
  return { ...numbers, row };
}

/** Adds the starts of the next superstep to the commit of a superstep. */
function bufferStarts({ pending }: Persistence, starts: readonly PlannedStart[]): void {
  for (const { row } of starts) pending.set(toRowKey(row), { row });
}

/** Removes the starts of a refused superstep, which decides no call: no later commit may contain them. */
function dropStarts({ pending }: Persistence, starts: readonly PlannedStart[]): void {
  for (const { row } of starts) pending.delete(toRowKey(row));
}

/** Gives the durable starts to the calls of the next superstep. */
function planDurableStarts({ rows, plannedStarts }: Persistence, starts: readonly PlannedStart[]): void {
  for (const start of starts) {
    const key = toRowKey(start.row);
    rows.set(key, start.row);
    plannedStarts.set(key, start);
  }
}

function listEventRows({ started, received = [], ended }: EventNumbers): readonly EventRow[] | undefined {
  const events = [started, ...received, ended].filter((event) => event !== undefined);
  return events.length === 0 ? undefined : events.flatMap(({ rows }) => rows);
}

/** True when tasks contain a tool node. A cancelled run continues only to answer the tool calls of a saved message. */
export function hasToolTask(position: Position, tasks: readonly Task[]): boolean {
  return tasks.some((task) => position.plan.nodes.get(task.node)?.logic.answersCalls === true);
}

/** Commits the last checkpoint of a cancelled run: the finished tasks of its aborted superstep. */
export async function commitCancelled(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "lineage">,
  finished: readonly FinishedTask[],
  startedAt: number,
  body: DurableEventBody,
): Promise<DurableEvent> {
  const ledgerWrites = listOrphanEntries(session.position, session.journal, finished);
  const ledgerPart =
    ledgerWrites.length === 0
      ? []
      : [{ task: { id: START, node: START }, outcome: { writes: ledgerWrites, routes: [] } }];
  const result = reduceResults(session.position.plan, session.progress.state, [...finished, ...ledgerPart]);
  const { tasks } = session.progress.control;
  const writers = listWriters(session.position.plan, { tasks, finished, externalWrites: ledgerWrites });
  const nodes = listNodes(finished.map(({ task }) => task));
  const durationMs = session.env.world.clock.monotonic() - startedAt;
  const reason = body.type === "run.cancelled" ? { reason: body.reason } : {};
  const run = { ...toRunRow(session.position, session.env.world, "cancelled"), ...reason };
  const checkpointFields = { nodes, source: "step", durationMs, run, longTerm: collectChanges(finished) } as const;
  return commitFinal(session, result, countSteps(session.position) + 1, { body, writers, checkpointFields });
}

/** Data of the last checkpoint of a run that a new input pre-empts. */
export interface PreemptedEnd {
  readonly source: CheckpointSource;
  readonly run: RunRow;
  readonly interrupts: readonly InterruptRow[];
  readonly longTerm: readonly LongTermChange[] | undefined;
  /** Id of the rolled-back run, whose delivered inbox messages return to the inbox. */
  readonly rolledBackRun: string | undefined;
  readonly body: DurableEventBody;
}

/** Commits the last checkpoint of a pre-empted run; no task runs next, and the thread is released. */
export function commitPreempted(
  session: Pick<Session, "position" | "progress" | "events" | "journal" | "lineage">,
  result: Pick<StepResult, "state" | "deltas">,
  { body, ...end }: PreemptedEnd,
): Promise<DurableEvent> {
  const checkpointFields = { nodes: [], durationMs: 0, ...end };
  return commitFinal(session, result, countSteps(session.position), { body, checkpointFields });
}

/** Writes a checkpoint without next tasks, with the event that ends the run, and releases the thread. */
async function commitFinal(
  session: Pick<Session, "position" | "progress" | "events" | "journal" | "lineage">,
  result: Pick<StepResult, "state" | "deltas">,
  steps: number,
  {
    body,
    writers,
    checkpointFields,
  }: {
    readonly body: DurableEventBody;
    readonly writers?: SavedWriters | undefined;
    readonly checkpointFields: Omit<SaveOptions, "assignNumbers" | "release">;
  },
): Promise<DurableEvent> {
  const [snapshot] = session.progress.kernel.enter();
  const written = writers === undefined ? {} : { writers };
  const control: Control = { machine: null, tasks: [], inputs: [], joins: {}, steps, ...written };
  session.events.sequence.nextSeq = session.events.sequence.durableSeq + 1;
  const number = () => ({
    place: allocateEventPlace(session.events),
    ended: createDurableEvent(session.events, session.journal, body),
  });
  const { ended } =
    session.journal.saved === undefined
      ? number()
      : await saveCheckpoint(session.position, session.progress, session.journal.saved, {
          result,
          control,
          options: {
            ...checkpointFields,
            assignNumbers: number,
            release: true,
          },
        });
  advance(session, result.state, control, { snapshot });
  return ended as DurableEvent;
}
