/**
 * Recorded effects: an effect runs once, its outcome is journaled, and a resume reuses the outcome.
 *
 * After a crash: a recorded effect is reused; an effect without a start runs. With a start but no outcome, `pure` and
 * `idempotent` effects run again under the same idempotency key, and a `once` effect is in doubt: `reconcile` or a
 * person decides, else the effect fails with `effect_in_doubt`.
 */

import type { EffectClass, EffectKind } from "../../base/effect.ts";
import { type ErrorRecord, fromErrorRecord, StatewrightError } from "../../base/errors.ts";
import { deepFreeze, isJson } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { type EffectRow, isInFlight } from "../../checkpoint/journal.ts";
import { plainCodec } from "../../state/codec.ts";
import type { ArtifactWrite } from "../../tool/artifacts/artifact.ts";
import type { StepInDoubtAnswer } from "../../tool/policy/approval.ts";
import type { EventEmitter } from "../events/event-emitter.ts";
import { emit } from "../events/event-emitter.ts";
import type { Journal } from "../session/parts/journal.ts";
import { formatNestingPath, type Nesting } from "../session/parts/nesting.ts";
import { trackOnceEffect } from "../session/parts/once-effects.ts";
import {
  type ActiveThread,
  commitEffect,
  type Persistence,
  recordEffect,
  toJournalKey,
} from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { isSuspension } from "../session/preemption.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import type { Session } from "../session/session.ts";
import { validateEncodable } from "../session/validate-writes.ts";
import {
  closeAttempt,
  endAttempts,
  openAttempt,
  recordAttemptFailure,
  restartRow,
  toAttemptError,
} from "./effect-attempts.ts";
import { describePriorEffects, findPriorEffects, type PriorEffect, selectPriorEffect } from "./prior-effects.ts";

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

/** A `once` effect with an unknown outcome here. */
export interface EffectDoubt {
  readonly row: EffectRow;
  /** Subject of the question: an answer counts only for the same subject. */
  readonly about: string;
  /** Facts about another branch for the payload of the question. */
  readonly elsewhere?: object;
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
  /** Asks a person about an effect in doubt. Without it, the effect fails with `effect_in_doubt`. */
  readonly askPerson?: ((doubt: EffectDoubt) => Promise<StepInDoubtAnswer>) | undefined;
  /** Returns the number of attempts from the value. */
  readonly countAttempts?: (value: Value) => number;
  /** Returns the kind of the failure that the value reports; undefined for a success. */
  readonly getFailureKind?: (value: Value) => string | undefined;
  /** Digest of the arguments of a `once` call, to detect changed arguments. */
  readonly args?: string | undefined;
  /**
   * Called just before the start of a `once` effect is recorded. Rows recorded by the callback become durable with
   * the start.
   */
  readonly beforeStart?: (() => void) | undefined;
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
}

/**
 * Returns the idempotency key, with which a remote system recognises a repeated effect. Stable across attempts and
 * resumes. The random part distinguishes a thread from a later thread of the same id, and from one in another store.
 */
export function createIdempotencyKey({ run, keySalt, namespace }: Position, task: Task, key: string): string {
  const prefix = keySalt === "" ? run.thread : `${run.thread}/${keySalt}`;
  return `${prefix}/${namespace}/${task.id}/${key}`;
}

/** Runs an effect and records its start and outcome, or returns its recorded outcome. */
export function runRecordedEffect<Value>(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
  request: EffectRequest<Value>,
): Promise<Value> {
  const { saved, outcomes } = session.journal;
  const place = toJournalKey(session.position.step, request.task.id, request.key);
  const isNew = !outcomes.has(place) && (saved === undefined || (request.effect !== "once" && !saved.rows.has(place)));
  return isNew ? startEffect(session.position, session.journal, request) : replayEffect(session, request, place);
}

async function replayEffect<Value>(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
  request: EffectRequest<Value>,
  place: string,
): Promise<Value> {
  const { saved, outcomes } = session.journal;
  const previous = outcomes.get(place);
  if (previous !== undefined && "error" in previous) throw previous.error;
  if (previous !== undefined) return reuse(session.events, request, previous.value as Value, 1);
  const row = saved?.rows.get(place);
  const recorded = saved === undefined || row === undefined ? undefined : decodeOutcome(saved, row);
  if (recorded !== undefined) {
    if ("error" in recorded) throw recorded.error;
    return reuse(session.events, request, recorded.value as Value, row?.attempts ?? 1);
  }
  if (row !== undefined && isInFlight(row)) return repeatEffect(session, request, row);
  // Tool calls and nodes search prior effects themselves, because they can raise an interrupt.
  const priorEffects =
    saved === undefined || request.effect !== "once" || request.kind !== "step"
      ? undefined
      : findPriorEffects(session.env, session.position, saved);
  if (saved !== undefined && priorEffects !== undefined) {
    const found = (await priorEffects).filter(({ row }) => isSameEffect(row, request));
    if (found.length > 0) return resolvePriorEffects(session, saved, request, found);
  }
  return startEffect(session.position, session.journal, request);
}

