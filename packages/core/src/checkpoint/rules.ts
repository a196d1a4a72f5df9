/** Rules and errors shared by all stores, for authors of stores. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";
import { checkChoice, checkCount, checkOptions } from "../base/options.ts";
import type { ByteRange } from "../tool/artifacts/artifact.ts";
import { type CheckpointRow, type DeltaRow, type RunRow, type RunStatus, runStatuses } from "./checkpoint.ts";
import { type ClaimablePage, claimableKinds } from "./claimable.ts";
import type { ScheduleFilter } from "./schedule.ts";
import type {
  BranchWrite,
  CheckpointWrite,
  Commit,
  MetadataFilter,
  OpenInterruptFilter,
  RunCountFilter,
  RunFilter,
  Store,
  ThreadCountFilter,
  ThreadFilter,
} from "./store.ts";
import type { SuperstepPage } from "./superstep.ts";
import { type TimerFilter, type TimerRow, timerKinds } from "./timer.ts";

/** Returns true if a delta does not depend on earlier deltas: `replace` and `clear` are bases even if not marked. */
export function isBase(delta: DeltaRow): boolean {
  return delta.base || delta.kind === "replace" || delta.kind === "clear";
}

/** Returns the time of the thread change for lists; 0 for a commit of journal rows only, which lists do not show. */
export function getChangeTime({ run, checkpoint, interrupts }: Commit): number {
  let latest = Math.max(run?.endedAt ?? run?.startedAt ?? 0, checkpoint?.row.at ?? 0);
  for (const { raisedAt, answeredAt, expiredAt } of interrupts ?? [])
    latest = Math.max(latest, answeredAt ?? expiredAt ?? raisedAt);
  return latest;
}

/** Returns the latest time in a commit; 0 when there is none. */
export function getLatestTime(commit: Commit): number {
  let latest = getChangeTime(commit);
  const rows = [...(commit.effects ?? []), ...(commit.parentJournals ?? []).flatMap(({ effects }) => effects)];
  for (const { startedAt, endedAt } of rows) latest = Math.max(latest, endedAt ?? startedAt);
  return latest;
}

/** Returns true for a child namespace: the rows of an inner graph, excluded from lists. */
export function isChildNamespace(namespace: string): boolean {
  return namespace.includes("/");
}

/** Returns the branch of a namespace: the namespace itself, or that of the outermost graph. */
export function getBranchName(namespace: string): string {
  const end = namespace.indexOf("/");
  return end === -1 ? namespace : namespace.slice(0, end);
}

/**
 * Returns the parent namespace of the child namespace that a commit creates. Throws `unknown_branch` when the commit
 * cannot create a namespace (a branch, or no checkpoint), and `invalid_id` for a name outside the grammar (rule R4).
 */
export function getNewNamespaceParent({ thread, branch, checkpoint }: Commit): string {
  if (checkpoint === undefined || !isChildNamespace(branch)) throw createUnknownBranchError(thread, branch);
  return getParentNamespace(branch);
}

/** Namespace created by a fork, with the store's data of its origin checkpoint. */
export interface ForkedNamespace<Origin> {
  readonly namespace: string;
  readonly from: number;
  readonly origin: Origin;
  readonly checkpoint: CheckpointWrite;
}

/**
 * Resolves the namespaces of a fork, the branch first, each after its parent namespace. Throws `unknown_checkpoint`,
 * `thread_exists`, `invalid_id` for a namespace outside the branch, and `unknown_branch` for a missing parent
 * namespace.
 */
export function resolveForkedNamespaces<Origin>(
  { thread, branch, from, checkpoint, inner = [] }: BranchWrite,
  find: { readonly origin: (from: number) => Origin | undefined; readonly has: (namespace: string) => boolean },
): readonly [ForkedNamespace<Origin>, ...ForkedNamespace<Origin>[]] {
  const names = new Set<string>();
  const resolveFork = (start: Omit<ForkedNamespace<Origin>, "origin">): ForkedNamespace<Origin> => {
    const parent = start.namespace === branch ? undefined : getParentInBranch(branch, start.namespace);
    const origin = find.origin(start.from);
    if (origin === undefined) throw createUnknownCheckpointError(thread, start.from);
    if (names.has(start.namespace) || find.has(start.namespace)) throw createBranchExistsError(thread, start.namespace);
    if (parent !== undefined && !names.has(parent)) throw createUnknownBranchError(thread, parent);
    names.add(start.namespace);
    return { ...start, origin };
  };
  return [resolveFork({ namespace: branch, from, checkpoint }), ...inner.map(resolveFork)];
}

