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
  /** Oldest first. */
  readonly ids: readonly number[];
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
  const steps = planInSteps(lines, retention, limit);
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}

/** {@link planRetention} in steps, each of bounded work, for who has other things to do in between. */
export function* planInSteps(
  lines: readonly RetainedLine[],
  retention: Retention,
  limit: number,
): Generator<void, RetentionPlan> {
  const kept = yield* checkpointsToKeep(lines, retention);
  const plans: LinePlan[] = [];
  let firstSeq = Number.POSITIVE_INFINITY;
  let removed = 0;
  // Inner graphs first: what is decided about a call is decided by the checkpoint that called it, while that is there.
  for (const [index, line] of outermostFirst(lines).toReversed().entries()) {
    if (index % linesAStep === linesAStep - 1) yield;
    const { cuts, count, oldest } = yield* cutsOf(line, kept, limit - removed);
    removed += count;
    firstSeq = Math.min(firstSeq, oldest?.seq ?? Number.POSITIVE_INFINITY);
    if (count === 0) continue;
    plans.push({
      name: line.name,
      gone: oldest === undefined,
      cuts,
      firstStep: oldest?.step ?? Number.POSITIVE_INFINITY,
      // A fork before the call begins it anew, and asks for all that happened once in it.
      firstOnce: isCall(line) ? Number.NEGATIVE_INFINITY : (oldest?.step ?? Number.POSITIVE_INFINITY),
    });
  }
  return { removed, lines: plans, firstSeq };
}

/** A part of a plan for each write, at most `most` checkpoints in each, in an order in which any of them may be the last. */
export function* slicesOf({ lines }: RetentionPlan, most: number): Generator<readonly LineSlice[]> {
  let slice: LineSlice[] = [];
  let room = most;
  for (const { name, gone, cuts, firstOnce } of lines) {
    const keepsOnce = firstOnce === Number.NEGATIVE_INFINITY;
    for (const [nth, cut] of cuts.entries()) {
      for (let first = 0; first < cut.ids.length; ) {
        const ids = cut.ids.slice(first, first + room);
        first += ids.length;
        room -= ids.length;
        const isLast = nth === cuts.length - 1 && first === cut.ids.length;
        slice.push({ name, gone: gone && isLast, keepsOnce, after: cut.after, ids });
        if (room > 0) continue;
        yield slice;
        [slice, room] = [[], most];
      }
    }
  }
  if (slice.length > 0) yield slice;
}

/** Checkpoints that go in one write, one after the other: those above `after` that are left, as far as `ids` say. */
export interface LineSlice {
  readonly name: string;
  /** With these nothing of the line is left. */
  readonly gone: boolean;
  /** Its `once` effects stay. */
  readonly keepsOnce: boolean;
  readonly after: number;
  readonly ids: readonly number[];
}

/** A step of a plan looks at about so many checkpoints of a line, or at so many lines. */
const checkpointsAStep = 4_096;
const linesAStep = 256;

/** The ids of the checkpoints that stay. */
function* checkpointsToKeep(
  lines: readonly RetainedLine[],
  retention: Retention,
): Generator<void, ReadonlySet<number>> {
  const kept = new Set<number>();
  const byName = new Map(lines.map((line) => [line.name, line]));
  const lineOf = yield* linesOfOrigins(lines);
  const parentOf = ({ name }: RetainedLine): RetainedLine | undefined =>
    byName.get(name.slice(0, Math.max(0, name.lastIndexOf("/"))));
  const sorted = outermostFirst(lines);

  /** What goes on from a checkpoint of an inner graph needs those that called it too. */
  function keepWithCallers(id: number, line: RetainedLine | undefined): void {
    kept.add(id);
    const parent = line === undefined ? undefined : parentOf(line);
    const caller = parent === undefined ? undefined : newestBefore(parent, id);
    if (caller !== undefined) keepWithCallers(caller.id, parent);
  }

  for (const [from, line] of lineOf) keepWithCallers(from, line);
  for (let before = -1; kept.size > before; ) {
    before = kept.size;
    const floors = new Map<string, number>();
    for (const [index, line] of sorted.entries()) {
      if (index % linesAStep === linesAStep - 1) yield;
      const parent = parentOf(line);
      if (parent === undefined) yield* keepBranch(line, retention, kept);
      else yield* keepInner(line, parent, retention, kept);
      const [first] = line.checkpoints;
      const head = line.checkpoints.at(-1);
      const caller = parent === undefined || first === undefined ? undefined : newestBefore(parent, first.id);
      // A fork from what stays may make such a call anew: what happened once in it must be known then (rule E44).
      const isMadeAnew = parent !== undefined && isCall(line) && (caller?.id ?? 0) >= (floors.get(parent.name) ?? 0);
      if (isMadeAnew && line.once && head !== undefined) keepWithCallers(head.id, line);
      floors.set(line.name, isMadeAnew ? 0 : yield* firstKept(line, kept));
    }
  }
  return kept;
}