function isSameEffect<Value>(row: EffectRow, { task, key, kind, name }: EffectIdentity<Value>): boolean {
  return row.task === task.id && row.key === key && row.kind === kind && row.name === name;
}

/**
 * Handles a step already recorded on other branches. Depending on the run's `onPriorEffect`, reuses the outcome, or
 * asks a person.
 */
async function resolvePriorEffects<Value>(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
  saved: Persistence,
  request: EffectRequest<Value>,
  priorEffects: readonly PriorEffect[],
): Promise<Value> {
  const found = selectPriorEffect(priorEffects);
  if (found === undefined) return startEffect(session.position, session.journal, request);
  const recorded = decodeOutcome(saved, found.row);
  if (session.env.onPriorEffect === "reuse" && recorded !== undefined)
    return reusePriorOutcome(session, saved, request, { priorRow: found.row, recorded });
  if (request.askPerson === undefined) throw createPriorEffectError(session.position, request, found);
  const answer = await request.askPerson({
    row: found.row,
    about: describePriorEffects(priorEffects),
    elsewhere: { alreadyOn: found.branch, ...describePriorOutcome(session.journal, recorded) },
  });
  if (!answer.happened) return startEffect(session.position, session.journal, request);
  const outcome = recorded === undefined || answer.value !== undefined ? { value: answer.value } : recorded;
  return reusePriorOutcome(session, saved, request, { priorRow: found.row, recorded: outcome });
}

/** Describes the outcome on another branch for the payload of a question. */
function describePriorOutcome({ redactor }: Journal, recorded: RecordedOutcome | undefined): object {
  if (recorded === undefined) return {};
  return "error" in recorded ? { error: toRedactedRecord(redactor, recorded.error) } : { outcome: recorded.value };
}

/** Reuses an outcome of another branch: returns its value, or throws its error, and journals it on this branch. */
function reusePriorOutcome<Value>(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
  saved: Persistence,
  request: EffectRequest<Value>,
  { priorRow, recorded }: { readonly priorRow: EffectRow; readonly recorded: RecordedOutcome },
): Value {
  if ("value" in recorded)
    return adoptPriorEffect(session, saved, request, { priorRow, value: recorded.value as Value });
  const { error } = recorded;
  session.journal.outcomes.set(toJournalKey(session.position.step, request.task.id, request.key), { error });
  recordEffect(saved, {
    row: toOwnRow(session.position, session.env.world, request, priorRow),
    encode: () => priorRow.outcome ?? "",
    onCommitted: undefined,
  });
  throw error;
}

