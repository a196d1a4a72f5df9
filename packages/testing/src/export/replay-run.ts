/**
 * `replayRun`: replays a recorded run with the current graph. Model replies, tool results and interrupt answers come
 * from the recording; everything else from the graph.
 */
import {
  type Codec,
  type Graph,
  type GraphDefinition,
  type GraphTypes,
  goto,
  type Json,
  type Model,
  type ModelRequest,
  memoryStore,
  overwrite,
  StatewrightError,
  type ToolOutput,
} from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { plainCodec } from "@statewright/core/store";
import { replaceGraphParts, replaceRuntimeParts } from "../node/replace-parts.ts";
import { computeDigest, listDifferences, normalizeRequest } from "../recording/request-digest.ts";
import { testRun } from "../run/create-test-run.ts";
import { instrument } from "../run/instrument.ts";
import type { TestRun } from "../run/test-run.ts";
import { virtualClock } from "../virtual-clock.ts";
import { checkRecording, type RecordedRun, toRecordedState } from "./recorded-run.ts";

/** Options of a replay. */
export interface ReplayOptions {
  readonly context?: unknown;
  /** Secrets by name. Other secrets get placeholder values, because tool bodies do not run. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly codec?: Codec;
}

/** Path, status and state of a replay, in the form of the recording. */
export interface ReplayedRun {
  /** Node names of each superstep. */
  readonly path: readonly (readonly string[])[];
  readonly status: string;
  readonly state: Readonly<Record<string, Json>>;
}

/**
 * Replays a recorded run with the current graph. A test compares path, status and state with the recording. Throws
 * when a model request differs from the recording, with the differences, and when the run fails but the recorded run
 * did not.
 */
export async function replayRun<Types extends GraphTypes>(
  graph: Graph<Types>,
  recorded: unknown,
  options: ReplayOptions = {},
): Promise<ReplayedRun> {
  checkRecording(recorded);
  const { run, error } = await playRecording(graph as Graph, recorded, options, undefined);
  if (error !== undefined && recorded.status !== "failed")
    throw new Error(
      `the graph "${graph.name}" does not follow the recorded run: ${error instanceof Error ? error.message : String(error)}\nPath: ${run.path.map((nodes) => nodes.join(" + ")).join(" → ") || "none"}; recorded path: ${recorded.path.map((nodes) => nodes.join(" + ")).join(" → ")}`,
      { cause: error },
    );
  return run;
}

/** Data collected during the first replay of a run. */
export interface Capture {
  /** Model requests, in the order of the recorded replies. */
  readonly requests: unknown[];
  readonly redact: <Value>(value: Value) => Value;
}

/** Thrown for a step without a saved outcome: the body of the node cannot be replayed. */
export class UnrecordedStep extends Error {
  override readonly name = "UnrecordedStep";
  readonly node: string;
  readonly step: string;
  constructor(node: string, step: string) {
    super(`the step "${step}" of the node "${node}" has no saved outcome`);
    this.node = node;
    this.step = step;
  }
}

type NodeRecord = GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node> ? Node : never;

/** Replays a run. With `capture`, model requests are answered in recorded order and collected. */
export async function playRecording(
  graph: Graph,
  recorded: RecordedRun,
  { context, secrets = {}, codec = plainCodec }: ReplayOptions,
  capture: Capture | undefined,
): Promise<{ readonly run: ReplayedRun; readonly error: unknown }> {
  const instrumented = instrument(graph, {
    isAlive: () => true,
    onToolExecuted: () => undefined,
    model: undefined,
    wrapToolBody: ({ tool, callId }) => {
      const result = recorded.tools[callId];
      if (result === undefined)
        throw invalidOption({
          where: "replayRun",
          expected: "only the tool calls of the recorded run",
          found: `another call of the tool "${tool}"`,
          fix: "Fix the difference, or export the run again",
        });
      return { content: result.content, isError: result.isError } satisfies ToolOutput;
    },
  });
  let unrecorded: UnrecordedStep | undefined;
  const replayGraph = replaceGraphParts(instrumented, {
    nodes: new Map(
      [...instrumented.nodes].map(([name, node]) => [name, replayNode(node, recorded, (step) => (unrecorded = step))]),
    ),
  });
  const store = memoryStore();
  const model = createReplayModel(recorded, capture);
  const clock = virtualClock({ now: recorded.startedAt });
  const common = {
    store,
    thread: "replayed",
    model,
    clock,
    codec,
    ...(context === undefined ? {} : { context }),
    // Tools do not run in a replay, so no real secret is needed.
    secrets: { get: (name: string) => secrets[name] ?? `stand-in of the secret ${name}` },
  };
  const answers = [...recorded.answers];
  const path: (readonly string[])[] = [];
  let t: TestRun | undefined;
  for (const input of recorded.inputs) {
    t = await testRun(replayGraph, { ...common, input });
    const run = t;
    await ignoreRunError(run, () => run.finish());
    while (run.status === "waiting") {
      const resumeAnswers = takeAnswers(run, answers);
      if (Object.keys(resumeAnswers).length === 0) break;
      await ignoreRunError(run, () => run.resume(resumeAnswers));
    }
    for (const entry of run.trace.entries)
      if (entry.type === "step.committed" && entry.within === undefined && entry.nodes.length > 0)
        path.push(entry.nodes);
    if (run.status === "failed") break;
  }
  const run = { path, status: t?.status ?? "not started", state: toRecordedState(t?.state ?? {}, codec) };
  return { run, error: unrecorded ?? (t?.status === "failed" ? t.error : undefined) };
}

function takeAnswers(t: TestRun, answers: RecordedRun["answers"][number][]): Record<string, Json> {
  const taken: Record<string, Json> = {};
  for (const { id, key, node } of t.interrupts) {
    const at = answers.findIndex((answer) => answer.key === key && answer.node === node);
    const [match] = at < 0 ? [] : answers.splice(at, 1);
    if (match !== undefined) taken[id] = match.answer;
  }
  return taken;
}

async function ignoreRunError(t: TestRun, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (t.error !== error) throw error;
  }
}

