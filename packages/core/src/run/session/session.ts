/**
 * A session: one process at work on one branch of one thread. It owns the state in memory, the claim on the store, and the
 * buffer of journal rows that go out with the next write.
 */
import type { ErrorPlace, StatewrightError } from "../../base/errors.ts";
import type { SecretSource } from "../../base/injection.ts";
import type { Mask } from "../../base/redaction/redactor.ts";
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
import type { EventPlace, EventStream, RunEventBody } from "../events/events.ts";
import type { LedgerBook } from "../journal/ledger-registry.ts";
import type { Kernel, Snapshot } from "../kernel/kernel.ts";
import type { Breakpoints } from "./breakpoints.ts";
import { heedQueue } from "./check-preemption.ts";
import type { Inbox } from "./inbox.ts";
import type { Mailbox } from "./inbox-buffer.ts";
import type { LongTermSide } from "./long-term-view.ts";
import type { OnceElsewhere } from "./options.ts";
import type { Stopped } from "./preemption.ts";
import type { State } from "./returns.ts";

/** A journal row whose outcome is encoded only if it is written: a superstep that folds it first never needs it. */
export interface PendingEffect {
  readonly row: EffectRow;
  readonly encode: (() => string) | undefined;
  readonly told: ((failure?: StatewrightError) => void) | undefined;
  /** Kept in the write that records its outcome. */
  readonly artifacts?: readonly ArtifactWrite[] | undefined;
}

/** The store's side of a session; absent when a run has no store. */
export interface Saved {
  readonly store: Store;
  readonly codec: Codec;
  readonly writer: StateWriter;
  readonly claim: Claim;
  /** What a graph and the graphs inside it share. */
  readonly thread: ThreadAtWork;
  parent: number | undefined;
  /** Rows of the current step, from before a crash and since. */
  readonly journal: Map<string, EffectRow>;
  /** Questions of the branch, those of inner graphs among them, by id. */
  readonly interrupts: Map<string, InterruptRow>;
  readonly pending: Map<string, PendingEffect>;
  /** Starts of `once` effects on their way to the store. */
  readonly starts: Set<Promise<void>>;
  flushing: boolean;
}

/** Numbers of durable events: the next one, the last that is durable, and the last that was told. */
export interface Sequence {
  nextSeq: number;
  durableSeq: number;
  toldSeq: number;
}

/** A thread that one process writes, on its branch and on the child lines of inner graphs. */
export interface ThreadAtWork extends Sequence {
  /** A graph of another shape wrote its newest checkpoint; a hand-drawn machine looks for itself. */
  readonly changed: boolean;
  nextCheckpoint: number;
  /** Bytes of deltas that this process saved. */
  bytes: number;
  /** Why a write beside the supersteps failed: the run stops with it at the next boundary. */
  failure: StatewrightError | undefined;
  /** Runs that are queued on the thread, as the last write told. */
  queued: number;
  /** Ended effects that the store refused, by line and journal key. */
  readonly unsaved: Map<string, { readonly line: string; readonly effect: PendingEffect }>;
}

/** Where in the outermost graph an inner one runs. */
export interface Within {
  /** The nodes and tools that lead here, outermost first. */
  readonly path: readonly string[];
  /** Its line below the branch: tells the calls of one node or tool from each other. */
  readonly id: string;
  /** Stands before the ids of its questions: the tasks and calls that lead here, each with a slash. */
  readonly ids: string;
  /** The step and the task of the outermost graph. */
  readonly step: number;
  readonly task: string;
  /** The call: the task of the graph around it, and the checkpoint that decided it. */
  readonly caller: NonNullable<Control["caller"]>;
  /** Nothing of it is saved, though the run has a store. */
  readonly unsaved: boolean;
  /** How many calls of tools lead here. */
  readonly depth: number;
  /** Stops the whole run. */
  readonly abort: AbortController;
  /** What a hook ends that says abort: the call that it stands in, or the run where it stands around all of it. */
  readonly endedBy: (hook: Middleware) => AbortController;
}

