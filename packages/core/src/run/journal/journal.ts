/**
 * Recorded effects: an effect runs once, its outcome is journaled, and a resume reuses the outcome. Model calls, tool
 * calls, steps, hooks, `once` nodes and promises of durable machines run through `runRecordedEffect`.
 *
 * After a crash: a recorded effect is reused; an effect without a start runs. With a start but no outcome, `pure` and
 * `idempotent` effects run again under the same idempotency key, and a `once` effect is in doubt: `reconcile` or a
 * person decides, else the effect fails with `effect_in_doubt`. A `once` effect that another branch has recorded is in
 * doubt too.
 */

import type { EffectClass, EffectKind } from "../../base/effect.ts";
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze, isJson } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow, EffectUsage } from "../../checkpoint/journal.ts";
import { plainCodec } from "../../state/codec.ts";
import type { ArtifactWrite } from "../../tool/artifacts/artifact.ts";
import { type EventEmitter, emit } from "../events/events.ts";
import type { Journal } from "../session/parts/journal.ts";
import { formatNestingPath, type Nesting } from "../session/parts/nesting.ts";
import { type Persistence, recordEffect, toJournalKey, toRowKey } from "../session/parts/persistence.ts";
import { getTaskPlace, type Position } from "../session/parts/position.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import type { Session } from "../session/session.ts";
import { validateEncodable } from "../session/validate-writes.ts";
import { beginPlanned, commitStart } from "./commit-start.ts";
import {
  type ConsultPerson,
  createPriorDoubt,
  createStartDoubt,
  type DoubtDecision,
  decideDoubt,
  decodeOutcome,
  isUnresolved,
  type RecordedOutcome,
  unwrapOutcome,
} from "./decide-effect.ts";
import {
  closeAttempt,
  endAttempts,
  openAttempt,
  recordAttemptFailure,
  restartRow,
  restateAttempts,
  toAttemptError,
} from "./effect-attempts.ts";
import { findPriorEffects, type PriorEffect, selectPriorEffect } from "./prior-effects.ts";

/** Identity of an effect, with the callback for its outcome. */
export interface EffectIdentity<Value> {
  readonly task: Task;
  /** Unique within the task. */
  readonly key: string;
  readonly kind: EffectKind;
  readonly name: string;
  /** Called when the outcome is durable; called at once without a store. */
  readonly onCommitted?: (value: Value, reused: boolean) => void;
}

/** An effect about to be performed. */
export interface EffectRequest<Value> extends EffectIdentity<Value> {
  readonly effect: EffectClass;
  /** Performs the effect. For a `once` effect, called in the same turn in which its start becomes durable. */
  readonly execute: (idempotencyKey: string) => Value | Promise<Value>;
  /**
   * Asks the remote system for the outcome of an effect in doubt. Resolves to its value, or undefined when the effect
   * did not happen.
   */
  readonly reconcile?: ((idempotencyKey: string) => Promise<Value | undefined>) | undefined;
  /**
   * Looks up the answer of a person about an effect in doubt, or suspends the task: `open` never resolves. Without it,
   * the effect fails with `effect_in_doubt`.
   */
  readonly consult?: ConsultPerson<Value, Promise<never>> | undefined;
  /** Finds a `once` effect among the effects of other branches. Without it, other branches are not searched. */
  readonly priorEffects?: PriorEffectSearch<Value>;
  /** Number of this start; 0 by default, since the attempts of most effects are counted at the end. */
  readonly startNumber?: number;
  /** Returns the number of attempts from the value. */
  readonly countAttempts?: (value: Value) => number;
  /** Returns the kind of the failure that the value reports; undefined for a success. */
  readonly getFailureKind?: (value: Value) => string | undefined;
  /** Returns the known tokens of the value. */
  readonly getUsage?: (value: Value) => EffectUsage | undefined;
  /** Digest of the arguments of a `once` call, to detect changed arguments. */
  readonly args?: string | undefined;
  /**
   * Called just before the start of a `once` effect is recorded. Rows recorded by the callback become durable with
   * the start.
   */
  readonly beforeStart?: (() => void) | undefined;
  /** Row of a start that is durable already: the effect begins in this turn. */
  readonly plannedStart?: EffectRow | undefined;
  /** Returns the artifacts saved with the outcome; called after the effect has finished. */
  readonly getArtifacts?: () => readonly ArtifactWrite[] | undefined;
  /** Returns the current stage of the effect as a display word. */
  readonly getStage?: () => string;
  /**
   * True when a repeated effect continues at its last recorded step, so that recorded inner effects are not repeated.
   */
  readonly isResumable?: boolean;
  /**
   * Returns true when the caller has abandoned the effect. A `once` effect whose start becomes durable after that
   * does not run.
   */
  readonly isAbandoned?: () => boolean;
  /**
   * Returns the value of an effect abandoned before its start became durable. Without it, the promise of the effect
   * stays pending.
   */
  readonly onAbandoned?: () => Value;
  /**
   * Ends the effect in place of the journal: the superstep records the outcome of a task, and a durable machine that of
   * a promise. Called in the turn in which the effect has finished.
   */
  readonly finish?: (row: EffectRow, value: Value) => Value;
}

