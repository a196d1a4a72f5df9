/** The rules that every store shares, and its refusals in the same words everywhere. For those who write a store. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { describeValue, isPlainObject } from "../base/json.ts";
import { checkOptions } from "../base/options.ts";
import type { ByteRange } from "../tool/artifacts/artifact.ts";
import { type DeltaRow, type RunRow, type RunStatus, runStatuses } from "./checkpoint.ts";
import type { ClaimableKind, ClaimablePage } from "./claimable.ts";
import type {
  BranchWrite,
  CheckpointWrite,
  Commit,
  MetadataFilter,
  QuestionFilter,
  RunFilter,
  ThreadFilter,
} from "./store.ts";
import type { TimerRow } from "./timer.ts";

/** A value that replaces what was before needs nothing of it: such a delta is a base, whatever its writer said. */
export function isBase(delta: DeltaRow): boolean {
  return delta.base || delta.kind === "replace" || delta.kind === "clear";
}

/** When a commit changes its thread, as lists tell it; 0 when it does not: journal rows alone change nothing that they show. */
export function changeTime({ run, checkpoint, interrupts }: Commit): number {
  let latest = Math.max(run?.endedAt ?? run?.startedAt ?? 0, checkpoint?.row.at ?? 0);
  for (const { raisedAt, answeredAt, expiredAt } of interrupts ?? [])
    latest = Math.max(latest, answeredAt ?? expiredAt ?? raisedAt);
  return latest;
}

/** The newest time that a commit names; 0 when it names none. */
export function latestTime(commit: Commit): number {
  let latest = changeTime(commit);
  const rows = [...(commit.effects ?? []), ...(commit.around ?? []).flatMap(({ effects }) => effects)];
  for (const { startedAt, endedAt } of rows) latest = Math.max(latest, endedAt ?? startedAt);
  return latest;
}

/** Tell whether a line is a child line: the rows of an inner graph, of which lists know nothing. */
export function isChildLine(line: string): boolean {
  return line.includes("/");
}

/**
 * The parent line of a child line that a commit is the first to name. Throws `unknown_branch` when the commit makes no
 * line: it names a branch, or has no checkpoint; throws `invalid_id` for a name outside the grammar (rule R4).
 */
export function parentOfNewLine({ thread, branch, checkpoint }: Commit): string {
  if (checkpoint === undefined || !isChildLine(branch)) throw unknownBranch(thread, branch);
  return parentLine(branch);
}

/** A line that a fork makes, and what its store knows of the checkpoint that it goes on from. */
export interface ForkedLine<Origin> {
  readonly line: string;
  readonly from: number;
  readonly origin: Origin;
  readonly checkpoint: CheckpointWrite;
}

/**
 * The lines that a fork makes, the branch first, each after its parent line. Throws `unknown_checkpoint`, `thread_exists`,
 * and for a line that is not a child line of the branch `invalid_id`, or `unknown_branch` when its parent line is missing.
 */
export function forkedLines<Origin>(
  { thread, branch, from, checkpoint, inner = [] }: BranchWrite,
  find: { readonly origin: (from: number) => Origin | undefined; readonly has: (line: string) => boolean },
): readonly [ForkedLine<Origin>, ...ForkedLine<Origin>[]] {
  const names = new Set<string>();
  const forked = (start: Omit<ForkedLine<Origin>, "origin">): ForkedLine<Origin> => {
    const parent = start.line === branch ? undefined : parentInBranch(branch, start.line);
    const origin = find.origin(start.from);
    if (origin === undefined) throw unknownCheckpoint(thread, start.from);
    if (names.has(start.line) || find.has(start.line)) throw branchExists(thread, start.line);
    if (parent !== undefined && !names.has(parent)) throw unknownBranch(thread, parent);
    names.add(start.line);
    return { ...start, origin };
  };
  return [forked({ line: branch, from, checkpoint }), ...inner.map(forked)];
}

function parentInBranch(branch: string, line: string): string {
  if (line.startsWith(`${branch}/`)) return parentLine(line);
  throw new StatewrightError("invalid_id", {
    what: `the line ${JSON.stringify(line)} is not a child line of the branch "${branch}"`,
    next: `Let its name begin with "${branch}/"`,
    place: { branch },
  });
}

function parentLine(line: string): string {
  for (const segment of line.split("/")) checkId("segment of a line", segment);
  return line.slice(0, line.lastIndexOf("/"));
}

/** Throws `store_failed` unless a checkpoint continues its line: its parent is the head, its id is new in the thread. */
export function checkFollows(
  { row }: CheckpointWrite,
  head: number | undefined,
  lastId: number,
  place: { readonly thread: string; readonly branch: string },
): void {
  if (row.parent === head && row.id > lastId) return;
  throw new StatewrightError("store_failed", {
    what: `checkpoint ${row.id} with the parent ${row.parent ?? "none"} does not continue the line, whose head is ${head ?? "none"} in a thread that came to ${lastId}`,
    next: "Report this as a bug of the engine that wrote it",
    place,
  });
}

