/** Where a subgraph that keeps its state goes on from, on a branch that was forked since its last call. */
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import { controlOf } from "../../checkpoint/control.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Codec } from "../../state/codec.ts";

/** Where rows are read from. */
interface Source {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
}

/** What a branch that was forked since the last call of a subgraph that is kept goes on from: what it was where the fork began. */
export async function keptBefore(source: Source, line: string, node: string): Promise<CheckpointRow | undefined> {
  const origin = await originOf(source, line);
  if (origin === undefined) return undefined;
  return (await newestThen(source, origin, node)) ?? keptBefore(source, origin.branch, node);
}

/**
 * The newest checkpoint that the subgraph had on that branch when `origin` was written. What a call has written that is
 * pending there is passed over: the fork makes that call anew, and an update or a migration may have come in its middle. What
 * another branch has written is for the fork of that branch to say: this one may go on from the middle of a call there.
 */
async function newestThen(
  { store, codec, thread }: Source,
  origin: CheckpointRow,
  node: string,
): Promise<CheckpointRow | undefined> {
  const { tasks } = controlOf(codec, origin);
  const branch = `${origin.branch}/${node}`;
  let before: number | undefined = origin.id + 1;
  for (let limit = 1; before !== undefined; limit = 64) {
    const page = await store.history(thread, { branch, before, limit });
    for (const row of page) {
      if (outermost(row.branch) !== outermost(branch)) return undefined;
      const { caller } = controlOf(codec, row);
      if (!tasks.some(({ id }) => id === caller?.task)) return row;
    }
    before = page.length < limit ? undefined : page.at(-1)?.id;
  }
  return undefined;
}

function outermost(line: string): string | undefined {
  return line.split("/")[0];
}

/** The checkpoint of another line that a line goes on from, or will when it is there: that of a subgraph which is kept comes with its next call. */
async function originOf(source: Source, line: string): Promise<CheckpointRow | undefined> {
  const { store, thread } = source;
  const last = line.lastIndexOf("/");
  if (last < 0) {
    const from = (await store.branches(thread)).find(({ name }) => name === line)?.from;
    return from === undefined ? undefined : store.checkpoint(thread, from);
  }
  for (let before: number | undefined; ; ) {
    const page = await store.history(thread, { branch: line, before, limit: 100 });
    const found = page.find((row) => row.branch !== line);
    if (found !== undefined) return found;
    if (before === undefined && page.length === 0) return keptBefore(source, line.slice(0, last), line.slice(last + 1));
    if (page.length < 100) return undefined;
    before = page[page.length - 1]?.id;
  }
}
