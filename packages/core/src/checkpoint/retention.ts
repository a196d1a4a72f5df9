/**
 * Retention: which checkpoints of a thread may go, decided in one place for every store. Pure: rows in, a plan out.
 *
 * A branch keeps its newest checkpoints, and besides them what something else stands on: the checkpoint that a line goes
 * on from, the newest before an unfinished run, to which that run may be taken back, and of a graph that is
 * kept across calls the newest checkpoint at each one that stays. A call of an inner graph goes with the checkpoint that
 * called it, unless something happened in it once that a fork from an older checkpoint would ask for.
 */
import type { CheckpointRow, RunStatus } from "./checkpoint.ts";
import { isChildLine } from "./rules.ts";

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

/**
 * What to remove from a thread, at most `limit` checkpoints of it, so that a further write goes on from there: lines of inner
 * graphs before those around them, of one depth the line with the oldest checkpoint first, and of a line the oldest first.
 */
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
  const { kept, floors } = yield* checkpointsToKeep(lines, retention);
  const plans: LinePlan[] = [];
  let firstSeq = Number.POSITIVE_INFINITY;
  let removed = 0;
  // Inner graphs first: what is decided about a call is decided by the checkpoint that called it, while that is there.
  for (const [index, line] of inOrderOfRemoval(lines).entries()) {
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
      firstOnce: isCall(line) ? Number.NEGATIVE_INFINITY : (floors.get(insideOf(line)) ?? Number.POSITIVE_INFINITY),
    });
  }
  return { removed, lines: plans, firstSeq };
}