/** The refusal of a write whose numbers would leave a gap: the write before it has failed. */
export function leavesGap({ thread, branch, after = 0 }: Commit): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `a write to the thread "${thread}" follows the durable event ${after}, which could not be saved`,
    next: "Resume the thread: the run goes on with what was saved before",
    place: { thread, branch },
  });
}

/** The order in which timers are listed: by time, then by id, thread and line, text by its code points. */
export function byDue(one: TimerRow, other: TimerRow): number {
  return (
    one.dueAt - other.dueAt ||
    compareText(one.id, other.id) ||
    compareText(one.thread, other.thread) ||
    compareText(one.branch, other.branch)
  );
}

/** UTF-8 sorts so, and UTF-16, by which `<` compares, does not. */
function compareText(one: string, other: string): number {
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    const difference = (one.codePointAt(at) ?? 0) - (other.codePointAt(at) ?? 0);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

/** Throws `invalid_option` for a key that an options object does not have (rule R3). */
export function checkKeys(what: string, given: object, known: readonly string[]): void {
  checkOptions(what, given, known);
}

/** Throws `invalid_option` for a filter of a list that has an unknown key, or a limit that is not a whole number from 1. */
export function checkFilter(what: string, filter: { readonly limit?: number }, known: readonly string[]): void {
  checkKeys(what, filter, [...known, "limit"]);
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined || name === "limit" || name === "status" || isMeant(what, name, value)) continue;
    throw new StatewrightError("invalid_option", {
      what: `${name} of ${what} is ${describeValue(value)}`,
      next: `Give ${kindsOfFilter[name] ?? "what a page of the same list has given"}`,
    });
  }
  if (filter.limit === undefined || (Number.isInteger(filter.limit) && filter.limit >= 1)) return;
  throw new StatewrightError("invalid_option", {
    what: `the limit of ${what} is ${describeValue(filter.limit)}`,
    next: "Give a whole number from 1",
  });
}

/** Throws `invalid_option` for a part of a body that cannot be meant. */
export function checkRange(range: ByteRange): void {
  checkKeys("read of an artifact", range, ["offset", "limit"]);
  const { offset, limit } = range;
  if (Number.isSafeInteger(offset) && offset >= 0 && Number.isSafeInteger(limit) && limit >= 1) return;
  throw new StatewrightError("invalid_option", {
    what: `the part of an artifact is ${describeValue(limit)} bytes from ${describeValue(offset)} on`,
    next: "Give an offset from 0 and a limit from 1, both whole numbers",
  });
}

/** What the parts of filters are. */
const kindsOfFilter: Readonly<Record<string, "a text" | "a number" | "an object">> = {
  thread: "a text",
  graph: "a text",
  key: "a text",
  run: "a text",
  branch: "a text",
  since: "a number",
  until: "a number",
  at: "a number",
  dueBy: "a number",
  after: "a number",
  from: "a number",
  metadata: "an object",
};

/** By what the rows of a list are told apart. */
const cursors: Readonly<Record<string, Readonly<Record<string, "string" | "number">>>> = {
  runs: { thread: "string", id: "string" },
  threads: { id: "string", updatedAt: "number" },
  questions: { place: "number" },
};