/** Adopts the value of a prior effect of another branch: records the effect in this journal as finished now. */
export function adoptPriorEffect<Value>(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
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
    onCommitted: (failure) => {
      if (failure === undefined) request.onCommitted?.(value, false);
    },
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
  if (kind !== "task") emitReused(events, task, { key, kind, name, attempts });
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
export function emitRepeated(
  events: EventEmitter,
  { node, id }: Task,
  { key, kind, name, effect, idempotencyKey }: Pick<EffectRow, "key" | "kind" | "name" | "effect" | "idempotencyKey">,
): void {
  emit(events, { type: "effect.repeated", node, task: id, key, kind, name, effect, idempotencyKey });
}

/** Recorded outcome of an effect. */
export type RecordedOutcome = { readonly value: unknown } | { readonly error: Error };

/** Decodes the outcome of a row; undefined for a row without an outcome. */
export function decodeOutcome({ codec }: Persistence, { state, outcome }: EffectRow): RecordedOutcome | undefined {
  if (outcome === undefined || state === "started") return undefined;
  const value = codec.decode(outcome);
  return state === "ok" ? { value } : { error: fromErrorRecord(value as ErrorRecord) };
}

async function repeatEffect<Value>(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
  request: EffectRequest<Value>,
  row: EffectRow,
): Promise<Value> {
  const { task, key, kind, name, effect } = request;
  if (effect === "once") {
    const found = await resolveDoubt(session.position, request, row);
    if (found !== undefined)
      return completeEffect(session.position, session.journal, request, { row, execute: async () => found.value });
  }
  if (request.isResumable !== true)
    emitRepeated(session.events, task, { key, kind, name, effect, idempotencyKey: row.idempotencyKey });
  const { saved } = session.journal;
  // A new start: a reconciled earlier start is no evidence about the new start.
  if (effect === "once" && saved !== undefined)
    return startOnceEffect(session.position, session.journal, saved, {
      request,
      row: toRestartedRow(session.env.world, row),
    });
  const restarted = restartRow(row, session.env.world.clock.now());
  if (saved !== undefined && restarted !== row)
    recordEffect(saved, { row: restarted, encode: undefined, onCommitted: undefined });
  return completeEffect(session.position, session.journal, request, {
    row: restarted,
    execute: () => request.execute(row.idempotencyKey),
  });
}

/**
 * Finds the value of an effect in doubt by `reconcile`, else by asking a person. Resolves to undefined when the effect
 * did not happen.
 */
async function resolveDoubt<Value>(
  position: Position,
  request: EffectRequest<Value>,
  row: EffectRow,
): Promise<{ readonly value: Value } | undefined> {
  const { reconcile, askPerson } = request;
  if (reconcile !== undefined) {
    const value = await reconcile(row.idempotencyKey);
    return value === undefined ? undefined : { value };
  }
  if (askPerson === undefined) throw createInDoubtError(position, request, row);
  const answer = await askPerson({ row, about: describeStart(row) });
  return answer.happened ? { value: answer.value as Value } : undefined;
}

/** Returns the row of a restarted `once` effect with a new start time, which identifies the start. */
export function toRestartedRow(world: World, row: EffectRow): EffectRow {
  const startedAt = Math.max(world.clock.now(), row.startedAt + 1);
  return { ...restartRow(row, startedAt), startedAt };
}

/** Identifies a start in an interrupt. The answer applies to this start only. */
export function describeStart({ startedAt }: EffectRow): string {
  return `started at ${startedAt}`;
}

/**
 * Starts a new effect. The start of a `once` effect is durable before the effect runs; other effects run immediately,
 * and their start is written concurrently.
 */
function startEffect<Value>(position: Position, journal: Journal, request: EffectRequest<Value>): Promise<Value> {
  const saved = journal.saved;
  if (saved?.thread.failure !== undefined) return Promise.reject(saved.thread.failure);
  const idempotencyKey = createIdempotencyKey(position, request.task, request.key);
  const row: EffectRow = {
    step: position.step,
    task: request.task.id,
    key: request.key,
    kind: request.kind,
    name: request.name,
    effect: request.effect,
    state: "started",
    attempts: 0,
    idempotencyKey,
    startedAt: journal.world.clock.now(),
    ...(request.getStage === undefined ? {} : { stage: request.getStage() }),
    ...(request.args === undefined ? {} : { args: request.args }),
  };
  const execute = (): Value | Promise<Value> => request.execute(idempotencyKey);
  if (saved === undefined) {
    if (request.effect === "once" && position.nesting?.unsaved === true)
      throw createUnsavedError(position, request, position.nesting);
    return completeEffect(position, journal, request, { row, execute });
  }
  if (request.effect !== "once") {
    if (request.kind !== "task") recordEffect(saved, { row, encode: undefined, onCommitted: undefined });
    return completeEffect(position, journal, request, { row, execute });
  }
  return startOnceEffect(position, journal, saved, { request, row });
}

/** Makes the start of a `once` effect durable, then runs the effect. */
function startOnceEffect<Value>(
  position: Position,
  journal: Journal,
  saved: Persistence,
  { request, row }: { readonly request: EffectRequest<Value>; readonly row: EffectRow },
): Promise<Value> {
  const execute = (): Value | Promise<Value> => request.execute(row.idempotencyKey);
  request.beforeStart?.();
  return commitStart(journal.world, saved, {
    row,
    isAbandoned: request.isAbandoned,
    begin: () => completeEffect(position, journal, request, { row, execute }),
  });
}

/** Start of a `once` effect. */
interface OnceStart<Value> {
  readonly row: EffectRow;
  /** Begins the effect, in the turn of the event loop in which its start becomes durable. */
  readonly begin: () => Value | Promise<Value>;
  /** Returns true when the caller has abandoned the effect. */
  readonly isAbandoned?: (() => boolean) | undefined;
  /** Returns the value of an abandoned effect. Without `onAbandoned`, the promise of an abandoned effect stays pending. */
  readonly onAbandoned?: (() => Value) | undefined;
}

/**
 * Makes the start of a `once` effect durable, then begins the effect. An effect abandoned before its start is durable
 * does not begin, and its row records the cancelled start. Rejects when the start cannot be saved.
 */
export function commitStart<Value>(
  world: World,
  saved: Persistence,
  { row, begin, isAbandoned, onAbandoned }: OnceStart<Value>,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const start = new Promise<void>((resolveStart) => {
      commitEffect(saved, {
        row,
        encode: undefined,
        onCommitted: (failure) => {
          resolveStart();
          saved.starts.delete(start);
          if (failure !== undefined) return reject(failure);
          const stop = findStop(saved.thread);
          if (stop !== undefined || isAbandoned?.() === true) recordCancelledStart(world, saved, row);
          if (stop !== undefined) return reject(stop);
          if (isAbandoned?.() !== true) resolve(trackBegin(saved, begin));
          else if (onAbandoned !== undefined) resolve(onAbandoned());
        },
      });
    });
    saved.starts.add(start);
  });
}

