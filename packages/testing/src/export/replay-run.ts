/** `replayRun`: a recorded run played by the graph as it is now. Models, tools and people answer as they did; everything else is the graph's. */
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
  plainCodec,
  StatewrightError,
  type ToolOutput,
} from "@statewright/core";
import { graphWith, runtimeWith } from "../node/replace-parts.ts";
import { differences, digestOf, normalised } from "../recording/request-digest.ts";
import { instrument } from "../run/instrument.ts";
import { type TestRun, type TestRunOptions, testRun } from "../run/test-run.ts";
import { virtualClock } from "../virtual-clock.ts";
import { checkRecorded, type RecordedRun, shownState } from "./recorded-run.ts";

/** What replaying takes. */
export interface ReplayOptions {
  readonly context?: unknown;
  /** The others are stand-ins: the bodies of tools do not run. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly codec?: Codec;
}

/** Where the run went this time, in the form of the recording. */
export interface ReplayedRun {
  /** The nodes of each superstep. */
  readonly path: readonly (readonly string[])[];
  readonly status: string;
  readonly state: Readonly<Record<string, Json>>;
}

/**
 * Play a recorded run with a graph as it is now. Expect its path, its status and its state to be those of the recording. Throws
 * when a model is asked something else than it was, with what differs, and when the run fails where it did not.
 */
export async function replayRun<Types extends GraphTypes>(
  graph: Graph<Types>,
  recorded: unknown,
  options: ReplayOptions = {},
): Promise<ReplayedRun> {
  checkRecorded(recorded);
  const { run, error } = await play(graph as unknown as Graph, recorded, options, undefined);
  if (error !== undefined && recorded.status !== "failed")
    throw new Error(
      `the graph "${graph.name}" does not go as it was recorded: ${error instanceof Error ? error.message : String(error)}\nIt went ${run.path.map((nodes) => nodes.join(" + ")).join(" → ") || "nowhere"}; recorded is ${recorded.path.map((nodes) => nodes.join(" + ")).join(" → ")}`,
      { cause: error },
    );
  return run;
}

/** What is written down while a run is played for the first time. */
export interface Capture {
  /** What the model was asked, in the order of the recorded answers. */
  readonly requests: unknown[];
  readonly clean: <Value>(value: Value) => Value;
}

/** A step whose outcome no store has kept: its node cannot be played. */
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

/** Play a run; with `capture` every request is answered in order and written down. */
export async function play(
  graph: Graph,
  recorded: RecordedRun,
  { context, secrets = {}, codec = plainCodec }: ReplayOptions,
  capture: Capture | undefined,
): Promise<{ readonly run: ReplayedRun; readonly error: unknown }> {
  const acting = instrument(graph, {
    alive: () => true,
    executed: () => undefined,
    model: undefined,
    around: ({ tool, callId }) => {
      const result = recorded.tools[callId];
      if (result === undefined)
        throw new StatewrightError("invalid_option", {
          what: `the tool "${tool}" was called where the recorded run has no call`,
          next: "Mend what differs, or export the run again",
        });
      return { content: result.content, isError: result.isError } satisfies ToolOutput;
    },
  });
  let unrecorded: UnrecordedStep | undefined;
  const playing = graphWith(acting, {
    nodes: new Map(
      [...acting.nodes].map(([name, node]) => [name, played(node, recorded, (step) => (unrecorded = step))]),
    ),
  });
  const store = memoryStore();
  const model = recordedAnswers(recorded, capture);
  const clock = virtualClock({ now: recorded.startedAt });
  const common = {
    store,
    thread: "replayed",
    model,
    clock,
    codec,
    ...(context === undefined ? {} : { context }),
    // No tool is run, so nobody needs the real ones.
    secrets: { get: (name: string) => secrets[name] ?? `stand-in of the secret ${name}` },
  };
  const answers = [...recorded.answers];
  const path: (readonly string[])[] = [];
  let t: TestRun | undefined;
  for (const input of recorded.inputs) {
    t = await testRun(playing, { ...common, input } as unknown as TestRunOptions<GraphTypes, unknown>);
    const run = t;
    await letGo(run, () => run.finish());
    while (run.status === "waiting") {
      const given = answersTo(run, answers);
      if (Object.keys(given).length === 0) break;
      await letGo(run, () => run.resume(given));
    }
    for (const entry of run.trace.entries)
      if (entry.type === "step.committed" && entry.within === undefined && entry.nodes.length > 0)
        path.push(entry.nodes);
    if (run.status === "failed") break;
  }
  const run = { path, status: t?.status ?? "not begun", state: shownState(t?.state ?? {}, codec) };
  return { run, error: unrecorded ?? (t?.status === "failed" ? t.error : undefined) };
}

function answersTo(t: TestRun, answers: RecordedRun["answers"][number][]): Record<string, Json> {
  const given: Record<string, Json> = {};
  for (const { id, key, node } of t.interrupts) {
    const at = answers.findIndex((answer) => answer.key === key && answer.node === node);
    const [found] = at < 0 ? [] : answers.splice(at, 1);
    if (found !== undefined) given[id] = found.answer;
  }
  return given;
}

async function letGo(t: TestRun, go: () => Promise<void>): Promise<void> {
  try {
    await go();
  } catch (error) {
    if (t.error !== error) throw error;
  }
}

interface Steps {
  readonly step: (
    key: string,
    work: (at: { readonly idempotencyKey: string }) => unknown,
    options?: object,
  ) => Promise<unknown>;
}

/** A node whose steps give what is recorded, or that writes what it wrote. */
function played(
  node: NodeRecord,
  { steps, written }: RecordedRun,
  missing: (step: UnrecordedStep) => void,
): NodeRecord {
  if (node.subgraph !== undefined || node.tools !== undefined) return node;
  const writes = written[node.name];
  if (writes !== undefined) {
    let times = 0;
    return { ...node, body: () => rewritten(writes[times++] ?? {}) as never };
  }
  const body: NodeRecord["body"] = (state, runtime) => {
    const given = runtime as unknown as Steps;
    const step: Steps["step"] = (key, _work, options) =>
      given.step(
        key,
        ({ idempotencyKey }) => {
          const place = idempotencyKey.slice(idempotencyKey.indexOf("/") + 1);
          if (place in steps) return steps[place];
          const lacking = new UnrecordedStep(node.name, key);
          missing(lacking);
          throw lacking;
        },
        options,
      );
    return node.body(state, runtimeWith(given, { step }) as never);
  };
  return { ...node, body };
}

function rewritten({ [gotoKey]: target, ...update }: Readonly<Record<string, Json>>): unknown {
  const values = Object.fromEntries(
    Object.entries(update).map(([channel, value]) => [channel, Array.isArray(value) ? value : overwrite(value)]),
  );
  return typeof target === "string" ? goto(target, values) : values;
}

/** Under this name a recording says where a node's command led. No channel can have it. */
export const gotoKey = "→";

/** Answers by what is asked; while it is captured, in the order of the recording. */
function recordedAnswers({ models }: RecordedRun, capture: Capture | undefined): Model {
  const given = new Map<string, number>();
  let asked = 0;
  return {
    id: "recorded",
    respond: async (request: ModelRequest) => {
      if (capture !== undefined) {
        const answer = models[asked];
        asked += 1;
        if (answer === undefined) throw unasked("the run asked its models more often than the store has answers", []);
        capture.requests.push(normalised(capture.clean(request)));
        return structuredClone(answer.reply);
      }
      const shown: unknown = JSON.parse(JSON.stringify(normalised(request)));
      const digest = digestOf(shown);
      const same = models.filter((answer) => digestOf(answer.request) === digest);
      const nth = given.get(digest) ?? 0;
      given.set(digest, nth + 1);
      const answer = same[Math.min(nth, same.length - 1)];
      if (answer !== undefined) return structuredClone(answer.reply);
      const apart = models
        .map((each) => differences(each.request, shown))
        .sort((one, other) => one.length - other.length);
      throw unasked("a model is asked something else than it was", apart[0] ?? []);
    },
  };
}

function unasked(what: string, found: readonly string[]): StatewrightError {
  const shown = found.slice(0, 5).join("; ");
  return new StatewrightError("model_failed", {
    what: shown === "" ? what : `${what}: ${shown}`,
    next: "Mend what differs, or export the run again",
    details: { retryable: false, kind: "invalid_request", differences: found },
  });
}
