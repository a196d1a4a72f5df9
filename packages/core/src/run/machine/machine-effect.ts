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
import type { World } from "../../base/world.ts";
import { type EffectRow, isInFlight } from "../../checkpoint/journal.ts";
import { endAttempts, restartRow } from "../journal/effect-attempts.ts";
import { commitStart, createIdempotencyKey, decodeOutcome, emitRepeated, toRestartedRow } from "../journal/journal.ts";
import { findPriorEffects, type PriorEffect, selectPriorEffect } from "../journal/prior-effects.ts";
import { type ActorTree, type InvokedPromise, joinAddress, type RunningMachine } from "../kernel/actor-tree.ts";
import type { Journal } from "../session/parts/journal.ts";
import { trackOnceEffect } from "../session/parts/once-effects.ts";
import { type Persistence, recordEffect, toJournalKey } from "../session/parts/persistence.ts";
import { getErrorPlace, type Position } from "../session/parts/position.ts";
import type { Session } from "../session/session.ts";
import { isFromRemovedState } from "./machine-compatibility.ts";

/**
 * Outcome of a promise. An error has its saved form, so that a machine receives the same error before and after a
 * crash.
 */
export type PromiseOutcome = { readonly output: unknown } | { readonly error: Error };

/** Returns the journal row of a promise in the current step, if any. */
export function getPromiseRow(
  { step }: Position,
  { saved }: Journal,
  { task, address }: InvokedPromise,
): EffectRow | undefined {
  return saved?.rows.get(toJournalKey(step, task.id, address));
}

/** Returns the idempotency key of a promise, the same after a restart. */
function getPromiseKey(position: Position, work: InvokedPromise): string {
  return createIdempotencyKey(position, work.task, work.address);
}

/** Recorded outcome of a promise with its journal row; undefined while the promise has none. */
export function findRecordedOutcome(
  { position, journal }: Pick<Session, "position" | "journal">,
  work: InvokedPromise,
): { readonly row: EffectRow; readonly outcome: PromiseOutcome } | undefined {
  const { saved } = journal;
  const row = getPromiseRow(position, journal, work);
  const outcome = saved === undefined || row === undefined ? undefined : decodeOutcome(saved, row);
  if (row === undefined || outcome === undefined) return undefined;
  return { row, outcome: "error" in outcome ? outcome : { output: outcome.value } };
}

/** Callbacks of a running promise. */
export interface PromiseRun {
  readonly create: (key: string) => PromiseLike<unknown>;
  /** True when the machine left the state of the promise, or the run is stopped. */
  readonly isAbandoned: () => boolean;
  /** Called in the turn that records the outcome, so that no event comes between record and outcome. */
  readonly onEnd: (outcome: PromiseOutcome) => void;
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
  const { saved } = session.journal;
  const recorded = getPromiseRow(session.position, session.journal, work);
  const isRepeated = recorded !== undefined && isInFlight(recorded);
  const { world } = session.env;
  const row = !isRepeated
    ? createStartRow(session.position, world, work)
    : recorded.effect === "once"
      ? toRestartedRow(world, recorded)
      : toRepeatedRow(world, recorded);
  if (isRepeated) emitRepeated(session.events, work.task, recorded);
  const begin = (): BegunPromise => ({ promise: callAsync(() => create(row.idempotencyKey)) });
  const begun =
    row === recorded || saved === undefined ? begin() : await recordStart(world, saved, row, { begin, isAbandoned });
  if (begun === undefined) return false;
  let outcome: PromiseOutcome;
  try {
    const output = deepFreeze(await begun.promise);
    if (isAbandoned()) return false;
    recordEnd(session.position, session.journal, row, {
      state: "ok",
      encode: (codec) => codec.encode(output, `the result of "${row.name}"`),
    });
    outcome = { output };
  } catch (thrown) {
    if (isAbandoned()) return false;
    const failure = toErrorRecord(thrown);
    // A resume retries other promises: only the failure of a `once` promise must be recorded.
    if (row.effect === "once")
      recordEnd(session.position, session.journal, row, {
        state: "error",
        encode: (codec) => codec.encode(failure, `the failure of "${row.name}"`),
      });
    outcome = { error: fromErrorRecord(failure) };
  }
  onEnd(outcome);
  return true;
}

/** Returns the row of a promise that runs again. */
function toRepeatedRow(world: World, row: EffectRow): EffectRow {
  const restarted = restartRow(row, world.clock.now());
  return restarted === row ? row : { ...restarted, attempts: restarted.attemptLog?.length ?? row.attempts };
}

/** Copies the journal rows of running promises into the next step; called as part of the write of that step. */
export function carryRows(
  position: Position,
  journal: Journal,
  works: Iterable<InvokedPromise>,
  outcomes: ReadonlyMap<InvokedPromise, PromiseOutcome>,
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
      const value = "error" in outcome ? toErrorRecord(outcome.error) : outcome.output;
      rows.push({ ...row, outcome: saved.codec.encode(value, `the result of "${row.name}"`) });
    }
  }
  for (const row of rows) recordEffect(saved, { row, encode: undefined, onCommitted: undefined });
  return () => {
    for (const row of rows) saved.rows.set(toJournalKey(row.step, row.task, row.key), row);
  };
}

function createStartRow(position: Position, world: World, work: InvokedPromise): EffectRow {
  return {
    step: position.step,
    task: work.task.id,
    key: work.address,
    kind: "step",
    name: work.task.node,
    effect: work.actor.effect,
    state: "started",
    attempts: 1,
    idempotencyKey: getPromiseKey(position, work),
    startedAt: world.clock.now(),
  };
}

/** Promise that has begun. The wrapper keeps its rejection apart from that of its start. */
interface BegunPromise {
  readonly promise: Promise<unknown>;
}

/** Calls a function that may throw; adds no turn to the promise that it returns. */
function callAsync(work: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * Records the start of a promise, then begins it. Resolves to undefined when the machine abandoned a `once` promise
 * before its start.
 */
async function recordStart(
  world: World,
  saved: Persistence,
  row: EffectRow,
  { begin, isAbandoned }: { readonly begin: () => BegunPromise; readonly isAbandoned: () => boolean },
): Promise<BegunPromise | undefined> {
  if (row.effect !== "once") {
    recordEffect(saved, { row, encode: undefined, onCommitted: undefined });
    return begin();
  }
  const beginTracked = (): BegunPromise => {
    const begun = begin();
    trackOnceEffect(saved.thread.onceEffects, begun.promise);
    return begun;
  };
  return commitStart(world, saved, { row, isAbandoned, begin: beginTracked, onAbandoned: () => undefined });
}

function recordEnd(
  position: Position,
  journal: Journal,
  row: EffectRow,
  { state, encode }: { readonly state: "ok" | "error"; readonly encode: (codec: Persistence["codec"]) => string },
): void {
  const { step } = position;
  const { saved, world } = journal;
  if (saved === undefined) return;
  const endedAt = world.clock.now();
  recordEffect(saved, {
    row: {
      ...row,
      step,
      state,
      ...endAttempts(row, { endedAt, count: 1, error: state === "ok" ? undefined : "error" }),
      endedAt,
    },
    encode: () => encode(saved.codec),
    onCommitted: undefined,
  });
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

/** Returns the outcome of the prior effect, if recorded. */
export function decodePriorOutcome(saved: Persistence, { row }: PriorEffect): PromiseOutcome | undefined {
  if (row.outcome === undefined) return undefined;
  const outcome = saved.codec.decode(row.outcome);
  return row.state === "ok" ? { output: outcome } : { error: fromErrorRecord(outcome as ErrorRecord) };
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
