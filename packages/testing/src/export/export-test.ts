/**
 * `exportTest`: exports a run of a store as a vitest file that passes now and fails when the behaviour of the graph
 * changes.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Graph,
  type GraphDefinition,
  type GraphTypes,
  START,
  type StatewrightError,
  type Store,
} from "@statewright/core";
import { createPatternRedactor, invalidOption } from "@statewright/core/adapter";
import { type Codec, plainCodec } from "@statewright/core/store";
import { loadRecording, type RecordedExecution, type RecordedRun, toWrites } from "./recorded-run.ts";
import { playRecording, type ReplayOptions, UnrecordedEffect } from "./replay-run.ts";
import { renderTestFile } from "./test-file.ts";
import type { LineCheckpoint } from "./thread-line.ts";

/** Options of `exportTest`. */
export interface ExportTestOptions<Types extends GraphTypes = GraphTypes> extends ReplayOptions {
  /** Graph of the run. */
  readonly graph: Graph<Types>;
  /**
   * Test file to write, for example `test/refund.test.ts`. The recording is written next to the test as
   * `test/refund.run.json`.
   */
  readonly file: string | URL;
  /** Module and export name of the graph, as imported by the test: `../src/shop.ts#shop`. */
  readonly from: string;
  /**
   * Module and export name of the context, in the same form. Without this option, a context of plain data is written
   * into the test.
   */
  readonly contextFrom?: string;
  /** Branch to export, with the part before its fork. Default: the branch of `upTo`, or the head branch. */
  readonly branch?: string;
  /**
   * Id of the last checkpoint to export: the test replays the run up to that superstep and holds it there. Default: the
   * newest checkpoint of the branch.
   */
  readonly upTo?: number;
  /** False returns the texts of the files without writing them. Default true. */
  readonly write?: boolean;
  /**
   * Additional texts to redact from the files. Key-like texts and values under names such as `password` are always
   * redacted.
   */
  readonly redact?: readonly (string | RegExp)[];
}

/** Files of `exportTest`: their paths and their texts. */
export interface ExportedTest {
  readonly file: string;
  readonly recording: string;
  /** Source text of the test. */
  readonly text: string;
  /** JSON text of the recording. */
  readonly recordingText: string;
  /** Parts of the run that the recording lacks, as sentences. Also written to the test file. */
  readonly unrecorded: readonly string[];
}

/**
 * Exports a run as a test. Model replies, tool results and interrupt answers come from the store. Model requests come
 * from one replay of the run with these replies only: no tool, model or step is called, also in subgraphs and
 * sub-agents. A node whose steps or model calls have no saved outcome is recorded by its writes.
 *
 * Throws `invalid_option` when the current graph does not replay the run with the same result, and for an `upTo` that
 * is no checkpoint of the outermost graph on the branch; `unknown_thread`, `unknown_checkpoint`.
 *
 * @example
 * ```ts
 * const { text } = await exportTest(store, "t7", {
 *   graph: refunds,
 *   file: "test/refund.test.ts",
 *   from: "../src/refunds.ts#refunds",
 *   branch: "careful",
 *   upTo: 12,
 *   write: false,
 * });
 * ```
 */
export async function exportTest<Types extends GraphTypes>(
  store: Store,
  thread: string,
  options: ExportTestOptions<Types>,
): Promise<ExportedTest> {
  const { file: target, from, contextFrom, redact = [], context, write = true } = options;
  const redactValue = createPatternRedactor("exportTest", redact);
  const { recorded, unrecorded } = await recordReplay(store, thread, options, redactValue);
  const file = target instanceof URL ? fileURLToPath(target) : resolve(target);
  const recording = file.replace(/(\.test|\.spec)?\.[cm]?[jt]sx?$/, ".run.json");
  const recordingText = `${JSON.stringify(recorded, undefined, 2)}\n`;
  const text = renderTestFile({
    recorded,
    recording: basename(recording),
    from,
    contextFrom,
    context: redactValue(context),
    unrecorded,
  });
  if (write) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(recording, recordingText);
    writeFileSync(file, text);
  }
  return { file, recording, text, recordingText, unrecorded };
}

