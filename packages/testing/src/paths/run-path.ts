/** Run of a path with the real graph: models, tools, answers and routes follow the path. */
import type { Graph, GraphTypes, RunOptions } from "@statewright/core";
import { testRun } from "../run/create-test-run.ts";
import type { TestRun } from "../run/test-run.ts";
import { virtualClock } from "../virtual-clock.ts";
import { createSample } from "./create-sample.ts";
import type { NodeOutcome } from "./path-event.ts";
import { createPathGraph, createPathModel, type PathTool } from "./path-graph.ts";
import { listSuperstepNodes, PathProgress, type PathToRun } from "./path-progress.ts";

/** Options of a path run. */
export type PathRunOptions<Types extends GraphTypes = GraphTypes> = Omit<
  RunOptions<Types>,
  "store" | "world" | "input" | "context" | "thread"
> & {
  /** Input; for an agent the text of a user message, by default a greeting. */
  readonly input?: unknown;
  /** Context of the run. Default: none. */
  readonly context?: unknown;
  /** Tools by name. Default: minimal valid arguments, and the result `ok`. */
  readonly tools?: Readonly<Record<string, PathTool>>;
  /** Answers to interrupts by key. Default: the minimal valid answer. */
  readonly answers?: Readonly<Record<string, unknown>>;
  /** Replacements of node bodies, called with the targets of the path. Required for a node that returns commands. */
  readonly returns?: Readonly<Record<string, (to: readonly string[], state: Types["state"]) => unknown>>;
  /**
   * `path` (default): routes choose the targets of the path. `real`: routes run, and a deviation from the path is an
   * error.
   */
  readonly routes?: "path" | "real";
};

/** Runs a graph along a path and checks the executed nodes. */
export async function runPath<Types extends GraphTypes>(
  graph: Graph<Types>,
  path: PathToRun,
  options: PathRunOptions<Types>,
): Promise<TestRun<Types>> {
  const { input, tools = {}, answers = {}, returns = {}, routes = "path", ...common } = options as AnyOptions;
  const progress = new PathProgress(path);
  const pathGraph = createPathGraph(graph, progress, { tools, returns, routes });
  const model = createPathModel(graph, progress, tools);
  const clock = virtualClock();
  const runOptions = { ...common, model, clock, ...createInputOption(graph, input) };
  const t = (await testRun<GraphTypes, AgentInput>(pathGraph as Graph, runOptions)) as TestRun<Types>;
  progress.follow(t.trace);
  await awaitRun(t, () => t.finish());
  for (let interruptCount = 0; t.status === "waiting" && interruptCount < maxInterrupts; interruptCount++) {
    const [interrupt] = t.interrupts;
    const asked = progress.getOutcomes().find((outcome) => outcome.asked?.key === interrupt?.key)?.asked;
    const given: Record<string, unknown> = {};
    if (asked?.how === "expired" && interrupt?.expiresAt !== undefined)
      await clock.advance(interrupt.expiresAt - clock.clock.now() + 1);
    else if (interrupt !== undefined)
      given[interrupt.id] = interrupt.key in answers ? answers[interrupt.key] : createSample(interrupt.schema);
    await awaitRun(t, () => t.resume(given as never));
  }
  checkPath(graph, path, t);
  return t;
}

const maxInterrupts = 50;

/** Input of a graph, or the text of a user message. */
type AgentInput = object | string;

interface AnyOptions {
  readonly input?: AgentInput;
  readonly tools?: Readonly<Record<string, PathTool>>;
  readonly answers?: Readonly<Record<string, unknown>>;
  readonly returns?: Readonly<Record<string, (to: readonly string[], state: never) => unknown>>;
  readonly routes?: "path" | "real";
}

/** Awaits the run; ignores the error of a failed run, which its status shows. */
async function awaitRun(t: TestRun, advance: () => Promise<void> | undefined): Promise<void> {
  try {
    await advance();
  } catch (error) {
    if (t.error !== error) throw error;
  }
}

function createInputOption(graph: Graph, input: AgentInput | undefined): { readonly input?: AgentInput } {
  if (input !== undefined) return { input };
  return "toInput" in graph ? { input: "Hello" } : {};
}

function checkPath(graph: Graph, path: PathToRun, t: TestRun): void {
  const executed = listSuperstepNodes(t.trace);
  const expected = path.end === "failed" ? path.events.slice(0, -1) : path.events;
  const firstDeviation = expected.findIndex(({ outcomes }, index) => !hasSameNodes(outcomes, executed[index] ?? []));
  const at = firstDeviation >= 0 ? firstDeviation : executed.length > expected.length ? expected.length : -1;
  if (at < 0 && t.status === path.end) return;
  const prefix = at > 0 ? `after "${path.events[at - 1]?.type}" ` : "";
  const formatStep = (names: readonly string[] | undefined): string =>
    names === undefined || names.length === 0 ? "ends" : `runs ${names.join(" + ")}`;
  const reason =
    at < 0
      ? `the path ends with status ${path.end}, and the run has status ${t.status}`
      : `${prefix}the path ${formatStep(expected[at]?.outcomes.map(({ node }) => node))}, and the run ${executed[at] === undefined ? `is ${t.status}` : formatStep(executed[at])}`;
  const failure = t.error instanceof Error && path.end !== "failed" ? ` It failed: ${t.error.message}` : "";
  const source = path.events[at - 1]?.outcomes.find(
    ({ node }) => graph.edges.get(node)?.kind === "commandTargets",
  )?.node;
  const hint =
    source === undefined
      ? ""
      : ` The node "${source}" returns commands. Add its return: returns: { ${source}: (to) => goto(…) }.`;
  throw new Error(`the graph "${graph.name}" does not follow the path ${path.name}: ${reason}.${failure}${hint}`, {
    cause: t.error,
  });
}

function hasSameNodes(outcomes: readonly NodeOutcome[], nodes: readonly string[]): boolean {
  const expected = outcomes.map(({ node }) => node).sort();
  return expected.join("\n") === [...new Set(nodes)].sort().join("\n");
}