/** One run at work. */
export interface Session {
  readonly plan: Plan;
  /** The outermost graph, and how threads of its older versions become threads of it. */
  readonly versions: { readonly graph: GraphDefinition; readonly migrations: readonly Migration[] };
  /** What people have sent to the run; shared with the graphs inside. */
  readonly inbox: Inbox;
  /** Of the handle that began it. */
  readonly mailbox: Mailbox | undefined;
  readonly kernel: Kernel;
  readonly world: World;
  readonly context: unknown;
  readonly secrets: SecretSource;
  /** Knows the secrets that it has asked for, and keeps them out of what it saves and tells. */
  readonly mask: Mask;
  /** Whether partial results and lines of progress are told at all. */
  readonly updates: boolean;
  /** Middleware of its graph and of the graphs around it, outermost first. */
  readonly policies: readonly Middleware[];
  readonly events: EventStream;
  readonly abort: AbortController;
  /** Fires when the tasks of this superstep must stop: with `abort`, or when a sibling has failed and that is asked for. */
  halt: AbortSignal;
  readonly codec: Codec;
  readonly onTaskFailure: "finish" | "abort";
  readonly onceElsewhere: OnceElsewhere;
  readonly breakpoints: Breakpoints | undefined;
  readonly run: RunRow;
  /** The line of the store that holds its rows: the run's branch, or a child line of it. */
  readonly line: string;
  /** Present where it runs inside another graph. */
  readonly within: Within | undefined;
  /** The graph around it, and the task there that it runs in. */
  readonly around: { readonly session: Session; readonly task: Task } | undefined;
  /** Calls of inner graphs in this process, by line: a next attempt goes on where the last one stopped. */
  readonly inner: Map<string, Session>;
  /** Fires when the run is to stop at the next boundary. */
  readonly drain: AbortSignal;
  /** Stop the run for a new input, or for the sake of its process. */
  readonly stop: (why: Stopped) => void;
  readonly saved: Saved | undefined;
  /** The long-term store of its store. */
  readonly longTerm: LongTermSide | undefined;
  /** The numbers of its events, shared with the graphs inside; those of the thread where it is saved. */
  readonly sequence: Sequence;
  /** Outcomes of the current step's effects in this process, by journal key: what a node's next attempt is handed. */
  readonly outcomes: Map<string, { readonly value: unknown } | { readonly error: unknown }>;
  readonly limits: { readonly maxSteps: number; readonly maxConcurrency: number };
  /** Nodes whose agents have begun in this run, where one has in this superstep. */
  begun: readonly string[] | undefined;
  /** How often agents with a limit have asked their models, where one has in this superstep. */
  turns: Control["turns"];
  /** What hooks have entered into its ledgers since the superstep began; absent while nobody has looked. */
  ledger: LedgerBook | undefined;
  state: State;
  control: Control;
  snapshot: Snapshot;
  step: number;
  /** Supersteps of this run in earlier processes, and in this one. */
  readonly stepsBefore: number;
  stepsOfRun: number;
}

/** Send an event, if anybody listens. One that is durable says at which place; all others follow the newest durable one. */
export function emit(session: Session, body: RunEventBody, at?: Pick<EventPlace, "seq" | "at">): void {
  const { within, sequence } = session;
  if (at !== undefined) sequence.toldSeq = at.seq;
  if (!session.events.listening()) return;
  const place = at ?? { seq: sequence.toldSeq, at: session.world.clock.now() };
  session.events.emit(
    within === undefined ? { ...body, ...place } : { ...body, ...place, within: nodesOf(within), withinId: within.id },
  );
}

/** Where in the run something happens, for errors. */
export function placeOf(session: Session, more: ErrorPlace = {}): ErrorPlace {
  return {
    graph: session.plan.graph.name,
    thread: session.run.thread,
    branch: session.run.branch,
    ...(session.step < 0 ? {} : { step: session.step }),
    ...(session.within === undefined ? {} : { within: nodesOf(session.within) }),
    ...more,
  };
}

/** The nodes and tools that lead to an inner graph, as `research.plan`. */
export function nodesOf({ path }: Within): string {
  return path.join(".");
}

/** Leads from the outermost graph to the machine that moves. */
export function pathOf({ run, within }: Session): readonly string[] {
  return within === undefined ? [run.graph] : [run.graph, ...within.path];
}

/** Middleware of a node behind that of the graphs it is in. What was given to both stands where the node has it. */
export function withPolicies({ policies }: Session, own: readonly Middleware[] = []): readonly Middleware[] {
  if (policies.length === 0) return own;
  return [...policies.filter((each) => !own.includes(each)), ...own];
}

/** Supersteps of the run, over all its resumes; of an inner graph those of the call. */
export function stepsTaken({ stepsBefore, stepsOfRun }: Session): number {
  return stepsBefore + stepsOfRun;
}

/** The key of a journal row within a line. */
export function journalKey(step: number, task: string, key: string): string {
  return `${step}/${task}/${key}`;
}

