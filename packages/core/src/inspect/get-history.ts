/** Looking back: the checkpoints of a thread, newest first, each with what it changed and what came next. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { deepFreeze } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { checkWriter } from "../checkpoint/check-writer.ts";
import type { CheckpointRow, CheckpointSource, Task } from "../checkpoint/checkpoint.ts";
import { deltaOf } from "../checkpoint/codec/saved-state.ts";
import { controlOf } from "../checkpoint/control.ts";
import type { CheckpointWithDeltas, Store, ThreadRow } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import { END } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import { callsOf, type Message } from "../model/message.ts";
import { callSegment } from "../run/conversation/pending-calls.ts";
import { checkCodec, checkGraph, checkStore } from "../run/session/check-run-options.ts";
import { type Codec, guardedCodec, plainCodec } from "../state/codec.ts";
import type { Delta } from "../state/delta.ts";

/** One saved superstep. */
export interface HistoryEntry<Types extends GraphTypes = GraphTypes> {
  readonly checkpointId: number;
  readonly parent: number | undefined;
  readonly branch: string;
  readonly step: number;
  readonly source: CheckpointSource;
  /** The first of {@link nodes}; absent for an input, an edit or a fork. */
  readonly node: Types["nodes"] | undefined;
  /** The nodes whose results it holds. */
  readonly nodes: readonly Types["nodes"][];
  /** The nodes that run next; `END` when the graph has finished there. */
  readonly next: readonly (Types["nodes"] | typeof END)[];
  /** What changed, by channel. */
  readonly changes: { readonly [Channel in keyof Types["state"]]?: Delta };
  readonly run: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly durationMs: number;
  /** Bytes of what changed, as saved. */
  readonly bytes: number;
}

/** What `history` takes. */
export interface HistoryOptions<Nodes extends string = string> {
  readonly store: Store;
  readonly thread: string;
  /** The branch whose line is followed, through the branches that it came from; the head branch by default. */
  readonly branch?: string;
  /** The node or the tool that holds the graph, as `research` or `outer.research`: the checkpoints of its calls. For the outermost graph absent. */
  readonly within?: string;
  /** Start before this checkpoint. */
  readonly before?: number;
  /** Only checkpoints that hold results of one of these nodes. */
  readonly nodes?: readonly Nodes[];
  /** Only checkpoints that were written for one of these reasons. */
  readonly sources?: readonly CheckpointSource[];
  /** Only checkpoints of this run. */
  readonly run?: string;
  /** Only checkpoints written at or after, and at or before, these times, in milliseconds since the epoch. */
  readonly since?: number;
  readonly until?: number;
  /** Checkpoints that one read of the store fetches. Default 50. */
  readonly pageSize?: number;
  readonly codec?: Codec;
}

const names = optionNames<HistoryOptions>({
  store: true,
  thread: true,
  branch: true,
  within: true,
  before: true,
  nodes: true,
  sources: true,
  run: true,
  since: true,
  until: true,
  pageSize: true,
  codec: true,
});

/**
 * Walk a branch's line of checkpoints, newest first, page by page; leaving the loop reads no further. For a graph inside
 * another give that graph and say where it stands, with `within`. Throws `unknown_thread`, and `graph_changed` for a graph that
 * did not write it.
 */
export async function* history<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: HistoryOptions<Types["nodes"]>,
): AsyncGenerator<HistoryEntry<Types>, undefined, undefined> {
  checkGraph("history", graph);
  checkOptions("history", options, names);
  checkStore("history", options.store ?? null);
  checkCodec("history", options.codec);
  const { store, branch, within, before, pageSize = 50, codec: given = plainCodec } = options;
  const codec = guardedCodec(given);
  const thread = checkId("thread", options.thread);
  const known = await mustExist(store, thread);
  const read = { store, codec, thread, pageSize };
  const nodes = within === undefined || within === "" ? [] : within.split(".");
  for await (const line of linesWithin(read, branch, before, nodes)) {
    let isFirst = true;
    for await (const row of checkpoints(read, line, before)) {
      if (isFirst) checkWriter(known, row, codec, graph);
      isFirst = false;
      if (isWanted(row, options)) yield entryOf<Types>(codec, row);
    }
  }
  return undefined;
}

