/** Looking at a thread: its state at a checkpoint, what it waits for, and the lists of threads and runs. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { checkWriter } from "../checkpoint/check-writer.ts";
import type { CheckpointRow, RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import { restoreState } from "../checkpoint/codec/saved-state.ts";
import { controlOf } from "../checkpoint/control.ts";
import { type InterruptRow, isOpen } from "../checkpoint/journal.ts";
import type { RunFilter, Store, ThreadFilter, ThreadRow } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import { END } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import type { OpenInterrupt } from "../run/events/events.ts";
import { checkCodec, checkGraph, checkStore } from "../run/session/check-run-options.ts";
import { openInterrupt } from "../run/session/run-row.ts";
import { type Codec, guardedCodec, plainCodec } from "../state/codec.ts";
import { linesWithin, mustExist, type Read } from "./get-history.ts";

/** A thread at one checkpoint. */
export interface ThreadState<Types extends GraphTypes = GraphTypes> {
  readonly state: Types["state"];
  readonly checkpointId: number;
  readonly branch: string;
  readonly step: number;
  /** The nodes that run next; `END` when the graph has finished there. */
  readonly next: readonly (Types["nodes"] | typeof END)[];
  /** Questions that are open at this checkpoint, when it is the newest of its branch. */
  readonly interrupts: readonly OpenInterrupt[];
  /** Questions of this checkpoint that wait no more. */
  readonly answered: readonly ClosedInterrupt[];
  /** The status of the branch's newest run that has begun; where none has, that of the newest in its queue. */
  readonly status: RunStatus | undefined;
}

/** A question that has its answer, or whose time is over. */
export interface ClosedInterrupt extends OpenInterrupt {
  /** Absent where its time was over and no answer was declared for that. */
  readonly answer?: unknown;
  readonly answeredAt?: number;
  /** Who answered, as they said. */
  readonly answeredBy?: string;
  /** When it was found that its time is over. */
  readonly expiredAt?: number;
}

/** What `getState` takes. */
export interface StateOptions {
  readonly store: Store;
  readonly thread: string;
  readonly branch?: string;
  /** The node or the tool that holds the graph, as `research` or `outer.research`: its newest call. For the outermost graph absent. */
  readonly within?: string;
  /** A checkpoint's id; the newest of the branch by default. */
  readonly at?: number;
  readonly codec?: Codec;
}

const names = optionNames<StateOptions>({
  store: true,
  thread: true,
  branch: true,
  within: true,
  at: true,
  codec: true,
});

/** The state of a thread at a checkpoint. Throws `unknown_thread`, `unknown_checkpoint`, and `graph_changed` for a graph that did not write it. */
export async function getState<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: StateOptions,
): Promise<ThreadState<Types>> {
  checkGraph("getState", graph);
  checkOptions("getState", options, names);
  checkStore("getState", options.store ?? null);
  checkCodec("getState", options.codec);
  const { store, codec: given = plainCodec } = options;
  const codec = guardedCodec(given);
  const thread = checkId("thread", options.thread);
  const row = await findCheckpoint(graph as Graph, { store, codec, thread, pageSize: 10 }, options);
  const rows = await store.state(thread, row.id);
  const { tasks } = controlOf(codec, row);
  const head = await store.head(thread, row.branch);
  const isHead = head?.id === row.id;
  const asked = (await store.interrupts(thread, row.branch)).filter(({ step }) => step === row.step);
  return {
    state: Object.freeze(restoreState(graph.state.channels, codec, rows)) as Types["state"],
    checkpointId: row.id,
    branch: row.branch,
    step: row.step,
    next: tasks.length === 0 ? [END] : [...new Set(tasks.map((task) => task.node))],
    interrupts: isHead ? asked.filter(isOpen).map((question) => openInterrupt({ codec }, question)) : [],
    answered: asked.filter((question) => !isOpen(question)).map((question) => closedInterrupt(codec, question)),
    status: (await newestRun(store, thread, row.branch, head))?.status,
  };
}

/** The newest run of a branch: nearly always that of the thread, so that one row is read, however many there are. */
async function newestRun(
  store: Store,
  thread: string,
  branch: string,
  head: CheckpointRow | undefined,
): Promise<RunRow | undefined> {
  let queued: RunRow | undefined;
  for (let before: RunRow | undefined, limit = 1; ; limit = 50) {
    const page: readonly RunRow[] = await store.runs({ thread, limit, ...(before === undefined ? {} : { before }) });
    const own = page.filter((run) => run.branch === branch);
    const found = own.find((run) => !hasNotBegun(run, head));
    queued ??= own[0];
    before = page.at(-1);
    if (found !== undefined || before === undefined || page.length < limit) return found ?? queued;
  }
}

/** A run that stands in the queue, or was cancelled there: one that has begun has written the newest checkpoint, or has a start of its own. */
function hasNotBegun({ id, status, startedAt, queuedAt }: RunRow, head: CheckpointRow | undefined): boolean {
  return status === "queued" || (status === "cancelled" && startedAt === queuedAt && head?.run !== id);
}

function closedInterrupt(codec: Codec, row: InterruptRow): ClosedInterrupt {
  const { answer, answeredAt, answeredBy, expiredAt } = row;
  return {
    ...openInterrupt({ codec }, row),
    ...(answer === undefined ? {} : { answer: codec.decode(answer) }),
    ...(answeredAt === undefined ? {} : { answeredAt }),
    ...(answeredBy === undefined ? {} : { answeredBy }),
    ...(expiredAt === undefined ? {} : { expiredAt }),
  };
}

/** A checkpoint by id, or the newest of a branch or of a call. Throws `unknown_thread`, `unknown_checkpoint` or `graph_changed`. */
async function findCheckpoint(
  graph: Graph,
  read: Read,
  { at, branch, within }: Pick<StateOptions, "at" | "branch" | "within">,
): Promise<CheckpointRow> {
  const { store, thread } = read;
  const known = await mustExist(store, thread);
  const row = at === undefined ? await newest(read, branch, within) : await store.checkpoint(thread, at);
  if (row !== undefined) {
    checkWriter(known, row, read.codec, graph);
    return row;
  }
  const on = within === undefined ? `on the branch "${branch ?? "main"}"` : `of a call of "${within}"`;
  // Its process may have died, or be at work, between taking the thread and saving the input.
  const isEmpty = at === undefined && within === undefined;
  throw new StatewrightError("unknown_checkpoint", {
    what: `the thread "${thread}" has no checkpoint ${at ?? on}`,
    next: isEmpty
      ? "No input is saved there yet: run it with one, or look at another branch"
      : "Take a checkpointId from history",
    place: { thread },
  });
}

async function newest(read: Read, branch?: string, within?: string): Promise<CheckpointRow | undefined> {
  for await (const line of linesWithin(read, branch, undefined, within?.split(".") ?? []))
    return read.store.head(read.thread, line);
  return undefined;
}

/**
 * Threads of a store, most recently changed first, page by page: `before` takes the last row of a page. Throws
 * `invalid_option` for a filter that there is not.
 */
export function listThreads(store: Store, filter: ThreadFilter = {}): Promise<readonly ThreadRow[]> {
  return store.threads(filter);
}

/**
 * Runs of a store, newest first, page by page: `before` takes the last row of a page. Throws `invalid_option` for a filter
 * that there is not.
 */
export function listRuns(store: Store, filter: RunFilter = {}): Promise<readonly RunRow[]> {
  return store.runs(filter);
}
