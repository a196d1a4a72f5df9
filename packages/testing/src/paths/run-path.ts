/** A path taken by the real graph: models, tools, people and choices do what the path says. */
import {
  defineMiddleware,
  deny,
  END,
  type Graph,
  type GraphDefinition,
  type GraphTypes,
  type JsonObject,
  modelToolOf,
  type RunOptions,
  ToolError,
} from "@statewright/core";
import { graphWith } from "../node/replace-parts.ts";
import { instrument } from "../run/instrument.ts";
import { type TestRun, type TestRunOptions, testRun } from "../run/test-run.ts";
import { call, say, scriptedModel } from "../scripted-model.ts";
import { virtualClock } from "../virtual-clock.ts";
import { sampleOf } from "./create-sample.ts";
import type { NodeOutcome, PathEvent } from "./path-event.ts";

/** How a tool is called and what it gives, where the smallest fitting values will not do. */
export interface PathTool {
  readonly args?: JsonObject;
  /** What it returns; its real body runs when this is `real`. */
  readonly result?: unknown;
  readonly real?: boolean;
}

/** What running a path takes. */
export type PathRunOptions<Types extends GraphTypes = GraphTypes> = Omit<
  RunOptions<Types>,
  "store" | "world" | "input" | "context" | "thread"
> & {
  /** The input; of an agent the words of a person, by default some. */
  readonly input?: unknown;
  readonly context?: unknown;
  /** By name. Default: the smallest arguments that fit, and the result `ok`. */
  readonly tools?: Readonly<Record<string, PathTool>>;
  /** What people answer, by key. Default: the smallest answer that fits. */
  readonly answers?: Readonly<Record<string, unknown>>;
  /** What a node returns in place of its body, by where the path goes from there. A node that returns commands needs it. */
  readonly returns?: Readonly<Record<string, (to: readonly string[], state: Types["state"]) => unknown>>;
  /** `path` (default): routes choose what the path says. `real`: they choose by themselves, and a run that goes another way is an error. */
  readonly routes?: "path" | "real";
};

interface Taken {
  readonly name: string;
  readonly events: readonly PathEvent[];
  readonly begins: PathEvent | undefined;
  readonly end: "done" | "failed";
}

type NodeRecord = GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node> ? Node : never;
type EdgeRecord = GraphDefinition["edges"] extends ReadonlyMap<string, infer Edge> ? Edge : never;

/** Run a graph along a path, and compare where it went. */
export async function runPath<Types extends GraphTypes>(
  graph: Graph<Types>,
  path: Taken,
  options: PathRunOptions<Types>,
): Promise<TestRun<Types>> {
  const { input, tools = {}, answers = {}, returns = {}, routes = "path", ...common } = options as AnyOptions;
  let t: TestRun<Types> | undefined;
  const now = (): number => (t === undefined ? 0 : stepsOf(t).length);
  const outcomes = (): readonly NodeOutcome[] => path.events[now()]?.outcomes ?? [];
  const outcomeOf = (node: string): NodeOutcome | undefined => outcomes().find((outcome) => outcome.node === node);
  const toolNow = (name: string): NodeOutcome | undefined =>
    outcomes().find((outcome) => "tool" in outcome && outcome.tool === name);

  const model = scriptedModel(() => {
    const calls = outcomes().find((outcome) => outcome.how === "calls");
    if (calls === undefined || !("tool" in calls)) return say("Done.");
    const spec = graph.tools.find((tool) => tool.spec.name === calls.tool)?.spec;
    const args = tools[calls.tool]?.args ?? (spec === undefined ? {} : sampleOf(modelToolOf(spec).inputSchema));
    return call(calls.tool, args as JsonObject);
  });

  const refuses = defineMiddleware({
    name: "path-denies",
    beforeTool: ({ call: { name } }) =>
      toolNow(name)?.how === "denied" ? deny("the path denies this call") : undefined,
  });

  const acting = instrument(graph, {
    alive: () => true,
    executed: () => undefined,
    model: undefined,
    around: ({ tool }, body) => {
      if (toolNow(tool)?.how === "error") throw new ToolError("failed", "the path lets this call fail");
      const given = tools[tool];
      return given?.real === true ? body() : given !== undefined && "result" in given ? given.result : "ok";
    },
  });

  const bodyOf = (node: NodeRecord): NodeRecord["body"] => {
    if (node.subgraph !== undefined || node.tools !== undefined) return node.body;
    const instead = returns[node.name];
    return (state, runtime) => {
      const outcome = outcomeOf(node.name);
      if (outcome?.how === "fails") throw new Error(`the path lets the node "${node.name}" fail`);
      if (instead !== undefined && outcome !== undefined) return instead(outcome.to, state) as never;
      return node.body(state, runtime);
    };
  };
  const edgeOf = (source: string, edge: EdgeRecord): EdgeRecord => {
    const chosen = (): readonly string[] | undefined =>
      source === "__start__" ? path.begins?.outcomes[0]?.to : outcomeOf(source)?.to;
    const isModel = (): boolean =>
      path.events.some(({ outcomes: all }) => all.some(({ node, how }) => node === source && how === "calls"));
    if (routes === "real" || isModel()) return edge;
    if (edge.kind === "route")
      return {
        ...edge,
        choose: (state) => {
          const to = chosen();
          if (to === undefined) return edge.choose(state);
          const [only = END] = to;
          return to.length > 1 ? to : only;
        },
      };
    if (edge.kind !== "sends") return edge;
    return { ...edge, select: (state) => (chosen()?.includes(edge.target) === false ? [] : edge.select(state)) };
  };

  const taking = graphWith(graph, {
    nodes: new Map([...acting.nodes].map(([name, node]) => [name, { ...node, body: bodyOf(node) }])),
    edges: new Map([...acting.edges].map(([source, edge]) => [source, edgeOf(source, edge)])),
    middleware: [refuses, ...graph.middleware],
  });

  const clock = virtualClock();
  t = await testRun(taking, { ...common, model, clock, ...inputOf(graph, input) } as unknown as TestRunOptions<
    Types,
    unknown
  >);
  await letGo(t, () => t?.finish());
  for (let stops = 0; t.status === "waiting" && stops < mostStops; stops++) {
    const [question] = t.interrupts;
    const asked = outcomes().find((outcome) => outcome.asked?.key === question?.key)?.asked;
    const given: Record<string, unknown> = {};
    if (asked?.how === "expired" && question?.expiresAt !== undefined)
      await clock.advance(question.expiresAt - clock.clock.now() + 1);
    else if (question !== undefined)
      given[question.id] = question.key in answers ? answers[question.key] : sampleOf(question.schema);
    await letGo(t, () => t?.resume(given as never));
  }
  compare(graph, path, t);
  return t;
}

