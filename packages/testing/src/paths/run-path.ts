/** Run of a path with the real graph: models, tools, answers and routes follow the path. */
import {
  decide,
  defineMiddleware,
  END,
  type Graph,
  type GraphDefinition,
  type GraphTypes,
  type JsonObject,
  type RunOptions,
  ToolError,
} from "@statewright/core";
import { toModelTool } from "@statewright/core/adapter";
import { replaceGraphParts } from "../node/replace-parts.ts";
import { testRun } from "../run/create-test-run.ts";
import { instrument } from "../run/instrument.ts";
import type { TestRunOptions } from "../run/test-options.ts";
import type { TestRun } from "../run/test-run.ts";
import { call, say, scriptedModel } from "../scripted-model.ts";
import { virtualClock } from "../virtual-clock.ts";
import { createSample } from "./create-sample.ts";
import type { NodeOutcome, PathEvent } from "./path-event.ts";

/** Arguments and result of a tool, where the minimal samples do not fit. */
export interface PathTool {
  readonly args?: JsonObject;
  /** Returned value; with `real`, the real body runs instead. */
  readonly result?: unknown;
  readonly real?: boolean;
}

/** Options of a path run. */
export type PathRunOptions<Types extends GraphTypes = GraphTypes> = Omit<
  RunOptions<Types>,
  "store" | "world" | "input" | "context" | "thread"
> & {
  /** Input; for an agent the text of a user message, by default a greeting. */
  readonly input?: unknown;
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

interface PathToRun {
  readonly name: string;
  readonly events: readonly PathEvent[];
  readonly startEvent: PathEvent | undefined;
  readonly end: "done" | "failed";
}

type NodeRecord = GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node> ? Node : never;
type EdgeRecord = GraphDefinition["edges"] extends ReadonlyMap<string, infer Edge> ? Edge : never;

/** Runs a graph along a path and checks the executed nodes. */
export async function runPath<Types extends GraphTypes>(
  graph: Graph<Types>,
  path: PathToRun,
  options: PathRunOptions<Types>,
): Promise<TestRun<Types>> {
  const { input, tools = {}, answers = {}, returns = {}, routes = "path", ...common } = options as AnyOptions;
  let t: TestRun<Types> | undefined;
  const countSupersteps = (): number => (t === undefined ? 0 : listSuperstepNodes(t).length);
  const getCurrentOutcomes = (): readonly NodeOutcome[] => path.events[countSupersteps()]?.outcomes ?? [];
  const findOutcome = (node: string): NodeOutcome | undefined =>
    getCurrentOutcomes().find((outcome) => outcome.node === node);
  const findToolOutcome = (name: string): NodeOutcome | undefined =>
    getCurrentOutcomes().find((outcome) => "tool" in outcome && outcome.tool === name);

  const model = scriptedModel(() => {
    const calls = getCurrentOutcomes().find((outcome) => outcome.how === "calls");
    if (calls === undefined || !("tool" in calls)) return say("Done.");
    const spec = graph.tools.find((tool) => tool.spec.name === calls.tool)?.spec;
    const args = tools[calls.tool]?.args ?? (spec === undefined ? {} : createSample(toModelTool(spec).inputSchema));
    return call(calls.tool, args as JsonObject);
  });

  const denyMiddleware = defineMiddleware({
    name: "path-denies",
    beforeTool: ({ call: { name } }) =>
      findToolOutcome(name)?.how === "denied" ? decide.deny("the path denies this call") : undefined,
  });

  const instrumented = instrument(graph, {
    isAlive: () => true,
    onToolExecuted: () => undefined,
    model: undefined,
    wrapToolBody: ({ tool }, body) => {
      if (findToolOutcome(tool)?.how === "error") throw new ToolError("failed", "the path makes this call fail");
      const toolOptions = tools[tool];
      return toolOptions?.real === true
        ? body()
        : toolOptions !== undefined && "result" in toolOptions
          ? toolOptions.result
          : "ok";
    },
  });

  const createBody = (node: NodeRecord): NodeRecord["body"] => {
    if (node.subgraph !== undefined || node.tools !== undefined) return node.body;
    const replacement = returns[node.name];
    return (state, runtime) => {
      const outcome = findOutcome(node.name);
      if (outcome?.how === "fails") throw new Error(`the path makes the node "${node.name}" fail`);
      if (replacement !== undefined && outcome !== undefined) return replacement(outcome.to, state) as never;
      return node.body(state, runtime);
    };
  };
  const createEdge = (source: string, edge: EdgeRecord): EdgeRecord => {
    const getChosenTargets = (): readonly string[] | undefined =>
      source === "__start__" ? path.startEvent?.outcomes[0]?.to : findOutcome(source)?.to;
    const hasModelCall = (): boolean =>
      path.events.some(({ outcomes: all }) => all.some(({ node, how }) => node === source && how === "calls"));
    if (routes === "real" || hasModelCall()) return edge;
    if (edge.kind === "route")
      return {
        ...edge,
        choose: (state) => {
          const to = getChosenTargets();
          if (to === undefined) return edge.choose(state);
          const [only = END] = to;
          return to.length > 1 ? to : only;
        },
      };
    if (edge.kind !== "fanOut") return edge;
    return {
      ...edge,
      select: (state) => (getChosenTargets()?.includes(edge.target) === false ? [] : edge.select(state)),
    };
  };

  const pathGraph = replaceGraphParts(graph, {
    nodes: new Map([...instrumented.nodes].map(([name, node]) => [name, { ...node, body: createBody(node) }])),
    edges: new Map([...instrumented.edges].map(([source, edge]) => [source, createEdge(source, edge)])),
    middleware: [denyMiddleware, ...graph.middleware],
  });

  const clock = virtualClock();
  t = await testRun(pathGraph, {
    ...common,
    model,
    clock,
    ...createInputOption(graph, input),
  } as unknown as TestRunOptions<Types, unknown>);
  await awaitRun(t, () => t?.finish());
  for (let interruptCount = 0; t.status === "waiting" && interruptCount < maxInterrupts; interruptCount++) {
    const [interrupt] = t.interrupts;
    const asked = getCurrentOutcomes().find((outcome) => outcome.asked?.key === interrupt?.key)?.asked;
    const given: Record<string, unknown> = {};
    if (asked?.how === "expired" && interrupt?.expiresAt !== undefined)
      await clock.advance(interrupt.expiresAt - clock.clock.now() + 1);
    else if (interrupt !== undefined)
      given[interrupt.id] = interrupt.key in answers ? answers[interrupt.key] : createSample(interrupt.schema);
    await awaitRun(t, () => t?.resume(given as never));
  }
  checkPath(graph, path, t);
  return t;
}

const maxInterrupts = 50;

interface AnyOptions {
  readonly input?: unknown;
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

function createInputOption(graph: Graph, input: unknown): { readonly input?: unknown } {
  if (input !== undefined) return { input };
  return "toInput" in graph ? { input: "Hello" } : {};
}

function listSuperstepNodes(t: TestRun): readonly (readonly string[])[] {
  return t.trace.entries.flatMap((entry) =>
    entry.type === "step.committed" && entry.within === undefined && entry.nodes.length > 0 ? [entry.nodes] : [],
  );
}

function checkPath(graph: Graph, path: PathToRun, t: TestRun): void {
  const executed = listSuperstepNodes(t);
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
