/** Reads the checkpoints of a thread, newest first, each with its changes and next nodes. */

import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { deepFreeze } from "../base/json.ts";
import { checkCount, checkNumber, checkOptions, checkStrings, listOptionNames } from "../base/options.ts";
import type { CheckpointRow, CheckpointSource, Task } from "../checkpoint/checkpoint.ts";
import { parseDelta } from "../checkpoint/codec/saved-state.ts";
import { parseControl } from "../checkpoint/control.ts";
import type { CheckpointWithDeltas, Store, ThreadRow } from "../checkpoint/store.ts";
import { checkWriter } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import { END } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import { listToolCalls, type Message } from "../model/message.ts";
import { toCallSegment } from "../run/conversation/pending-calls.ts";
import { checkCodecOption, checkStoreOption } from "../run/session/options/check-run-options.ts";
import { type Codec, createGuardedCodec, plainCodec } from "../state/codec.ts";
import type { Delta } from "../state/delta.ts";

/** A saved superstep. */
export interface HistoryEntry<Types extends GraphTypes = GraphTypes> {
  readonly checkpointId: number;
  readonly parent: number | undefined;
  readonly branch: string;
  readonly step: number;
  readonly source: CheckpointSource;
  /** First of {@link nodes}; undefined for an input, an edit or a fork. */
  readonly node: Types["nodes"] | undefined;
  /** Nodes whose results are in the checkpoint. */
  readonly nodes: readonly Types["nodes"][];
  /** Nodes that run next; `END` if the graph has finished. */
  readonly next: readonly (Types["nodes"] | typeof END)[];
  /** Changes by channel. */
  readonly changes: { readonly [Channel in keyof Types["state"]]?: Delta };
  readonly run: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly durationMs: number;
  /** Size of the saved changes in bytes. */
  readonly bytes: number;
}

/** Options of `getHistory`. */
export interface HistoryOptions<Nodes extends string = string> {
  /** Store of the thread. */
  readonly store: Store;
  /** Id of the thread. */
  readonly thread: string;
  /** Branch to follow, through its parent branches; default: the head branch. */
  readonly branch?: string;
  /**
   * Node or tool path of an inner graph, such as `research` or `outer.research`, to read the checkpoints of its
   * calls; default: the outermost graph.
   */
  readonly nesting?: string;
  /** Exclusive upper bound of checkpoint ids. */
  readonly before?: number;
  /** Only checkpoints with results of one of these nodes. */
  readonly nodes?: readonly Nodes[];
  /** Only checkpoints of these sources. */
  readonly sources?: readonly CheckpointSource[];
  /** Only checkpoints of this run. */
  readonly run?: string;
  /** Only checkpoints in this time range, inclusive, in milliseconds since the epoch. */
  readonly since?: number;
  /** Only checkpoints up to this time, inclusive, in milliseconds since the epoch. */
  readonly until?: number;
  /** Checkpoints per store read. Default 50. */
  readonly pageSize?: number;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec;
}

