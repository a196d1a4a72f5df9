/**
 * Retention: which checkpoints of a thread may go, decided in one place for every store. Pure: rows in, a plan out.
 *
 * A branch keeps its newest checkpoints, and besides them what something else stands on: the checkpoint that a line goes
 * on from, the one before the input of an unfinished run, to which that run may be taken back, and of a graph that is
 * kept across calls the newest checkpoint at each one that stays. A call of an inner graph goes with the checkpoint that
 * called it, unless something happened in it once that a fork from an older checkpoint would ask for.
 */
import type { CheckpointRow, RunStatus } from "./checkpoint.ts";
import { isChildLine } from "./store-rules.ts";

/** What stays: the newest `keepLast` of each line, and what was written at `since` or later. */
export interface Retention {
  readonly keepLast?: number | undefined;
  readonly since?: number | undefined;
}

/** A line as retention looks at it; its checkpoints oldest first. */
export interface RetainedLine {
  readonly name: string;
  readonly from: number | undefined;
  /** Its newest run, when that has not come to its end. */
  readonly unfinished: string | undefined;
  /** Its journal has `once` effects. */
  readonly once: boolean;
  readonly checkpoints: readonly RetainedCheckpoint[];
}

export type RetainedCheckpoint = Pick<CheckpointRow, "id" | "at" | "step" | "seq" | "run" | "source">;

/** Checkpoints of a line that go, one after the other: those above `after`, up to `at`. */
export interface Cut {
  readonly after: number;
  readonly at: number;
}

/** What becomes of a line. */
export interface LinePlan {
  readonly name: string;
  /** Nothing of it stays, so that the line goes too. */
  readonly gone: boolean;
  readonly cuts: readonly Cut[];
  /** Questions, and journal rows but those of `once` effects, go that are of steps before this one. */
  readonly firstStep: number;
  /** So do `once` effects of steps before this one. */
  readonly firstOnce: number;
}

/** What a write of retention does to a thread. */
export interface RetentionPlan {
  /** How many checkpoints go. */
  readonly removed: number;
  /** The lines that lose something, those of inner graphs first. */
  readonly lines: readonly LinePlan[];
  /** Events with a lower number go. */
  readonly firstSeq: number;
}

/** Whether a run of this status may still go on, and so be taken back. */
export function isUnfinished(status: RunStatus | undefined): boolean {
  return status !== undefined && status !== "done" && status !== "cancelled";
}

/** What to remove from a thread, at most `limit` checkpoints of it, so that a further write goes on from there. */
export function planRetention(lines: readonly RetainedLine[], retention: Retention, limit: number): RetentionPlan {
  const kept = checkpointsToKeep(lines, retention);
  const plans: LinePlan[] = [];
  let firstSeq = Number.POSITIVE_INFINITY;
  let removed = 0;
  // Inner graphs first: what is decided about a call is decided by the checkpoint that called it, while that is there.
  for (const line of outermostFirst(lines).toReversed()) {
    const goes = line.checkpoints.filter(({ id }) => !kept.has(id)).slice(0, limit - removed);
    removed += goes.length;
    const going = new Set(goes.map(({ id }) => id));
    const stays = line.checkpoints.filter(({ id }) => !going.has(id));
    firstSeq = Math.min(firstSeq, stays[0]?.seq ?? Number.POSITIVE_INFINITY);
    if (goes.length === 0) continue;
    const [oldest] = stays;
    plans.push({
      name: line.name,
      gone: oldest === undefined,
      cuts: cutsOf(line.checkpoints, going),
      firstStep: oldest?.step ?? Number.POSITIVE_INFINITY,
      // A fork before the call begins it anew, and asks for all that happened once in it.
      firstOnce: isCall(line) ? Number.NEGATIVE_INFINITY : (oldest?.step ?? Number.POSITIVE_INFINITY),
    });
  }
  return { removed, lines: plans, firstSeq };
}

