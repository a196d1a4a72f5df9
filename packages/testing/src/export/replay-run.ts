/**
 * `replayRun`: replays a recorded run with the current graph. Model replies, tool results and interrupt answers come
 * from the recording; everything else from the graph.
 */
import {
  type Graph,
  type GraphDefinition,
  type GraphTypes,
  goto,
  type Json,
  type Model,
  type ModelReply,
  type ModelRequest,
  memoryStore,
  overwrite,
  StatewrightError,
  type ToolOutput,
} from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { type Codec, plainCodec } from "@statewright/core/store";
import { replaceRuntimeParts } from "../node/replace-parts.ts";
import { computeDigest, listDifferences, normalizeRequest } from "../recording/request-digest.ts";
import { testRun } from "../run/create-test-run.ts";
import { instrument } from "../run/instrument.ts";
import type { TestRun } from "../run/test-run.ts";
import { virtualClock } from "../virtual-clock.ts";
import {
  checkRecording,
  type RecordedExecution,
  type RecordedRun,
  toCallPlace,
  toEffectPlace,
  toRecordedState,
} from "./recorded-run.ts";

/** Options of a replay. */
export interface ReplayOptions {
  /** Context of the run. Default: none. */
  readonly context?: unknown;
  /** Secrets by name. Other secrets get placeholder values, because tool bodies do not run. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
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
  /** Model requests by the place of the call, in the order of the requests. */
  readonly requests: Map<string, unknown>;
  readonly redact: <Value>(value: Value) => Value;
}

/** Thrown for a step or a model call without a saved outcome: the body of the node cannot be replayed. */
export class UnrecordedEffect extends Error {
  override readonly name = "UnrecordedEffect";
  /** Path of the node. */
  readonly node: string;
  constructor(node: string, what: string) {
    super(`${what} of the node "${node}" has no saved outcome`);
    this.node = node;
  }
}

/** Replays a run. With `capture`, model requests are answered in recorded order and collected. */
export async function playRecording(
  graph: Graph,
  recorded: RecordedRun,
  { context, secrets = {}, codec = plainCodec }: ReplayOptions,
  capture: Capture | undefined,
): Promise<{ readonly run: ReplayedRun; readonly error: unknown }> {
  let unrecorded: UnrecordedEffect | undefined;
  const replies = createReplies(recorded, capture);
  const replayGraph = instrument(graph, {
    isAlive: () => true,
    onToolExecuted: () => undefined,
    model: undefined,
    wrapToolBody: ({ tool, callId, idempotencyKey }) => getRecordedResult(recorded, { tool, callId, idempotencyKey }),
    wrapBody: (path, body) =>
      replayBody(path, body, { recorded, replies, onMissing: (effect) => (unrecorded = effect) }),
  });
  const store = memoryStore();
  const clock = virtualClock({ now: recorded.startedAt });
  const common = {
    store,
    thread: "replayed",
    clock,
    codec,
    ...(context === undefined ? {} : { context }),
    // Tools do not run in a replay, so no real secret is needed.
    secrets: { get: (name: string) => secrets[name] ?? `stand-in of the secret ${name}` },
  };
  const answers = [...recorded.answers];
  const path: (readonly string[])[] = [];
  let t: TestRun | undefined;
  let commits = 0;
  for (const [nth, input] of recorded.inputs.entries()) {
    t = await testRun(replayGraph, { ...common, input });
    const run = t;
    const last = nth === recorded.inputs.length - 1 ? recorded.commits : undefined;
    const until = last === undefined ? undefined : () => commits + listCommits(run).length >= last;
    await ignoreRunError(run, () => (until === undefined ? run.finish() : run.until(until)));
    while (run.status === "waiting" && until?.() !== true) {
      const resumeAnswers = takeAnswers(run, answers);
      if (Object.keys(resumeAnswers).length === 0) break;
      await ignoreRunError(run, () => run.resume(resumeAnswers, until === undefined ? {} : { until }));
    }
    const committed = listCommits(run);
    commits += committed.length;
    path.push(...committed.filter((nodes) => nodes.length > 0));
    if (run.status === "failed") break;
  }
  const run = { path, status: t?.status ?? "not started", state: toRecordedState(graph, t?.state ?? {}, codec) };
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

/** Lists the nodes of each commit of the outermost graph; none for an input. */
function listCommits({ trace }: TestRun): readonly (readonly string[])[] {
  return trace.entries.flatMap((entry) =>
    entry.type === "step.committed" && entry.within === undefined ? [entry.nodes] : [],
  );
}

/** Ignores the error of a failed run, and of a run that rests before the end of a recording: the path shows both. */
async function ignoreRunError(t: TestRun, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (t.error !== error && t.status === "held") throw error;
  }
}

/** Returns the recorded result of a tool call. */
function getRecordedResult(
  { tools }: RecordedRun,
  { tool, callId, idempotencyKey }: { readonly tool: string; readonly callId: string; readonly idempotencyKey: string },
): ToolOutput {
  const [, inside = ""] = /^(.*)\/\d+:\d+\/[^/]*$/s.exec(toEffectPlace(idempotencyKey)) ?? [];
  const result = tools[toCallPlace(inside, callId)];
  if (result !== undefined) return { content: result.content, isError: result.isError };
  throw invalidOption({
    where: "replayRun",
    expected: "only the tool calls of the recorded run",
    found: `another call of the tool "${tool}"`,
    fix: "Fix the difference, or export the run again",
  });
}

