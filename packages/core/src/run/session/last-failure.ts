/** The last failure of a task whose node has an error handler, kept in the journal until the handler has given a result. */
import { type ErrorRecord, fromErrorRecord, type StatewrightError } from "../../base/errors.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import { recordOf } from "./redact-error.ts";
import { journalKey, record, recordNow, type Session, taskKey } from "./session.ts";

/** A task that failed, and in which attempt. */
export interface LastFailure {
  readonly kind: "failed";
  readonly task: Task;
  readonly error: StatewrightError;
  readonly attempt: number;
}

/** The failure that a handler had been given when its process died or it asked a person. */
export function savedFailure(session: Session, task: Task): LastFailure | undefined {
  const row = rowOf(session, task);
  if (row?.state !== "error" || row.kind !== "task" || row.outcome === undefined) return undefined;
  const error = fromErrorRecord(session.codec.decode(row.outcome) as ErrorRecord) as StatewrightError;
  return { kind: "failed", task, error, attempt: row.attempts };
}

/** Make a failure durable before its handler begins; at once without a store. */
export function saveFailure(session: Session, { task, error, attempt }: LastFailure): Promise<void> {
  const { saved, world } = session;
  if (saved === undefined) return Promise.resolve();
  const started = rowOf(session, task);
  const row: EffectRow = {
    step: session.step,
    task: task.id,
    key: taskKey,
    kind: "task",
    name: task.node,
    effect: session.plan.nodes.get(task.node)?.policy.effect ?? "idempotent",
    state: "error",
    attempts: attempt,
    idempotencyKey: "",
    startedAt: started?.startedAt ?? world.clock.now(),
    endedAt: world.clock.now(),
  };
  return new Promise((resolve, reject) =>
    recordNow(session, saved, {
      row,
      encode: () => session.codec.encode(recordOf(session, error), `the failure of the node "${task.node}"`),
      told: (failure) => (failure === undefined ? resolve() : reject(failure)),
    }),
  );
}

/** The handler failed too: a resume begins with the body again, as it does after every other failure. */
export function forgetFailure(session: Session, task: Task): void {
  const row = rowOf(session, task);
  const { saved } = session;
  if (saved === undefined || row === undefined) return;
  const { endedAt: _, outcome: __, ...again } = row;
  record(session, saved, { row: { ...again, state: "started" }, encode: undefined, told: undefined });
}

function rowOf({ saved, step }: Session, task: Task): EffectRow | undefined {
  return saved?.journal.get(journalKey(step, task.id, taskKey));
}
