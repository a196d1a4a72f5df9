/**
 * Retention: decides for every store which checkpoints of a thread can be removed. Pure: rows in, a plan out.
 *
 * A branch retains its newest checkpoints and every checkpoint in use: the origin of a namespace, the newest
 * checkpoint before an unfinished run (its rollback target), and for a persistent subgraph the newest checkpoint at
 * each retained parent checkpoint. A call of an inner graph is removed with its calling checkpoint, unless the call
 * contains `once` effects that a fork from an older checkpoint would need.
 */
import type { CheckpointRow, Retention, RunStatus } from "./checkpoint.ts";
import { isChildNamespace } from "./rules.ts";

/** Namespace as input of retention; checkpoints oldest first. */
export interface RetainedNamespace {
  readonly name: string;
  readonly from: number | undefined;
  /** Newest run, if unfinished. */
  readonly unfinishedRun: string | undefined;
  /** True when the journal has `once` effects. */
  readonly hasOnceEffects: boolean;
  readonly checkpoints: readonly RetainedCheckpoint[];
}

export type RetainedCheckpoint = Pick<CheckpointRow, "id" | "at" | "step" | "seq" | "run" | "source">;

/** Consecutive checkpoints of a namespace to remove: ids above `after`, up to `at`. */
export interface CheckpointRange {
  readonly after: number;
  readonly at: number;
  /** Oldest first. */
  readonly ids: readonly number[];
}

/** Retention plan of a namespace. */
export interface NamespacePlan {
  readonly name: string;
  /** True when no checkpoint remains and the namespace is removed. */
  readonly isRemoved: boolean;
  readonly ranges: readonly CheckpointRange[];
  /** Interrupts and journal rows of earlier steps are removed, except `once` effects. */
  readonly firstStep: number;
  /** `once` effects of earlier steps are removed. */
  readonly firstOnce: number;
}

/** Retention plan of a thread. */
export interface RetentionPlan {
  /** Number of checkpoints to remove. */
  readonly removed: number;
  /** Changed namespaces, inner graphs first. */
  readonly namespaces: readonly NamespacePlan[];
  /** Events with a lower sequence number are removed. */
  readonly firstSeq: number;
}

/** Returns true if a run of this status can still continue, and so can be rolled back. */
export function isUnfinished(status: RunStatus | undefined): boolean {
  return status !== undefined && status !== "done" && status !== "cancelled";
}

/**
 * Plans the removal of at most `limit` checkpoints of a thread; repeated calls continue the removal. Order:
 * namespaces of inner graphs before their parents, at equal depth the namespace with the oldest checkpoint, in a
 * namespace oldest first.
 */
export function planRetention(
  namespaces: readonly RetainedNamespace[],
  retention: Retention,
  limit: number,
): RetentionPlan {
  const steps = planRetentionInSteps(namespaces, retention, limit);
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}

/** {@link planRetention} as a generator with bounded work per step, so that the caller can yield in between. */
export function* planRetentionInSteps(
  namespaces: readonly RetainedNamespace[],
  retention: Retention,
  limit: number,
): Generator<void, RetentionPlan> {
  const { retained, floors } = yield* selectRetained(namespaces, retention);
  const plans: NamespacePlan[] = [];
  let firstSeq = Number.POSITIVE_INFINITY;
  let removed = 0;
  // Inner graphs first: the removal of a call depends on its calling checkpoint, which must still exist.
  for (const [index, namespace] of sortForRemoval(namespaces).entries()) {
    if (index % namespacesPerStep === namespacesPerStep - 1) yield;
    const { ranges, count, oldest } = yield* planRanges(namespace, retained, limit - removed);
    removed += count;
    firstSeq = Math.min(firstSeq, oldest?.seq ?? Number.POSITIVE_INFINITY);
    if (count === 0) continue;
    plans.push({
      name: namespace.name,
      isRemoved: oldest === undefined,
      ranges,
      firstStep: oldest?.step ?? Number.POSITIVE_INFINITY,
      // A fork before the call restarts the call and needs all its `once` effects.
      firstOnce: isCall(namespace)
        ? Number.NEGATIVE_INFINITY
        : (floors.get(getInnerPath(namespace)) ?? Number.POSITIVE_INFINITY),
    });
  }
  return { removed, namespaces: plans, firstSeq };
}

