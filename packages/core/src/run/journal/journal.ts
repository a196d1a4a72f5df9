/**
 * Recorded effects: an effect runs once, its outcome is journaled, and a resume hands the outcome back.
 *
 * After a crash: recorded → reuse; never started → run; started without outcome → `pure` and `idempotent` run again with
 * the same key, `once` is in doubt: its `reconcile` decides, else the effect fails with `effect_in_doubt`.
 */
import type { EffectClass, EffectKind } from "../../base/effect.ts";
import { type ErrorRecord, fromErrorRecord, StatewrightError } from "../../base/errors.ts";
import { deepFreeze, isJson } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { type EffectRow, inFlight } from "../../checkpoint/journal.ts";
import { plainCodec } from "../../state/codec.ts";
import type { ArtifactWrite } from "../../tool/artifacts/artifact.ts";
import { recordOf } from "../session/redact-error.ts";
import {
  emit,
  journalKey,
  nodesOf,
  placeOf,
  record,
  recordNow,
  type Saved,
  type Session,
  type Within,
} from "../session/session.ts";
import { admit } from "../session/validate-writes.ts";
import { bestOf, type Elsewhere, onceElsewhere } from "./prior-effects.ts";

/** Which effect it is, and who wants to know its outcome. */
export interface EffectIdentity<Value> {
  readonly task: Task;
  /** Unique within the task. */
  readonly key: string;
  readonly kind: EffectKind;
  readonly name: string;
  /** Called when the outcome is durable, or at once without a store. */
  readonly settled?: (value: Value, reused: boolean) => void;
}

/** An effect about to be performed. */
export interface EffectRequest<Value> extends EffectIdentity<Value> {
  readonly effect: EffectClass;
  /** Does it. Called in the same turn in which the start of a `once` effect is durable. */
  readonly execute: (idempotencyKey: string) => Value | Promise<Value>;
  /** Ask the other side whether it happened: its value, or undefined when it did not. */
  readonly reconcile?: ((idempotencyKey: string) => Promise<Value | undefined>) | undefined;
  /** How often it was attempted, told by its value. */
  readonly attempts?: (value: Value) => number;
  /** What tells the arguments of a `once` call from others. */
  readonly args?: string | undefined;
  /** Called when the start of a `once` effect is about to be recorded: what it records is durable with that. */
  readonly beforeStart?: (() => void) | undefined;
  /** What is kept with its outcome, known when it has ended. */
  readonly artifacts?: () => readonly ArtifactWrite[] | undefined;
  /** Where it stands, in a word for people. */
  readonly stage?: () => string;
  /** Begun again it goes on where it stood: what is recorded inside it is not repeated. */
  readonly goesOn?: boolean;
  /** Whether who asked for it is gone: a `once` effect whose start is durable only then does not begin. */
  readonly abandoned?: () => boolean;
}

/** The key that the other side may use to recognise a repeated effect: the same in every attempt and after every resume. */
export function idempotencyKeyOf(session: Session, task: Task, key: string): string {
  return `${session.run.thread}/${session.line}/${task.id}/${key}`;
}

/** Perform an effect, or hand back its recorded outcome. */
export function perform<Value>(session: Session, request: EffectRequest<Value>): Promise<Value> {
  const { saved, outcomes } = session;
  const place = journalKey(session.step, request.task.id, request.key);
  const isNew =
    !outcomes.has(place) && (saved === undefined || (request.effect !== "once" && !saved.journal.has(place)));
  return isNew ? first(session, request) : performKnown(session, request, place);
}

async function performKnown<Value>(session: Session, request: EffectRequest<Value>, place: string): Promise<Value> {
  const { saved, outcomes } = session;
  const earlier = outcomes.get(place);
  if (earlier !== undefined && "error" in earlier) throw earlier.error;
  if (earlier !== undefined) return reuse(session, request, earlier.value as Value, 1);
  const known = saved?.journal.get(place);
  if (saved !== undefined && known?.outcome !== undefined) {
    const outcome = saved.codec.decode(known.outcome);
    if (known.state === "ok") return reuse(session, request, outcome as Value, known.attempts);
    if (known.state === "error") throw fromErrorRecord(outcome as ErrorRecord);
  }
  if (known !== undefined && inFlight(known)) return again(session, request, known);
  // A tool call and a node look for themselves: they can ask a person.
  const journals =
    saved === undefined || request.effect !== "once" || request.kind !== "step"
      ? undefined
      : onceElsewhere(session, saved);
  if (saved !== undefined && journals !== undefined) {
    const found = bestOf((await journals).filter(({ row }) => isSame(row, request)));
    if (found !== undefined) return takenFrom(session, saved, request, found);
  }
  return first(session, request);
}