/** Search for an effect among the `once` effects of other branches. */
export interface PriorEffectSearch<Value> {
  /** Returns the records of the same effect. */
  readonly match: (found: readonly PriorEffect[]) => readonly PriorEffect[];
  /** Decodes a recorded outcome; undefined when the outcome does not count here. */
  readonly decode: (
    found: PriorEffect,
    saved: Persistence,
  ) => RecordedOutcome<Value> | undefined | Promise<RecordedOutcome<Value> | undefined>;
}

/**
 * Returns the idempotency key, with which a remote system recognises a repeated effect. Stable across attempts and
 * resumes. The random part distinguishes a thread from a later thread of the same id, and from one in another store.
 */
export function createIdempotencyKey({ run, keySalt, namespace }: Position, task: Task, key: string): string {
  const prefix = keySalt === "" ? run.thread : `${run.thread}/${keySalt}`;
  return `${prefix}/${namespace}/${task.id}/${key}`;
}

/**
 * Runs an effect and records its start and outcome, or returns its recorded outcome. An effect that is new to this
 * process starts in the same turn.
 */
export function runRecordedEffect<Value>(session: EffectSession, request: EffectRequest<Value>): Promise<Value> {
  const { saved, outcomes } = session.journal;
  const { stream } = session.events;
  if (request.plannedStart !== undefined && saved !== undefined) {
    stream.effects += 1;
    return startOnceEffect(session.position, session.journal, saved, { request, row: request.plannedStart });
  }
  const place = toJournalKey(session.position.step, request.task.id, request.key);
  const isNew = !outcomes.has(place) && (saved === undefined || (request.effect !== "once" && !saved.rows.has(place)));
  if (!isNew) return resolveEffect(session, request, place);
  stream.effects += 1;
  return startEffect(session.position, session.journal, request);
}

/** Parts of a session that recorded effects use. */
type EffectSession = Pick<Session, "env" | "position" | "events" | "journal">;

/** Reuses a recorded outcome, decides about an effect in doubt, or starts the effect. */
async function resolveEffect<Value>(
  session: EffectSession,
  request: EffectRequest<Value>,
  place: string,
): Promise<Value> {
  const { saved, outcomes } = session.journal;
  const previous = outcomes.get(place);
  if (previous !== undefined && "error" in previous) throw previous.error;
  if (previous !== undefined) return reuse(session.events, request, previous.value as Value, 1);
  const row = saved?.rows.get(place);
  const recorded =
    saved === undefined || row === undefined || isUnresolved(row) ? undefined : decodeOutcome(saved, row);
  if (saved === undefined || row === undefined || recorded === undefined) {
    session.events.stream.effects += 1;
    return row !== undefined && isUnresolved(row)
      ? resolveStarted(session, request, row)
      : startUnlessPrior(session, request);
  }
  if ("error" in recorded) throw recorded.error;
  return reuse(session.events, request, recorded.value as Value, row.attempts);
}

/** Repeats an effect that has started, unless a `once` effect happened. */
async function resolveStarted<Value>(
  session: EffectSession,
  request: EffectRequest<Value>,
  row: EffectRow,
): Promise<Value> {
  if (request.effect !== "once") return repeatEffect(session, request, row);
  const decided = decideStart(session, request, row);
  const decision = decided instanceof Promise ? await decided : decided;
  if (decision.kind === "waiting") return decision.open;
  if (decision.kind === "happened")
    return completeEffect(session.position, session.journal, request, {
      row,
      execute: () => unwrapOutcome(decision.outcome),
    });
  return startUnlessPrior(session, request, row);
}