/**
 * Splits a plan into a single part per write, each with at most `maxCheckpoints` checkpoints; the removal may stop
 * after any part.
 */
export function* splitPlan(
  { namespaces }: RetentionPlan,
  maxCheckpoints: number,
): Generator<readonly NamespaceSlice[]> {
  let slice: NamespaceSlice[] = [];
  let room = maxCheckpoints;
  for (const { name, isRemoved, ranges, firstOnce } of namespaces) {
    for (const [index, range] of ranges.entries()) {
      for (let first = 0; first < range.ids.length; ) {
        const ids = range.ids.slice(first, first + room);
        first += ids.length;
        room -= ids.length;
        const isLast = index === ranges.length - 1 && first === range.ids.length;
        slice.push({ name, isRemoved: isRemoved && isLast, firstOnce, after: range.after, ids });
        if (room > 0) continue;
        yield slice;
        [slice, room] = [[], maxCheckpoints];
      }
    }
  }
  if (slice.length > 0) yield slice;
}

/** Consecutive checkpoints removed in a single write: ids in `ids`, above `after`. */
export interface NamespaceSlice {
  readonly name: string;
  /** True when this write removes the last checkpoint of the namespace. */
  readonly isRemoved: boolean;
  /** `once` effects of this and later steps are retained. */
  readonly firstOnce: number;
  readonly after: number;
  readonly ids: readonly number[];
}

/** Work per generator step: about this many checkpoints of a namespace, or this many namespaces. */
const checkpointsPerStep = 4_096;
const namespacesPerStep = 256;

/** Retained checkpoints of a plan. */
interface RetainedSet {
  /** Ids of the retained checkpoints. */
  readonly retained: ReadonlySet<number>;
  /** By path of an inner graph: the first step reachable by a fork from a retained checkpoint, on any branch. */
  readonly floors: ReadonlyMap<string, number>;
}

function* selectRetained(namespaces: readonly RetainedNamespace[], retention: Retention): Generator<void, RetainedSet> {
  const retained = new Set<number>();
  const byName = new Map(namespaces.map((namespace) => [namespace.name, namespace]));
  const origins = yield* findOriginNamespaces(namespaces);
  const getParent = ({ name }: RetainedNamespace): RetainedNamespace | undefined =>
    byName.get(name.slice(0, Math.max(0, name.lastIndexOf("/"))));
  const sorted = sortOutermostFirst(namespaces);

  /** Retains a checkpoint together with its calling checkpoints and the parent namespaces. */
  function retainWithCallers(id: number, namespace: RetainedNamespace | undefined): void {
    retained.add(id);
    const parent = namespace === undefined ? undefined : getParent(namespace);
    if (parent === undefined) return;
    const caller = findNewestBefore(parent, id) ?? (isChildNamespace(parent.name) ? parent.checkpoints[0] : undefined);
    if (caller !== undefined) retainWithCallers(caller.id, parent);
  }

  for (const [from, namespace] of origins) retainWithCallers(from, namespace);
  for (let previousSize = -1; ; ) {
    previousSize = retained.size;
    const floors = new Map<string, number>();
    for (const [index, namespace] of sorted.entries()) {
      if (index % namespacesPerStep === namespacesPerStep - 1) yield;
      const parent = getParent(namespace);
      if (parent === undefined) yield* retainBranch(namespace, retention, retained);
      else yield* retainInner(namespace, parent, retention, retained);
      const head = namespace.checkpoints.at(-1);
      // `once` effects of a graph that a fork can restart must remain known (rule E44).
      const isRestarted = parent !== undefined && isStartedFrom(namespace, parent, floors.get(getInnerPath(parent)));
      if (isRestarted && namespace.hasOnceEffects && head !== undefined) retainWithCallers(head.id, namespace);
      const floor = isRestarted ? Number.NEGATIVE_INFINITY : yield* findFirstRetainedStep(namespace, retained);
      floors.set(
        getInnerPath(namespace),
        Math.min(floor, floors.get(getInnerPath(namespace)) ?? Number.POSITIVE_INFINITY),
      );
    }
    if (retained.size === previousSize) return { retained, floors };
  }
}