function isSame<Value>(row: EffectRow, { task, key, kind, name }: EffectIdentity<Value>): boolean {
  return row.task === task.id && row.key === key && row.kind === kind && row.name === name;
}

/** A step of another branch, by the run's policy: its outcome counts here too, or the step fails, since it cannot ask. */
function takenFrom<Value>(session: Session, saved: Saved, request: EffectRequest<Value>, found: Elsewhere): Value {
  const { state, outcome } = found.row;
  if (session.onceElsewhere !== "reuse" || outcome === undefined) throw doneElsewhere(session, request, found);
  const value = saved.codec.decode(outcome);
  if (state === "ok") return takeOver(session, saved, request, found.row, value as Value);
  const error = fromErrorRecord(value as ErrorRecord);
  session.outcomes.set(journalKey(session.step, request.task.id, request.key), { error });
  record(session, saved, { row: rowHere(session, request, found.row), encode: () => outcome, told: undefined });
  throw error;
}

/** Let an effect that happened on another branch count here, with this value: it stands in the journal as if it had ended now. */
export function takeOver<Value>(
  session: Session,
  saved: Saved,
  request: EffectIdentity<Value>,
  there: EffectRow,
  value: Value,
): Value {
  const { task, key, kind, name } = request;
  const text = encodedOf(saved, request, value);
  session.outcomes.set(journalKey(session.step, task.id, key), { value });
  const { attempts } = there;
  emit(session, { type: "effect.reused", node: task.node, task: task.id, key, kind, name, attempts });
  record(session, saved, {
    row: { ...rowHere(session, request, there), state: "ok" },
    encode: () => text,
    told: (failure) => {
      if (failure === undefined) request.settled?.(value, false);
    },
  });
  return value;
}

function rowHere<Value>(session: Session, { task, key }: EffectIdentity<Value>, there: EffectRow): EffectRow {
  const now = session.world.clock.now();
  const idempotencyKey = idempotencyKeyOf(session, task, key);
  return { ...there, task: task.id, key, idempotencyKey, startedAt: now, endedAt: now };
}

function reuse<Value>(session: Session, request: EffectRequest<Value>, value: Value, attempts: number): Value {
  const { task, key, kind, name } = request;
  if (kind !== "task")
    emit(session, { type: "effect.reused", node: task.node, task: task.id, key, kind, name, attempts });
  request.settled?.(value, true);
  return value;
}

async function again<Value>(session: Session, request: EffectRequest<Value>, row: EffectRow): Promise<Value> {
  const { task, key, kind, name, effect } = request;
  if (effect === "once") {
    const happened = await request.reconcile?.(row.idempotencyKey);
    if (happened !== undefined) return settle(session, request, row, async () => happened);
    if (request.reconcile === undefined) throw inDoubt(session, request, row);
  }
  if (request.goesOn !== true)
    emit(session, {
      type: "effect.repeated",
      node: task.node,
      task: task.id,
      key,
      kind,
      name,
      effect,
      idempotencyKey: row.idempotencyKey,
    });
  const { saved } = session;
  // Another start: that the one before it did not happen says nothing of this one.
  if (effect === "once" && saved !== undefined) return begin(session, saved, request, startedAgain(session, row));
  return settle(session, request, row, () => request.execute(row.idempotencyKey));
}

/** The row of an effect that begins once more, at a time of its own. */
export function startedAgain({ world }: Session, row: EffectRow): EffectRow {
  return { ...row, startedAt: Math.max(world.clock.now(), row.startedAt + 1) };
}

