/** Retention in the store in memory: what the plan says, done to a thread. */

import type { CutDelta } from "../export/thread-export.ts";
import { type Cut, isUnfinished, type LinePlan, planRetention, type RetainedLine } from "../retention.ts";
import type { PruneWrite } from "../store.ts";
import type { Line, Thread } from "./memory-thread.ts";

/** Remove from a thread what may go; gives how many checkpoints went. */
export function pruneThread(thread: Thread, write: PruneWrite): number {
  const lines = [...thread.lines.values()].map((line) => retained(thread, line));
  const plan = planRetention(lines, write, write.limit ?? Number.POSITIVE_INFINITY);
  for (const { name, gone, cuts, ...steps } of plan.lines) {
    const line = thread.lines.get(name);
    if (line === undefined) continue;
    for (const cut of cuts) takeOut(thread, line, cut, write);
    if (gone) thread.lines.delete(name);
    else forgetSteps(line, steps);
  }
  if (plan.removed > 0) {
    const events = thread.facts.filter(({ seq }) => seq >= plan.firstSeq);
    thread.facts.splice(0, thread.facts.length, ...events);
  }
  return plan.removed;
}

function retained({ runs }: Thread, { name, from, run, checkpoints, effects }: Line): RetainedLine {
  const status = runs.get(run ?? "")?.row.status;
  return {
    name,
    from,
    unfinished: isUnfinished(status) ? run : undefined,
    once: [...effects.values()].some((rows) => [...rows.values()].some(({ effect }) => effect === "once")),
    checkpoints: checkpoints.map(({ checkpoint }) => checkpoint),
  };
}

function takeOut(thread: Thread, line: Line, { after, at }: Cut, { merge }: PruneWrite): void {
  const isInside = (id: number): boolean => id > after && id <= at;
  const going = line.checkpoints.filter(({ checkpoint }) => isInside(checkpoint.id));
  const last = going.at(-1)?.checkpoint;
  if (last === undefined) return;
  const rows: CutDelta[] = [
    ...line.cuts.flatMap(({ deltas }) => deltas.filter(({ checkpoint }) => isInside(checkpoint))),
    ...going.flatMap(({ checkpoint: { id, deltas } }) => deltas.map((delta) => ({ ...delta, checkpoint: id }))),
  ].toSorted((one, other) => one.checkpoint - other.checkpoint);
  const deltas = [...byChannel(rows).values()].flatMap((each) => merge(each));
  const cuts = line.cuts.filter(({ id }) => !isInside(id));
  const place = cuts.findIndex(({ id }) => id > at);
  cuts.splice(place === -1 ? cuts.length : place, 0, { id: at, seq: last.seq, deltas });
  line.cuts.splice(0, line.cuts.length, ...cuts);
  const left = line.checkpoints.filter(({ checkpoint }) => !isInside(checkpoint.id));
  line.checkpoints.splice(0, line.checkpoints.length, ...left);
  for (const { checkpoint } of going) thread.checkpoints.delete(checkpoint.id);
}

function byChannel(rows: readonly CutDelta[]): ReadonlyMap<string, readonly CutDelta[]> {
  const groups = new Map<string, CutDelta[]>();
  for (const row of rows) {
    const group = groups.get(row.channel);
    if (group === undefined) groups.set(row.channel, [row]);
    else group.push(row);
  }
  return groups;
}

/** The journal and the questions of steps to which nobody can go back. */
function forgetSteps(line: Line, { firstStep, firstOnce }: Pick<LinePlan, "firstStep" | "firstOnce">): void {
  for (const [step, effects] of line.effects) {
    for (const [id, { effect }] of effects) if (step < (effect === "once" ? firstOnce : firstStep)) effects.delete(id);
    if (effects.size === 0) line.effects.delete(step);
  }
  for (const [id, { row }] of line.interrupts) if (row.step < firstStep) line.interrupts.delete(id);
}
