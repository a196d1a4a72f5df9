/**
 * Recorded effects: an effect runs once, its outcome is journaled, and a resume hands the outcome back.
 *
 * After a crash: recorded → reuse; never started → run; started without outcome → `pure` and `idempotent` run again with
 * the same key, `once` is in doubt: its `reconcile` decides, else the effect fails with `effect_in_doubt`.
 */
import type { EffectClass, EffectKind } from "../base/effect.ts";
import { type ErrorRecord, fromErrorRecord, StatewrightError, toErrorRecord } from "../base/errors.ts";
import type { Task } from "../checkpoint/checkpoint.ts";
import type { EffectRow } from "../checkpoint/journal.ts";
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
} from "./session.ts";

/** An effect about to be performed. */
export interface EffectRequest<Value> {
  readonly task: Task;
  /** Unique within the task. */
  readonly key: string;
  readonly kind: EffectKind;
  readonly name: string;
  readonly effect: EffectClass;
  /** Does it. Called in the same turn in which the start of a `once` effect is durable. */
  readonly execute: (idempotencyKey: string) => Promise<Value>;
  /** Ask the other side whether it happened: its value, or undefined when it did not. */
  readonly reconcile?: ((idempotencyKey: string) => Promise<Value | undefined>) | undefined;
  /** How often it was attempted, known when it has ended. */
  readonly attempts?: () => number;
  /** Where it stands, in a word for people. */
  readonly stage?: () => string;
  /** Whether who asked for it is gone: a `once` effect whose start is durable only then does not begin. */
  readonly abandoned?: () => boolean;
  /** Called when the outcome is durable, or at once without a store. */
  readonly settled?: (value: Value, reused: boolean) => void;
}

/** The key that the other side may use to recognise a repeated effect: the same in every attempt and after every resume. */
export function idempotencyKeyOf(session: Session, task: Task, key: string): string {
  return `${session.run.thread}/${session.line}/${task.id}/${key}`;
}

/** Perform an effect, or hand back its recorded outcome. */
export async function perform<Value>(session: Session, request: EffectRequest<Value>): Promise<Value> {
  const idempotencyKey = idempotencyKeyOf(session, request.task, request.key);
  const { saved, outcomes } = session;
  const place = journalKey(session.step, request.task.id, request.key);
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
  return first(session, request, idempotencyKey);
}

/** Whether an effect began and its outcome is not known. One whose start was called off has an end and no outcome. */
export function inFlight({ state, endedAt }: EffectRow): boolean {
  return state === "started" && endedAt === undefined;
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
  return settle(session, request, row, () => request.execute(row.idempotencyKey));
}

/** The start of a `once` effect is durable before it begins; others begin at once and their start goes out beside them. */
async function first<Value>(session: Session, request: EffectRequest<Value>, idempotencyKey: string): Promise<Value> {
  const saved = session.saved;
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
  };
  const execute = (): Promise<Value> => request.execute(idempotencyKey);
  if (saved === undefined) {
    if (request.effect === "once" && session.within?.unsaved === true)
      throw mustBeSaved(session, request, session.within);
    return settle(session, request, row, execute);
  }
  if (request.effect !== "once") {
    if (request.kind !== "task") record(session, saved, { row, encode: undefined, told: undefined });
    return settle(session, request, row, execute);
  }
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

/** Wait until the store has told of every start, so that what was called off is written before the thread is let go. */
export async function startsTold({ saved }: Session): Promise<void> {
  if (saved !== undefined && saved.starts.size > 0) await Promise.all(saved.starts);
}

/**
 * The text of an outcome, made when it is there and not when it is written: whether it can be saved must not depend on which
 * comes first, the next write or the end of the superstep. A tool call has looked already and answers for itself.
 */
function savedText<Value>(
  session: Session,
  saved: Saved,
  request: EffectRequest<Value>,
  value: Value,
): string | undefined {
  if (request.kind === "tool") return undefined;
  try {
    return encodedOf(saved, request, value);
  } catch (error) {
    recordFailure(session, request.task, request.key, error);
    throw error;
  }
}

function encodedOf<Value>(saved: Saved, request: EffectRequest<Value>, value: Value): string {
  return saved.codec.encode(value, `the result of ${request.kind} "${request.name}"`);
}

async function settle<Value>(
  session: Session,
  request: EffectRequest<Value>,
  row: EffectRow,
  execute: () => Promise<Value>,
): Promise<Value> {
  const value = await execute();
  const { saved } = session;
  // The outcome of an attempt that was given up comes after its superstep was folded: nobody asks for it again, save a `once` one's.
  if (row.step !== session.step && row.effect !== "once") return value;
  const text = saved === undefined ? undefined : savedText(session, saved, request, value);
  session.outcomes.set(journalKey(row.step, row.task, row.key), { value });
  if (saved === undefined) {
    request.settled?.(value, false);
    return value;
  }
  const ended: EffectRow = {
    ...row,
    state: "ok",
    attempts: request.attempts?.() ?? 1,
    endedAt: session.world.clock.now(),
    ...(request.stage === undefined ? {} : { stage: request.stage() }),
  };
  record(session, saved, {
    row: ended,
    encode: () => text ?? encodedOf(saved, request, value),
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
    encode: () => saved.codec.encode(toErrorRecord(error), `the failure of "${row.name}"`),
    told: undefined,
  });
}

function inDoubt<Value>(session: Session, request: EffectRequest<Value>, row: EffectRow): StatewrightError {
  return new StatewrightError("effect_in_doubt", {
    what: `${request.kind} "${request.name}" had started when its process died, and nobody knows whether it happened`,
    next: 'Give it a reconcile(key) that asks the other side, or declare effect "idempotent" if the other side honours the key',
    place: placeOf(session, { node: request.task.node, task: request.task.id }),
    details: { key: row.key, idempotencyKey: row.idempotencyKey, startedAt: row.startedAt },
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
