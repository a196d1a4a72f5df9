/** Prior effects of `once` promises in user-written machines: promises that ran or started on another branch. */

import { type ErrorRecord, fromErrorRecord } from "../../base/errors.ts";
import { isInFlight } from "../../checkpoint/journal.ts";
import { findPriorEffects, type PriorEffect, selectPriorEffect } from "../journal/prior-effects.ts";
import { type ActorTree, type InvokedPromise, joinAddress, type RunningMachine } from "../kernel/actor-tree.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import type { Session } from "../session/session.ts";
import { isFromRemovedState } from "./machine-compatibility.ts";
import { getPromiseRow, type PromiseOutcome } from "./machine-effect.ts";

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