function isWanted(row: CheckpointRow, { nodes, sources, run, since, until }: HistoryOptions): boolean {
  if (nodes !== undefined && !row.nodes.some((node) => nodes.includes(node))) return false;
  if (sources !== undefined && !sources.includes(row.source)) return false;
  if (run !== undefined && row.run !== run) return false;
  return row.at >= (since ?? row.at) && row.at <= (until ?? row.at);
}

/** What reading a thread takes. */
export interface Read {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
  readonly pageSize: number;
}

async function* checkpoints(
  { store, thread, pageSize }: Read,
  branch: string | undefined,
  from: number | undefined,
): AsyncGenerator<CheckpointWithDeltas, undefined, undefined> {
  for (let before = from; ; ) {
    const page = await store.history(thread, { branch, before, limit: pageSize });
    yield* page;
    const last = page[page.length - 1];
    if (last === undefined || page.length < pageSize) return undefined;
    before = last.id;
  }
}

/** The lines that hold the calls of an inner graph, by its node or its tool, newest first: one for each call, or one for all calls that are kept. */
export async function* linesWithin(
  read: Read,
  line: string | undefined,
  before: number | undefined,
  nodes: readonly string[],
): AsyncGenerator<string | undefined, undefined, undefined> {
  const [node, ...deeper] = nodes;
  if (node === undefined) {
    yield line;
    return undefined;
  }
  for await (const row of checkpoints(read, line, before)) {
    const { tasks } = controlOf(read.codec, row);
    for (const id of await toolCallsAt(read, row, tasks, node))
      yield* linesWithin(read, `${row.branch}/${id}`, before, deeper);
    for (const { id } of tasks.filter((task) => task.node === node).reverse()) {
      const call = `${row.branch}/${id}`;
      const kept = `${row.branch}/${node}`;
      if ((await read.store.head(read.thread, call)) !== undefined) yield* linesWithin(read, call, before, deeper);
      else if ((await read.store.head(read.thread, kept)) !== undefined) {
        yield* linesWithin(read, kept, before, deeper);
        return undefined;
      }
    }
  }
  return undefined;
}

/** The calls of a tool that a checkpoint decides, and whose graph has a line, newest first. */
async function toolCallsAt(
  { store, codec, thread }: Read,
  row: CheckpointWithDeltas,
  tasks: readonly Task[],
  tool: string,
): Promise<readonly string[]> {
  const delta = row.deltas.find(({ channel }) => channel === "messages");
  if (delta === undefined || tasks.length === 0) return [];
  const change = deltaOf(codec, delta);
  const said: unknown = change.kind === "append" ? change.items : change.kind === "replace" ? change.value : undefined;
  const asking = (Array.isArray(said) ? (said as readonly Message[]) : []).findLast(({ role }) => role === "assistant");
  if (asking?.role !== "assistant") return [];
  const found: string[] = [];
  for (const { id } of tasks)
    for (const [place, { name }] of callsOf(asking).entries()) {
      const call = callSegment(id, place);
      if (name === tool && (await store.head(thread, `${row.branch}/${call}`)) !== undefined) found.push(call);
    }
  return found.reverse();
}

/** The row of a thread. Throws `unknown_thread` for one that the store does not have. */
export async function mustExist(store: Store, thread: string): Promise<ThreadRow> {
  const row = await store.thread(thread);
  if (row !== undefined) return row;
  throw new StatewrightError("unknown_thread", {
    what: `the store "${store.name}" has no thread "${thread}"`,
    next: "Check the id, or list the threads with listThreads",
    place: { thread },
  });
}

function entryOf<Types extends GraphTypes>(codec: Codec, row: CheckpointWithDeltas): HistoryEntry<Types> {
  const control = controlOf(codec, row);
  const next = [...new Set(control.tasks.map((task) => task.node))];
  return {
    checkpointId: row.id,
    parent: row.parent,
    branch: row.branch,
    step: row.step,
    source: row.source,
    node: row.nodes[0],
    nodes: row.nodes,
    next: next.length === 0 ? [END] : next,
    changes: deepFreeze(
      Object.fromEntries(row.deltas.map((delta) => [delta.channel, deltaOf(codec, delta)])),
    ) as HistoryEntry<Types>["changes"],
    run: row.run,
    at: row.at,
    durationMs: row.durationMs,
    bytes: row.bytes,
  };
}