/** Returns true if the namespace of an inner graph was started at this step of its parent graph, or later. */
function isStartedFrom(
  { checkpoints: [first] }: RetainedNamespace,
  parent: RetainedNamespace,
  step: number | undefined,
): boolean {
  const caller = first === undefined ? undefined : findNewestBefore(parent, first.id);
  return (caller?.step ?? Number.NEGATIVE_INFINITY) >= (step ?? Number.POSITIVE_INFINITY);
}

/** Returns the path of a graph inside its branch; equal on every branch. */
function getInnerPath({ name }: RetainedNamespace): string {
  return isChildNamespace(name) ? name.slice(name.indexOf("/")) : "";
}

function* findFirstRetainedStep(
  { checkpoints }: RetainedNamespace,
  retained: ReadonlySet<number>,
): Generator<void, number> {
  for (const [index, { id, step }] of checkpoints.entries()) {
    if (index % checkpointsPerStep === checkpointsPerStep - 1) yield;
    if (retained.has(id)) return step;
  }
  return Number.POSITIVE_INFINITY;
}

/** Maps each origin checkpoint to its namespace, when present. */
function* findOriginNamespaces(
  namespaces: readonly RetainedNamespace[],
): Generator<void, ReadonlyMap<number, RetainedNamespace | undefined>> {
  const origins = new Map<number, RetainedNamespace | undefined>();
  for (const { from } of namespaces) if (from !== undefined) origins.set(from, undefined);
  if (origins.size === 0) return origins;
  for (const namespace of namespaces) {
    for (const [index, { id }] of namespace.checkpoints.entries()) {
      if (index % checkpointsPerStep === checkpointsPerStep - 1) yield;
      if (origins.has(id)) origins.set(id, namespace);
    }
  }
  return origins;
}

function* retainBranch(
  namespace: RetainedNamespace,
  retention: Retention,
  retained: Set<number>,
): Generator<void, void> {
  yield* visitNewest(namespace, retention, (id) => retained.add(id));
  if (namespace.unfinishedRun === undefined) return;
  let rollbackTarget: number | undefined;
  for (const [index, { id, run, source }] of namespace.checkpoints.entries()) {
    if (index % checkpointsPerStep === checkpointsPerStep - 1) yield;
    if (run !== namespace.unfinishedRun) rollbackTarget = id;
    else if (source === "input") retained.add(id);
  }
  if (rollbackTarget !== undefined) retained.add(rollbackTarget);
}

function* retainInner(
  namespace: RetainedNamespace,
  parent: RetainedNamespace,
  retention: Retention,
  retained: Set<number>,
): Generator<void, void> {
  const parentHead = parent.checkpoints.at(-1);
  const isParentRetained = parentHead !== undefined && retained.has(parentHead.id);
  yield* visitNewest(namespace, retention, (id) => {
    if (isCallerRetained(parent, id, retained) ?? isParentRetained) retained.add(id);
  });
  if (isCall(namespace)) return;
  let first: RetainedCheckpoint | undefined;
  for (const [index, checkpoint] of parent.checkpoints.entries()) {
    if (index % checkpointsPerStep === checkpointsPerStep - 1) yield;
    if (first?.step !== checkpoint.step) first = checkpoint;
    if (!retained.has(checkpoint.id)) continue;
    // An update or a migration continues a step: a fork from there restarts the step's calls, from the state before
    // the first checkpoint of the step.
    retained.add(first.id);
    for (const { id } of [checkpoint, first]) {
      const newest = findNewestBefore(namespace, id);
      if (newest !== undefined) retained.add(newest.id);
    }
  }
  // State of persistent subgraphs inside a call is removed with the call.
  const head = namespace.checkpoints.at(-1);
  if (head !== undefined && isParentRetained) retained.add(head.id);
}