/** What a question about a start is about: an answer to it counts for no other start. */
export function aboutStart({ startedAt }: EffectRow): string {
  return `started at ${startedAt}`;
}

/** The start of a `once` effect is durable before it begins; others begin at once and their start goes out beside them. */
function first<Value>(session: Session, request: EffectRequest<Value>): Promise<Value> {
  const saved = session.saved;
  const idempotencyKey = idempotencyKeyOf(session, request.task, request.key);
  const row: EffectRow = {
    step: session.step,
    task: request.task.id,
    key: request.key,
    kind: request.kind,
    name: request.name,
    effect: request.effect,
    state: "started",
    attempts: 0,
    idempotencyKey,
    startedAt: session.world.clock.now(),
    ...(request.stage === undefined ? {} : { stage: request.stage() }),
    ...(request.args === undefined ? {} : { args: request.args }),
  };
  const execute = (): Value | Promise<Value> => request.execute(idempotencyKey);
  if (saved === undefined) {
    if (request.effect === "once" && session.within?.unsaved === true)
      throw mustBeSaved(session, request, session.within);
    return settle(session, request, row, execute);
  }
  if (request.effect !== "once") {
    if (request.kind !== "task") record(session, saved, { row, encode: undefined, told: undefined });
    return settle(session, request, row, execute);
  }
  return begin(session, saved, request, row);
}

/** Make the start of a `once` effect durable, then let it begin. */
function begin<Value>(session: Session, saved: Saved, request: EffectRequest<Value>, row: EffectRow): Promise<Value> {
  const execute = (): Value | Promise<Value> => request.execute(row.idempotencyKey);
  request.beforeStart?.();
  return new Promise((resolve, reject) => {
    const start = new Promise<void>((isTold) => {
      recordNow(session, saved, {
        row,
        encode: undefined,
        told: (failure) => {
          isTold();
          saved.starts.delete(start);
          if (failure !== undefined) reject(failure);
          else if (request.abandoned?.() === true) callOff(session, saved, row);
          else settle(session, request, row, execute).then(resolve, reject);
        },
      });
    });
    saved.starts.add(start);
  });
}

/** The body that asked was given up while the start became durable: the effect did not begin, and the row says so. */
export function callOff(session: Session, saved: Saved, row: EffectRow): void {
  record(session, saved, {
    row: { ...row, endedAt: session.world.clock.now() },
    encode: undefined,
    told: undefined,
  });
}

/** Say that an effect did not begin whose start may be recorded: it waits for a person, and begins when there is an answer. */
export function callOffStart(session: Session, task: Task, key: string): void {
  const { saved } = session;
  const row = saved?.journal.get(journalKey(session.step, task.id, key));
  if (saved !== undefined && row !== undefined && inFlight(row)) callOff(session, saved, row);
}

/** Wait until the store has told of every start, so that what was called off is written before the thread is let go. */
export async function startsTold({ saved }: Session): Promise<void> {
  if (saved !== undefined && saved.starts.size > 0) await Promise.all(saved.starts);
}

/**
 * The text of an outcome, made when it is there and not when it is written: whether it can be saved must not depend on which
 * comes first, the next write or the end of the superstep. Where nothing can be wrong with it, and nobody can change it any
 * more, it is left to the write, which most outcomes never see. A tool call has looked already and answers for itself.
 */
function savedText<Value>(
  session: Session,
  saved: Saved,
  request: EffectRequest<Value>,
  value: Value,
): string | undefined {
  if (request.kind === "tool") return undefined;
  if (saved.codec === plainCodec && isJson(value)) {
    deepFreeze(value);
    return undefined;
  }
  try {
    return encodedOf(saved, request, value);
  } catch (error) {
    recordFailure(session, request.task, request.key, error);
    throw error;
  }
}

function encodedOf<Value>(saved: Saved, request: EffectIdentity<Value>, value: Value): string {
  return saved.codec.encode(value, resultOf(request));
}

function resultOf<Value>({ kind, name }: EffectIdentity<Value>): string {
  return `the result of ${kind} "${name}"`;
}