function getParentInBranch(branch: string, namespace: string): string {
  if (namespace.startsWith(`${branch}/`)) return getParentNamespace(namespace);
  throw new StatewrightError("invalid_id", {
    what: `namespace ${JSON.stringify(namespace)} is not a child namespace of the branch "${branch}"`,
    next: `Use a name that begins with "${branch}/"`,
    place: { branch },
  });
}

function getParentNamespace(namespace: string): string {
  for (const segment of namespace.split("/")) checkId("segment of a namespace", segment);
  return namespace.slice(0, namespace.lastIndexOf("/"));
}

/**
 * Throws `store_failed` unless a checkpoint continues its namespace: its parent is the head, and its id is new in the
 * thread.
 */
export function checkFollows(
  { row }: CheckpointWrite,
  head: number | undefined,
  lastId: number,
  place: { readonly thread: string; readonly branch: string },
): void {
  if (row.parent === head && row.id > lastId) return;
  throw new StatewrightError("store_failed", {
    what: `checkpoint ${row.id} with parent ${row.parent ?? "none"} does not continue its namespace (head ${head ?? "none"}, last checkpoint id of the thread ${lastId})`,
    next: "Report this as a bug of the engine that wrote the checkpoint",
    place,
  });
}

/** Creates the error for a write that would leave a gap in the sequence numbers after a failed write. */
export function createGapError({ thread, branch, after = 0 }: Commit): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `a write to thread "${thread}" follows durable event ${after}, which could not be saved`,
    next: "Resume the thread: the run continues from the saved events",
    place: { thread, branch },
  });
}

/** Throws `invalid_option` for an invalid filter of timers. */
export function checkTimerFilter(filter: TimerFilter): void {
  const { kinds = [], limit, ...rest } = filter;
  checkFilter("timers", { ...rest, ...(limit === undefined ? {} : { limit }) }, ["thread", "dueBy", "dueAfter"]);
  if (!Array.isArray(kinds))
    throw invalidOption({ where: "timers", option: "kinds", expected: "a list of kinds", got: kinds });
  for (const kind of kinds) checkChoice("timers", { kind }, timerKinds);
}

/** Throws `invalid_option` for an invalid filter of schedules. */
export function checkScheduleFilter({ graphs = [], after, limit, ...filter }: ScheduleFilter): void {
  const page = limit === undefined ? {} : { limit };
  checkFilter("schedules", { ...filter, ...page }, ["tenant", "owner", "dueBy", "dueAfter"]);
  if (!Array.isArray(graphs) || graphs.some((name) => typeof name !== "string"))
    throw invalidOption({ where: "schedules", option: "graphs", expected: "a list of graph names", got: graphs });
  if (after !== undefined && typeof after !== "string")
    throw invalidOption({ where: "schedules", option: "after", expected: "an id of a schedule", got: after });
}

/** Throws `invalid_option` for an invalid page of due runs. */
export function checkDuePage(page: Parameters<Store["enqueueDue"]>[0]): void {
  checkKeys("enqueueDue", page, ["at", "limit"]);
  checkFilter("enqueueDue", page, ["at"]);
  checkCount("enqueueDue", { limit: page.limit ?? null }, 1, Number.MAX_SAFE_INTEGER);
}

/** Compares timers by due time, then by id, thread and namespace; strings by code points. */
export function compareTimers(one: TimerRow, other: TimerRow): number {
  return (
    one.dueAt - other.dueAt ||
    compareText(one.id, other.id) ||
    compareText(one.thread, other.thread) ||
    compareText(one.branch, other.branch)
  );
}

/** Compares by code points, the order of UTF-8; `<` compares UTF-16 units, a different order. */
function compareText(one: string, other: string): number {
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    const difference = (one.codePointAt(at) ?? 0) - (other.codePointAt(at) ?? 0);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

/** Throws `invalid_option` for an unknown option (rule R3). */
export function checkKeys(what: string, options: object, known: readonly string[]): void {
  checkOptions(what, options, known);
}

/**
 * Throws `invalid_option` for a list filter with an unknown key or an invalid value, or with a limit that is not an
 * integer ≥ 1.
 */
export function checkFilter(
  what: string,
  filter: { readonly limit?: number; readonly metadata?: MetadataFilter; readonly runMetadata?: MetadataFilter },
  known: readonly string[],
): void {
  checkKeys(what, filter, [...known, "limit"]);
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined || name === "limit" || name === "status" || isValidFilterValue(what, name, value)) continue;
    const expected = filterTypes[name] ?? "a value from a page of the same list";
    throw invalidOption({ where: what, option: name, expected, got: value });
  }
  checkCount(what, { limit: filter.limit });
  checkMetadata(what, "metadata", filter.metadata);
  checkMetadata(what, "runMetadata", filter.runMetadata);
}

