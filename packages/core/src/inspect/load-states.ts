/** Loads the states of consecutive checkpoints: the oldest as a whole, and each newer one by its changes. */
import { createStateFolder } from "../checkpoint/codec/fold-state.ts";
import type { CheckpointWithDeltas, Store, ThreadRow } from "../checkpoint/store.ts";
import { checkWriter } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { type Codec, createGuardedCodec, plainCodec } from "../state/codec.ts";
import { type BranchState, createThreadState, type LoadedState, loadBranchState } from "./get-state.ts";

/** Page of states. */
export interface StatesPage {
  readonly store: Store;
  /** Row of the thread. */
  readonly thread: ThreadRow;
  /** Branch to follow, through its parent branches. */
  readonly branch: string;
  /** Exclusive upper bound of checkpoint ids. */
  readonly before?: number | undefined;
  readonly limit: number;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec | undefined;
}

/**
 * Loads states of a branch and its ancestors, newest first. Each is that of `getState` at its checkpoint. Throws
 * `graph_changed` for a graph other than the writer.
 */
export async function loadStates(graph: Graph, page: StatesPage): Promise<readonly LoadedState[]> {
  const { store, thread, branch, before, limit, codec: codecOption = plainCodec } = page;
  const codec = createGuardedCodec(codecOption);
  const context = { store, codec, thread: thread.id };
  const rows = await store.history(thread.id, { branch, limit, ...(before === undefined ? {} : { before }) });
  for (const row of rows) checkWriter(thread, row, codec, graph);
  const folder = createStateFolder(graph.state.channels, codec);
  const branches = new Map<string, BranchState>();
  const found: LoadedState[] = [];
  let older: CheckpointWithDeltas | undefined;
  for (const row of rows.toReversed()) {
    const isNext = older !== undefined && row.parent === older.id;
    const state = isNext ? folder.apply(row.deltas) : folder.restore(await store.state(thread.id, row.id));
    const onBranch = branches.get(row.branch) ?? (await loadBranchState(context, row.branch));
    branches.set(row.branch, onBranch);
    found.push({ found: await createThreadState(context, { row, state, onBranch }), row });
    older = row;
  }
  return found.reverse();
}
