/** State of a persistent subgraph on a branch that was forked after its last call. */
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import { parseControl } from "../../checkpoint/control.ts";
import { getBranchName } from "../../checkpoint/rules.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Codec } from "../../state/codec.ts";

/** Store, codec and thread of the checkpoints. */
export interface ThreadReader {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
}

/**
 * Finds the checkpoint from which a persistent subgraph continues on a branch forked after its last call: its state
 * at the fork point.
 */
export async function findInheritedCheckpoint(
  source: ThreadReader,
  namespace: string,
  node: string,
): Promise<CheckpointRow | undefined> {
  const origin = await findOrigin(source, namespace);
  if (origin === undefined) return undefined;
  return (await findNewestAtOrigin(source, origin, node)) ?? findInheritedCheckpoint(source, origin.branch, node);
}

/**
 * Finds the newest checkpoint of the subgraph on that branch at the time of `origin`. Skips checkpoints of a call
 * that was pending at `origin`: the fork repeats that call, and an update or a migration may have interrupted the
 * call. Stops at a checkpoint of another branch, which only a fork of that branch may use: this fork could otherwise
 * start in the middle of a call.
 */
async function findNewestAtOrigin(
  { store, codec, thread }: ThreadReader,
  origin: CheckpointRow,
  node: string,
): Promise<CheckpointRow | undefined> {
  const { tasks } = parseControl(codec, origin);
  const branch = `${origin.branch}/${node}`;
  let before: number | undefined = origin.id + 1;
  for (let limit = 1; before !== undefined; limit = 64) {
    const page = await store.history(thread, { branch, before, limit });
    for (const row of page) {
      if (getBranchName(row.branch) !== getBranchName(branch)) return undefined;
      const { caller } = parseControl(codec, row);
      if (!tasks.some(({ id }) => id === caller?.task)) return row;
    }
    before = page.length < limit ? undefined : page.at(-1)?.id;
  }
  return undefined;
}

/**
 * Finds the checkpoint of another namespace from which this namespace was or will be forked. The first checkpoint of
 * a persistent subgraph appears with its next call.
 */
async function findOrigin(source: ThreadReader, namespace: string): Promise<CheckpointRow | undefined> {
  const { store, thread } = source;
  const last = namespace.lastIndexOf("/");
  if (last < 0) {
    const from = (await store.branches(thread)).find(({ name }) => name === namespace)?.from;
    return from === undefined ? undefined : store.checkpoint(thread, from);
  }
  for (let before: number | undefined; ; ) {
    const page = await store.history(thread, { branch: namespace, before, limit: 100 });
    const found = page.find((row) => row.branch !== namespace);
    if (found !== undefined) return found;
    if (before === undefined && page.length === 0)
      return findInheritedCheckpoint(source, namespace.slice(0, last), namespace.slice(last + 1));
    if (page.length < 100) return undefined;
    before = page[page.length - 1]?.id;
  }
}
