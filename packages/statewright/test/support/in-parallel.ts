/** Do works a few at a time: each is a process of its own. */
import { availableParallelism } from "node:os";

export async function inParallel(works: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = [...works];
  const worker = async (): Promise<void> => {
    for (let work = waiting.shift(); work !== undefined; work = waiting.shift()) await work();
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
}
