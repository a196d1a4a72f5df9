/** The rules that every store shares, and its refusals in the same words everywhere. For those who write a store. */
import { StatewrightError } from "../base/errors.ts";
import type { CheckpointRow, DeltaRow } from "./checkpoint.ts";
import type { CheckpointWrite, Commit } from "./store.ts";

/** A value that replaces what was before needs nothing of it: such a delta is a base, whatever its writer said. */
export function isBase(delta: DeltaRow): boolean {
  return delta.base || delta.kind === "replace" || delta.kind === "clear";
}

/** The newest time that a commit names, as the time at which its thread changed; 0 when it names none. */
export function latestTime({ run, checkpoint, effects, interrupts }: Commit): number {
  let latest = Math.max(run?.endedAt ?? run?.startedAt ?? 0, checkpoint?.row.at ?? 0);
  for (const { startedAt, endedAt } of effects ?? []) latest = Math.max(latest, endedAt ?? startedAt);
  for (const { raisedAt, answeredAt } of interrupts ?? []) latest = Math.max(latest, answeredAt ?? raisedAt);
  return latest;
}

/** Throws `store_failed` unless a checkpoint continues its branch: its parent is the head, its id is new in the thread. */
export function checkFollows(
  { row }: CheckpointWrite,
  head: Pick<CheckpointRow, "id"> | undefined,
  lastId: number,
  place: { readonly thread: string; readonly branch: string },
): void {
  if (row.parent === head?.id && row.id > lastId) return;
  throw new StatewrightError("store_failed", {
    what: `checkpoint ${row.id} with the parent ${row.parent ?? "none"} does not continue the branch, whose head is ${head?.id ?? "none"} in a thread that came to ${lastId}`,
    next: "Report this as a bug of the engine that wrote it",
    place,
  });
}

/** Throws `invalid_option` for a key that an options object does not have (rule R3). */
export function checkKeys(what: string, given: object, known: readonly string[]): void {
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue;
    throw new StatewrightError("invalid_option", {
      what: `${what} has no option ${JSON.stringify(key)}`,
      next: `Use ${known.join(", ")}`,
    });
  }
}

/** Throws `invalid_option` for a filter of a list that has an unknown key, or a limit that is not a whole number from 1. */
export function checkFilter(what: string, filter: { readonly limit?: number }, known: readonly string[]): void {
  checkKeys(what, filter, [...known, "limit"]);
  if (filter.limit === undefined || (Number.isInteger(filter.limit) && filter.limit >= 1)) return;
  throw new StatewrightError("invalid_option", {
    what: `the limit of ${what} is ${String(filter.limit)}`,
    next: "Give a whole number from 1",
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

/** The refusal of everything after `close()`. */
export function closed(store: string): StatewrightError {
  return new StatewrightError("store_closed", {
    what: `the ${store} store is closed`,
    next: "Keep it open until its runs have ended",
  });
}
