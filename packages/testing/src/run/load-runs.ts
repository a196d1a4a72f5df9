/** `loadRuns`: loads the runs of a store under new code, for a test before a deploy. Writes nothing. */
import {
  type CheckRunsOptions,
  checkRuns,
  type Graph,
  getHistory,
  getState,
  isStatewrightError,
  type RunCheck,
  type Store,
} from "@statewright/core";
import type { ListedRunRow, RunRow } from "@statewright/core/store";

/** Result for a single run under the new code. */
export interface LoadedRun {
  readonly run: RunRow;
  /** True when the run would continue or be migrated; for a finished run, when its state and history can be read. */
  readonly loads: boolean;
  readonly reason: string;
  /** Verdict of `checkRuns`; only for open runs. */
  readonly verdict?: RunCheck["verdict"];
}

/** All runs, and the runs that do not load. */
export interface LoadReport {
  readonly runs: readonly LoadedRun[];
  readonly refused: readonly LoadedRun[];
}

const pageSize = 100;

/**
 * Loads every run of a store under these graphs: open runs with `checkRuns`, finished runs by reading state and
 * history. Expect `refused` to be empty. Throws the errors of the store.
 */
export async function loadRuns(
  store: Store,
  graphs: readonly Graph[],
  options: CheckRunsOptions = {},
): Promise<LoadReport> {
  const open = (await checkRuns(store, graphs, options)).map((check) => ({
    ...check,
    loads: check.verdict !== "parks",
  }));
  const finished: LoadedRun[] = [];
  for (let previous: ListedRunRow | undefined; ; ) {
    const page: readonly ListedRunRow[] = await store.runs({
      status: ["done", "cancelled"],
      limit: pageSize,
      ...(previous === undefined ? {} : { before: previous }),
    });
    for (const run of page) finished.push({ run, ...(await readFinishedRun(store, graphs, options, run)) });
    previous = page[page.length - 1];
    if (page.length < pageSize) break;
  }
  const runs = [...open, ...finished];
  return { runs, refused: runs.filter(({ loads }) => !loads) };
}

async function readFinishedRun(
  store: Store,
  graphs: readonly Graph[],
  { codec }: CheckRunsOptions,
  { graph: name, thread, branch }: RunRow,
): Promise<Pick<LoadedRun, "loads" | "reason">> {
  const [graph] = graphs.filter((each) => each.name === name).sort((one, other) => other.version - one.version);
  if (graph === undefined) return { loads: false, reason: `no graph "${name}" was passed` };
  const options = { store, thread, branch, ...(codec === undefined ? {} : { codec }) };
  try {
    await getState(graph, options);
    let steps = 0;
    for await (const _ of getHistory(graph, options)) steps += 1;
    return { loads: true, reason: `the run is finished, and its ${steps} checkpoints are readable` };
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    return { loads: false, reason: error.message };
  }
}
