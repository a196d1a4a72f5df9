/** Where a subgraph that keeps its state goes on from, on a branch that was forked since its last call. */
import type { CheckpointRow } from "../checkpoint/checkpoint.ts";
import type { Store } from "../checkpoint/store.ts";

/** What a branch that was forked since the last call of a subgraph that is kept goes on from: what it was where the fork began. */
export async function keptBefore(
  store: Store,
  thread: string,
  line: string,
  node: string,
): Promise<CheckpointRow | undefined> {
  const origin = await originOf(store, thread, line);
  if (origin === undefined) return undefined;
  const [newest] = await store.history(thread, { branch: `${origin.branch}/${node}`, before: origin.id + 1, limit: 1 });
  return newest ?? keptBefore(store, thread, origin.branch, node);
}

/** The checkpoint of another line that a line goes on from. */
async function originOf(store: Store, thread: string, line: string): Promise<CheckpointRow | undefined> {
  const branch = (await store.branches(thread)).find(({ name }) => name === line);
  if (branch !== undefined) return branch.from === undefined ? undefined : store.checkpoint(thread, branch.from);
  for (let before: number | undefined; ; ) {
    const page = await store.history(thread, { branch: line, before, limit: 100 });
    const found = page.find((row) => row.branch !== line);
    if (found !== undefined || page.length < 100) return found;
    before = page[page.length - 1]?.id;
  }
}