/** Loads the recording of a run, and completes it with the model requests of its replay. */
async function recordReplay<Types extends GraphTypes>(
  store: Store,
  thread: string,
  options: ExportTestOptions<Types>,
  redactValue: <Value>(value: Value) => Value,
): Promise<{ readonly recorded: RecordedRun; readonly unrecorded: readonly string[] }> {
  const { contextFrom, branch, upTo, codec = plainCodec, context } = options;
  const graph = options.graph as Graph;
  const loaded = await loadRecording(graph, store, { thread, branch, upTo }, codec);
  const unrecorded = [...loaded.unrecorded];
  let recorded = redactValue(loaded.recorded);
  const replayOptions = { ...options, context: contextFrom === undefined ? redactValue(context) : context };
  for (;;) {
    const requests = new Map<string, unknown>();
    const { run, error } = await playRecording(graph, recorded, replayOptions, { requests, redact: redactValue });
    if (error instanceof UnrecordedEffect && recorded.written[error.node] === undefined) {
      unrecorded.push(`${error.message}: the test contains the writes of the node and does not run its body`);
      const written = listNodeExecutions({ graph, thread, codec }, loaded.line, error.node);
      recorded = { ...recorded, written: { ...recorded.written, [error.node]: redactValue(written) } };
      continue;
    }
    const models = [...requests].flatMap(([place, request]) =>
      recorded.models.flatMap((each) => (each.place === place ? [{ place, request, reply: each.reply }] : [])),
    );
    const rest = recorded.models.length - models.length;
    if (rest > 0) unrecorded.push(`${rest} model ${rest === 1 ? "reply" : "replies"} that this run did not request`);
    const difference = findDifference(recorded, run, error);
    if (difference !== undefined) throw createMismatchError(graph.name, thread, { difference, unrecorded });
    unrecorded.push(...listTimeChannels(recorded.state, run.state));
    const status = recorded.commits === undefined ? recorded.status : run.status;
    return { recorded: { ...recorded, models, state: run.state, status }, unrecorded };
  }
}

/** Graph and thread of an export. */
interface ExportedThread {
  readonly graph: Graph;
  readonly thread: string;
  readonly codec: Codec;
}

/**
 * Lists the executions of a node with their writes. Throws when the node ran in parallel with other nodes or with
 * itself, because the writes cannot be separated.
 */
function listNodeExecutions(
  { graph, thread, codec }: ExportedThread,
  line: readonly LineCheckpoint[],
  nodePath: string,
): readonly RecordedExecution[] {
  const name = nodePath.slice(nodePath.lastIndexOf(".") + 1);
  const usesGoto = findGraph(graph, nodePath)?.edges.get(name)?.kind === "commandTargets";
  const executions: RecordedExecution[] = [];
  for (const [index, checkpoint] of line.entries()) {
    const { row, inside, path } = checkpoint;
    if (row.source !== "step" || path + name !== nodePath || !row.nodes.includes(name)) continue;
    const before = line.findLast((each, nth) => nth < index && each.inside === inside);
    const tasks = before === undefined ? [] : listTasks(codec, before);
    const others = row.nodes.filter((each) => each !== name);
    if (others.length > 0 || tasks.length > 1)
      throw createMismatchError(graph.name, thread, {
        difference: `an effect of "${nodePath}" has no saved outcome, and the node ran in parallel with ${others.length > 0 ? others.join(", ") : "itself"}, so its writes cannot be determined`,
        unrecorded: [],
      });
    const [target] = usesGoto ? listTasks(codec, checkpoint) : [];
    executions.push({ writes: toWrites(checkpoint), ...(target === undefined ? {} : { goto: target }) });
  }
  return executions;
}