const optionKeys = listOptionNames<HistoryOptions>({
  store: true,
  thread: true,
  branch: true,
  nesting: true,
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
 * Streams the checkpoints of a branch, newest first, page by page; leaving the loop stops reading. For an inner
 * graph, pass that graph, and its path in `nesting`. Throws `unknown_thread`, and `graph_changed` for a graph other
 * than the writer.
 */
export async function* getHistory<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: HistoryOptions<Types["nodes"]>,
): AsyncGenerator<HistoryEntry<Types>, undefined, undefined> {
  checkGraphOption("getHistory", graph);
  checkOptions("getHistory", options, optionKeys);
  checkStoreOption("getHistory", options.store ?? null);
  checkCodecOption("getHistory", options.codec);
  checkHistoryOptions(options);
  const { store, branch, nesting, before, pageSize = 50, codec: codecOption = plainCodec } = options;
  const codec = createGuardedCodec(codecOption);
  const thread = checkId("thread", options.thread);
  const threadRow = await requireThread(store, thread);
  const context = { store, codec, thread, pageSize };
  const nodes = nesting === undefined || nesting === "" ? [] : nesting.split(".");
  for await (const namespace of streamNamespaces(context, branch, before, nodes)) {
    let isFirst = true;
    for await (const row of streamCheckpoints(context, namespace, before)) {
      if (isFirst) checkWriter(threadRow, row, codec, graph);
      isFirst = false;
      if (isIncluded(row, options)) yield toHistoryEntry<Types>(codec, row);
    }
  }
  return undefined;
}

function checkHistoryOptions({
  branch,
  nesting,
  before,
  pageSize,
  nodes,
  sources,
  since,
  until,
}: HistoryOptions): void {
  checkPlace("getHistory", { branch, nesting });
  checkCount("getHistory", { pageSize });
  checkCount("getHistory", { before }, 0);
  checkStrings("getHistory", { nodes, sources });
  checkNumber("getHistory", { since, until }, Number.NEGATIVE_INFINITY);
}

/** Throws `invalid_option` for a branch or a path that is no text. A child namespace is a branch too. */
export function checkPlace(
  call: string,
  place: { readonly branch: string | undefined; readonly nesting: string | undefined },
): void {
  for (const [option, value] of Object.entries(place))
    if (value !== undefined && typeof value !== "string")
      throw invalidOption({ where: call, option, expected: "a string", got: value });
}

function isIncluded(row: CheckpointRow, { nodes, sources, run, since, until }: HistoryOptions): boolean {
  if (nodes !== undefined && !row.nodes.some((node) => nodes.includes(node))) return false;
  if (sources !== undefined && !sources.includes(row.source)) return false;
  if (run !== undefined && row.run !== run) return false;
  return row.at >= (since ?? row.at) && row.at <= (until ?? row.at);
}

/** Context for reading a thread. */
export interface ReadContext {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
  readonly pageSize: number;
}

async function* streamCheckpoints(
  { store, thread, pageSize }: ReadContext,
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

/**
 * Streams the namespaces of the calls of an inner graph, by node or tool, newest first: a single namespace per call, or
 * a single namespace for a persistent subgraph.
 */
export async function* streamNamespaces(
  context: ReadContext,
  namespace: string | undefined,
  before: number | undefined,
  nodes: readonly string[],
): AsyncGenerator<string | undefined, undefined, undefined> {
  const [node, ...deeper] = nodes;
  if (node === undefined) {
    yield namespace;
    return undefined;
  }
  for await (const row of streamCheckpoints(context, namespace, before)) {
    const { tasks } = parseControl(context.codec, row);
    for (const id of await listToolCallSegments(context, row, tasks, node))
      yield* streamNamespaces(context, `${row.branch}/${id}`, before, deeper);
    for (const { id } of tasks.filter((task) => task.node === node).reverse()) {
      const call = `${row.branch}/${id}`;
      const persistent = `${row.branch}/${node}`;
      if ((await context.store.head(context.thread, call)) !== undefined)
        yield* streamNamespaces(context, call, before, deeper);
      else if ((await context.store.head(context.thread, persistent)) !== undefined) {
        yield* streamNamespaces(context, persistent, before, deeper);
        return undefined;
      }
    }
  }
  return undefined;
}

/** Returns the calls of a tool in a checkpoint whose graph has a namespace, newest first. */
async function listToolCallSegments(
  { store, codec, thread }: ReadContext,
  row: CheckpointWithDeltas,
  tasks: readonly Task[],
  tool: string,
): Promise<readonly string[]> {
  const delta = row.deltas.find(({ channel }) => channel === "messages");
  if (delta === undefined || tasks.length === 0) return [];
  const change = parseDelta(codec, delta);
  const changedMessages: unknown =
    change.kind === "append" ? change.items : change.kind === "replace" ? change.value : undefined;
  const callMessage = (Array.isArray(changedMessages) ? (changedMessages as readonly Message[]) : []).findLast(
    ({ role }) => role === "assistant",
  );
  if (callMessage?.role !== "assistant") return [];
  const found: string[] = [];
  for (const { id } of tasks)
    for (const [index, { name }] of listToolCalls(callMessage).entries()) {
      const call = toCallSegment(id, index);
      if (name === tool && (await store.head(thread, `${row.branch}/${call}`)) !== undefined) found.push(call);
    }
  return found.reverse();
}

/** Returns the row of a thread. Throws `unknown_thread` for a missing thread. */
export async function requireThread(store: Pick<Store, "name" | "thread">, thread: string): Promise<ThreadRow> {
  const row = await store.thread(thread);
  if (row !== undefined) return row;
  throw new StatewrightError("unknown_thread", {
    what: `the store "${store.name}" has no thread "${thread}"`,
    next: "Check the id, or list the threads with listThreads",
    place: { thread },
  });
}

function toHistoryEntry<Types extends GraphTypes>(codec: Codec, row: CheckpointWithDeltas): HistoryEntry<Types> {
  const control = parseControl(codec, row);
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
      Object.fromEntries(row.deltas.map((delta) => [delta.channel, parseDelta(codec, delta)])),
    ) as HistoryEntry<Types>["changes"],
    run: row.run,
    at: row.at,
    durationMs: row.durationMs,
    bytes: row.bytes,
  };
}