async function settle<Value>(
  session: Session,
  request: EffectRequest<Value>,
  row: EffectRow,
  execute: () => Value | Promise<Value>,
): Promise<Value> {
  const value = await execute();
  const { saved } = session;
  // The outcome of an attempt that was given up comes after its superstep was folded: nobody asks for it again, save a `once` one's.
  if (row.step !== session.step && row.effect !== "once") return value;
  if (saved === undefined && request.kind !== "tool") admit(session.codec, value, resultOf(request));
  const text = saved === undefined ? undefined : savedText(session, saved, request, value);
  session.outcomes.set(journalKey(row.step, row.task, row.key), { value });
  if (saved === undefined) {
    request.settled?.(value, false);
    return value;
  }
  const ended: EffectRow = {
    ...row,
    state: "ok",
    attempts: request.attempts?.(value) ?? 1,
    endedAt: session.world.clock.now(),
    ...(request.stage === undefined ? {} : { stage: request.stage() }),
  };
  record(session, saved, {
    row: ended,
    encode: () => text ?? encodedOf(saved, request, value),
    artifacts: request.artifacts?.(),
    told: (failure) => {
      if (failure === undefined) request.settled?.(value, false);
    },
  });
  return value;
}

/** Journal where an effect stands that has started; it goes out with the next write. */
export function recordStage(session: Session, task: Task, key: string, stage: string, attempts: number): void {
  const { saved } = session;
  const row = saved?.journal.get(journalKey(session.step, task.id, key));
  if (saved === undefined || row?.state !== "started" || session.abort.signal.aborted) return;
  record(session, saved, { row: { ...row, stage, attempts }, encode: undefined, told: undefined });
}

/** Journal a failure that is final, so that a resume does not repeat a `once` effect that is known to have failed. */
export function recordFailure(session: Session, task: Task, key: string, error: unknown): void {
  const { saved } = session;
  const row = saved?.journal.get(journalKey(session.step, task.id, key));
  if (saved === undefined || row === undefined || row.effect !== "once") return;
  session.outcomes.set(journalKey(session.step, task.id, key), { error });
  record(session, saved, {
    row: { ...row, state: "error", endedAt: session.world.clock.now() },
    encode: () => saved.codec.encode(recordOf(session, error), `the failure of "${row.name}"`),
    told: undefined,
  });
}

function inDoubt<Value>(session: Session, request: EffectRequest<Value>, row: EffectRow): StatewrightError {
  return new StatewrightError("effect_in_doubt", {
    what: `${request.kind} "${request.name}" had started when its process died, and nobody knows whether it happened`,
    next: 'Find out whether it happened: if so, write with updateState what the node would have returned; if not, or if the other side knows the key, declare the effect "idempotent" and resume',
    place: placeOf(session, { node: request.task.node, task: request.task.id }),
    details: { key: row.key, idempotencyKey: row.idempotencyKey, startedAt: row.startedAt },
  });
}

function doneElsewhere<Value>(
  session: Session,
  { kind, name, task }: EffectRequest<Value>,
  { branch, row }: Elsewhere,
): StatewrightError {
  const { key, idempotencyKey, startedAt, outcome } = row;
  const what = outcome === undefined ? "has started and has no outcome" : "has happened already";
  const reuse = outcome === undefined ? "" : 'onceElsewhere: "reuse" to take its outcome over, or ';
  return new StatewrightError("effect_in_doubt", {
    what: `${kind} "${name}" may happen once, and ${what} on the branch "${branch}"`,
    next: `Resume with ${reuse}onceElsewhere: "repeat" to do it again on this branch`,
    place: placeOf(session, { node: task.node, task: task.id }),
    details: { key, idempotencyKey, startedAt, alreadyOn: branch },
  });
}

/** Without a store a run ends with its process; here the run goes on, and would do it again. */
function mustBeSaved<Value>(
  session: Session,
  { task, kind, name }: EffectRequest<Value>,
  within: Within,
): StatewrightError {
  return new StatewrightError("missing_store", {
    what: `the ${kind} "${name}" may happen once, and stands in the subgraph "${nodesOf(within)}", which is not saved`,
    next: 'Give the subgraph the persistence "per-call", or declare the effect "idempotent"',
    place: placeOf(session, { node: task.node, task: task.id }),
  });
}
