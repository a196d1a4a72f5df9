/** Graph and model of a path run: outcomes, routes and tool results follow the path. */
import {
  decide,
  defineMiddleware,
  END,
  type Graph,
  type GraphDefinition,
  type GraphTypes,
  type JsonObject,
  type Model,
  ToolError,
} from "@statewright/core";
import { toModelTool } from "@statewright/core/adapter";
import { replaceGraphParts } from "../node/replace-parts.ts";
import { instrument } from "../run/instrument.ts";
import { call, say, scriptedModel } from "../scripted-model.ts";
import { createSample } from "./create-sample.ts";
import type { PathProgress } from "./path-progress.ts";

/** Arguments and result of a tool, where the minimal samples do not fit. */
export interface PathTool {
  readonly args?: JsonObject;
  /** Returned value; with `real`, the real body runs instead. */
  readonly result?: unknown;
  readonly real?: boolean;
}

/** Replaced parts of the graph. */
export interface PathReplacements {
  readonly tools: Readonly<Record<string, PathTool>>;
  readonly returns: Readonly<Record<string, (to: readonly string[], state: never) => unknown>>;
  readonly routes: "path" | "real";
}

type NodeRecord = GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node> ? Node : never;
type EdgeRecord = GraphDefinition["edges"] extends ReadonlyMap<string, infer Edge> ? Edge : never;

/** Creates a copy of a graph that follows the path. */
export function createPathGraph<Types extends GraphTypes>(
  graph: Graph<Types>,
  progress: PathProgress,
  { tools, returns, routes }: PathReplacements,
): Graph<Types> {
  const instrumented = instrument(graph, {
    isAlive: () => true,
    onToolExecuted: () => undefined,
    model: undefined,
    wrapToolBody: ({ tool }, body) => runTool(tool, { progress, options: tools[tool], body }),
  });
  const createNode = (node: NodeRecord): NodeRecord => ({ ...node, body: createBody(node, progress, returns) });
  const createPathEdge = (source: string, edge: EdgeRecord): EdgeRecord =>
    routes === "real" || progress.makesCall(source) ? edge : createEdge(source, edge, progress);
  return replaceGraphParts(graph, {
    nodes: new Map([...instrumented.nodes].map(([name, node]) => [name, createNode(node)])),
    edges: new Map([...instrumented.edges].map(([source, edge]) => [source, createPathEdge(source, edge)])),
    middleware: [createDenyMiddleware(progress), ...graph.middleware],
  });
}

/** Creates a model that makes the tool calls of the path. */
export function createPathModel(graph: Graph, progress: PathProgress, tools: PathReplacements["tools"]): Model {
  return scriptedModel(() => {
    const calls = progress.getOutcomes().find((outcome) => outcome.how === "calls");
    if (calls === undefined || !("tool" in calls)) return say("Done.");
    const spec = graph.tools.find((tool) => tool.spec.name === calls.tool)?.spec;
    const args = tools[calls.tool]?.args ?? (spec === undefined ? {} : createSample(toModelTool(spec).inputSchema));
    return call(calls.tool, args as JsonObject);
  });
}

function createDenyMiddleware(progress: PathProgress) {
  return defineMiddleware({
    name: "path-denies",
    beforeTool: ({ call: { name } }) =>
      progress.findToolOutcome(name)?.how === "denied" ? decide.deny("the path denies this call") : undefined,
  });
}

interface ToolRun {
  readonly progress: PathProgress;
  readonly options: PathTool | undefined;
  readonly body: () => unknown;
}

/** Runs a tool with the outcome of the path. */
function runTool(name: string, { progress, options, body }: ToolRun): unknown {
  if (progress.findToolOutcome(name)?.how === "error") throw new ToolError("failed", "the path makes this call fail");
  if (options?.real === true) return body();
  return options !== undefined && "result" in options ? options.result : "ok";
}

function createBody(
  node: NodeRecord,
  progress: PathProgress,
  returns: PathReplacements["returns"],
): NodeRecord["body"] {
  if (node.subgraph !== undefined || node.tools !== undefined) return node.body;
  const replacement = returns[node.name];
  return (state, runtime) => {
    const outcome = progress.findOutcome(node.name);
    if (outcome?.how === "fails") throw new Error(`the path makes the node "${node.name}" fail`);
    if (replacement !== undefined && outcome !== undefined) return replacement(outcome.to, state) as never;
    return node.body(state, runtime);
  };
}

/** Creates an edge that chooses the targets of the path. */
function createEdge(source: string, edge: EdgeRecord, progress: PathProgress): EdgeRecord {
  if (edge.kind === "route")
    return {
      ...edge,
      choose: (state, context) => {
        const to = progress.getTargets(source);
        if (to === undefined) return edge.choose(state, context);
        const [only = END] = to;
        return to.length > 1 ? to : only;
      },
    };
  if (edge.kind !== "fanOut") return edge;
  return {
    ...edge,
    select: (state, context) =>
      progress.getTargets(source)?.includes(edge.target) === false ? [] : edge.select(state, context),
  };
}
