/** Reads the state of a thread at a checkpoint, with its interrupts. */

import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { checkCount, checkOptions, listOptionNames } from "../base/options.ts";
import type { CheckpointRow, RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import { restoreState } from "../checkpoint/codec/saved-state.ts";
import { parseControl } from "../checkpoint/control.ts";
import { type InterruptRow, isOpen } from "../checkpoint/journal.ts";
import type { ListedRunRow, Store, ThreadRow } from "../checkpoint/store.ts";
import { checkWriter } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import { END } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import type { OpenInterrupt } from "../run/events/run-event.ts";
import { checkCodecOption, checkStoreOption } from "../run/session/options/check-run-options.ts";
import type { OpenInterruptOf } from "../run/session/options/options.ts";
import { toOpenInterrupt } from "../run/session/run-row.ts";
import { type Codec, createGuardedCodec, plainCodec } from "../state/codec.ts";
import { checkPlace, type ReadContext, requireThread, streamNamespaces } from "./get-history.ts";
import { isOnBranch } from "./read/find-checkpoint.ts";

/** State of a thread at one checkpoint. */
export interface ThreadState<Types extends GraphTypes = GraphTypes> {
  readonly state: Types["state"];
  readonly checkpointId: number;
  readonly branch: string;
  readonly step: number;
  /** Nodes that run next; `END` if the graph has finished. */
  readonly next: readonly (Types["nodes"] | typeof END)[];
  /** Open interrupts, if this checkpoint is the newest of the branch. */
  readonly interrupts: readonly OpenInterruptOf<Types>[];
  /** Closed interrupts of this checkpoint: answered or expired. */
  readonly answered: readonly ClosedInterrupt[];
  /** Status of the newest started run of the branch; without a started run, of the newest queued run. */
  readonly status: RunStatus | undefined;
}

/** An answered or expired interrupt. */
export interface ClosedInterrupt extends OpenInterrupt {
  /** Absent for an expired interrupt without a declared default answer. */
  readonly answer?: unknown;
  readonly answeredAt?: number;
  /** Identity of the answerer, as passed with the answer. */
  readonly answeredBy?: string;
  /** Time at which the expiry was detected, in milliseconds since the epoch. */
  readonly expiredAt?: number;
}

/** Options of `getState`. */
export interface StateOptions {
  /** Store of the thread. */
  readonly store: Store;
  /** Id of the thread. */
  readonly thread: string;
  /** Branch of the thread. Default: the head branch. */
  readonly branch?: string;
  /**
   * Node or tool path of an inner graph, such as `research` or `outer.research`, for the state of its newest call;
   * default: the outermost graph.
   */
  readonly nesting?: string;
  /** Checkpoint id, of `branch` or its ancestors if a branch is given. Default: the newest checkpoint of the branch. */
  readonly at?: number;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec;
}

const optionKeys = listOptionNames<StateOptions>({
  store: true,
  thread: true,
  branch: true,
  nesting: true,
  at: true,
  codec: true,
});

/**
 * Returns the state of a thread at a checkpoint. Throws `unknown_thread`, `unknown_checkpoint`, and `graph_changed`
 * for a graph other than the writer.
 */
export async function getState<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: StateOptions,
): Promise<ThreadState<Types>> {
  return (await loadState(graph, options)).found;
}

/** State of a thread with the row of its checkpoint. */
export interface LoadedState<Types extends GraphTypes = GraphTypes> {
  readonly found: ThreadState<Types>;
  readonly row: CheckpointRow;
}

/**
 * Returns the state of a thread as {@link getState}, with the row of its checkpoint. `known` is the row of the thread;
 * without it, the row is read.
 */
export async function loadState<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: StateOptions,
  known?: ThreadRow,
): Promise<LoadedState<Types>> {
  checkGraphOption("getState", graph);
  checkOptions("getState", options, optionKeys);
  checkStoreOption("getState", options.store ?? null);
  checkCodecOption("getState", options.codec);
  checkPlace("getState", { branch: options.branch, nesting: options.nesting });
  checkCount("getState", { at: options.at }, 0);
  const { store, codec: codecOption = plainCodec } = options;
  const codec = createGuardedCodec(codecOption);
  const thread = checkId("thread", options.thread);
  const threadRow = known ?? (await requireThread(store, thread));
  const context = { store, codec, thread, pageSize: 10, graph: graph as Graph, threadRow };
  const { row, isNewest } = await findCheckpoint(context, options);
  const state = restoreState(graph.state.channels, codec, await store.state(thread, row.id));
  const onBranch = await loadBranchState(context, row.branch, isNewest ? row : undefined);
  return { found: await createThreadState<Types>(context, { row, state, onBranch }), row };
}

/** What the states of a branch have in common. */
export interface BranchState {
  readonly head: CheckpointRow | undefined;
  readonly interrupts: readonly InterruptRow[];
  /** Newest run of the branch. */
  readonly run: RunRow | undefined;
}

/** Loads what the states of a branch have in common. `known` is the head of the branch; without it, the head is read. */
export async function loadBranchState(
  { store, thread }: Pick<ReadContext, "store" | "thread">,
  branch: string,
  known?: CheckpointRow,
): Promise<BranchState> {
  const head = known ?? (await store.head(thread, branch));
  const interrupts = await store.interrupts(thread, branch);
  return { head, interrupts, run: await findNewestRun(store, thread, branch, head) };
}

