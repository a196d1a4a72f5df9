/** `exportTest`: a run of a store as a vitest file that passes now, and fails when the graph behaves otherwise. */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Codec,
  type Graph,
  type GraphTypes,
  getState,
  plainCodec,
  START,
  StatewrightError,
  type Store,
} from "@statewright/core";
import { redactor } from "../recording/redact.ts";
import { type ReadRun, type RecordedRun, readRun, updateIn } from "./recorded-run.ts";
import { gotoKey, play, type ReplayOptions, UnrecordedStep } from "./replay-run.ts";
import { testFile } from "./test-file.ts";

/** What `exportTest` takes. */
export interface ExportTestOptions<Types extends GraphTypes = GraphTypes> extends ReplayOptions {
  readonly graph: Graph<Types>;
  /** The test file to write, such as `test/refund.test.ts`; the recording stands beside it as `test/refund.run.json`. */
  readonly file: string | URL;
  /** Where the test finds the graph: the module as the test imports it, and the name of the export: `../src/shop.ts#shop`. */
  readonly from: string;
  /** Where it finds the context, in the same form. Without it a context of plain data is written into the test. */
  readonly contextFrom?: string;
  /** Texts that never reach the files, beside what looks like a key and what stands under a name such as `password`. */
  readonly redact?: readonly (string | RegExp)[];
}

/** What was written. */
export interface ExportedTest {
  readonly file: string;
  readonly recording: string;
  /** What the recording lacks, in words: it stands in the test file too. */
  readonly unrecorded: readonly string[];
}

/**
 * Write a run down as a test. What models said, what tools gave and what people answered comes from the store; what models were
 * asked comes from playing the run once, with nothing but these answers: no tool, no model and no step is called. A node whose
 * steps have no saved outcome is recorded by what it wrote. Throws `invalid_option` when the graph as it is now does not come to
 * the same end, and `unknown_thread`.
 */
export async function exportTest<Types extends GraphTypes>(
  store: Store,
  thread: string,
  options: ExportTestOptions<Types>,
): Promise<ExportedTest> {
  const { file: given, from, contextFrom, redact = [], codec = plainCodec, context } = options;
  const graph = options.graph as unknown as Graph;
  const clean = redactor(redact);
  const read = await readRun(graph, store, thread, codec);
  const unrecorded = [...read.unrecorded];
  let recorded = clean(read.recorded);
  const played = { ...options, context: contextFrom === undefined ? clean(context) : context };
  for (;;) {
    const requests: unknown[] = [];
    const { run, error } = await play(graph, recorded, played, { requests, clean });
    if (error instanceof UnrecordedStep && recorded.written[error.node] === undefined) {
      unrecorded.push(`${error.message}: the test has what the node wrote, and does not run its body`);
      const written = await writtenBy(graph, store, thread, codec, read, error.node);
      recorded = { ...recorded, written: { ...recorded.written, [error.node]: clean(written) } };
      continue;
    }
    const models = recorded.models
      .slice(0, requests.length)
      .map(({ reply }, index) => ({ request: requests[index], reply }));
    const rest = recorded.models.length - models.length;
    if (rest > 0) unrecorded.push(`${rest} answers of models that this run did not ask for`);
    recorded = { ...recorded, models };
    const wrong = firstDifference(recorded, run, error);
    if (wrong !== undefined) throw differs(graph.name, thread, wrong);
    break;
  }
  const file = given instanceof URL ? fileURLToPath(given) : resolve(given);
  const recording = file.replace(/(\.test|\.spec)?\.[cm]?[jt]sx?$/, ".run.json");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(recording, `${JSON.stringify(recorded, undefined, 2)}\n`);
  writeFileSync(
    file,
    testFile({
      recorded,
      recording: basename(recording),
      from,
      contextFrom,
      context: clean(context),
      unrecorded,
    }),
  );
  return { file, recording, unrecorded };
}

/** What a node wrote each time that it ran; only known where it ran by itself. */
async function writtenBy(
  graph: Graph,
  store: Store,
  thread: string,
  codec: Codec,
  { line }: ReadRun,
  node: string,
): Promise<RecordedRun["written"][string]> {
  const written: RecordedRun["written"][string][number][] = [];
  for (const { nodes, changes, checkpointId, next } of line) {
    if (!nodes.includes(node)) continue;
    if (nodes.length > 1)
      throw differs(
        graph.name,
        thread,
        `the steps of "${node}" are not saved, and it ran beside ${nodes.filter((each) => each !== node).join(", ")}, so that nobody can tell what it wrote`,
      );
    const { state } = await getState(graph, { store, thread, codec, at: checkpointId });
    const target = graph.edges.get(node)?.kind === "gotos" ? next[0] : undefined;
    written.push({ ...updateIn(changes, state), ...(target === undefined ? {} : { [gotoKey]: target }) });
  }
  return written;
}

function firstDifference(
  recorded: RecordedRun,
  run: { readonly path: RecordedRun["path"]; readonly status: string; readonly state: RecordedRun["state"] },
  error: unknown,
): string | undefined {
  if (error !== undefined && recorded.status !== "failed")
    return error instanceof Error ? error.message : String(error);
  const at = recorded.path.findIndex((nodes, index) => nodes.join() !== run.path[index]?.join());
  if (at >= 0)
    return `after ${recorded.path[at - 1]?.join(" + ") ?? START} it went to ${run.path[at]?.join(" + ") ?? "its end"}, and the run had gone to ${recorded.path[at]?.join(" + ")}`;
  const channel = Object.keys(recorded.state).find(
    (name) => JSON.stringify(recorded.state[name]) !== JSON.stringify(run.state[name]),
  );
  if (channel !== undefined)
    return `the channel "${channel}" is ${cut(JSON.stringify(run.state[channel]))}, and was ${cut(JSON.stringify(recorded.state[channel]))}`;
  return undefined;
}

function cut(text: string | undefined): string {
  if (text === undefined) return "not there";
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function differs(graph: string, thread: string, wrong: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the run of the thread "${thread}" cannot be exported, since the graph "${graph}" does not play it as it was: ${wrong.replace(/\.$/, "")}`,
    next: "Give the context of the run, and export with the code that ran it; do what changes from run to run in once steps or tools",
    place: { thread },
  });
}