/**
 * Decides about a start without an outcome: `reconcile` decides, else a person. While a displaced owner may still run
 * the effect, a person decides about an effect that has not happened yet.
 */
function decideStart<Value>(
  { env, position, journal: { saved } }: EffectSession,
  request: EffectRequest<Value>,
  row: EffectRow,
): DoubtDecision<Value, Promise<never>> | Promise<DoubtDecision<Value, Promise<never>>> {
  const { reconcile, consult = () => failInDoubt(position, request, row) } = request;
  if (reconcile === undefined) return decideDoubt(env.onPriorEffect, createStartDoubt(row), consult);
  const isDenialFinal = request.consult === undefined || saved?.claim.previousOwner !== "displaced";
  return reconcile(row.idempotencyKey).then((value) => {
    if (value !== undefined) return { kind: "happened", outcome: { value } };
    return isDenialFinal ? { kind: "denied" } : decideDoubt(env.onPriorEffect, createStartDoubt(row), consult);
  });
}

/**
 * Starts an effect, unless another branch has recorded a `once` effect and its outcome counts here. `row` is an earlier
 * start on this branch that had no effect: another branch may have run the effect since.
 */
function startUnlessPrior<Value>(
  session: EffectSession,
  request: EffectRequest<Value>,
  row?: EffectRow,
): Promise<Value> {
  const { saved } = session.journal;
  const search = request.effect === "once" ? request.priorEffects : undefined;
  if (saved === undefined || search === undefined) return startOrRepeat(session, request, row);
  const lookup = findPriorEffects(session.env, session.position, saved);
  return lookup === undefined
    ? startOrRepeat(session, request, row)
    : lookup.then((found) => resolvePrior(session, saved, request, { search, row, matches: search.match(found) }));
}

/** Decides about a `once` effect that other branches have recorded. */
async function resolvePrior<Value>(
  session: EffectSession,
  saved: Persistence,
  request: EffectRequest<Value>,
  {
    search,
    row,
    matches,
  }: {
    readonly search: PriorEffectSearch<Value>;
    readonly row: EffectRow | undefined;
    readonly matches: readonly PriorEffect[];
  },
): Promise<Value> {
  const found = selectPriorEffect(matches);
  if (found === undefined) return startOrRepeat(session, request, row);
  const { consult = () => failPriorEffect(session.position, request, found) } = request;
  const doubt = createPriorDoubt(found, matches, await search.decode(found, saved));
  const decision = decideDoubt(session.env.onPriorEffect, doubt, consult);
  if (decision.kind === "waiting") return decision.open;
  if (decision.kind === "denied") return startOrRepeat(session, request, row);
  return reusePriorOutcome(session, saved, request, { priorRow: found.row, outcome: decision.outcome });
}

/** Repeats the start of `row`; starts an effect without one. Each start of a task is a new row. */
function startOrRepeat<Value>(
  session: EffectSession,
  request: EffectRequest<Value>,
  row: EffectRow | undefined,
): Promise<Value> {
  return row === undefined || request.kind === "task"
    ? startEffect(session.position, session.journal, request, row)
    : repeatEffect(session, request, row);
}

/** Reuses an outcome of another branch: returns its value, or throws its error, and records the outcome here. */
function reusePriorOutcome<Value>(
  session: EffectSession,
  saved: Persistence,
  request: EffectRequest<Value>,
  { priorRow, outcome }: { readonly priorRow: EffectRow; readonly outcome: RecordedOutcome<Value> },
): Value {
  if ("value" in outcome) {
    const { value } = outcome;
    return request.finish === undefined
      ? adoptPriorEffect(session, saved, request, { priorRow, value })
      : request.finish(priorRow, value);
  }
  const { error } = outcome;
  session.journal.outcomes.set(toJournalKey(session.position.step, request.task.id, request.key), { error });
  recordEffect(saved, {
    row: toOwnRow(session.position, session.env.world, request, priorRow),
    encode: () => priorRow.outcome ?? "",
  });
  throw error;
}

