/**
 * Outcomes refused by the store, e.g. because the disk is full. The outcomes stay in memory, and the next claim of
 * the thread in this process writes them first, so that a finished `once` effect is not in doubt for lack of disk
 * space.
 */
import { isStatewrightError } from "../../base/errors.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Claim, Store } from "../../checkpoint/store.ts";
import type { ArtifactWrite } from "../../tool/artifacts/artifact.ts";
import { awaitDurable, type PendingEffect, toJournalKey } from "../session/parts/persistence.ts";
import type { Session } from "../session/session.ts";

/** Finished effects, with the artifacts saved with their outcomes. */
export interface Outcomes {
  readonly effects: readonly EffectRow[];
  readonly artifacts: readonly ArtifactWrite[];
}

export const noOutcomes: Outcomes = Object.freeze({ effects: [], artifacts: [] });

/** Unsaved outcomes by namespace, and the epoch of the refused write. */
interface UnsavedOutcomes {
  readonly epoch: number;
  readonly namespaces: ReadonlyMap<string, Outcomes>;
}

const unsavedByStore: WeakMap<Store, Map<string, UnsavedOutcomes>> = new WeakMap();

/**
 * Collects finished effects that are missing in the store, by namespace: refused rows and pending rows. Of committed
 * steps only `once` effects are collected.
 */
export function collectUnsavedOutcomes(session: Session): ReadonlyMap<string, Outcomes> {
  const byNamespace = new Map<string, Map<string, OutcomeWithArtifacts>>();
  const add = (namespace: string, effect: PendingEffect): void => {
    const { step, task, key, effect: kind } = effect.row;
    if (namespace === session.position.namespace && step < session.position.step && kind !== "once") return;
    const row = toFinishedRow(effect);
    if (row === undefined) return;
    const results = byNamespace.get(namespace) ?? new Map<string, OutcomeWithArtifacts>();
    byNamespace.set(namespace, results.set(toJournalKey(step, task, key), { row, artifacts: effect.artifacts ?? [] }));
  };
  const addPending = ({ position: { namespace }, journal: { saved }, lineage: { innerSessions } }: Session): void => {
    for (const effect of saved?.pending.values() ?? []) add(namespace, effect);
    for (const nested of innerSessions.values()) addPending(nested);
  };
  for (const { namespace, effect } of session.journal.saved?.thread.unsavedOutcomes.values() ?? [])
    add(namespace, effect);
  addPending(session);
  return new Map([...byNamespace].map(([namespace, results]) => [namespace, mergeOutcomes([...results.values()])]));
}

interface OutcomeWithArtifacts {
  readonly row: EffectRow;
  readonly artifacts: readonly ArtifactWrite[];
}

function mergeOutcomes(results: readonly OutcomeWithArtifacts[]): Outcomes {
  return { effects: results.map(({ row }) => row), artifacts: results.flatMap(({ artifacts }) => artifacts) };
}

/** Returns the row of a finished effect; undefined for an unfinished effect or an outcome that cannot be encoded. */
function toFinishedRow({ row, encode }: PendingEffect): EffectRow | undefined {
  if (row.endedAt === undefined) return undefined;
  try {
    return encode === undefined ? row : { ...row, outcome: encode() };
  } catch {
    return undefined;
  }
}

/** Retains outcomes until the next claim of the thread in this process. */
export function retainOutcomes(store: Store, thread: string, outcomes: UnsavedOutcomes): void {
  if (outcomes.namespaces.size === 0) return;
  const threads = unsavedByStore.get(store) ?? new Map<string, UnsavedOutcomes>();
  unsavedByStore.set(store, threads.set(thread, outcomes));
}

/** Returns true if outcomes of a thread are retained: its next claim is written at once, so that its epoch counts. */
export function hasUnsavedOutcomes(store: Store, thread: string): boolean {
  return unsavedByStore.get(store)?.has(thread) === true;
}

/**
 * Writes the retained outcomes of a newly claimed thread. Drops outcomes when another owner had claimed the thread
 * since. Rejects with the store's error while the store still refuses the write; the outcomes stay retained. Resolves to
 * the claim, without loaded rows that the outcomes changed.
 */
export async function writeUnsavedOutcomes(store: Store, thread: string, claim: Claim): Promise<Claim> {
  const { epoch, nextSeq } = claim;
  const threads = unsavedByStore.get(store);
  const unsaved = threads?.get(thread);
  if (threads === undefined || unsaved === undefined) return claim;
  threads.delete(thread);
  if (unsaved.epoch !== epoch - 1) return claim;
  const remaining = new Map(unsaved.namespaces);
  try {
    for (const [namespace, results] of unsaved.namespaces) {
      const commit = { thread, branch: namespace, epoch, seq: nextSeq - 1, ...results };
      await awaitDurable((onCommitted) => store.commit(commit, onCommitted));
      remaining.delete(namespace);
    }
    return { ...claim, loaded: undefined };
  } catch (error) {
    // After a fencing error the new owner continues without these outcomes and may repeat their effects.
    if (!isStatewrightError(error, "fenced")) retainOutcomes(store, thread, { epoch, namespaces: remaining });
    throw error;
  }
}