/** The ids of the checkpoints that stay. */
function checkpointsToKeep(lines: readonly RetainedLine[], retention: Retention): ReadonlySet<number> {
  const kept = new Set<number>();
  const byName = new Map(lines.map((line) => [line.name, line]));
  const lineOf = new Map(lines.flatMap((line) => line.checkpoints.map(({ id }) => [id, line] as const)));
  const parentOf = ({ name }: RetainedLine): RetainedLine | undefined =>
    byName.get(name.slice(0, Math.max(0, name.lastIndexOf("/"))));
  const sorted = outermostFirst(lines);

  /** What goes on from a checkpoint of an inner graph needs those that called it too. */
  function keepWithCallers(id: number): void {
    kept.add(id);
    const line = lineOf.get(id);
    const parent = line === undefined ? undefined : parentOf(line);
    const caller = parent === undefined ? undefined : newestBefore(parent, id);
    if (caller !== undefined) keepWithCallers(caller.id);
  }

  for (const { from } of lines) if (from !== undefined) keepWithCallers(from);
  for (let before = -1; kept.size > before; ) {
    before = kept.size;
    const floors = new Map<string, number>();
    for (const line of sorted) {
      const parent = parentOf(line);
      if (parent === undefined) keepBranch(line, retention, kept);
      else keepInner(line, parent, retention, kept);
      const [first] = line.checkpoints;
      const head = line.checkpoints.at(-1);
      const caller = parent === undefined || first === undefined ? undefined : newestBefore(parent, first.id);
      // A fork from what stays may make such a call anew: what happened once in it must be known then (rule E44).
      const isMadeAnew = parent !== undefined && isCall(line) && (caller?.id ?? 0) >= (floors.get(parent.name) ?? 0);
      if (isMadeAnew && line.once && head !== undefined) keepWithCallers(head.id);
      floors.set(line.name, isMadeAnew ? 0 : (line.checkpoints.find(({ id }) => kept.has(id))?.id ?? largestId));
    }
  }
  return kept;
}

const largestId = Number.POSITIVE_INFINITY;

function keepBranch(line: RetainedLine, retention: Retention, kept: Set<number>): void {
  for (const { id } of newest(line, retention)) kept.add(id);
  for (const [index, { id, run, source }] of line.checkpoints.entries()) {
    if (run !== line.unfinished || source !== "input") continue;
    kept.add(id);
    const before = line.checkpoints[index - 1];
    if (before !== undefined) kept.add(before.id);
  }
}

function keepInner(line: RetainedLine, parent: RetainedLine, retention: Retention, kept: Set<number>): void {
  for (const { id } of newest(line, retention)) {
    const caller = newestBefore(parent, id);
    if (caller === undefined || kept.has(caller.id)) kept.add(id);
  }
  if (isCall(line)) return;
  for (const { id } of parent.checkpoints) {
    const then = kept.has(id) ? newestBefore(line, id) : undefined;
    if (then !== undefined) kept.add(then.id);
  }
  const head = line.checkpoints.at(-1);
  if (head !== undefined) kept.add(head.id);
}

/** The line of one call is named by its task, the line of a graph that is kept across calls by its node. */
function isCall({ name }: RetainedLine): boolean {
  return /\/\d+:\d+$/.test(name);
}

/** The newest checkpoints of a line, the very newest in any case. */
function newest({ checkpoints }: RetainedLine, { keepLast, since }: Retention): readonly RetainedCheckpoint[] {
  const first = checkpoints.length - Math.max(keepLast ?? 1, 1);
  return checkpoints.filter(({ at }, index) => index >= first || (since !== undefined && at >= since));
}

/** The newest checkpoint of a line whose id is below another: while an inner graph is called, its caller stands still. */
function newestBefore({ checkpoints }: RetainedLine, id: number): RetainedCheckpoint | undefined {
  let low = 0;
  let high = checkpoints.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((checkpoints[middle]?.id ?? id) < id) low = middle + 1;
    else high = middle;
  }
  return checkpoints[low - 1];
}

function cutsOf(checkpoints: readonly RetainedCheckpoint[], going: ReadonlySet<number>): readonly Cut[] {
  const cuts: Cut[] = [];
  let after = 0;
  let at: number | undefined;
  for (const { id } of checkpoints) {
    if (going.has(id)) {
      at = id;
      continue;
    }
    if (at !== undefined) cuts.push({ after, at });
    after = id;
    at = undefined;
  }
  if (at !== undefined) cuts.push({ after, at });
  return cuts;
}

function outermostFirst(lines: readonly RetainedLine[]): readonly RetainedLine[] {
  const depth = ({ name }: RetainedLine): number => (isChildLine(name) ? name.split("/").length : 0);
  return lines.toSorted((one, other) => depth(one) - depth(other));
}