/** Adopts the value of a prior effect of another branch: records the effect in this journal as finished now. */
export function adoptPriorEffect<Value>(
  session: EffectSession,
  saved: Persistence,
  request: EffectIdentity<Value>,
  { priorRow, value }: { readonly priorRow: EffectRow; readonly value: Value },
): Value {
  const { task, key, kind, name } = request;
  const text = encodeValue(saved, request, value);
  session.journal.outcomes.set(toJournalKey(session.position.step, task.id, key), { value });
  emitReused(session.events, task, { key, kind, name, attempts: priorRow.attempts });
  recordEffect(saved, {
    row: { ...toOwnRow(session.position, session.env.world, request, priorRow), state: "ok" },
    encode: () => text,
    onCommitted: notifyCommitted(request, value),
  });
  return value;
}

function toOwnRow<Value>(
  position: Position,
  world: World,
  { task, key }: EffectIdentity<Value>,
  priorRow: EffectRow,
): EffectRow {
  const now = world.clock.now();
  const idempotencyKey = createIdempotencyKey(position, task, key);
  return { ...priorRow, task: task.id, key, idempotencyKey, startedAt: now, endedAt: now };
}

function reuse<Value>(events: EventEmitter, request: EffectRequest<Value>, value: Value, attempts: number): Value {
  const { task, key, kind, name } = request;
  emitReused(events, task, { key, kind, name, attempts });
  request.onCommitted?.(value, true);
  return value;
}

/** Emits `effect.reused`: a recorded outcome counts, and the effect does not run. */
export function emitReused(
  events: EventEmitter,
  { node, id }: Task,
  { key, kind, name, attempts }: Pick<EffectRow, "key" | "kind" | "name" | "attempts">,
): void {
  emit(events, { type: "effect.reused", node, task: id, key, kind, name, attempts });
}

/** Emits `effect.repeated`: an effect that started in a crashed process runs again. */
function emitRepeated(
  events: EventEmitter,
  { node, id }: Task,
  { key, kind, name, effect, idempotencyKey }: Pick<EffectRow, "key" | "kind" | "name" | "effect" | "idempotencyKey">,
): void {
  emit(events, { type: "effect.repeated", node, task: id, key, kind, name, effect, idempotencyKey });
}

/** Runs a started effect again, under the same idempotency key. */
function repeatEffect<Value>(session: EffectSession, request: EffectRequest<Value>, row: EffectRow): Promise<Value> {
  const { position, journal, events, env } = session;
  const { task, key, kind, name, effect } = request;
  if (request.isResumable !== true)
    emitRepeated(events, task, { key, kind, name, effect, idempotencyKey: row.idempotencyKey });
  // A new start: a reconciled earlier start is no evidence about the new start.
  if (effect === "once" && journal.saved !== undefined)
    return startOnceEffect(position, journal, journal.saved, { request, row: toRestartedRow(env.world, row) });
  const restarted = restartRow(row, env.world.clock.now());
  if (journal.saved !== undefined && restarted !== row)
    recordEffect(journal.saved, { row: restarted, encode: undefined, onCommitted: undefined });
  const execute = (): Value | Promise<Value> => request.execute(row.idempotencyKey);
  return completeEffect(position, journal, request, { row: restarted, execute });
}

/** Returns the row of a restarted `once` effect with a new start time, which identifies the start. */
function toRestartedRow(world: World, row: EffectRow): EffectRow {
  const startedAt = Math.max(world.clock.now(), row.startedAt + 1);
  return { ...restartRow(row, startedAt), startedAt };
}

/**
 * Starts a new effect. The start of a `once` effect is durable before the effect runs; other effects run immediately,
 * and their start is written concurrently. `previous` is an earlier start of a task.
 */
function startEffect<Value>(
  position: Position,
  journal: Journal,
  request: EffectRequest<Value>,
  previous?: EffectRow,
): Promise<Value> {
  const saved = journal.saved;
  if (saved?.thread.failure !== undefined) return Promise.reject(saved.thread.failure);
  const idempotencyKey = createIdempotencyKey(position, request.task, request.key);
  const startedAt = journal.world.clock.now();
  const row: EffectRow = {
    step: position.step,
    task: request.task.id,
    key: request.key,
    kind: request.kind,
    name: request.name,
    effect: request.effect,
    state: "started",
    attempts: request.startNumber ?? 0,
    idempotencyKey,
    startedAt,
    ...(request.getStage === undefined ? {} : { stage: request.getStage() }),
    ...(request.args === undefined ? {} : { args: request.args }),
    ...(previous === undefined ? {} : restateAttempts(saved, previous, startedAt)),
  };
  const execute = (): Value | Promise<Value> => request.execute(idempotencyKey);
  if (saved === undefined) {
    if (request.effect === "once" && position.nesting?.unsaved === true)
      throw createUnsavedError(position, request, position.nesting);
    return completeEffect(position, journal, request, { row, execute });
  }
  if (request.effect !== "once") {
    recordEffect(saved, { row });
    return completeEffect(position, journal, request, { row, execute });
  }
  return startOnceEffect(position, journal, saved, { request, row });
}