/** Runtime of a replayed body. */
interface ReplayedRuntime {
  readonly step: (
    key: string,
    work: (at: { readonly idempotencyKey: string }) => unknown,
    options?: object,
  ) => Promise<unknown>;
  readonly model: (call: ReplayedCall, key?: string) => Promise<unknown>;
  readonly generate: (request: never) => Promise<unknown>;
}

/** Model call, or an agent turn that creates its call in `prepare`. */
type ReplayedCall = { readonly model: Model; readonly prepare?: undefined } | { readonly prepare: PrepareCall };

type PrepareCall = (state: never) => object | Promise<object>;

/** Recording of a replay, and its model replies. */
interface ReplaySource {
  readonly recorded: RecordedRun;
  readonly replies: Replies;
  readonly onMissing: (effect: UnrecordedEffect) => void;
}

type Body =
  GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node extends { readonly body: unknown }>
    ? Node["body"]
    : never;

/** Replaces the steps and model calls of a body by recorded outcomes, or the body by recorded writes. */
function replayBody(path: string, body: Body, { recorded, replies, onMissing }: ReplaySource): Body {
  const executions = recorded.written[path];
  if (executions !== undefined) {
    let count = 0;
    return () => toNodeReturn(executions[count++] ?? { writes: {} }) as never;
  }
  const miss = (what: string): UnrecordedEffect => {
    const effect = new UnrecordedEffect(path, what);
    onMissing(effect);
    return effect;
  };
  return (state, runtime) => {
    const original = runtime as ReplayedRuntime;
    const step: ReplayedRuntime["step"] = (key, _work, options) =>
      original.step(
        key,
        ({ idempotencyKey }) => {
          const place = toEffectPlace(idempotencyKey);
          if (Object.hasOwn(recorded.steps, place)) return recorded.steps[place];
          throw miss(`the step "${key}"`);
        },
        options,
      );
    const model: ReplayedRuntime["model"] = async (call, key = "model") => {
      // A step is the only source of the namespace that a body has.
      const place = await original.step(
        `place of ${key}`,
        ({ idempotencyKey }) => toEffectPlace(idempotencyKey).replace(/[^/]*$/, key),
        { effect: "pure" },
      );
      const replayed = replies.createModel(String(place), () => miss(`the reply to the model call "${key}"`));
      return original.model(replaceModel(replayed, call), key);
    };
    // No channel has the reply to a question.
    const generate: ReplayedRuntime["generate"] = () => Promise.reject(miss("the reply to generate"));
    return body(state, replaceRuntimeParts(original, { step, model, generate }) as never);
  };
}

function replaceModel(model: Model, call: ReplayedCall): ReplayedCall {
  const { prepare } = call;
  if (prepare === undefined) return { ...call, model };
  return { ...call, prepare: async (state) => ({ ...(await prepare(state)), model }) };
}

function toNodeReturn({ writes, goto: target }: RecordedExecution): unknown {
  const values = Object.fromEntries(
    Object.entries(writes).map(([channel, write]) => [
      channel,
      "items" in write ? write.items : overwrite(write.value),
    ]),
  );
  return target === undefined ? values : goto(target, values);
}

/** Model replies of a replay. */
interface Replies {
  /** Creates the model of a call; `onMissing` creates the error of a call whose reply is not saved. */
  readonly createModel: (place: string, onMissing: () => UnrecordedEffect) => Model;
}

/** During capture, replies are found by the place of the call; in a test, by the request. */
function createReplies({ models }: RecordedRun, capture: Capture | undefined): Replies {
  const useCounts = new Map<string, number>();
  const respondToCapture = (
    place: string,
    request: ModelRequest,
    { requests, redact }: Capture,
  ): ModelReply | undefined => {
    const answer = models.find((each) => each.place === place);
    if (answer !== undefined) requests.set(place, normalizeRequest(redact(request)));
    return answer?.reply;
  };
  const respond = (place: string, request: ModelRequest): ModelReply => {
    const shown: unknown = JSON.parse(JSON.stringify(normalizeRequest(request)));
    const digest = computeDigest(shown);
    const matches = models.filter((answer) => computeDigest(answer.request) === digest);
    const own = matches.find((answer) => answer.place === place);
    if (own !== undefined) return own.reply;
    const nth = useCounts.get(digest) ?? 0;
    useCounts.set(digest, nth + 1);
    const answer = matches[Math.min(nth, matches.length - 1)];
    if (answer !== undefined) return answer.reply;
    const differencesByReply = models
      .map((each) => listDifferences(each.request, shown))
      .sort((a, b) => a.length - b.length);
    throw createRequestError("a model request differs from the recording", differencesByReply[0] ?? []);
  };
  return {
    createModel: (place, onMissing) => ({
      id: "recorded",
      respond: async (request: ModelRequest) => {
        const reply = capture === undefined ? respond(place, request) : respondToCapture(place, request, capture);
        if (reply === undefined) throw createRequestError(onMissing().message, []);
        return structuredClone(reply);
      },
    }),
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