/** The key of a task's own outcome. Steps and model calls cannot have it; the call of a careless model can, and differs by its kind. */
export const taskKey = "";

function keyOf(row: EffectRow): string {
  return journalKey(row.step, row.task, row.key);
}

/**
 * Put a journal row into the next write. It goes out with the superstep if that comes first, else at the end of the
 * current turn of the event loop; `told` is called when it is durable or has failed.
 */
export function record(session: Session, saved: Saved, effect: PendingEffect): void {
  letWait(saved, effect);
  writeSoon(session, saved);
}

/**
 * Put a row into the journal of a graph around the one at work. It goes out with what the graph inside writes next, in one
 * commit, or before it: so it is never less durable than what is recorded there after it.
 */
export function recordAround(session: Session, home: Session, saved: Saved, effect: PendingEffect): void {
  letWait(saved, effect);
  if (session.saved === undefined) writeSoon(home, saved);
  else writeSoon(session, session.saved);
}

function letWait(saved: Saved, effect: PendingEffect): void {
  const key = keyOf(effect.row);
  const earlier = saved.pending.get(key)?.told;
  const { told } = effect;
  saved.pending.set(key, { ...effect, told: earlier === undefined ? told : bothTold(earlier, told) });
  saved.journal.set(key, effect.row);
}

/** Write what waits at the end of the current turn of the event loop, with what waits around it. */
function writeSoon(session: Session, saved: Saved): void {
  if (saved.flushing) return;
  saved.flushing = true;
  session.world.schedule.soon(() => {
    saved.flushing = false;
    if (saved.pending.size > 0) writeBeside(session, saved);
    else
      for (const around of savedAround(session))
        if (around.saved.pending.size > 0) writeBeside(around.session, around.saved);
  });
}

/** The graphs around one, from the nearest outwards. */
function savedAround({ around }: Session): readonly SavedSession[] {
  if (around === undefined) return noneAround;
  const { session } = around;
  return [...(session.saved === undefined ? [] : [{ session, saved: session.saved }]), ...savedAround(session)];
}

interface SavedSession {
  readonly session: Session;
  readonly saved: Saved;
}

const noneAround: readonly SavedSession[] = Object.freeze([]);

/** Write a journal row at once, on its own; `told` runs in the same turn as the store's own call. */
export function recordNow(session: Session, saved: Saved, effect: PendingEffect): void {
  record(session, saved, effect);
  writeBeside(session, saved);
}

/**
 * Write what waits, with nobody waiting for it. A failure is kept for the drive and stops the tasks at once: whatever they
 * would still do could not be recorded, and would be done again.
 */
function writeBeside(session: Session, saved: Saved): void {
  write(session, saved, {}, (failure) => {
    if (failure === undefined) return;
    saved.thread.failure ??= failure;
    (session.within ?? session).abort.abort(failure);
  });
}

/** What one write holds besides the journal rows that wait. */
export type SessionWrite = Pick<
  Commit,
  "run" | "checkpoint" | "interrupts" | "timers" | "events" | "taken" | "givenBack" | "longTerm" | "release"
>;

/** Hand everything that waits to the store as one commit. A checkpoint takes the outcomes it folds out of the rows. */
export function write(
  session: Session,
  saved: Saved,
  parts: SessionWrite,
  told: (failure?: StatewrightError) => void,
): void {
  const { effects, waiting, artifacts, failure } =
    saved.pending.size === 0 ? nothingWaits : encoded([...saved.pending.values()], parts.checkpoint);
  saved.pending.clear();
  if (failure !== undefined) {
    saved.thread.failure ??= failure;
    if (parts.checkpoint !== undefined || parts.interrupts !== undefined) {
      for (const effect of waiting) saved.pending.set(keyOf(effect.row), effect);
      told(failure);
      return;
    }
  }
  const { after, seq } = numbersOf(parts) ?? { after: undefined, seq: saved.thread.durableSeq };
  const around = session.around === undefined ? undefined : waitingAround(session);
  saved.store.commit(
    {
      ...parts,
      effects,
      artifacts: around === undefined ? artifacts : joined([artifacts, ...around.map((each) => each.artifacts)]),
      around: around?.map(({ line, effects }) => ({ line, effects })),
      thread: session.run.thread,
      branch: session.line,
      epoch: saved.claim.epoch,
      after,
      seq,
    },
    (failure, queued = saved.thread.queued) => {
      if (failure === undefined) saved.thread.durableSeq = Math.max(saved.thread.durableSeq, seq);
      if (queued !== saved.thread.queued) {
        saved.thread.queued = queued;
        if (queued > 0 && parts.release !== true) void heedQueue(session, saved);
      }
      if (failure !== undefined) {
        // The first failure is the cause: what fails after it, also beside it in an inner graph, follows from it.
        saved.thread.failure ??= failure;
        keepUnsaved(session.line, saved.thread, waiting);
        for (const { line, waiting } of around ?? []) keepUnsaved(line, saved.thread, waiting);
      }
      for (const { waiting } of around ?? []) for (const effect of waiting) effect.told?.(failure);
      for (const effect of waiting) effect.told?.(failure);
      told(failure);
    },
  );
}

