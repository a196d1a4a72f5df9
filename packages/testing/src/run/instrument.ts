/** A graph under test: the same shape, with every tool, node and model behind a door that a crash can shut. */
import type { Graph, GraphDefinition, GraphTypes, Model, Tool, ToolRegistry } from "@statewright/core";
import { graphWith, runtimeWith } from "../node/replace-parts.ts";
import type { EdgeChosen, NodeReturned, StepExecuted, ToolExecuted } from "../trace/trace.ts";

type AnyTool = Tool<never, never>;
type NodeRecord = GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node> ? Node : never;
type Body = NodeRecord["body"];
type EdgeRecord = GraphDefinition["edges"] extends ReadonlyMap<string, infer Edge> ? Edge : never;

/** What the doors need to know. */
export interface Instruments {
  /** False after the process has died: nothing is entered any more. */
  readonly alive: () => boolean;
  readonly executed: (entry: ToolExecuted) => void;
  /** Stands around the body of every tool; what it gives is the tool's return. */
  readonly around?: (entry: ToolExecuted, body: () => unknown) => unknown;
  /** Answers in place of the models that the graph names. */
  readonly model: Model | undefined;
  /** Is told what bodies return, what edges choose and which steps are entered. */
  readonly told?: (entry: EdgeChosen | NodeReturned | StepExecuted) => void;
  /** Opens each door: bodies, steps, models and tools wait for it, where it gives something to wait for. */
  readonly gate?: (door: string) => Promise<void> | undefined;
}

/** The graph, seen through instruments. The original is not touched. */
export function instrument<Types extends GraphTypes>(graph: Graph<Types>, instruments: Instruments): Graph<Types> {
  return isDrawn(graph) ? graph : watchGraph(graph, instruments, "");
}

/** A machine that `durable` made a graph of: it has no bodies to stand before. */
export function isDrawn(graph: Graph): boolean {
  return Object.getOwnPropertyDescriptor(graph, "machine")?.value !== undefined;
}

/** `path` leads to a graph inside another, as `research.`. */
function watchGraph<Types extends GraphTypes>(
  graph: Graph<Types>,
  instruments: Instruments,
  path: string,
): Graph<Types> {
  const { nodes, edges, tools } = graph;
  return graphWith(graph, {
    edges: path === "" ? new Map([...edges].map(([from, edge]) => [from, watchEdge(from, edge, instruments)])) : edges,
    nodes: new Map([...nodes].map(([key, node]) => [key, watchNode(node, instruments, path)])),
    tools: tools.map((tool) => watchTool(tool, instruments)),
  });
}

/** The edge of the outermost graph, telling what it chooses. */
function watchEdge(from: string, edge: EdgeRecord, { told }: Instruments): EdgeRecord {
  if (told === undefined) return edge;
  const chosen = (given: unknown, targets: readonly string[]): unknown => {
    told({ type: "edge.chosen", from, kind: edge.kind, targets, declared: edge.targets });
    return given;
  };
  if (edge.kind === "route")
    return {
      ...edge,
      choose: (state) => {
        const given = edge.choose(state);
        return chosen(given, Array.isArray(given) ? given.map(String) : [String(given)]);
      },
    };
  if (edge.kind !== "sends") return edge;
  const { target, otherwise } = edge;
  return {
    ...edge,
    select: (state) => {
      const given = edge.select(state);
      const isEmpty = Array.isArray(given) && given.length === 0;
      return chosen(given, isEmpty ? (otherwise === undefined ? [] : [otherwise]) : [target]);
    },
  };
}

