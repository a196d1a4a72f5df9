/** Runs of one thread by their ids. */
import type { Store } from "@statewright/core";
import type { ListedRunRow, RunRow } from "@statewright/core/store";

const pageSize = 100;

/** Finds a run of a thread. A copy of a thread repeats the ids of its runs, so that an id alone may name the original. */
export async function findRunRow(store: Store, thread: string, id: string): Promise<RunRow | undefined> {
  const row = await store.run(id);
  if (row === undefined || row.thread === thread) return row;
  for (let before: ListedRunRow | undefined; ; ) {
    const page: readonly ListedRunRow[] = await store.runs({
      thread,
      limit: pageSize,
      ...(before === undefined ? {} : { before }),
    });
    const found = page.find((run) => run.id === id);
    before = page.at(-1);
    if (found !== undefined || page.length < pageSize) return found;
  }
}