/** Creates the state of a thread from its parts. */
export async function createThreadState<Types extends GraphTypes = GraphTypes>(
  { store, codec, thread }: Omit<ReadContext, "pageSize">,
  {
    row,
    state,
    onBranch: { head, interrupts, run },
  }: {
    readonly row: CheckpointRow;
    readonly state: Readonly<Record<string, unknown>>;
    readonly onBranch: BranchState;
  },
): Promise<ThreadState<Types>> {
  const { tasks } = parseControl(codec, row);
  const rows = interrupts.filter(({ step }) => step === row.step);
  const isWaiting = head?.id === row.id && rows.some(isOpen);
  const open: readonly OpenInterrupt[] = isWaiting ? await listOpen(store, codec, thread, row) : [];
  return {
    state: Object.freeze(state) as Types["state"],
    checkpointId: row.id,
    branch: row.branch,
    step: row.step,
    next: tasks.length === 0 ? [END] : [...new Set(tasks.map((task) => task.node))],
    interrupts: open as ThreadState<Types>["interrupts"],
    answered: rows.filter((each) => !isOpen(each)).map((each) => toClosedInterrupt(codec, each)),
    status: run?.status,
  };
}

/** Lists the open interrupts of a head, oldest first. */
async function listOpen(
  store: Store,
  codec: Codec,
  thread: string,
  { branch, step }: CheckpointRow,
): Promise<readonly OpenInterrupt[]> {
  const rows = (await store.openInterrupts({ thread })).filter((row) => row.branch === branch && row.step === step);
  return rows.toReversed().map((row) => toOpenInterrupt({ codec }, row));
}

/**
 * Returns the newest run of a branch. Reads a single row first, because the newest run of the thread is nearly always
 * on the branch.
 */
export async function findNewestRun(
  store: Pick<Store, "runs">,
  thread: string,
  branch: string,
  head: CheckpointRow | undefined,
): Promise<RunRow | undefined> {
  let queued: RunRow | undefined;
  for (let before: ListedRunRow | undefined, limit = 1; ; limit = 50) {
    const page: readonly ListedRunRow[] = await store.runs({
      thread,
      limit,
      ...(before === undefined ? {} : { before }),
    });
    const branchRuns = page.filter((run) => run.branch === branch);
    const found = branchRuns.find((run) => !isNotStarted(run, head));
    queued ??= branchRuns[0];
    before = page.at(-1);
    if (found !== undefined || before === undefined || page.length < limit) return found ?? queued;
  }
}

/**
 * Returns true for a run still queued, or cancelled in the queue: a started run has written the newest checkpoint, or
 * has a later start time.
 */
function isNotStarted({ id, status, startedAt, queuedAt }: RunRow, head: CheckpointRow | undefined): boolean {
  return status === "queued" || (status === "cancelled" && startedAt === queuedAt && head?.run !== id);
}

export function toClosedInterrupt(codec: Codec, row: InterruptRow): ClosedInterrupt {
  const { answer, answeredAt, answeredBy, expiredAt } = row;
  return {
    ...toOpenInterrupt({ codec }, row),
    ...(answer === undefined ? {} : { answer: codec.decode(answer) }),
    ...(answeredAt === undefined ? {} : { answeredAt }),
    ...(answeredBy === undefined ? {} : { answeredBy }),
    ...(expiredAt === undefined ? {} : { expiredAt }),
  };
}

/**
 * Returns a checkpoint by id, or the newest of a branch or call; `isNewest` is true for a checkpoint known to be the
 * newest of its branch. Throws `unknown_thread`, `unknown_checkpoint` or `graph_changed`.
 */
async function findCheckpoint(
  context: ReadContext & { readonly graph: Graph; readonly threadRow: ThreadRow },
  { at, branch, nesting }: Pick<StateOptions, "at" | "branch" | "nesting">,
): Promise<{ readonly row: CheckpointRow; readonly isNewest: boolean }> {
  const { store, thread, graph, threadRow } = context;
  const row =
    at === undefined ? await findNewestCheckpoint(context, branch, nesting) : await store.checkpoint(thread, at);
  if (row !== undefined && at !== undefined && branch !== undefined) await checkBranch({ store, thread }, row, branch);
  if (row !== undefined) {
    checkWriter(threadRow, row, context.codec, graph);
    const isOfBranch = nesting === undefined && row.branch === (branch ?? threadRow.headBranch);
    return { row, isNewest: at === undefined && isOfBranch };
  }
  const location = nesting === undefined ? `on the branch "${branch ?? "main"}"` : `of a call of "${nesting}"`;
  // The process may have died, or still be active, between claiming the thread and saving the input.
  const isEmpty = at === undefined && nesting === undefined;
  throw new StatewrightError("unknown_checkpoint", {
    what: `the thread "${thread}" has no checkpoint ${at ?? location}`,
    next: isEmpty
      ? "Run the thread with an input first, or use another branch: no input is saved on this branch yet"
      : "Use a checkpointId from getHistory",
    place: { thread },
  });
}

/** Throws `unknown_checkpoint` for a checkpoint that a branch and its ancestors do not have. */
async function checkBranch(
  { store, thread }: Pick<ReadContext, "store" | "thread">,
  row: CheckpointRow,
  branch: string,
): Promise<void> {
  if (await isOnBranch({ reads: store, thread }, branch, row)) return;
  throw new StatewrightError("unknown_checkpoint", {
    what: `the checkpoint ${row.id} of thread "${thread}" is on the branch "${row.branch}", not on "${branch}"`,
    next: "Use a checkpointId of the branch, or leave out the branch",
    place: { thread },
  });
}

async function findNewestCheckpoint(
  context: ReadContext,
  branch?: string,
  nesting?: string,
): Promise<CheckpointRow | undefined> {
  for await (const namespace of streamNamespaces(context, branch, undefined, nesting?.split(".") ?? []))
    return context.store.head(context.thread, namespace);
  return undefined;
}