function* firstKept({ checkpoints }: RetainedLine, kept: ReadonlySet<number>): Generator<void, number> {
  for (const [index, { id }] of checkpoints.entries()) {
    if (index % checkpointsAStep === checkpointsAStep - 1) yield;
    if (kept.has(id)) return id;
  }
  return Number.POSITIVE_INFINITY;
}

/** The checkpoints that lines go on from, each with the line that it is on, where that is there. */
function* linesOfOrigins(
  lines: readonly RetainedLine[],
): Generator<void, ReadonlyMap<number, RetainedLine | undefined>> {
  const lineOf = new Map<number, RetainedLine | undefined>();
  for (const { from } of lines) if (from !== undefined) lineOf.set(from, undefined);
  if (lineOf.size === 0) return lineOf;
  for (const line of lines) {
    for (const [index, { id }] of line.checkpoints.entries()) {
      if (index % checkpointsAStep === checkpointsAStep - 1) yield;
      if (lineOf.has(id)) lineOf.set(id, line);
    }
  }
  return lineOf;
}

function* keepBranch(line: RetainedLine, retention: Retention, kept: Set<number>): Generator<void, void> {
  yield* eachNewest(line, retention, (id) => kept.add(id));
  if (line.unfinished === undefined) return;
  for (const [index, { id, run, source }] of line.checkpoints.entries()) {
    if (index % checkpointsAStep === checkpointsAStep - 1) yield;
    if (run !== line.unfinished || source !== "input") continue;
    kept.add(id);
    const before = line.checkpoints[index - 1];
    if (before !== undefined) kept.add(before.id);
  }
}

function* keepInner(
  line: RetainedLine,
  parent: RetainedLine,
  retention: Retention,
  kept: Set<number>,
): Generator<void, void> {
  yield* eachNewest(line, retention, (id) => {
    const caller = newestBefore(parent, id);
    if (caller === undefined || kept.has(caller.id)) kept.add(id);
  });
  if (isCall(line)) return;
  for (const [index, { id }] of parent.checkpoints.entries()) {
    if (index % checkpointsAStep === checkpointsAStep - 1) yield;
    const then = kept.has(id) ? newestBefore(line, id) : undefined;
    if (then !== undefined) kept.add(then.id);
  }
  const head = line.checkpoints.at(-1);
  if (head !== undefined) kept.add(head.id);
}

/** The line of one call is named by its task, the line of a graph that is kept across calls by its node. */
function isCall({ name }: RetainedLine): boolean {
  return /\/\d+:\d+(:\d+)?$/.test(name);
}

/** The newest checkpoints of a line, the very newest in any case. */
function* eachNewest(
  { checkpoints }: RetainedLine,
  { keepLast, since }: Retention,
  keep: (id: number) => void,
): Generator<void, void> {
  const first = checkpoints.length - Math.max(keepLast ?? 1, 1);
  for (let index = since === undefined ? Math.max(first, 0) : 0; index < checkpoints.length; index++) {
    if (index % checkpointsAStep === checkpointsAStep - 1) yield;
    const { id, at } = checkpoints[index] as RetainedCheckpoint;
    if (index >= first || (since !== undefined && at >= since)) keep(id);
  }
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

/** What goes of a line, at most `most` checkpoints, the oldest first; and the oldest that stays. */
function* cutsOf(
  { checkpoints }: RetainedLine,
  kept: ReadonlySet<number>,
  most: number,
): Generator<
  void,
  { readonly cuts: readonly Cut[]; readonly count: number; readonly oldest: RetainedCheckpoint | undefined }
> {
  const cuts: Cut[] = [];
  let [count, after] = [0, 0];
  let ids: number[] = [];
  let oldest: RetainedCheckpoint | undefined;
  const cut = (): void => {
    const at = ids.at(-1);
    if (at !== undefined) cuts.push({ after, at, ids });
    ids = [];
  };
  for (const [index, checkpoint] of checkpoints.entries()) {
    if (index % checkpointsAStep === checkpointsAStep - 1) yield;
    const { id } = checkpoint;
    if (!kept.has(id) && count < most) {
      count += 1;
      ids.push(id);
      continue;
    }
    cut();
    after = id;
    oldest ??= checkpoint;
  }
  cut();
  return { cuts, count, oldest };
}

function outermostFirst(lines: readonly RetainedLine[]): readonly RetainedLine[] {
  const depth = ({ name }: RetainedLine): number => (isChildLine(name) ? name.split("/").length : 0);
  return lines.toSorted((one, other) => depth(one) - depth(other));
}
