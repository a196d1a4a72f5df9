/** Promises of a hand-drawn machine that may happen once, and have happened or started on another branch. */
import { type ErrorRecord, fromErrorRecord } from "../base/errors.ts";
import { inFlight } from "../checkpoint/journal.ts";
import type { Motion, Work } from "./drawn.ts";
import { type Ended, rowOf } from "./drawn-effect.ts";
import { bestOf, type Elsewhere, onceElsewhere } from "./elsewhere.ts";
import type { Saved, Session } from "./session.ts";

/** Look for those that are about to start; nothing where there is nothing to look for. `found` holds what is known. */
export function findElsewhere(
  session: Session,
  motion: Motion,
  found: Map<Work, Elsewhere | undefined>,
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
      const begun = here !== undefined && (here.outcome !== undefined || inFlight(here));
      found.set(work, begun ? undefined : await sameOf(session, saved, work, others));
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
  { run, line }: Session,
  { store }: Saved,
  { task, address }: Work,
  others: readonly Elsewhere[],
): Promise<Elsewhere | undefined> {
  const same = others.filter(({ row }) => row.task === task.id && row.key === address && row.name === task.node);
  const best = bestOf(same);
  if (best === undefined || best.row.outcome !== undefined) return best;
  // Its row went along while it was under way: how it ended stands at a later step.
  for (const { branch } of same)
    for (const row of await store.effects(run.thread, branch + line.slice(run.branch.length)))
      if (row.task === task.id && row.key === address && row.outcome !== undefined) return { branch, row };
  return best;
}