function watchNode(node: NodeRecord, instruments: Instruments, path: string): NodeRecord {
  const watched = node.tools === undefined ? undefined : watchRegistry(node.tools, instruments);
  const body = watchBody(node, instruments, path);
  return {
    ...node,
    body,
    ...(node.subgraph === undefined
      ? {}
      : {
          subgraph: {
            ...node.subgraph,
            graph: watchGraph(node.subgraph.graph as Graph, instruments, `${path}${node.name}.`),
          },
        }),
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

/** What a body is given that a door stands before. */
interface Doing {
  readonly input?: unknown;
  readonly model: (call: ModelAsked, key?: string) => Promise<unknown>;
  readonly step: (key: string, work: (at: StepAt) => unknown, options?: object) => Promise<unknown>;
}

interface StepAt {
  readonly idempotencyKey: string;
}

function watchBody({ name, kind, body }: NodeRecord, instruments: Instruments, path: string): Body {
  const { alive, gate, told } = instruments;
  const node = `${path}${name}`;
  return ((state: never, runtime: Doing) => {
    if (!alive()) return never();
    const door = kind === "task" ? `${node}(${JSON.stringify(runtime.input)})` : node;
    const enter = (): unknown => {
      const returned: unknown = body(state, watchRuntime(node, door, runtime, instruments) as never);
      if (told === undefined || path !== "") return returned;
      const tell = (given: unknown): unknown => {
        for (const entry of returnedBy(name, kind === "task" ? runtime.input : undefined, given)) told(entry);
        return given;
      };
      return returned instanceof Promise ? returned.then(tell) : tell(returned);
    };
    const opens = gate?.(door);
    return opens === undefined ? enter() : opens.then(() => (alive() ? enter() : never()));
  }) as never;
}

/** The runtime of a body with doors before its steps and models; its other parts, getters too, are the original's. */
function watchRuntime(node: string, door: string, runtime: Doing, { alive, model, told, gate }: Instruments): Doing {
  const step: Doing["step"] = (key, work, options) =>
    runtime.step(
      key,
      async (at) => {
        await gate?.(`step "${key}" of ${door}`);
        if (!alive()) return never();
        told?.({ type: "step.executed", node, key, idempotencyKey: at.idempotencyKey });
        return work(at);
      },
      options,
    );
  const asks: Doing["model"] = async (call, key) => {
    await gate?.(`model of ${door}`);
    return runtime.model(model === undefined ? call : asking(model, call), key);
  };
  return runtimeWith(runtime, {
    ...(told === undefined && gate === undefined ? {} : { step }),
    ...(model === undefined && gate === undefined ? {} : { model: asks }),
  });
}

/** By what a command of a node is known. */
const command: unique symbol = Symbol.for("statewright.command") as never;

/** What a return says in plain words: values by channel, and where control goes. Recipes are not looked into. */
function returnedBy(node: string, input: unknown, given: unknown): readonly (NodeReturned | EdgeChosen)[] {
  return [given].flat().flatMap((item): readonly (NodeReturned | EdgeChosen)[] => {
    if (typeof item !== "object" || item === null) return [];
    const { [command]: kind, target, update } = item as { [command]?: string; target?: string; update?: object };
    if (kind === "recipe") return [];
    if (kind === undefined) return [{ type: "node.returned", node, input, update: item as NodeReturned["update"] }];
    return [
      { type: "edge.chosen", from: node, kind, targets: [String(target)], declared: [] },
      ...(update === undefined
        ? []
        : [{ type: "node.returned" as const, node, input, update: update as NodeReturned["update"] }]),
    ];
  });
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

function watchTool(tool: AnyTool, instruments: Instruments): AnyTool {
  const { alive, executed, around, gate } = instruments;
  const { spec, resolve, reconcile, prepareArguments, graph } = tool;
  return {
    spec,
    ...(graph === undefined ? {} : { graph: watchGraphTool(graph as GraphTool, spec.name, instruments) }),
    call: (state, runtime, call) => {
      if (!alive()) return never();
      const { attempt, idempotencyKey } = runtime as { readonly attempt: number; readonly idempotencyKey: string };
      const { id: callId, args } = call;
      const entry: ToolExecuted = { type: "tool.executed", tool: spec.name, callId, attempt, idempotencyKey, args };
      const body = (): unknown => tool.call(state, runtime, call);
      const enter = (): unknown => {
        executed(entry);
        return around === undefined ? body() : around(entry, body);
      };
      const opens = gate?.(`${spec.name} ${JSON.stringify(args)}`);
      return opens === undefined ? enter() : opens.then(() => (alive() ? enter() : never()));
    },
    ...(resolve === undefined ? {} : { resolve: (source) => resolve.call(tool, source) }),
    ...(prepareArguments === undefined ? {} : { prepareArguments: (args) => prepareArguments.call(tool, args) }),
    ...(reconcile === undefined
      ? {}
      : { reconcile: (state, runtime, call) => (alive() ? reconcile.call(tool, state, runtime, call) : never()) }),
  };
}

/** What a tool that runs a graph says of it. */
interface GraphTool {
  readonly graph: () => Graph;
}

/** The graph that a tool runs, seen through the same instruments. It may be known only when it is asked for. */
function watchGraphTool(record: GraphTool, tool: string, instruments: Instruments): GraphTool {
  let watched: Graph | undefined;
  return {
    ...record,
    graph: () => {
      watched ??= watchGraph(record.graph(), instruments, `${tool}.`);
      return watched;
    },
  };
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