/** A part of a plan for each write, at most `most` checkpoints in each, in an order in which any of them may be the last. */
export function* slicesOf({ lines }: RetentionPlan, most: number): Generator<readonly LineSlice[]> {
  let slice: LineSlice[] = [];
  let room = most;
  for (const { name, gone, cuts, firstOnce } of lines) {
    for (const [nth, cut] of cuts.entries()) {
      for (let first = 0; first < cut.ids.length; ) {
        const ids = cut.ids.slice(first, first + room);
        first += ids.length;
        room -= ids.length;
        const isLast = nth === cuts.length - 1 && first === cut.ids.length;
        slice.push({ name, gone: gone && isLast, firstOnce, after: cut.after, ids });
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
  /** Its `once` effects of this step and later ones stay. */
  readonly firstOnce: number;
  readonly after: number;
  readonly ids: readonly number[];
}

/** A step of a plan looks at about so many checkpoints of a line, or at so many lines. */
const checkpointsAStep = 4_096;
const linesAStep = 256;

/** What stays. */
interface Kept {
  /** The ids of the checkpoints that stay. */
  readonly kept: ReadonlySet<number>;
  /** By the place of a graph, the first step of it that a fork from what stays may come to, on whatever branch. */
  readonly floors: ReadonlyMap<string, number>;
}

function* checkpointsToKeep(lines: readonly RetainedLine[], retention: Retention): Generator<void, Kept> {
  const kept = new Set<number>();
  const byName = new Map(lines.map((line) => [line.name, line]));
  const lineOf = yield* linesOfOrigins(lines);
  const parentOf = ({ name }: RetainedLine): RetainedLine | undefined =>
    byName.get(name.slice(0, Math.max(0, name.lastIndexOf("/"))));
  const sorted = outermostFirst(lines);

  /** What goes on from a checkpoint of an inner graph needs those that called it too, and the line around it. */
  function keepWithCallers(id: number, line: RetainedLine | undefined): void {
    kept.add(id);
    const parent = line === undefined ? undefined : parentOf(line);
    if (parent === undefined) return;
    const caller = newestBefore(parent, id) ?? (isChildLine(parent.name) ? parent.checkpoints[0] : undefined);
    if (caller !== undefined) keepWithCallers(caller.id, parent);
  }

  for (const [from, line] of lineOf) keepWithCallers(from, line);
  for (let before = -1; ; ) {
    before = kept.size;
    const floors = new Map<string, number>();
    for (const [index, line] of sorted.entries()) {
      if (index % linesAStep === linesAStep - 1) yield;
      const parent = parentOf(line);
      if (parent === undefined) yield* keepBranch(line, retention, kept);
      else yield* keepInner(line, parent, retention, kept);
      const head = line.checkpoints.at(-1);
      // What happened once in a graph that a fork may begin anew must be known then (rule E44).
      const isMadeAnew = parent !== undefined && beginsAfter(line, parent, floors.get(insideOf(parent)));
      if (isMadeAnew && line.once && head !== undefined) keepWithCallers(head.id, line);
      const floor = isMadeAnew ? Number.NEGATIVE_INFINITY : yield* firstKept(line, kept);
      floors.set(insideOf(line), Math.min(floor, floors.get(insideOf(line)) ?? Number.POSITIVE_INFINITY));
    }
    if (kept.size === before) return { kept, floors };
  }
}

/** Whether a line of an inner graph was begun at this step of the graph around it, or later. */
function beginsAfter({ checkpoints: [first] }: RetainedLine, parent: RetainedLine, step: number | undefined): boolean {
  const caller = first === undefined ? undefined : newestBefore(parent, first.id);
  return (caller?.step ?? Number.NEGATIVE_INFINITY) >= (step ?? Number.POSITIVE_INFINITY);
}

/** Where a graph stands inside its branch: the lines of one graph have the same on every branch. */
function insideOf({ name }: RetainedLine): string {
  return isChildLine(name) ? name.slice(name.indexOf("/")) : "";
}

function* firstKept({ checkpoints }: RetainedLine, kept: ReadonlySet<number>): Generator<void, number> {
  for (const [index, { id, step }] of checkpoints.entries()) {
    if (index % checkpointsAStep === checkpointsAStep - 1) yield;
    if (kept.has(id)) return step;
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
  let before: number | undefined;
  for (const [index, { id, run, source }] of line.checkpoints.entries()) {
    if (index % checkpointsAStep === checkpointsAStep - 1) yield;
    if (run !== line.unfinished) before = id;
    else if (source === "input") kept.add(id);
  }
  if (before !== undefined) kept.add(before);
}

function* keepInner(
  line: RetainedLine,
  parent: RetainedLine,
  retention: Retention,
  kept: Set<number>,
): Generator<void, void> {
  const around = parent.checkpoints.at(-1);
  const goesOn = around !== undefined && kept.has(around.id);
  yield* eachNewest(line, retention, (id) => {
    if (callerStays(parent, id, kept) ?? goesOn) kept.add(id);
  });
  if (isCall(line)) return;
  let first: RetainedCheckpoint | undefined;
  for (const [index, checkpoint] of parent.checkpoints.entries()) {
    if (index % checkpointsAStep === checkpointsAStep - 1) yield;
    if (first?.step !== checkpoint.step) first = checkpoint;
    if (!kept.has(checkpoint.id)) continue;
    // An update or a migration goes on with a step: a fork from there makes its calls anew, from what was before the first.
    kept.add(first.id);
    for (const { id } of [checkpoint, first]) {
      const then = newestBefore(line, id);
      if (then !== undefined) kept.add(then.id);
    }
  }
  // What is kept across the calls that a call makes goes with that.
  const head = line.checkpoints.at(-1);
  if (head !== undefined && goesOn) kept.add(head.id);
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

/** Whether what called an inner graph stays, or what goes on with the step of that: an update or a migration. Absent where it is gone already. */
function callerStays({ checkpoints }: RetainedLine, id: number, kept: ReadonlySet<number>): boolean | undefined {
  const first = placeBefore(checkpoints, id);
  const caller = checkpoints[first];
  if (caller === undefined) return undefined;
  for (let at = first; checkpoints[at]?.step === caller.step; at++) if (kept.has(checkpoints[at]?.id ?? 0)) return true;
  return false;
}

/** The newest checkpoint of a line whose id is below another: while an inner graph is called, its caller stands still. */
function newestBefore({ checkpoints }: RetainedLine, id: number): RetainedCheckpoint | undefined {
  return checkpoints[placeBefore(checkpoints, id)];
}

function placeBefore(checkpoints: readonly RetainedCheckpoint[], id: number): number {
  let low = 0;
  let high = checkpoints.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((checkpoints[middle]?.id ?? id) < id) low = middle + 1;
    else high = middle;
  }
  return low - 1;
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
  return lines.toSorted((one, other) => depthOf(one) - depthOf(other));
}

/** The same whatever order a store has its lines in: no two of them have an id in common. */
function inOrderOfRemoval(lines: readonly RetainedLine[]): readonly RetainedLine[] {
  const oldestOf = ({ checkpoints: [oldest] }: RetainedLine): number => oldest?.id ?? 0;
  return lines.toSorted((one, other) => depthOf(other) - depthOf(one) || oldestOf(one) - oldestOf(other));
}

function depthOf({ name }: RetainedLine): number {
  return isChildLine(name) ? name.split("/").length : 0;
}