function checkMetadata(what: string, option: string, metadata: MetadataFilter = {}): void {
  for (const [key, value] of Object.entries(metadata)) {
    if (value === null || ["string", "number", "boolean"].includes(typeof value)) continue;
    throw invalidOption({
      where: what,
      option: `${option}.${key}`,
      expected: "a string, number, boolean or null",
      got: value,
      fix: "Use a string, number, boolean or null: metadata is matched by equality",
    });
  }
}

/** Throws `invalid_option` for an invalid byte range. */
export function checkRange(range: ByteRange): void {
  checkKeys("read of an artifact", range, ["offset", "limit"]);
  const { offset = null, limit = null } = range;
  checkCount("read of an artifact", { offset }, 0, Number.MAX_SAFE_INTEGER);
  checkCount("read of an artifact", { limit }, 1, Number.MAX_SAFE_INTEGER);
}

/** Expected types of filter values. */
const filterTypes: Readonly<Record<string, "a text" | "a number" | "an object">> = {
  thread: "a text",
  graph: "a text",
  key: "a text",
  tenant: "a text",
  owner: "a text",
  search: "a text",
  run: "a text",
  branch: "a text",
  order: "a text",
  delayed: "a text",
  since: "a number",
  until: "a number",
  at: "a number",
  dueBy: "a number",
  dueAfter: "a number",
  after: "a number",
  from: "a number",
  metadata: "an object",
  runMetadata: "an object",
};

/** Cursor fields of each list. */
const cursors: Readonly<Record<string, Readonly<Record<string, "string" | "number">>>> = {
  runs: { position: "number" },
  threads: { id: "string", updatedAt: "number" },
  openInterrupts: { position: "number" },
};