/** What waits in the graphs around one goes along with its write; none of it is folded by that. */
function waitingAround(session: Session): readonly (Encoded & { readonly line: string })[] | undefined {
  let along: (Encoded & { readonly line: string })[] | undefined;
  for (const { session: outer, saved } of savedAround(session)) {
    if (saved.pending.size === 0) continue;
    const rows = encoded([...saved.pending.values()], undefined);
    saved.pending.clear();
    if (rows.failure !== undefined) saved.thread.failure ??= rows.failure;
    along = [...(along ?? []), { ...rows, line: outer.line }];
  }
  return along;
}

function joined(parts: readonly (readonly ArtifactWrite[] | undefined)[]): readonly ArtifactWrite[] | undefined {
  const all = parts.flatMap((part = []) => part);
  return all.length === 0 ? undefined : all;
}

/** Which numbers a write takes. One that tells nothing takes none: those of others under way may yet fail. */
function numbersOf({ checkpoint, events = [] }: SessionWrite): Pick<Commit, "after" | "seq"> | undefined {
  if (events.length === 0) return checkpoint && { after: checkpoint.row.seq - 1, seq: checkpoint.row.seq };
  const numbers = events.map(({ seq }) => seq);
  if (checkpoint !== undefined) numbers.push(checkpoint.row.seq);
  return numbers.length === 0 ? undefined : { after: Math.min(...numbers) - 1, seq: Math.max(...numbers) };
}

/** What has ended is not lost with the write that failed. */
function keepUnsaved(line: string, thread: ThreadAtWork, waiting: readonly PendingEffect[]): void {
  for (const effect of waiting)
    if (effect.row.endedAt !== undefined) thread.unsaved.set(`${line} ${keyOf(effect.row)}`, { line, effect });
}

/** {@link write} as a promise, for what has nothing to start on the spot. */
export function written(session: Session, saved: Saved, parts: SessionWrite): Promise<void> {
  return new Promise((resolve, reject) =>
    write(session, saved, parts, (failure) => (failure === undefined ? resolve() : reject(failure))),
  );
}

interface Encoded {
  readonly effects: readonly EffectRow[];
  readonly waiting: readonly PendingEffect[];
  readonly artifacts: readonly ArtifactWrite[] | undefined;
  readonly failure: StatewrightError | undefined;
}

const nothingWaits: Encoded = { effects: [], waiting: [], artifacts: undefined, failure: undefined };

/** The rows of what waits. An outcome that cannot be saved is left out and told so: the others are kept. */
function encoded(pending: readonly PendingEffect[], checkpoint: CheckpointWrite | undefined): Encoded {
  const effects: EffectRow[] = [];
  const waiting: PendingEffect[] = [];
  let artifacts: ArtifactWrite[] | undefined;
  let failure: StatewrightError | undefined;
  for (const effect of pending) {
    try {
      effects.push(...rowsOf(effect, checkpoint));
      waiting.push(effect);
      if (effect.artifacts !== undefined) artifacts = [...(artifacts ?? []), ...effect.artifacts];
    } catch (error) {
      failure ??= error as StatewrightError;
      effect.told?.(error as StatewrightError);
    }
  }
  return { effects, waiting, artifacts, failure };
}

function rowsOf(effect: PendingEffect, checkpoint: CheckpointWrite | undefined): readonly EffectRow[] {
  const { row, encode } = effect;
  if (checkpoint === undefined) return [encode === undefined ? row : { ...row, outcome: encode() }];
  if (row.kind === "task" && row.effect !== "once") return [];
  return [row.effect === "once" && encode !== undefined ? { ...row, outcome: encode() } : row];
}

function bothTold(
  first: (failure?: StatewrightError) => void,
  second: ((failure?: StatewrightError) => void) | undefined,
): (failure?: StatewrightError) => void {
  return (failure) => {
    first(failure);
    second?.(failure);
  };
}
