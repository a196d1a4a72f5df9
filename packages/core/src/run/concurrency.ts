/** Bounded concurrency: at most `limit` at work, none dropped, results in the order of the items. */
import PQueue from "p-queue";

/** Run `work` for each item, at most `limit` at the same time; without a limit all start in this turn. */
export async function mapBounded<Item, Result>(
  items: readonly Item[],
  limit: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<readonly Result[]> {
  if (items.length <= limit) return Promise.all(items.map(work));
  const queue = new PQueue({ concurrency: limit });
  return Promise.all(items.map((item, index) => queue.add(() => work(item, index))));
}