function isValidFilterValue(what: string, name: string, value: unknown): boolean {
  if (filterTypes[name] === "a text") return typeof value === "string";
  if (filterTypes[name] === "an object") return isPlainObject(value);
  const cursor = name === "before" ? cursors[what] : undefined;
  if (cursor === undefined) return typeof value === "number" && !Number.isNaN(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(cursor).every(([part, kind]) => typeof Reflect.get(value, part) === kind);
}

/** Filter keys of each list. */
export const runFilterKeys: readonly (keyof RunFilter)[] = [
  "thread",
  "branch",
  "status",
  "graph",
  "key",
  "tenant",
  "owner",
  "metadata",
  "since",
  "until",
  "delayed",
  "before",
  "order",
];
/** Keys of a `ThreadFilter`. */
export const threadFilterKeys: readonly (keyof ThreadFilter)[] = [
  "status",
  "graph",
  "tenant",
  "owner",
  "metadata",
  "runMetadata",
  "search",
  "since",
  "until",
  "before",
];

const pageKeys: readonly string[] = ["status", "delayed", "before", "order"];

/** Throws `invalid_option` for an invalid filter of counted threads. */
export function checkThreadCountFilter(filter: ThreadCountFilter): void {
  checkCountFilter("countThreads", filter, threadFilterKeys);
}

/** Throws `invalid_option` for an invalid filter of counted runs. */
export function checkRunCountFilter(filter: RunCountFilter): void {
  checkCountFilter("countRuns", filter, runFilterKeys);
}

/** A count has no page: the keys of a page are unknown. */
function checkCountFilter(what: string, filter: Parameters<typeof checkFilter>[1], keys: readonly string[]): void {
  const known = keys.filter((key) => !pageKeys.includes(key));
  checkKeys(what, filter, known);
  checkFilter(what, filter, known);
}

/** Throws `invalid_option` for an invalid page of supersteps. */
export function checkSuperstepPage(page: SuperstepPage): void {
  checkOptions("supersteps", page, ["branch", "before", "after", "limit"]);
  const { branch, after, limit } = page;
  if (branch !== undefined && typeof branch !== "string")
    throw invalidOption({ where: "supersteps", option: "branch", expected: "a text", got: branch });
  checkCount("supersteps", { after }, 0, Number.MAX_SAFE_INTEGER);
  checkCount("supersteps", { limit: limit ?? null }, 1, Number.MAX_SAFE_INTEGER);
  checkCount("supersteps", { before: page.before }, 0, Number.MAX_SAFE_INTEGER);
  if (page.before === undefined || page.after === undefined) return;
  throw invalidOption({
    where: "supersteps",
    option: "after",
    expected: "no `before` with `after`",
    got: page.after,
    fix: "Pass `before` for the newest rows first, or `after` for the oldest rows first",
  });
}

/** Returns true for a namespace itself and for its child namespaces, to any depth. */
export function isNamespaceWithin(namespace: string, outer: string): boolean {
  return namespace === outer || namespace.startsWith(`${outer}/`);
}

/**
 * Returns the step whose tasks a checkpoint reduced, from the step of its parent checkpoint; undefined for the first
 * checkpoint of a thread, and for a checkpoint that continues its parent's step. The parent of the oldest checkpoint
 * after a pruned range is unknown: supersteps count up by one.
 */
export function getReducedStep(
  { parent, step }: Pick<CheckpointRow, "parent" | "step">,
  parentStep: number | undefined,
): number | undefined {
  if (parent === undefined || parentStep === step) return undefined;
  return parentStep ?? step - 1;
}

/** Throws `invalid_option` for an invalid page of claimable runs. */
export function checkClaimablePage(page: ClaimablePage): void {
  checkKeys("claimable", page, ["kind", "after", "limit"]);
  const { kind, after, limit } = page;
  checkChoice("claimable", { kind }, claimableKinds);
  checkCount("claimable", { limit: limit ?? null }, 1, Number.MAX_SAFE_INTEGER);
  if (after === undefined || (typeof after?.thread === "string" && typeof after.id === "string")) return;
  throw invalidOption({
    where: "claimable",
    option: "after",
    expected: "the last run of the previous page",
    got: after,
  });
}

/**
 * Returns the interrupts of a branch that a commit removes from the list of open interrupts, before it writes its own:
 * all when the run ends, or waits for the interrupts of the commit; those of other steps when a superstep ends.
 */
export function findClosedInterrupts({ run, checkpoint, interrupts = [] }: Commit): ClosedInterrupts | undefined {
  if (run?.status === "done" || run?.status === "cancelled") return { exceptStep: undefined };
  if (run?.status === "waiting" && interrupts.length > 0) return { exceptStep: undefined };
  return checkpoint === undefined ? undefined : { exceptStep: checkpoint.row.step };
}

/** Interrupts that leave the list: all, or all but those of a step. */
export interface ClosedInterrupts {
  readonly exceptStep: number | undefined;
}

/** Filter keys of the list of open interrupts. */
export const openInterruptFilterKeys: readonly (keyof OpenInterruptFilter)[] = [
  "thread",
  "graph",
  "key",
  "tenant",
  "owner",
  "metadata",
  "at",
  "before",
];

/** Throws `invalid_option`, with the call `where`, for an invalid filter of runs; returns the requested statuses. */
export function checkRunFilter(filter: RunFilter, where = "runs"): readonly RunStatus[] | undefined {
  checkFilter(where, filter, runFilterKeys);
  const { order = "newest", delayed = "include", thread, before } = filter;
  checkChoice(where, { order }, ["newest", "oldest"]);
  checkChoice(where, { delayed }, ["include", "exclude"]);
  if (order === "oldest" && (thread === undefined || before !== undefined))
    throw invalidOption({
      where,
      option: "order",
      expected: "a filter with thread and without before",
      found: "another filter",
      fix: 'Add thread and remove before, or use order: "newest"',
    });
  return parseStatuses(filter, where);
}

/** Same as {@link checkRunFilter}, for threads. */
export function checkThreadFilter(filter: ThreadFilter, where = "threads"): readonly RunStatus[] | undefined {
  checkFilter(where, filter, threadFilterKeys);
  return parseStatuses(filter, where);
}

function parseStatuses({ status }: Pick<RunFilter, "status">, what: string): readonly RunStatus[] | undefined {
  if (status === undefined) return undefined;
  const statuses: readonly RunStatus[] = Array.isArray(status) ? status : [status];
  for (const each of statuses) {
    if (runStatuses.includes(each)) continue;
    const fix = `Use ${runStatuses.join(", ")}`;
    throw invalidOption({ where: what, option: "status", expected: "a run status", got: each, fix });
  }
  return statuses;
}

/** Returns true if a run or a thread has all requested metadata. */
export function hasMetadata(row: Pick<RunRow, "metadata"> | undefined, metadata: MetadataFilter): boolean {
  return Object.entries(metadata).every(
    ([key, value]) => row?.metadata !== undefined && Object.hasOwn(row.metadata, key) && row.metadata[key] === value,
  );
}

/** Creates the error for a run that cannot start: a duplicate key or id, or already removed from the queue. */
export function createRunExistsError({ thread, id, key }: Pick<RunRow, "thread" | "id" | "key">): StatewrightError {
  return new StatewrightError("run_exists", {
    what:
      key === undefined
        ? `run "${id}" is no longer in the queue, or its id is in use`
        : `thread "${thread}" already has a run with the key "${key}", or the run was removed from the queue`,
    next: "Use listRuns to find the run: nothing was started",
    place: { thread },
  });
}

/** Creates the error for a claim or fork of a thread with a live owner. */
export function createBusyError(thread: string, holder?: string): StatewrightError {
  return new StatewrightError("thread_busy", {
    what: `thread "${thread}" is held by ${holder ?? "another owner"}`,
    next: "Wait until its run has ended or waits, or cancel that run",
    place: { thread },
  });
}

/** Creates the error for a run that needs an idle branch: the run is unfinished, or queued. */
export function createNotIdleError({ thread, branch, id, status }: RunRow): StatewrightError {
  return new StatewrightError("thread_busy", {
    what:
      status === "queued"
        ? `the thread "${thread}" has queued inputs, which come first`
        : `the thread "${thread}" has an unfinished run: ${status === "running" ? "crashed" : status}`,
    next: 'Resume that run, use onBusy: "enqueue", or use another thread for the new input',
    place: { thread, branch },
    details: { run: id, status },
  });
}

/** Returns true if a run is not done and not cancelled. */
export function isUnfinishedRun({ status }: Pick<RunRow, "status">): boolean {
  return status !== "done" && status !== "cancelled";
}

/** Creates the error for a writer that no longer owns the thread. */
export function createFencedError({ thread, branch, epoch }: Commit): StatewrightError {
  return new StatewrightError("fenced", {
    what: `a write to thread "${thread}" came from a previous owner (epoch ${epoch})`,
    next: "Discard this run: nothing was saved, and the new owner continues the run",
    place: { thread, branch },
  });
}

/** Creates the error for a missing thread. */
export function createUnknownThreadError(thread: string): StatewrightError {
  return new StatewrightError("unknown_thread", {
    what: `there is no thread "${thread}"`,
    next: "Check the thread id, or start the thread with run",
    place: { thread },
  });
}

/** Creates the error for a missing branch. */
export function createUnknownBranchError(thread: string, branch: string): StatewrightError {
  return new StatewrightError("unknown_branch", {
    what: `there is no branch "${branch}"`,
    next: "Use an existing branch of the thread, or create the branch with fork",
    place: { thread, branch },
  });
}

/** Creates the error for a missing checkpoint. */
export function createUnknownCheckpointError(thread: string, checkpoint: number): StatewrightError {
  return new StatewrightError("unknown_checkpoint", {
    what: `thread "${thread}" has no checkpoint ${checkpoint}`,
    next: "Use a checkpointId from getHistory",
    place: { thread },
  });
}

/** Creates the error for a fork under an existing branch name. */
export function createBranchExistsError(thread: string, branch: string): StatewrightError {
  return new StatewrightError("thread_exists", {
    what: `branch "${branch}" already exists`,
    next: "Pass another name for the fork",
    place: { thread, branch },
  });
}

/** Creates the error for a thread id that already exists. */
export function createThreadExistsError(thread: string): StatewrightError {
  return new StatewrightError("thread_exists", {
    what: `thread "${thread}" already exists`,
    next: "Pass another id for the copy, or delete that thread first",
    place: { thread },
  });
}

/** Creates the error for every call after `close()`. */
export function createClosedError(store: string): StatewrightError {
  return new StatewrightError("store_closed", {
    what: `the ${store} store is closed`,
    next: "Close the store only after its runs have ended",
  });
}
