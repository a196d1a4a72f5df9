/** Runs that an act has started, continued or found. */
import { StatewrightError } from "@statewright/core";
import { checkId } from "@statewright/core/adapter";
import type { RunRow } from "@statewright/core/store";
import type { CallerScope, OwnThread } from "../caller-scope.ts";
import type { StartedRun, StartRequest } from "../caller-service.ts";
import { findRunRow } from "../find-run-row.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { createUnknownRunError } from "../thread-ids.ts";
import { findSeqBeforeStart, getNewestSeq } from "../thread-timeline.ts";
import { toRunView } from "../views.ts";
import type { SavedStart } from "./saved-start.ts";

/** Returns the saved run with the number of the event before it. */
export async function toStartedRun(
  scope: CallerScope,
  stored: string,
  { run, seq, isNew }: SavedStart & { readonly isNew: boolean },
): Promise<StartedRun> {
  const { store } = scope;
  const newest = seq === undefined ? await getNewestSeq(store, stored) : 0;
  const row = await findRunRow(store, stored, run);
  if (row === undefined) throw createUnknownRunError(run);
  if (seq !== undefined) return { run: toRunView(scope, row), isNew, after: seq - 1 };
  const before = row.status === "queued" ? newest : await findSeqBeforeStart(scope, stored, run);
  return { run: toRunView(scope, row), isNew, after: before ?? (isNew ? newest : 0) };
}

/** Returns the newest started run of a branch. */
export async function findHeadRun(
  { store }: CallerScope,
  { stored }: OwnThread,
  branch: string,
): Promise<RunRow | undefined> {
  return (await store.runs({ thread: stored, branch, limit: 50 })).find(({ status }) => status !== "queued");
}

/** Throws `unknown_branch` for a branch that the thread does not have: a run would create it. */
export async function checkBranch(
  { store }: CallerScope,
  { stored, wire }: Pick<OwnThread, "stored" | "wire">,
  { branch, isNewThread = false }: { readonly branch?: string | undefined; readonly isNewThread?: boolean },
): Promise<void> {
  if (branch === undefined || (isNewThread && branch === "main")) return;
  checkId("branch", branch);
  const branches = isNewThread ? [] : await store.branches(stored);
  if (branches.some(({ name }) => name === branch)) return;
  throw new StatewrightError("unknown_branch", {
    what: `the thread "${wire}" has no branch "${branch}"`,
    next: "Use a branch of the thread, or leave out the branch",
    place: { thread: wire },
  });
}

/** Breakpoints of a request as the option of a run. */
export function toBreakpoints(breakpoints: StartRequest["breakpoints"]): {
  readonly breakpoints?: { readonly before?: readonly string[]; readonly after?: readonly string[] };
} {
  return breakpoints === undefined ? {} : { breakpoints: omitUndefined(breakpoints) };
}
