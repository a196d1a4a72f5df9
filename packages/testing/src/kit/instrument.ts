/** A graph under test: the same shape, with every tool, node and model behind a door that a crash can shut. */
import {
  type Graph,
  type GraphDefinition,
  type GraphTypes,
  type Model,
  type Tool,
  toolRegistry,
} from "@statewright/core";
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
  const tools = new Map(graph.tools.map((tool) => [tool.spec.name, watchTool(tool, instruments)]));
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
    edges,
    nodes: new Map([...graph.nodes].map(([key, node]) => [key, watchNode(node, tools, instruments)])),
    tools: [...tools.values()],
    get machine() {
      return graph.machine;
    },
  });
}

function watchNode(node: NodeRecord, tools: ReadonlyMap<string, AnyTool>, instruments: Instruments): NodeRecord {
  const { alive, model } = instruments;
  const registry =
    node.tools === undefined
      ? undefined
      : toolRegistry(node.tools.registry.names().flatMap((name) => tools.get(name) ?? []));
  const body: Body = (state, runtime) =>
    alive() ? node.body(state, model === undefined ? runtime : (withModel(runtime, model) as never)) : never();
  return {
    ...node,
    body,
    ...(node.subgraph === undefined
      ? {}
      : { subgraph: { ...node.subgraph, graph: instrument(node.subgraph.graph as Graph, instruments) } }),
    ...(node.tools === undefined || registry === undefined ? {} : { tools: { ...node.tools, registry } }),
  };
}

interface AsksModels {
  readonly model: (call: { readonly model: Model }, key?: string) => Promise<unknown>;
}

/** The runtime of a body in which every model is `model`; its other parts, getters too, are the original's. */
function withModel(runtime: AsksModels, model: Model): AsksModels {
  const asks: AsksModels["model"] = (call, key) => runtime.model({ ...call, model }, key);
  return Object.create(runtime, { model: { value: asks, enumerable: true } }) as AsksModels;
}

function watchTool(tool: AnyTool, { alive, executed }: Instruments): AnyTool {
  const { spec, reconcile } = tool;
  return {
    spec,
    call: (state, runtime, call) => {
      if (!alive()) return never();
      const { attempt, idempotencyKey } = runtime as { readonly attempt: number; readonly idempotencyKey: string };
      executed({ type: "tool.executed", tool: spec.name, callId: call.id, attempt, idempotencyKey, args: call.args });
      return tool.call(state, runtime, call);
    },
    ...(reconcile === undefined
      ? {}
      : { reconcile: (state, runtime, call) => (alive() ? reconcile.call(tool, state, runtime, call) : never()) }),
  };
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
