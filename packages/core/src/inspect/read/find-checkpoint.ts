/** Finds a checkpoint of a thread, and the value of the channels. */
import { StatewrightError } from "../../base/errors.ts";
import { checkCount } from "../../base/options.ts";
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import { restoreSavedChannels } from "../../checkpoint/codec/saved-state.ts";
import { isNamespaceWithin } from "../../checkpoint/rules.ts";
import { listBranchParts } from "./list-timeline.ts";
import type { ThreadReader } from "./thread-reader.ts";

/** Place in a thread. */
export interface CheckpointPlace {
  /** Checkpoint id, of `branch` if given. Default: the newest checkpoint of the branch. */
  readonly at?: number | undefined;
  /** Branch or child namespace. Default: the head branch. */
  readonly branch?: string | undefined;
}

/**
 * Returns a checkpoint by id, or the newest of a branch. Throws `unknown_checkpoint`, also for a checkpoint that the
 * given branch and its ancestors do not have.
 */
export async function findCheckpoint(
  call: string,
  { reads, thread, threadRow }: ThreadReader,
  { at, branch }: CheckpointPlace,
): Promise<CheckpointRow> {
  checkCount(call, { at }, 0);
  const row = at === undefined ? await reads.head(thread, branch) : await reads.checkpoint(thread, at);
  const isFound =
    row !== undefined &&
    (at === undefined || branch === undefined || (await isOnBranch({ reads, thread }, branch, row)));
  if (isFound) return row;
  throw new StatewrightError("unknown_checkpoint", {
    what:
      at === undefined
        ? `the branch "${branch ?? threadRow.headBranch}" of thread "${thread}" has no checkpoint`
        : row === undefined
          ? `the thread "${thread}" has no checkpoint ${at}`
          : `the checkpoint ${at} of thread "${thread}" is on the branch "${row.branch}", not on "${branch}"`,
    next: "Use the id of a superstep from listSupersteps, or a branch from getBranchTree",
    place: { thread },
  });
}

/** Returns true if a branch has a checkpoint: itself, its ancestors up to their forks, or their inner graphs. */
export async function isOnBranch(
  { reads, thread }: Pick<ThreadReader, "reads" | "thread">,
  branch: string,
  row: CheckpointRow,
): Promise<boolean> {
  const parts = await listBranchParts(reads, thread, branch);
  return parts.some(({ name, until }) => row.id <= until && isNamespaceWithin(row.branch, name));
}

/** Returns the redacted state at a checkpoint; a channel that was never written is absent. */
export async function loadState(
  { reads, thread, codec, redact }: ThreadReader,
  checkpoint: number,
): Promise<Readonly<Record<string, unknown>>> {
  return redact(restoreSavedChannels(codec, await reads.state(thread, checkpoint)));
}
