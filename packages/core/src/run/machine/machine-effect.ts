/**
 * Invoked promises of user-written machines as recorded effects. Other macrosteps may write checkpoints while a
 * promise is running: its journal row is copied from step to step, so that a crash finds the row in the journal of
 * the latest step.
 */

import {
  type ErrorRecord,
  fromErrorRecord,
  isStatewrightError,
  StatewrightError,
  toErrorRecord,
} from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import { type EffectRow, isInFlight } from "../../checkpoint/journal.ts";
import { type DoubtAnswer, decodeOutcome, type RecordedOutcome } from "../journal/decide-effect.ts";
import { endAttempts, recordAttemptFailure } from "../journal/effect-attempts.ts";
import { runRecordedEffect } from "../journal/journal.ts";
import { findPriorEffects, type PriorEffect, selectPriorEffect } from "../journal/prior-effects.ts";
import { type ActorTree, type InvokedPromise, joinAddress, type RunningMachine } from "../kernel/actor-tree.ts";
import type { Journal } from "../session/parts/journal.ts";
import { type Persistence, recordEffect, toJournalKey, toRowKey } from "../session/parts/persistence.ts";
import { getErrorPlace, type Position } from "../session/parts/position.ts";
import type { Session } from "../session/session.ts";
import { isFromRemovedState } from "./machine-compatibility.ts";

/** Returns the journal row of a promise in the current step, if any. */
export function getPromiseRow(
  { step }: Position,
  { saved }: Journal,
  { task, address }: InvokedPromise,
): EffectRow | undefined {
  return saved?.rows.get(toJournalKey(step, task.id, address));
}

/** Recorded outcome of a promise with its journal row; undefined while the promise has none. */
export function findRecordedOutcome(
  { position, journal }: Pick<Session, "position" | "journal">,
  work: InvokedPromise,
): { readonly row: EffectRow; readonly outcome: RecordedOutcome } | undefined {
  const { saved } = journal;
  const row = getPromiseRow(position, journal, work);
  const outcome = saved === undefined || row === undefined ? undefined : decodeOutcome(saved, row);
  return row === undefined || outcome === undefined ? undefined : { row, outcome };
}

/** Callbacks of a running promise. */
export interface PromiseRun {
  readonly create: (key: string) => PromiseLike<unknown>;
  /** True when the machine left the state of the promise, or the run is stopped. */
  readonly isAbandoned: () => boolean;
  /** Called in the turn that records the outcome, so that no event comes between record and outcome. */
  readonly onEnd: (outcome: RecordedOutcome) => void;
}

/**
 * Runs a promise without a recorded outcome. Resolves to false when the machine abandoned the promise: its result is
 * dropped. Rejects when the start of a `once` promise cannot be saved.
 */
export async function runPromise(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
  work: InvokedPromise,
  { create, isAbandoned, onEnd }: PromiseRun,
): Promise<boolean> {
  const { position, journal } = session;
  const end = await runRecordedEffect<PromiseEnd | undefined>(session, {
    task: work.task,
    key: work.address,
    kind: "step",
    name: work.task.node,
    effect: work.actor.effect,
    startNumber: 1,
    isAbandoned,
    onAbandoned: () => undefined,
    execute: (key) => settlePromise(() => create(key)),
    // The loop starts a promise in doubt only after the answer that its earlier start had no effect.
    consult: () => deniedStart,
    finish: (row, finished) => {
      if (finished === undefined || isAbandoned()) return undefined;
      recordEnd(position, journal, row, finished);
      onEnd("failure" in finished ? { error: fromErrorRecord(finished.failure) } : finished);
      return finished;
    },
  });
  return end !== undefined;
}

/** End of a promise: its value, or the record of its error. */
type PromiseEnd = { readonly value: unknown } | { readonly failure: ErrorRecord };

async function settlePromise(create: () => PromiseLike<unknown>): Promise<PromiseEnd> {
  try {
    return { value: deepFreeze(await create()) };
  } catch (thrown) {
    return { failure: toErrorRecord(thrown) };
  }
}

const deniedStart: DoubtAnswer<undefined> = { happened: false, statesValue: false, getValue: () => undefined };

/** Journals the end of a promise in the current step, to which other macrosteps may have moved its row. */
function recordEnd(position: Position, journal: Journal, row: EffectRow, end: PromiseEnd): void {
  const { saved, world } = journal;
  const isFailed = "failure" in end;
  if (saved === undefined) return;
  const endedAt = world.clock.now();
  const error = isFailed ? (end.failure.code ?? "error") : undefined;
  // A resume retries other promises: only the failure of a `once` promise must be recorded.
  if (error !== undefined && row.effect !== "once") {
    recordAttemptFailure(saved, toJournalKey(position.step, row.task, row.key), { error, endedAt });
    return;
  }
  recordEffect(saved, {
    row: {
      ...row,
      step: position.step,
      state: isFailed ? "error" : "ok",
      ...endAttempts(row, { endedAt, count: 1, error }),
      endedAt,
    },
    encode: () =>
      isFailed
        ? saved.codec.encode(end.failure, `the failure of "${row.name}"`)
        : saved.codec.encode(end.value, `the result of "${row.name}"`),
  });
}

