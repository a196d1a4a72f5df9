/**
 * `exportTest`: exports a run of a store as a vitest file that passes now and fails when the behaviour of the graph
 * changes.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Codec,
  type Graph,
  type GraphTypes,
  getState,
  START,
  type StatewrightError,
  type Store,
} from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { plainCodec } from "@statewright/core/store";
import { createRedactor } from "../recording/redact.ts";
import { type LoadedRecording, loadRecording, type RecordedRun, toUpdate } from "./recorded-run.ts";
import { gotoKey, playRecording, type ReplayOptions, UnrecordedStep } from "./replay-run.ts";
import { renderTestFile } from "./test-file.ts";

/** Options of `exportTest`. */
export interface ExportTestOptions<Types extends GraphTypes = GraphTypes> extends ReplayOptions {
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
  /**
   * Additional texts to redact from the files. Key-like texts and values under names such as `password` are always
   * redacted.
   */
  readonly redact?: readonly (string | RegExp)[];
}

/** Files written by `exportTest`. */
export interface ExportedTest {
  readonly file: string;
  readonly recording: string;
  /** Parts of the run that the recording lacks, as sentences. Also written to the test file. */
  readonly unrecorded: readonly string[];
}

/**
 * Exports a run as a test. Model replies, tool results and interrupt answers come from the store. Model requests come
 * from one replay of the run with these replies only: no tool, model or step is called. A node whose steps have no
 * saved outcome is recorded by its writes. Throws `invalid_option` when the current graph does not replay the run
 * with the same result, and `unknown_thread`.
 */
export async function exportTest<Types extends GraphTypes>(
  store: Store,
  thread: string,
  options: ExportTestOptions<Types>,
): Promise<ExportedTest> {
  const { file: target, from, contextFrom, redact = [], codec = plainCodec, context } = options;
  const graph = options.graph as Graph;
  const redactValue = createRedactor(redact);
  const loaded = await loadRecording(graph, store, thread, codec);
  const unrecorded = [...loaded.unrecorded];
  let recorded = redactValue(loaded.recorded);
  const replayOptions = { ...options, context: contextFrom === undefined ? redactValue(context) : context };
  for (;;) {
    const requests: unknown[] = [];
    const { run, error } = await playRecording(graph, recorded, replayOptions, { requests, redact: redactValue });
    if (error instanceof UnrecordedStep && recorded.written[error.node] === undefined) {
      unrecorded.push(`${error.message}: the test contains the writes of the node and does not run its body`);
      const written = await loadNodeWrites({ graph, store, thread, codec }, loaded.entries, error.node);
      recorded = { ...recorded, written: { ...recorded.written, [error.node]: redactValue(written) } };
      continue;
    }
    const models = recorded.models
      .slice(0, requests.length)
      .map(({ reply }, index) => ({ request: requests[index], reply }));
    const rest = recorded.models.length - models.length;
    if (rest > 0) unrecorded.push(`${rest} model replies that this run did not request`);
    recorded = { ...recorded, models };
    const difference = findDifference(recorded, run, error);
    if (difference !== undefined) throw createMismatchError(graph.name, thread, difference);
    break;
  }
  const file = target instanceof URL ? fileURLToPath(target) : resolve(target);
  const recording = file.replace(/(\.test|\.spec)?\.[cm]?[jt]sx?$/, ".run.json");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(recording, `${JSON.stringify(recorded, undefined, 2)}\n`);
  writeFileSync(
    file,
    renderTestFile({
      recorded,
      recording: basename(recording),
      from,
      contextFrom,
      context: redactValue(context),
      unrecorded,
    }),
  );
  return { file, recording, unrecorded };
}

/** Run in a store, and the graph that executed the run. */
interface StoredRun {
  readonly graph: Graph;
  readonly store: Store;
  readonly thread: string;
  readonly codec: Codec;
}

/**
 * Loads the writes of a node for each execution. Throws when the node ran in parallel with other nodes,
 * because the writes cannot be separated.
 */
async function loadNodeWrites(
  { graph, store, thread, codec }: StoredRun,
  entries: LoadedRecording["entries"],
  node: string,
): Promise<RecordedRun["written"][string]> {
  const writes: RecordedRun["written"][string][number][] = [];
  for (const { nodes, changes, checkpointId, next } of entries) {
    if (!nodes.includes(node)) continue;
    if (nodes.length > 1)
      throw createMismatchError(
        graph.name,
        thread,
        `the steps of "${node}" are not saved, and the node ran in parallel with ${nodes.filter((each) => each !== node).join(", ")}, so its writes cannot be determined`,
      );
    const { state } = await getState(graph, { store, thread, codec, at: checkpointId });
    const target = graph.edges.get(node)?.kind === "commandTargets" ? next[0] : undefined;
    writes.push({ ...toUpdate(changes, state), ...(target === undefined ? {} : { [gotoKey]: target }) });
  }
  return writes;
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
    (name) => JSON.stringify(recorded.state[name]) !== JSON.stringify(run.state[name]),
  );
  if (channel !== undefined)
    return `the channel "${channel}" is ${truncate(JSON.stringify(run.state[channel]))}, but was ${truncate(JSON.stringify(recorded.state[channel]))}`;
  return undefined;
}

function truncate(text: string | undefined): string {
  if (text === undefined) return "not there";
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function createMismatchError(graph: string, thread: string, difference: string): StatewrightError {
  return invalidOption({
    where: "exportTest",
    option: "graph",
    expected: `a graph that replays the run of the thread "${thread}"`,
    found: `the graph "${graph}" with a difference: ${difference.replace(/\.$/, "")}`,
    fix: "Pass the context of the run, and export with the code version of the run. Move values that change from run to run into once steps or tools",
    place: { thread },
  });
}