/**
 * Returns true for the namespace of a call, named by its task; the namespace of a persistent subgraph is named by
 * its node.
 */
function isCall({ name }: RetainedNamespace): boolean {
  return /\/\d+:\d+(:\d+)?$/.test(name);
}

/** Visits the newest checkpoints of a namespace, at least the head. */
function* visitNewest(
  { checkpoints }: RetainedNamespace,
  { keepLast, since }: Retention,
  retain: (id: number) => void,
): Generator<void, void> {
  const first = checkpoints.length - Math.max(keepLast ?? 1, 1);
  for (let index = since === undefined ? Math.max(first, 0) : 0; index < checkpoints.length; index++) {
    if (index % checkpointsPerStep === checkpointsPerStep - 1) yield;
    const { id, at } = checkpoints[index] as RetainedCheckpoint;
    if (index >= first || (since !== undefined && at >= since)) retain(id);
  }
}

/**
 * Returns true if the calling checkpoint of an inner graph is retained, or an update or migration of the same step;
 * undefined if the caller is already removed.
 */
function isCallerRetained(
  { checkpoints }: RetainedNamespace,
  id: number,
  retained: ReadonlySet<number>,
): boolean | undefined {
  const first = findIndexBefore(checkpoints, id);
  const caller = checkpoints[first];
  if (caller === undefined) return undefined;
  for (let at = first; checkpoints[at]?.step === caller.step; at++)
    if (retained.has(checkpoints[at]?.id ?? 0)) return true;
  return false;
}

/** Returns the newest checkpoint below an id: the caller writes no checkpoint while an inner graph runs. */
function findNewestBefore({ checkpoints }: RetainedNamespace, id: number): RetainedCheckpoint | undefined {
  return checkpoints[findIndexBefore(checkpoints, id)];
}

function findIndexBefore(checkpoints: readonly RetainedCheckpoint[], id: number): number {
  let low = 0;
  let high = checkpoints.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((checkpoints[middle]?.id ?? id) < id) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * Plans the removal in a namespace, at most `maxCheckpoints` checkpoints, oldest first; also returns the oldest
 * remaining checkpoint.
 */
function* planRanges(
  { checkpoints }: RetainedNamespace,
  retained: ReadonlySet<number>,
  maxCheckpoints: number,
): Generator<
  void,
  {
    readonly ranges: readonly CheckpointRange[];
    readonly count: number;
    readonly oldest: RetainedCheckpoint | undefined;
  }
> {
  const cuts: CheckpointRange[] = [];
  let [count, after] = [0, 0];
  let ids: number[] = [];
  let oldest: RetainedCheckpoint | undefined;
  const closeRange = (): void => {
    const at = ids.at(-1);
    if (at !== undefined) cuts.push({ after, at, ids });
    ids = [];
  };
  for (const [index, checkpoint] of checkpoints.entries()) {
    if (index % checkpointsPerStep === checkpointsPerStep - 1) yield;
    const { id } = checkpoint;
    if (!retained.has(id) && count < maxCheckpoints) {
      count += 1;
      ids.push(id);
      continue;
    }
    closeRange();
    after = id;
    oldest ??= checkpoint;
  }
  closeRange();
  return { ranges: cuts, count, oldest };
}

function sortOutermostFirst(namespaces: readonly RetainedNamespace[]): readonly RetainedNamespace[] {
  return namespaces.toSorted((one, other) => getDepth(one) - getDepth(other));
}

/** Deterministic for any input order: namespaces share no checkpoint id. */
function sortForRemoval(namespaces: readonly RetainedNamespace[]): readonly RetainedNamespace[] {
  const getOldestId = ({ checkpoints: [oldest] }: RetainedNamespace): number => oldest?.id ?? 0;
  return namespaces.toSorted((one, other) => getDepth(other) - getDepth(one) || getOldestId(one) - getOldestId(other));
}

function getDepth({ name }: RetainedNamespace): number {
  return isChildNamespace(name) ? name.split("/").length : 0;
}