/** Makes the start of a `once` effect durable, unless it was planned, then runs the effect. */
function startOnceEffect<Value>(
  position: Position,
  journal: Journal,
  saved: Persistence,
  { request, row }: { readonly request: EffectRequest<Value>; readonly row: EffectRow },
): Promise<Value> {
  const execute = (): Value | Promise<Value> => request.execute(row.idempotencyKey);
  const begin = (): Promise<Value> => completeEffect(position, journal, request, { row, execute });
  request.beforeStart?.();
  if (request.plannedStart !== undefined) return beginPlanned(journal.world, saved, { row, begin });
  return commitStart(journal.world, saved, {
    row,
    isAbandoned: request.isAbandoned,
    onAbandoned: request.onAbandoned,
    begin,
  });
}

/**
 * Encodes an outcome when it is produced, not when it is written: an encoding error must not depend on the order of
 * the next write and the end of the superstep. Plain JSON cannot fail: it is frozen and encoded by the write, which
 * most outcomes never reach. A tool call has already checked its result.
 */
function encodeOutcome<Value>(
  position: Position,
  journal: Journal,
  saved: Persistence,
  { request, value }: { readonly request: EffectRequest<Value>; readonly value: Value },
): string | undefined {
  if (request.kind === "tool") return undefined;
  if (saved.codec === plainCodec && isJson(value)) {
    deepFreeze(value);
    return undefined;
  }
  try {
    return encodeValue(saved, request, value);
  } catch (error) {
    recordFailure(position, journal, request.task, { key: request.key, error });
    throw error;
  }
}

function encodeValue<Value>(saved: Persistence, request: EffectIdentity<Value>, value: Value): string {
  return saved.codec.encode(value, describeResult(request));
}

function describeResult<Value>({ kind, name }: EffectIdentity<Value>): string {
  return `the result of ${kind} "${name}"`;
}

async function completeEffect<Value>(
  position: Position,
  journal: Journal,
  request: EffectRequest<Value>,
  { row, execute }: { readonly row: EffectRow; readonly execute: () => Value | Promise<Value> },
): Promise<Value> {
  const { saved } = journal;
  const place = toRowKey(row);
  let value: Value;
  try {
    value = await execute();
  } catch (thrown) {
    if (saved !== undefined && row.step === position.step) recordThrown(journal.world, saved, place, thrown);
    throw thrown;
  }
  if (request.finish !== undefined) return request.finish(row, value);
  // The outcome of an abandoned attempt arrives after its superstep was committed: only `once` outcomes are still
  // recorded.
  if (row.step !== position.step && row.effect !== "once") return value;
  if (saved === undefined && request.kind !== "tool") validateEncodable(journal.codec, value, describeResult(request));
  const text = saved === undefined ? undefined : encodeOutcome(position, journal, saved, { request, value });
  journal.outcomes.set(place, { value });
  if (saved === undefined) {
    request.onCommitted?.(value, false);
    return value;
  }
  const endedAt = journal.world.clock.now();
  const ended: EffectRow = {
    ...row,
    state: "ok",
    ...endAttempts(saved.rows.get(place) ?? row, {
      endedAt,
      count: request.countAttempts?.(value) ?? 1,
      error: request.getFailureKind?.(value),
    }),
    endedAt,
    ...(request.getStage === undefined ? {} : { stage: request.getStage() }),
    ...(request.getUsage === undefined ? noUsage : toUsagePart(request.getUsage(value))),
  };
  recordEffect(saved, {
    row: ended,
    encode: () => text ?? encodeValue(saved, request, value),
    artifacts: request.getArtifacts?.(),
    onCommitted: notifyCommitted(request, value),
  });
  return value;
}

function notifyCommitted<Value>(request: EffectIdentity<Value>, value: Value): (failure?: StatewrightError) => void {
  return (failure) => {
    if (failure === undefined) request.onCommitted?.(value, false);
  };
}

const noUsage: Pick<EffectRow, "usage"> = {};

