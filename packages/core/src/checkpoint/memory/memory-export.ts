/** A thread of the store in memory as an image, and the way back. */

import type { ArtifactImage, LineImage, ThreadImage } from "../export/thread-export.ts";
import type { EffectRow } from "../journal.ts";
import { type ArtifactsOfThread, putArtifact } from "./memory-artifacts.ts";
import { type Line, newLine, newThread, type Saved, type Thread, type Threads } from "./memory-thread.ts";

/** Everything that the store keeps of a thread. */
export function imageOf(thread: Thread): ThreadImage {
  const { id, createdAt, updatedAt, headBranch, writtenBy, seq, checkpoint, run } = thread;
  return {
    id,
    createdAt,
    updatedAt,
    headBranch,
    writtenBy,
    seq,
    checkpoint,
    run,
    lines: [...thread.lines.values()].map(lineImage),
    runs: [...thread.runs.values()].toSorted((one, other) => one.nth - other.nth).map(({ row }) => row),
    events: [...thread.facts],
    artifacts: artifactImages(thread.artifacts),
  };
}

function artifactImages({ rows, bodies }: ArtifactsOfThread): readonly ArtifactImage[] {
  const seen = new Set<string>();
  return rows.map((row) => {
    const body = seen.has(row.key) ? undefined : bodies.get(row.key);
    seen.add(row.key);
    return body === undefined ? { row } : { row, body };
  });
}

function lineImage(line: Line): LineImage {
  const { name, from, run, checkpoints, cuts, effects, interrupts, awaited, timers, letters } = line;
  return {
    name,
    from,
    run,
    checkpoints: checkpoints.map(({ checkpoint: { deltas, ...row }, writtenBy }) => ({ row, deltas, writtenBy })),
    cuts: [...cuts],
    effects: [...effects].toSorted(([one], [other]) => one - other).flatMap(([, rows]) => [...rows.values()]),
    interrupts: [...interrupts.values()].map(({ row }) => row),
    awaited: [...awaited],
    timers: [...timers.values()],
    letters,
  };
}

/** Put a thread among the others as its image has it; nobody owns it. */
export function addImage(threads: Threads, image: ThreadImage): void {
  const thread = newThread(image.id, image.headBranch, image.writtenBy, image.createdAt);
  const lineOf = new Map(image.lines.flatMap(({ name, checkpoints }) => checkpoints.map(({ row }) => [row.id, name])));
  for (const each of image.lines) {
    const origin = each.from === undefined ? undefined : thread.lines.get(lineOf.get(each.from) ?? "");
    const line = addLine(threads, thread, each, origin);
    for (const { row, deltas, writtenBy } of each.checkpoints) {
      const saved: Saved = { checkpoint: { ...row, deltas }, writtenBy, line };
      line.checkpoints.push(saved);
      thread.checkpoints.set(row.id, saved);
    }
  }
  for (const row of image.runs)
    thread.runs.set(row.id, { row: { ...row, thread: image.id }, nth: ++threads.runs, epoch: 0 });
  thread.facts.push(...image.events);
  const bodies = new Map(image.artifacts.flatMap(({ row, body }) => (body === undefined ? [] : [[row.key, body]])));
  for (const { row } of image.artifacts) {
    const body = bodies.get(row.key);
    if (body !== undefined) putArtifact(thread.artifacts, { row, body });
  }
  thread.queued = image.runs.filter(({ status }) => status === "queued").length;
  thread.seq = image.seq;
  thread.checkpoint = image.checkpoint;
  thread.run = image.run;
  thread.updatedAt = image.updatedAt;
  threads.set(thread.id, thread);
}

function addLine(threads: Threads, thread: Thread, image: LineImage, origin: Line | undefined): Line {
  const line = newLine(image.name, image.from, origin);
  thread.lines.set(line.name, line);
  line.run = image.run;
  line.cuts.push(...image.cuts);
  for (const effect of image.effects) {
    const rows = line.effects.get(effect.step) ?? new Map<string, EffectRow>();
    line.effects.set(effect.step, rows.set(JSON.stringify([effect.task, effect.key]), effect));
  }
  for (const row of image.interrupts) line.interrupts.set(row.id, { row, place: ++threads.questions });
  for (const id of image.awaited) line.awaited.add(id);
  for (const timer of image.timers) line.timers.set(timer.id, { ...timer, thread: thread.id });
  line.letters = image.letters;
  return line;
}