function trackBegin<Value>({ thread }: Persistence, begin: () => Value | Promise<Value>): Value | Promise<Value> {
  const begun = begin();
  return begun instanceof Promise ? trackOnceEffect(thread.onceEffects, begun) : begun;
}

/** Returns the reason why no effect may begin: a refused write, or an abort that leaves pending work to a resume. */
function findStop({ failure, abort: { signal } }: ActiveThread): unknown {
  return failure ?? (isSuspension(signal.reason) ? signal.reason : undefined);
}

/** Marks an effect as not performed: the caller abandoned the effect while its start became durable. */
function recordCancelledStart(world: World, saved: Persistence, row: EffectRow): void {
  recordEffect(saved, {
    row: { ...row, endedAt: world.clock.now() },
    encode: undefined,
    onCommitted: undefined,
  });
}

/** Marks a possibly recorded start as not performed. The effect waits for an interrupt and starts after the answer. */
export function cancelStart(position: Position, journal: Journal, task: Task, key: string): void {
  const { saved } = journal;
  const row = saved?.rows.get(toJournalKey(position.step, task.id, key));
  if (saved !== undefined && row !== undefined && isInFlight(row)) recordCancelledStart(journal.world, saved, row);
}

/** Waits until every start write has finished, so that cancelled starts are written before the thread is released. */
export async function waitForStarts({ saved }: Journal): Promise<void> {
  if (saved !== undefined && saved.starts.size > 0) await Promise.all(saved.starts);
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
  const place = toJournalKey(row.step, row.task, row.key);
  let value: Value;
  try {
    value = await execute();
  } catch (thrown) {
    if (saved !== undefined && row.step === position.step) recordThrown(journal.world, saved, place, thrown);
    throw thrown;
  }
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
  };
  recordEffect(saved, {
    row: ended,
    encode: () => text ?? encodeValue(saved, request, value),
    artifacts: request.getArtifacts?.(),
    onCommitted: (failure) => {
      if (failure === undefined) request.onCommitted?.(value, false);
    },
  });
  return value;
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
  recordEffect(saved, { row: { ...moved, stage, attempts }, encode: undefined, onCommitted: undefined });
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
    onCommitted: undefined,
  });
}

function createInDoubtError<Value>(
  position: Position,
  request: EffectRequest<Value>,
  row: EffectRow,
): StatewrightError {
  return new StatewrightError("effect_in_doubt", {
    what: `${request.kind} "${request.name}" had started when its process died, and its outcome is unknown`,
    next: `Resume the thread and answer the interrupt "in_doubt" of the node "${request.task.node}" with { happened: true, update: { … } }, or add a reconcile function to the ${request.kind}`,
    place: getErrorPlace(position, { node: request.task.node, task: request.task.id }),
    details: { key: row.key, idempotencyKey: row.idempotencyKey, startedAt: row.startedAt },
  });
}

function createPriorEffectError<Value>(
  position: Position,
  { kind, name, task }: EffectRequest<Value>,
  { branch, row }: PriorEffect,
): StatewrightError {
  const { key, idempotencyKey, startedAt, outcome } = row;
  const what = outcome === undefined ? "has started without an outcome" : "has already happened";
  const reuseHint = outcome === undefined ? "" : 'onPriorEffect: "reuse" to reuse its outcome, or ';
  return new StatewrightError("effect_in_doubt", {
    what: `${kind} "${name}" is a once effect that ${what} on the branch "${branch}"`,
    next: `Resume with ${reuseHint}onPriorEffect: "repeat" to repeat it on this branch`,
    place: getErrorPlace(position, { node: task.node, task: task.id }),
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
    place: getErrorPlace(position, { node: task.node, task: task.id }),
  });
}