/** Returns the usage part of a row; empty for unknown usage. */
function toUsagePart(usage: EffectUsage | undefined): Pick<EffectRow, "usage"> {
  return usage === undefined ? noUsage : { usage };
}

/** Records the failure of an execution that ended with a thrown value. */
function recordThrown(world: World, saved: Persistence, place: string, thrown: unknown): void {
  const row = saved.rows.get(place);
  const error = row && toAttemptError(row.kind, thrown);
  if (error !== undefined) recordAttemptFailure(saved, place, { error, endedAt: world.clock.now() });
}

/** Stage of a tool call that is tried again. */
interface RetryStage {
  readonly stage: string;
  /** Failed attempts of this execution. */
  readonly attempts: number;
  /** Kind of the failure of the attempt that has just ended; undefined when the next attempt begins. */
  readonly error: string | undefined;
}

/** Journals the stage of a started effect with the next write: the end of an attempt, or the start of the next one. */
export function recordStage(
  session: Pick<Session, "position" | "journal" | "signals">,
  task: Task,
  key: string,
  { stage, attempts, error }: RetryStage,
): void {
  const { saved, world } = session.journal;
  const row = saved?.rows.get(toJournalKey(session.position.step, task.id, key));
  if (saved === undefined || row?.state !== "started" || session.signals.abort.signal.aborted) return;
  const at = world.clock.now();
  const moved = error === undefined ? openAttempt(row, at) : closeAttempt(row, { error, endedAt: at });
  recordEffect(saved, { row: { ...moved, stage, attempts } });
}

/** Journals a final failure, so that a resume does not repeat a failed `once` effect. */
export function recordFailure(
  position: Position,
  journal: Journal,
  task: Task,
  { key, error }: { readonly key: string; readonly error: unknown },
): void {
  const { saved } = journal;
  const row = saved?.rows.get(toJournalKey(position.step, task.id, key));
  if (saved === undefined || row === undefined || row.effect !== "once") return;
  journal.outcomes.set(toJournalKey(position.step, task.id, key), { error });
  const endedAt = journal.world.clock.now();
  const failed =
    row.attemptLog === undefined
      ? row
      : closeAttempt(row, { error: toAttemptError(row.kind, error) ?? "error", endedAt });
  recordEffect(saved, {
    row: { ...failed, state: "error", endedAt },
    encode: () => saved.codec.encode(toRedactedRecord(journal.redactor, error), `the failure of "${row.name}"`),
  });
}

function failInDoubt<Value>(position: Position, request: EffectRequest<Value>, row: EffectRow): never {
  throw new StatewrightError("effect_in_doubt", {
    what: `${request.kind} "${request.name}" had started when its process died, and its outcome is unknown`,
    next: `Resume the thread and answer the interrupt "in_doubt" of the node "${request.task.node}" with { happened: true, update: { … } }, or add a reconcile function to the ${request.kind}`,
    place: getTaskPlace(position, request.task),
    details: { key: row.key, idempotencyKey: row.idempotencyKey, startedAt: row.startedAt },
  });
}

function failPriorEffect<Value>(
  position: Position,
  { kind, name, task }: EffectRequest<Value>,
  { branch, row }: PriorEffect,
): never {
  const { key, idempotencyKey, startedAt, outcome } = row;
  const what = outcome === undefined ? "has started without an outcome" : "has already happened";
  const reuseHint = outcome === undefined ? "" : 'onPriorEffect: "reuse" to reuse its outcome, or ';
  throw new StatewrightError("effect_in_doubt", {
    what: `${kind} "${name}" is a once effect that ${what} on the branch "${branch}"`,
    next: `Resume with ${reuseHint}onPriorEffect: "repeat" to repeat it on this branch`,
    place: getTaskPlace(position, task),
    details: { key, idempotencyKey, startedAt, alreadyOn: branch },
  });
}

/**
 * Creates the error of a `once` effect in an unsaved subgraph. Unlike a run without a store, this run can be resumed,
 * and the resume would repeat the effect.
 */
function createUnsavedError<Value>(
  position: Position,
  { task, kind, name }: EffectRequest<Value>,
  nesting: Nesting,
): StatewrightError {
  return new StatewrightError("missing_store", {
    what: `the ${kind} "${name}" is a once effect in the subgraph "${formatNestingPath(nesting)}", which is not saved`,
    next: 'Use the persistence "per-call" for the subgraph, or declare the effect "idempotent"',
    place: getTaskPlace(position, task),
  });
}
