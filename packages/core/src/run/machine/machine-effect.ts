/**
 * A promise of a hand-drawn machine as a recorded effect. Other turns of the machine may make checkpoints while it is under
 * way: its journal row goes along from step to step, so that a crash finds it in the journal of the newest.
 */
import {
  type ErrorRecord,
  fromErrorRecord,
  isStatewrightError,
  StatewrightError,
  toErrorRecord,
} from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import { type EffectRow, inFlight } from "../../checkpoint/journal.ts";
import { idempotencyKeyOf, startedAgain } from "../journal/journal.ts";
import { emit, journalKey, placeOf, record, recordNow, type Saved, type Session } from "../session/session.ts";
import type { Work } from "./actor-tree.ts";

/** How a promise ended. An error is as it is saved, so that a machine sees the same one before and after a crash. */
export type Ended = { readonly output: unknown } | { readonly error: Error };

/** Whether a `once` promise had started when its process died, without an outcome. */
export function inDoubt(session: Session, work: Work): boolean {
  const row = rowOf(session, work);
  return work.actor.effect === "once" && row !== undefined && inFlight(row);
}

/** The journal row of a promise in the current step, if it has one. */
export function rowOf({ saved, step }: Session, { task, address }: Work): EffectRow | undefined {
  return saved?.journal.get(journalKey(step, task.id, address));
}

/** The key by which the other side recognises a promise that is begun again. */
function workKey(session: Session, work: Work): string {
  return idempotencyKeyOf(session, work.task, work.address);
}

/**
 * Perform a promise or hand back its recorded outcome; `ended` is called once, when its outcome is in the journal's buffer,
 * unless `abandoned` says that nobody waits for it any more. Rejects when the start of a `once` promise cannot be saved.
 */
export async function performWork(
  session: Session,
  work: Work,
  create: (key: string) => PromiseLike<unknown>,
  abandoned: () => boolean,
): Promise<Ended | undefined> {
  const { saved } = session;
  const known = rowOf(session, work);
  if (saved !== undefined && known?.outcome !== undefined) {
    const outcome = saved.codec.decode(known.outcome);
    tell(session, work, known);
    return known.state === "ok" ? { output: outcome } : { error: fromErrorRecord(outcome as ErrorRecord) };
  }
  const isRepeated = known !== undefined && inFlight(known);
  const row = !isRepeated ? startRow(session, work) : known.effect === "once" ? startedAgain(session, known) : known;
  if (isRepeated) tell(session, work, known);
  if (row !== known && saved !== undefined && !(await started(session, saved, row, abandoned))) return undefined;
  try {
    const output = deepFreeze(await create(row.idempotencyKey));
    if (abandoned()) return undefined;
    recordEnd(session, row, "ok", (codec) => codec.encode(output, `the result of "${row.name}"`));
    return { output };
  } catch (thrown) {
    if (abandoned()) return undefined;
    const failure = toErrorRecord(thrown);
    // Others are tried again by a resume: only what may happen once must be known to have failed.
    if (row.effect === "once")
      recordEnd(session, row, "error", (codec) => codec.encode(failure, `the failure of "${row.name}"`));
    return { error: fromErrorRecord(failure) };
  }
}

/** Take the rows of what is still under way into the next step; called as part of the write that makes it. */
export function carryRows(session: Session, works: Iterable<Work>, ended: ReadonlyMap<Work, Ended>): () => void {
  const { saved } = session;
  if (saved === undefined) return () => undefined;
  const rows: EffectRow[] = [];
  for (const work of works) {
    const known = rowOf(session, work);
    if (known === undefined) continue;
    const row = { ...known, step: session.step + 1 };
    const end = ended.get(work);
    // The outcome that waits to be taken goes along, whatever its class: what is recorded is never done again.
    if (row.state === "started" || row.outcome !== undefined || end === undefined) rows.push(row);
    else {
      const value = "error" in end ? toErrorRecord(end.error) : end.output;
      rows.push({ ...row, outcome: saved.codec.encode(value, `the result of "${row.name}"`) });
    }
  }
  for (const row of rows) record(session, saved, { row, encode: undefined, told: undefined });
  return () => {
    for (const row of rows) saved.journal.set(journalKey(row.step, row.task, row.key), row);
  };
}

function startRow(session: Session, work: Work): EffectRow {
  return {
    step: session.step,
    task: work.task.id,
    key: work.address,
    kind: "step",
    name: work.task.node,
    effect: work.actor.effect,
    state: "started",
    attempts: 1,
    idempotencyKey: workKey(session, work),
    startedAt: session.world.clock.now(),
  };
}

/** The start of a `once` promise is durable before it begins, and it begins in the turn that says so. */
function started(session: Session, saved: Saved, row: EffectRow, abandoned: () => boolean): Promise<boolean> {
  if (row.effect !== "once") {
    record(session, saved, { row, encode: undefined, told: undefined });
    return Promise.resolve(true);
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
          else if (abandoned()) {
            // It did not begin, and the row says so.
            record(session, saved, {
              row: { ...row, endedAt: session.world.clock.now() },
              encode: undefined,
              told: undefined,
            });
            resolve(false);
          } else resolve(true);
        },
      });
    });
    saved.starts.add(start);
  });
}

function recordEnd(
  session: Session,
  row: EffectRow,
  state: "ok" | "error",
  encode: (codec: Saved["codec"]) => string,
): void {
  const { saved, step, world } = session;
  if (saved === undefined) return;
  record(session, saved, {
    row: { ...row, step, state, endedAt: world.clock.now() },
    encode: () => encode(saved.codec),
    told: undefined,
  });
}

function tell(session: Session, { task, address }: Work, row: EffectRow | undefined): void {
  if (row === undefined) return;
  const { key, kind, name, effect, attempts, idempotencyKey } = row;
  if (row.outcome !== undefined)
    emit(session, { type: "effect.reused", node: task.node, task: task.id, key, kind, name, attempts });
  else
    emit(session, {
      type: "effect.repeated",
      node: task.node,
      task: task.id,
      key: address,
      kind,
      name,
      effect,
      idempotencyKey,
    });
}

/** The run's error for an actor whose failure no state takes. */
export function actorFailed(session: Session, where: string, error: unknown): StatewrightError {
  if (isStatewrightError(error)) return error;
  return new StatewrightError("node_failed", {
    what: `an actor of the machine "${session.plan.graph.name}" failed in ${where}, and no onError takes it: ${error instanceof Error ? error.message || error.name : String(error)}`,
    next: "Give the state an onError, or mend what the cause says and resume the thread",
    place: placeOf(session),
    cause: error,
  });
}