/** Copies the journal rows of running promises into the next step; called as part of the write of that step. */
export function carryRows(
  position: Position,
  journal: Journal,
  works: Iterable<InvokedPromise>,
  outcomes: ReadonlyMap<InvokedPromise, RecordedOutcome>,
): () => void {
  const { saved } = journal;
  if (saved === undefined) return () => undefined;
  const rows: EffectRow[] = [];
  for (const work of works) {
    const recorded = getPromiseRow(position, journal, work);
    if (recorded === undefined) continue;
    const row = { ...recorded, step: position.step + 1 };
    const outcome = outcomes.get(work);
    // An undelivered outcome is copied for every effect class: a recorded effect never runs again.
    if (row.state === "started" || row.outcome !== undefined || outcome === undefined) rows.push(row);
    else {
      const value = "error" in outcome ? toErrorRecord(outcome.error) : outcome.value;
      rows.push({ ...row, outcome: saved.codec.encode(value, `the result of "${row.name}"`) });
    }
  }
  for (const row of rows) recordEffect(saved, { row });
  return () => {
    for (const row of rows) saved.rows.set(toRowKey(row), row);
  };
}

/** Creates the error of the run for an actor failure without an `onError` transition. */
export function createActorError(position: Position, where: string, error: unknown): StatewrightError {
  if (isStatewrightError(error)) return error;
  return new StatewrightError("node_failed", {
    what: `an actor of the machine "${position.plan.graph.name}" failed in ${where}, and no onError handles the error: ${error instanceof Error ? error.message || error.name : String(error)}`,
    next: "Add an onError to the state, or fix the cause and resume the thread",
    place: getErrorPlace(position),
    cause: error,
  });
}

/**
 * Finds prior effects of the promises that are about to start; returns undefined when no lookup is needed. `found`
 * caches the results. After an answer that the start on this branch had no effect (`isDenied`), the promise starts
 * again and is looked up: another branch may have run the promise since.
 */
export function findPriorPromises(
  session: Pick<Session, "env" | "position" | "journal">,
  tree: ActorTree,
  found: Map<InvokedPromise, PriorEffect | undefined>,
  isDenied: (work: InvokedPromise) => boolean,
): Promise<void> | undefined {
  const { saved } = session.journal;
  if (saved === undefined) return undefined;
  const unknown = [...tree.promises.values()].filter((work) => work.actor.effect === "once" && !found.has(work));
  if (unknown.length === 0) return undefined;
  const journals = findPriorEffects(session.env, session.position, saved);
  if (journals === undefined) {
    for (const work of unknown) found.set(work, undefined);
    return undefined;
  }
  return journals.then(async (priorEffects) => {
    for (const work of unknown) {
      const row = getPromiseRow(session.position, session.journal, work);
      const isStarted = row !== undefined && (row.outcome !== undefined || (isInFlight(row) && !isDenied(work)));
      const machine = tree.machines.get(work.owner);
      found.set(
        work,
        isStarted || machine === undefined
          ? undefined
          : await findPriorPromise(session.position, saved, work, { machine, priorEffects }),
      );
    }
  });
}

async function findPriorPromise(
  { run }: Position,
  { store }: Persistence,
  { task, address, owner }: InvokedPromise,
  {
    machine: { definition },
    priorEffects,
  }: { readonly machine: RunningMachine; readonly priorEffects: readonly PriorEffect[] },
): Promise<PriorEffect | undefined> {
  // A promise named after its state had another address before the state was renamed.
  const isSameAddress = (key: string): boolean => {
    const id = owner === "" ? key : key.slice(owner.length + 1);
    return key === address || (key === joinAddress(owner, id) && isFromRemovedState(definition.machine.root, id));
  };
  const matches = priorEffects.filter(
    ({ row }) => row.task === task.id && isSameAddress(row.key) && row.name === task.node,
  );
  const best = selectPriorEffect(matches);
  if (best === undefined || best.row.outcome !== undefined) return best;
  // The row was copied from step to step while the promise was running: its outcome is in a later step.
  for (const { branch, namespace } of matches)
    for (const row of await store.effects(run.thread, namespace))
      if (row.task === task.id && isSameAddress(row.key) && row.outcome !== undefined)
        return { branch, namespace, row };
  return best;
}