function isMeant(what: string, name: string, value: unknown): boolean {
  if (kindsOfFilter[name] === "a text") return typeof value === "string";
  if (kindsOfFilter[name] === "an object") return isPlainObject(value);
  const cursor = name === "before" ? cursors[what] : undefined;
  if (cursor === undefined) return typeof value === "number" && !Number.isNaN(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(cursor).every(([part, kind]) => typeof Reflect.get(value, part) === kind);
}

/** What a list may be filtered by. */
export const runFilterKeys: readonly (keyof RunFilter)[] = [
  "thread",
  "status",
  "graph",
  "key",
  "metadata",
  "since",
  "until",
  "before",
];
export const threadFilterKeys: readonly (keyof ThreadFilter)[] = [
  "status",
  "graph",
  "metadata",
  "since",
  "until",
  "before",
];

const claimableKinds: readonly unknown[] = ["queued", "crashed", "drained", "unfit"] satisfies readonly ClaimableKind[];

/** Throws `invalid_option` for a page of claimable runs that cannot be meant. */
export function checkClaimablePage(page: ClaimablePage): void {
  checkKeys("claimable", page, ["kind", "after", "limit"]);
  const { kind, after, limit } = page;
  const isCursor = after === undefined || (typeof after?.thread === "string" && typeof after.id === "string");
  if (claimableKinds.includes(kind) && isCursor && Number.isSafeInteger(limit) && limit >= 1) return;
  throw new StatewrightError("invalid_option", {
    what: `a page of claimable runs is of ${describeValue(kind)} after ${describeValue(after)}, with the limit ${describeValue(limit)}`,
    next: 'Give the kind "queued", "crashed", "drained" or "unfit", the last run of the page before, and a limit from 1',
  });
}

/** What the list of open questions may be filtered by. */
export const questionFilterKeys: readonly (keyof QuestionFilter)[] = ["thread", "graph", "key", "at", "before"];

/** Throws `invalid_option` for a filter of runs or threads that cannot be meant; gives the statuses that it asks for. */
export function checkRunFilter(filter: RunFilter): readonly RunStatus[] | undefined {
  checkFilter("runs", filter, runFilterKeys);
  return wantedStatuses(filter, "runs");
}

/** As {@link checkRunFilter}, for threads. */
export function checkThreadFilter(filter: ThreadFilter): readonly RunStatus[] | undefined {
  checkFilter("threads", filter, threadFilterKeys);
  return wantedStatuses(filter, "threads");
}

function wantedStatuses(
  { status, metadata }: Pick<RunFilter, "status" | "metadata">,
  what: string,
): readonly RunStatus[] | undefined {
  for (const [key, value] of Object.entries(metadata ?? {})) {
    if (value === null || ["string", "number", "boolean"].includes(typeof value)) continue;
    throw new StatewrightError("invalid_option", {
      what: `the filter of ${what} asks for metadata ${JSON.stringify(key)} that is neither text, number, boolean nor null`,
      next: "Metadata is found by equal values of that kind",
    });
  }
  if (status === undefined) return undefined;
  const wanted: readonly RunStatus[] = Array.isArray(status) ? status : [status];
  for (const each of wanted) {
    if (runStatuses.includes(each)) continue;
    throw new StatewrightError("invalid_option", {
      what: `the filter of ${what} asks for the status ${describeValue(each)}`,
      next: `Use ${runStatuses.join(", ")}`,
    });
  }
  return wanted;
}

/** Whether a run has all of this metadata. */
export function hasMetadata(run: Pick<RunRow, "metadata"> | undefined, wanted: MetadataFilter): boolean {
  return Object.entries(wanted).every(
    ([key, value]) => run?.metadata !== undefined && Object.hasOwn(run.metadata, key) && run.metadata[key] === value,
  );
}

/** The refusal of a run that cannot begin: its key is another's, or it was taken out of the queue. */
export function runExists({ thread, id, key }: Pick<RunRow, "thread" | "id" | "key">): StatewrightError {
  return new StatewrightError("run_exists", {
    what:
      key === undefined
        ? `the run "${id}" does not stand in the queue any more`
        : `the thread "${thread}" has a run under the key "${key}" already, or the run was taken out of the queue`,
    next: "Look at it with listRuns: nothing was started",
    place: { thread },
  });
}

/** The refusal of a claim or a fork while a living owner writes the thread. */
export function busy(thread: string, holder?: string): StatewrightError {
  return new StatewrightError("thread_busy", {
    what: `the thread "${thread}" is held by ${holder ?? "another owner"}`,
    next: "Wait until its run has ended or waits, or cancel that run",
    place: { thread },
  });
}

/** The refusal of a writer that does not own the thread any more. */
export function fenced({ thread, branch, epoch }: Commit): StatewrightError {
  return new StatewrightError("fenced", {
    what: `a write to the thread "${thread}" came from a writer that does not own it any more (epoch ${epoch})`,
    next: "Nothing of it was saved; the new owner continues the run",
    place: { thread, branch },
  });
}

/** The refusal of a thread that is not there, where it must be. */
export function unknownThread(thread: string): StatewrightError {
  return new StatewrightError("unknown_thread", {
    what: `there is no thread "${thread}"`,
    next: "Check its id, or start it with run",
    place: { thread },
  });
}

/** The refusal of a branch that is not there, where it must be. */
export function unknownBranch(thread: string, branch: string): StatewrightError {
  return new StatewrightError("unknown_branch", {
    what: `there is no branch "${branch}"`,
    next: "Take one that the thread has, or make it with fork",
    place: { thread, branch },
  });
}

/** The refusal of a checkpoint that the thread does not have. */
export function unknownCheckpoint(thread: string, checkpoint: number): StatewrightError {
  return new StatewrightError("unknown_checkpoint", {
    what: `there is no checkpoint ${checkpoint}`,
    next: "Take one that history shows",
    place: { thread },
  });
}

/** The refusal of a fork under a name that is taken. */
export function branchExists(thread: string, branch: string): StatewrightError {
  return new StatewrightError("thread_exists", {
    what: `the branch "${branch}" is there already`,
    next: "Give the fork another name",
    place: { thread, branch },
  });
}

/** The refusal of a thread that would take the place of another. */
export function threadExists(thread: string): StatewrightError {
  return new StatewrightError("thread_exists", {
    what: `there is a thread "${thread}" already`,
    next: "Give the copy another id, or delete that thread first",
    place: { thread },
  });
}

/** The refusal of everything after `close()`. */
export function closed(store: string): StatewrightError {
  return new StatewrightError("store_closed", {
    what: `the ${store} store is closed`,
    next: "Keep it open until its runs have ended",
  });
}
