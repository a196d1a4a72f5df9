/** `loadRuns`: the runs of a store under new code, for a test that stands before a deploy. Nothing is written. */
import {
  type CheckRunsOptions,
  checkRuns,
  type Graph,
  getState,
  history,
  isStatewrightError,
  type RunCheck,
  type RunRow,
  type Store,
} from "@statewright/core";

/** What becomes of a run under the new code. */
export interface LoadedRun {
  readonly run: RunRow;
  /** It would go on or be migrated; one that is over can be read. */
  readonly loads: boolean;
  readonly why: string;
  /** Of a run that is open. */
  readonly verdict?: RunCheck["verdict"];
}

/** All runs, and those among them that do not load. */
export interface LoadReport {
  readonly runs: readonly LoadedRun[];
  readonly refused: readonly LoadedRun[];
}

const pageSize = 100;

/**
 * Load every run of a store under these graphs: what `checkRuns` says of the open ones, and of the others whether state and
 * history can be read. Expect `refused` to be empty. Throws what the store throws.
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
  const over: LoadedRun[] = [];
  for (let before: RunRow | undefined; ; ) {
    const page: readonly RunRow[] = await store.runs({
      status: ["done", "cancelled"],
      limit: pageSize,
      ...(before === undefined ? {} : { before }),
    });
    for (const run of page) over.push({ run, ...(await read(store, graphs, options, run)) });
    before = page[page.length - 1];
    if (page.length < pageSize) break;
  }
  const runs = [...open, ...over];
  return { runs, refused: runs.filter(({ loads }) => !loads) };
}

async function read(
  store: Store,
  graphs: readonly Graph[],
  { codec }: CheckRunsOptions,
  { graph: name, thread, branch }: RunRow,
): Promise<Pick<LoadedRun, "loads" | "why">> {
  const [graph] = graphs.filter((each) => each.name === name).sort((one, other) => other.version - one.version);
  if (graph === undefined) return { loads: false, why: `no graph "${name}" was given` };
  const at = { store, thread, branch, ...(codec === undefined ? {} : { codec }) };
  try {
    await getState(graph, at);
    let steps = 0;
    for await (const _ of history(graph, at)) steps += 1;
    return { loads: true, why: `it is over, and its ${steps} checkpoints can be read` };
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    return { loads: false, why: error.message };
  }
}
