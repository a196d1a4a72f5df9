/** A graph under test: the same shape, with every tool, node and model behind a door that a crash can shut. */
import type { Graph, GraphDefinition, GraphTypes, Model, Tool, ToolRegistry } from "@statewright/core";
import type { ToolExecuted } from "./trace.ts";

type AnyTool = Tool<never, never>;
type NodeRecord = GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node> ? Node : never;
type Body = NodeRecord["body"];

/** What the doors need to know. */
export interface Instruments {
  /** False after the process has died: nothing is entered any more. */
  readonly alive: () => boolean;
  readonly executed: (entry: ToolExecuted) => void;
  /** Answers in place of the models that the graph names. */
  readonly model: Model | undefined;
}

/** The graph, seen through instruments. The original is not touched. */
export function instrument<Types extends GraphTypes>(graph: Graph<Types>, instruments: Instruments): Graph<Types> {
  const { name, version, state, context, interrupts, input, output, edges } = graph;
  return Object.freeze({
    name,
    version,
    state,
    context,
    interrupts,
    input,
    output,
    private: graph.private,
    inbox: graph.inbox,
    middleware: graph.middleware,
    edges,
    nodes: new Map([...graph.nodes].map(([key, node]) => [key, watchNode(node, instruments)])),
    tools: graph.tools.map((tool) => watchTool(tool, instruments)),
    get machine() {
      return graph.machine;
    },
  });
}

function watchNode(node: NodeRecord, instruments: Instruments): NodeRecord {
  const { alive, model } = instruments;
  const watched = node.tools === undefined ? undefined : watchRegistry(node.tools, instruments);
  const body: Body = (state, runtime) =>
    alive() ? node.body(state, model === undefined ? runtime : (withModel(runtime, model) as never)) : never();
  return {
    ...node,
    body,
    ...(node.subgraph === undefined
      ? {}
      : { subgraph: { ...node.subgraph, graph: instrument(node.subgraph.graph as Graph, instruments) } }),
    ...(node.tools === undefined || watched === undefined ? {} : { tools: { ...node.tools, ...watched } }),
  };
}

/** The registry of a tool node with a door before each tool; what is changed in the original counts here too. */
function watchRegistry(
  { registry, defined }: NonNullable<NodeRecord["tools"]>,
  instruments: Instruments,
): Pick<NonNullable<NodeRecord["tools"]>, "registry" | "defined"> {
  const doors = new WeakMap<AnyTool, AnyTool>();
  const watch = (tool: AnyTool): AnyTool => {
    const known = doors.get(tool) ?? watchTool(tool, instruments);
    doors.set(tool, known);
    return known;
  };
  const sets = new WeakMap<Tools, Tools>();
  const watchAll = (tools: Tools): Tools => {
    const known = sets.get(tools) ?? new Map([...tools].map(([name, tool]) => [name, watch(tool)]));
    sets.set(tools, known);
    return known;
  };
  const watched: ToolRegistry<never, never> = {
    ...registry,
    get: (name) => {
      const tool = registry.get(name);
      return tool === undefined ? undefined : watch(tool);
    },
    tools: () => watchAll(registry.tools()),
  };
  return { registry: watched, defined: watchAll(defined) };
}

type Tools = ReadonlyMap<string, AnyTool>;

interface AsksModels {
  readonly model: (call: ModelAsked, key?: string) => Promise<unknown>;
}

/** The runtime of a body in which every model is `model`; its other parts, getters too, are the original's. */
function withModel(runtime: AsksModels, model: Model): AsksModels {
  const asks: AsksModels["model"] = (call, key) => runtime.model(asking(model, call), key);
  return Object.create(runtime, { model: { value: asks, enumerable: true } }) as AsksModels;
}

/** A call of a model, or a turn of an agent, which makes its call when its hooks have been called. */
type ModelAsked =
  | { readonly model: Model; readonly prepare?: undefined }
  | { readonly prepare: (state: never) => object | Promise<object> };

function asking(model: Model, call: ModelAsked): ModelAsked {
  const { prepare } = call;
  if (prepare === undefined) return { ...call, model };
  return { ...call, prepare: async (state) => ({ ...(await prepare(state)), model }) };
}

function watchTool(tool: AnyTool, { alive, executed }: Instruments): AnyTool {
  const { spec, resolve, reconcile, prepareArguments } = tool;
  return {
    spec,
    call: (state, runtime, call) => {
      if (!alive()) return never();
      const { attempt, idempotencyKey } = runtime as { readonly attempt: number; readonly idempotencyKey: string };
      executed({ type: "tool.executed", tool: spec.name, callId: call.id, attempt, idempotencyKey, args: call.args });
      return tool.call(state, runtime, call);
    },
    ...(resolve === undefined ? {} : { resolve: (source) => resolve.call(tool, source) }),
    ...(prepareArguments === undefined ? {} : { prepareArguments: (args) => prepareArguments.call(tool, args) }),
    ...(reconcile === undefined
      ? {}
      : { reconcile: (state, runtime, call) => (alive() ? reconcile.call(tool, state, runtime, call) : never()) }),
  };
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
