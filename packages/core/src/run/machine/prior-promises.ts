/** Promises of a hand-drawn machine that may happen once, and have happened or started on another branch. */
import { type ErrorRecord, fromErrorRecord } from "../../base/errors.ts";
import { inFlight } from "../../checkpoint/journal.ts";
import { bestOf, type Elsewhere, onceElsewhere } from "../journal/prior-effects.ts";
import { isOfLostState } from "../migration/compatibility.ts";
import type { Saved, Session } from "../session/session.ts";
import { below, type Motion, type Moving, type Work } from "./actor-tree.ts";
import { type Ended, rowOf } from "./machine-effect.ts";

/**
 * Look for those that are about to start; nothing where there is nothing to look for. `found` holds what is known. One that had
 * started here is about to start again where `isDenied` says that it did not happen: another branch may have done it since.
 */
export function findElsewhere(
  session: Session,
  motion: Motion,
  found: Map<Work, Elsewhere | undefined>,
  isDenied: (work: Work) => boolean,
): Promise<void> | undefined {
  const { saved } = session;
  if (saved === undefined) return undefined;
  const unknown = [...motion.works.values()].filter((work) => work.actor.effect === "once" && !found.has(work));
  if (unknown.length === 0) return undefined;
  const journals = onceElsewhere(session, saved);
  if (journals === undefined) {
    for (const work of unknown) found.set(work, undefined);
    return undefined;
  }
  return journals.then(async (others) => {
    for (const work of unknown) {
      const here = rowOf(session, work);
      const begun = here !== undefined && (here.outcome !== undefined || (inFlight(here) && !isDenied(work)));
      const at = motion.machines.get(work.owner);
      found.set(work, begun || at === undefined ? undefined : await sameOf(session, saved, work, at, others));
    }
  });
}

/** How it ended there, as far as that is known. */
export function endThere(saved: Saved, { row }: Elsewhere): Ended | undefined {
  if (row.outcome === undefined) return undefined;
  const outcome = saved.codec.decode(row.outcome);
  return row.state === "ok" ? { output: outcome } : { error: fromErrorRecord(outcome as ErrorRecord) };
}

async function sameOf(
  { run }: Session,
  { store }: Saved,
  { task, address, owner }: Work,
  { drawing }: Moving,
  others: readonly Elsewhere[],
): Promise<Elsewhere | undefined> {
  // A promise that is named by its state was another's name before the state had a new one.
  const isAddress = (key: string): boolean => {
    const id = owner === "" ? key : key.slice(owner.length + 1);
    return key === address || (key === below(owner, id) && isOfLostState(drawing.machine.root, id));
  };
  const same = others.filter(({ row }) => row.task === task.id && isAddress(row.key) && row.name === task.node);
  const best = bestOf(same);
  if (best === undefined || best.row.outcome !== undefined) return best;
  // Its row went along while it was under way: how it ended stands at a later step.
  for (const { branch, line } of same)
    for (const row of await store.effects(run.thread, line))
      if (row.task === task.id && isAddress(row.key) && row.outcome !== undefined) return { branch, line, row };
  return best;
}