interface StepExecutor {
  readonly step: (
    key: string,
    work: (at: { readonly idempotencyKey: string }) => unknown,
    options?: object,
  ) => Promise<unknown>;
}

/** Replaces the steps of a node by recorded outcomes, or the body by recorded writes. */
function replayNode(
  node: NodeRecord,
  { steps, written }: RecordedRun,
  onMissingStep: (step: UnrecordedStep) => void,
): NodeRecord {
  if (node.subgraph !== undefined || node.tools !== undefined) return node;
  const writes = written[node.name];
  if (writes !== undefined) {
    let executions = 0;
    return { ...node, body: () => toNodeReturn(writes[executions++] ?? {}) as never };
  }
  const body: NodeRecord["body"] = (state, runtime) => {
    const executor = runtime as StepExecutor;
    const step: StepExecutor["step"] = (key, _work, options) =>
      executor.step(
        key,
        ({ idempotencyKey }) => {
          const location = idempotencyKey.slice(idempotencyKey.indexOf("/") + 1);
          if (location in steps) return steps[location];
          const missingStep = new UnrecordedStep(node.name, key);
          onMissingStep(missingStep);
          throw missingStep;
        },
        options,
      );
    return node.body(state, replaceRuntimeParts(executor, { step }) as never);
  };
  return { ...node, body };
}

function toNodeReturn({ [gotoKey]: target, ...update }: Readonly<Record<string, Json>>): unknown {
  const values = Object.fromEntries(
    Object.entries(update).map(([channel, value]) => [channel, Array.isArray(value) ? value : overwrite(value)]),
  );
  return typeof target === "string" ? goto(target, values) : values;
}

/** Key of the `goto` target in the recorded writes of a node. No channel can have this name. */
export const gotoKey = "→";

/** Creates a model that finds replies by request. During capture, replies are returned in recorded order. */
function createReplayModel({ models }: RecordedRun, capture: Capture | undefined): Model {
  const useCounts = new Map<string, number>();
  let requestCount = 0;
  return {
    id: "recorded",
    respond: async (request: ModelRequest) => {
      if (capture !== undefined) {
        const answer = models[requestCount];
        requestCount += 1;
        if (answer === undefined)
          throw createRequestError("the run made more model requests than the store has replies", []);
        capture.requests.push(normalizeRequest(capture.redact(request)));
        return structuredClone(answer.reply);
      }
      const shown: unknown = JSON.parse(JSON.stringify(normalizeRequest(request)));
      const digest = computeDigest(shown);
      const matches = models.filter((answer) => computeDigest(answer.request) === digest);
      const nth = useCounts.get(digest) ?? 0;
      useCounts.set(digest, nth + 1);
      const answer = matches[Math.min(nth, matches.length - 1)];
      if (answer !== undefined) return structuredClone(answer.reply);
      const differencesByReply = models
        .map((each) => listDifferences(each.request, shown))
        .sort((a, b) => a.length - b.length);
      throw createRequestError("a model request differs from the recording", differencesByReply[0] ?? []);
    },
  };
}

function createRequestError(fact: string, found: readonly string[]): StatewrightError {
  const shown = found.slice(0, 5).join("; ");
  return new StatewrightError("model_failed", {
    what: shown === "" ? fact : `${fact}: ${shown}`,
    next: "Fix the difference, or export the run again",
    details: { retryable: false, kind: "invalid_request", differences: found },
  });
}
