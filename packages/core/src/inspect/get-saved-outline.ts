/** Reads the outline of a graph from a store, without the code of the graph. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { deepFreeze } from "../base/json.ts";
import { checkCount, checkOptions, listOptionNames } from "../base/options.ts";
import { parseOutline } from "../checkpoint/codec/saved-outline.ts";
import type { GraphVersion } from "../checkpoint/export/thread-export.ts";
import {
  createUnknownBranchError,
  createUnknownCheckpointError,
  createUnknownThreadError,
} from "../checkpoint/rules.ts";
import type { Store } from "../checkpoint/store.ts";
import type { Outline } from "../define/outline.ts";
import { checkStoreOption } from "../run/session/options/check-run-options.ts";

/** Options of `getSavedOutline`. */
export interface SavedOutlineOptions {
  /** Id of the thread. */
  readonly thread: string;
  /** Branch whose newest checkpoint counts; default: the head branch. Excludes `at`. */
  readonly branch?: string;
  /** Id of the checkpoint. */
  readonly at?: number;
}

const optionKeys = listOptionNames<SavedOutlineOptions>({ thread: true, branch: true, at: true });

/** Outline of a graph, with the graph version that it shows. */
export interface SavedOutline extends GraphVersion {
  readonly outline: Outline;
}

/**
 * Returns the outline of the graph version that wrote a checkpoint, by default the newest one of the head branch. The
 * outline was saved with the first claim of that version, so the code of the graph is not needed. Undefined for a
 * thread without checkpoints, and for a version whose outline was not saved. Throws `unknown_thread`,
 * `unknown_branch`, `unknown_checkpoint`, `invalid_option`, and `store_corrupt` for an outline that is none.
 *
 * @example
 * ```ts
 * const saved = await getSavedOutline(store, { thread: "t7" });
 * if (saved !== undefined) await writeFile("/app/graph.svg", drawOutline(saved.outline));
 * ```
 */
export async function getSavedOutline(store: Store, options: SavedOutlineOptions): Promise<SavedOutline | undefined> {
  checkStoreOption("getSavedOutline", store ?? null);
  checkOptions("getSavedOutline", options, optionKeys);
  const thread = checkId("thread", options.thread);
  const { branch, at } = options;
  checkCount("getSavedOutline", { at });
  const checkpoint = at ?? (await findHead(store, thread, branch));
  if (checkpoint === undefined) return undefined;
  const version = await store.writtenBy(thread, checkpoint);
  if (version === undefined) throw createUnknownCheckpointError(thread, checkpoint);
  const text = await store.outline(version);
  if (text === undefined) return undefined;
  const outline = parseOutline(text);
  if (outline === undefined)
    throw new StatewrightError("store_corrupt", {
      what: `the saved outline of graph "${version.graph}", version ${version.version}, is not the outline of a graph`,
      next: "Restore the file from a backup; runs of the thread do not need the outline",
      place: { thread },
    });
  return { ...version, outline: deepFreeze(outline) };
}

/** Returns the newest checkpoint of a branch; undefined for a thread that has none. */
async function findHead(store: Store, thread: string, branch: string | undefined): Promise<number | undefined> {
  const head = await store.head(thread, branch === undefined ? undefined : checkId("branch", branch));
  if (head !== undefined) return head.id;
  if ((await store.thread(thread)) === undefined) throw createUnknownThreadError(thread);
  const branches = await store.branches(thread);
  if (branch !== undefined && !branches.some(({ name }) => name === branch))
    throw createUnknownBranchError(thread, branch);
  return undefined;
}
