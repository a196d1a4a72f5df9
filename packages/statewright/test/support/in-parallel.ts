/** Runs a few jobs at a time; each job is a process. */
import { availableParallelism } from "node:os";

export async function runInParallel(works: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = [...works];
  const worker = async (): Promise<void> => {
    for (let work = waiting.shift(); work !== undefined; work = waiting.shift()) await work();
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
}