const mostStops = 50;

interface AnyOptions {
  readonly input?: unknown;
  readonly tools?: Readonly<Record<string, PathTool>>;
  readonly answers?: Readonly<Record<string, unknown>>;
  readonly returns?: Readonly<Record<string, (to: readonly string[], state: never) => unknown>>;
  readonly routes?: "path" | "real";
}

/** A run that fails tells so by its status. */
async function letGo(t: TestRun, go: () => Promise<void> | undefined): Promise<void> {
  try {
    await go();
  } catch (error) {
    if (t.error !== error) throw error;
  }
}

function inputOf(graph: Graph, input: unknown): { readonly input?: unknown } {
  if (input !== undefined) return { input };
  return "inputOf" in graph ? { input: "Hello" } : {};
}

function stepsOf(t: TestRun): readonly (readonly string[])[] {
  return t.trace.entries.flatMap((entry) =>
    entry.type === "step.committed" && entry.within === undefined && entry.nodes.length > 0 ? [entry.nodes] : [],
  );
}

function compare(graph: Graph, path: Taken, t: TestRun): void {
  const went = stepsOf(t);
  const expected = path.end === "failed" ? path.events.slice(0, -1) : path.events;
  const apart = expected.findIndex(({ outcomes }, index) => !isSame(outcomes, went[index] ?? []));
  const at = apart >= 0 ? apart : went.length > expected.length ? expected.length : -1;
  if (at < 0 && t.status === path.end) return;
  const before = at > 0 ? `after "${path.events[at - 1]?.type}" ` : "";
  const nodes = (names: readonly string[] | undefined): string =>
    names === undefined || names.length === 0 ? "ends" : `runs ${names.join(" + ")}`;
  const why =
    at < 0
      ? `the path is ${path.end} at its end, and the run is ${t.status}`
      : `${before}the path ${nodes(expected[at]?.outcomes.map(({ node }) => node))}, and the run ${went[at] === undefined ? `is ${t.status}` : nodes(went[at])}`;
  const failure = t.error instanceof Error && path.end !== "failed" ? ` It failed: ${t.error.message}` : "";
  const source = path.events[at - 1]?.outcomes.find(({ node }) => graph.edges.get(node)?.kind === "gotos")?.node;
  const hint =
    source === undefined
      ? ""
      : ` The node "${source}" returns commands: say what it returns, returns: { ${source}: (to) => goto(…) }.`;
  throw new Error(`the graph "${graph.name}" does not take the path ${path.name}: ${why}.${failure}${hint}`, {
    cause: t.error,
  });
}

function isSame(outcomes: readonly NodeOutcome[], nodes: readonly string[]): boolean {
  const expected = outcomes.map(({ node }) => node).sort();
  return expected.join("\n") === [...new Set(nodes)].sort().join("\n");
}