/** Lists the nodes of the next superstep. */
function listTasks(codec: Codec, { row }: LineCheckpoint): readonly string[] {
  const { tasks } = codec.decode(row.control) as { readonly tasks: readonly { readonly node: string }[] };
  return tasks.map(({ node }) => node);
}

/** Finds the graph of a node through the subgraphs and tools of its path. */
function findGraph(graph: Graph, nodePath: string): GraphDefinition | undefined {
  let found: GraphDefinition | undefined = graph;
  for (const name of nodePath.split(".").slice(0, -1))
    found = found === undefined ? undefined : findInside(found, name);
  return found;
}

/** Finds the graph that a node or a tool of a graph runs. */
function findInside({ nodes, tools }: GraphDefinition, name: string): GraphDefinition | undefined {
  const record = tools.find(({ spec }) => spec.name === name)?.graph as { readonly graph: () => Graph } | undefined;
  return nodes.get(name)?.subgraph?.graph ?? record?.graph();
}

function findDifference(
  recorded: RecordedRun,
  run: { readonly path: RecordedRun["path"]; readonly status: string; readonly state: RecordedRun["state"] },
  error: unknown,
): string | undefined {
  if (error !== undefined && recorded.status !== "failed")
    return error instanceof Error ? error.message : String(error);
  const at = recorded.path.findIndex((nodes, index) => nodes.join() !== run.path[index]?.join());
  if (at >= 0)
    return `after ${recorded.path[at - 1]?.join(" + ") ?? START} the run continued with ${run.path[at]?.join(" + ") ?? "its end"}, but the recorded run continued with ${recorded.path[at]?.join(" + ")}`;
  const channel = Object.keys(recorded.state).find(
    (name) => !isEqualExceptTimes(recorded.state[name], run.state[name], recorded.startedAt),
  );
  if (channel !== undefined)
    return `the channel "${channel}" is ${truncate(JSON.stringify(run.state[channel]))}, but was ${truncate(JSON.stringify(recorded.state[channel]))}`;
  return undefined;
}

/** Lists the channels whose times the replay measured on its own clock, as sentences. */
function listTimeChannels(before: RecordedRun["state"], after: RecordedRun["state"]): readonly string[] {
  return Object.keys(before).flatMap((name) =>
    JSON.stringify(before[name]) === JSON.stringify(after[name])
      ? []
      : [`the times in the channel "${name}": the test measures them on its virtual clock`],
  );
}

/** Compares two values. Durations (`wallMs`) and points in time after the start of the run may differ. */
function isEqualExceptTimes(one: unknown, other: unknown, startedAt: number, key = ""): boolean {
  if (typeof one === "number" && typeof other === "number")
    return one === other || key.endsWith("Ms") || (one >= startedAt && other >= startedAt && startedAt > 0);
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, nth) => isEqualExceptTimes(item, other[nth], startedAt));
  if (!isRecord(one) || !isRecord(other)) return JSON.stringify(one) === JSON.stringify(other);
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isEqualExceptTimes(one[name], other[name], startedAt, name))
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function truncate(text: string | undefined): string {
  if (text === undefined) return "not there";
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function createMismatchError(
  graph: string,
  thread: string,
  { difference, unrecorded }: { readonly difference: string; readonly unrecorded: readonly string[] },
): StatewrightError {
  const gaps = unrecorded.length === 0 ? "" : `. Not recorded: ${unrecorded.join("; ")}`;
  return invalidOption({
    where: "exportTest",
    option: "graph",
    expected: `a graph that replays the run of the thread "${thread}"`,
    found: `the graph "${graph}" with a difference: ${difference.replace(/\.$/, "")}${gaps}`,
    fix: "Pass the context of the run, and export with the code version of the run. Move values that change from run to run into once steps or tools",
    place: { thread },
  });
}
