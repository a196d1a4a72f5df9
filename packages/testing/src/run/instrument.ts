/** Graph under test: the same shape, with a gate before every tool, node and model, closed after a crash. */
import type { Generate, Graph, GraphDefinition, GraphTypes, Model, Tool, ToolRegistry } from "@statewright/core";
import { replaceGraphParts, replaceRuntimeParts } from "../node/replace-parts.ts";
import type { EdgeChosen, NodeReturned, StepExecuted, ToolExecuted } from "../trace/trace.ts";

type AnyTool = Tool<never, never>;
type NodeRecord = GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node> ? Node : never;
type Body = NodeRecord["body"];
type EdgeRecord = GraphDefinition["edges"] extends ReadonlyMap<string, infer Edge> ? Edge : never;

/** Callbacks of an instrumented graph. */
export interface Instruments {
  /** False after the death of the process: no body is entered any more. */
  readonly isAlive: () => boolean;
  readonly onToolExecuted: (entry: ToolExecuted) => void;
  /** Wraps the body of every tool; the returned value becomes the tool's return. */
  readonly wrapToolBody?: (entry: ToolExecuted, body: () => unknown) => unknown;
  /** Replaces the models of the graph. */
  readonly model: Model | undefined;
  /** Receives the returned updates of bodies, the choices of edges and the entered steps. */
  readonly onEntry?: (entry: EdgeChosen | NodeReturned | StepExecuted) => void;
  /** Returns a promise that bodies, steps, models and tools await before the start; undefined for no wait. */
  readonly gate?: (point: string) => Promise<void> | undefined;
  /** Replaces the body of a node, also in graphs inside; `path` is the path of the node, such as `research.fetch`. */
  readonly wrapBody?: (path: string, body: Body) => Body;
}

/** Returns an instrumented copy of the graph. The original stays unchanged. */
export function instrument<Types extends GraphTypes>(graph: Graph<Types>, instruments: Instruments): Graph<Types> {
  return isDurableMachine(graph) ? graph : instrumentGraph(graph, instruments, "");
}

/** True for the graph of a durable machine, which has no node bodies to instrument. */
export function isDurableMachine(graph: Graph): boolean {
  return Object.getOwnPropertyDescriptor(graph, "machine")?.value !== undefined;
}

/** `path` is the prefix of an inner graph, such as `research.`. */
function instrumentGraph<Types extends GraphTypes>(
  graph: Graph<Types>,
  instruments: Instruments,
  path: string,
): Graph<Types> {
  const { nodes, edges, tools } = graph;
  return replaceGraphParts(graph, {
    edges:
      path === "" ? new Map([...edges].map(([from, edge]) => [from, instrumentEdge(from, edge, instruments)])) : edges,
    nodes: new Map([...nodes].map(([key, node]) => [key, instrumentNode(node, instruments, path)])),
    tools: tools.map((tool) => instrumentTool(tool, instruments)),
  });
}

/** Instruments an edge of the outermost graph: reports the chosen targets. */
function instrumentEdge(from: string, edge: EdgeRecord, { onEntry }: Instruments): EdgeRecord {
  if (onEntry === undefined) return edge;
  const reportChoice = (result: unknown, targets: readonly string[]): unknown => {
    onEntry({ type: "edge.chosen", from, kind: edge.kind, targets, declared: edge.targets });
    return result;
  };
  if (edge.kind === "route")
    return {
      ...edge,
      choose: (state, context) => {
        const result = edge.choose(state, context);
        return reportChoice(result, Array.isArray(result) ? result.map(String) : [String(result)]);
      },
    };
  if (edge.kind !== "fanOut") return edge;
  const { target, otherwise } = edge;
  return {
    ...edge,
    select: (state, context) => {
      const result = edge.select(state, context);
      const isEmpty = Array.isArray(result) && result.length === 0;
      return reportChoice(result, isEmpty ? (otherwise === undefined ? [] : [otherwise]) : [target]);
    },
  };
}

function instrumentNode(node: NodeRecord, instruments: Instruments, path: string): NodeRecord {
  const instrumented = node.tools === undefined ? undefined : instrumentRegistry(node.tools, instruments);
  const body = instrumentBody(node, instruments, path);
  return {
    ...node,
    body,
    ...(node.subgraph === undefined
      ? {}
      : {
          subgraph: {
            ...node.subgraph,
            graph: instrumentGraph(node.subgraph.graph as Graph, instruments, `${path}${node.name}.`),
          },
        }),
    ...(node.tools === undefined || instrumented === undefined ? {} : { tools: { ...node.tools, ...instrumented } }),
  };
}

/** Instruments the registry of a tool node; later changes of the original registry are visible here. */
function instrumentRegistry(
  { registry, initialTools }: NonNullable<NodeRecord["tools"]>,
  instruments: Instruments,
): Pick<NonNullable<NodeRecord["tools"]>, "registry" | "initialTools"> {
  const instrumentedTools = new WeakMap<AnyTool, AnyTool>();
  const getInstrumentedTool = (tool: AnyTool): AnyTool => {
    const known = instrumentedTools.get(tool) ?? instrumentTool(tool, instruments);
    instrumentedTools.set(tool, known);
    return known;
  };
  const instrumentedMaps = new WeakMap<ToolMap, ToolMap>();
  const getInstrumentedTools = (tools: ToolMap): ToolMap => {
    const known =
      instrumentedMaps.get(tools) ?? new Map([...tools].map(([name, tool]) => [name, getInstrumentedTool(tool)]));
    instrumentedMaps.set(tools, known);
    return known;
  };
  const instrumentedRegistry: ToolRegistry<never, never> = {
    ...registry,
    get: (name) => {
      const tool = registry.get(name);
      return tool === undefined ? undefined : getInstrumentedTool(tool);
    },
    tools: () => getInstrumentedTools(registry.tools()),
  };
  return { registry: instrumentedRegistry, initialTools: getInstrumentedTools(initialTools) };
}

type ToolMap = ReadonlyMap<string, AnyTool>;

/** Runtime of an instrumented node body. */
interface BodyRuntime {
  readonly input?: unknown;
  readonly model: (call: ModelCallInput, key?: string) => Promise<unknown>;
  readonly generate: (request: object) => Promise<unknown>;
  readonly step: (key: string, work: (at: StepContext) => unknown, options?: object) => Promise<unknown>;
}

interface StepContext {
  readonly idempotencyKey: string;
}

function instrumentBody(
  { name, logic: { takesInput }, body: originalBody }: NodeRecord,
  instruments: Instruments,
  path: string,
): Body {
  const { isAlive, gate, onEntry, wrapBody } = instruments;
  const node = `${path}${name}`;
  const body = wrapBody === undefined ? originalBody : wrapBody(node, originalBody);
  return ((state: never, runtime: BodyRuntime) => {
    if (!isAlive()) return waitForever();
    const point = takesInput ? `${node}(${JSON.stringify(runtime.input)})` : node;
    const enter = (): unknown => {
      const returned: unknown = body(state, instrumentRuntime(node, point, runtime, instruments) as never);
      if (onEntry === undefined || path !== "") return returned;
      const reportReturn = (result: unknown): unknown => {
        for (const entry of toReturnEntries(name, takesInput ? runtime.input : undefined, result)) onEntry(entry);
        return result;
      };
      return returned instanceof Promise ? returned.then(reportReturn) : reportReturn(returned);
    };
    const opening = gate?.(point);
    return opening === undefined ? enter() : opening.then(() => (isAlive() ? enter() : waitForever()));
  }) as never;
}

/** Adds gates before steps and models of a runtime; other parts, including getters, come from the original. */
function instrumentRuntime(
  node: string,
  point: string,
  runtime: BodyRuntime,
  { isAlive, model, onEntry, gate }: Instruments,
): BodyRuntime {
  const step: BodyRuntime["step"] = (key, work, options) =>
    runtime.step(
      key,
      async (context) => {
        await gate?.(`step "${key}" of ${point}`);
        if (!isAlive()) return waitForever();
        onEntry?.({ type: "step.executed", node, key, idempotencyKey: context.idempotencyKey });
        return work(context);
      },
      options,
    );
  const callModel: BodyRuntime["model"] = async (call, key) => {
    await gate?.(`model of ${point}`);
    return runtime.model(model === undefined ? call : replaceModel(model, call), key);
  };
  const generate: BodyRuntime["generate"] = async (request) => {
    await gate?.(`model of ${point}`);
    return runtime.generate(replaceQuestionModel(model, request));
  };
  return replaceRuntimeParts(runtime, {
    ...(onEntry === undefined && gate === undefined ? {} : { step }),
    ...(model === undefined && gate === undefined ? {} : { model: callModel, generate }),
  });
}

/** Symbol keys of node commands. */
const command: unique symbol = Symbol.for("statewright.command") as never;
const commandTarget: unique symbol = Symbol.for("statewright.command.target") as never;
const commandUpdate: unique symbol = Symbol.for("statewright.command.update") as never;

/** Lists the updates by channel and the targets of a node's return. Recipes are skipped. */
function toReturnEntries(node: string, input: unknown, returned: unknown): readonly (NodeReturned | EdgeChosen)[] {
  return [returned].flat().flatMap((item): readonly (NodeReturned | EdgeChosen)[] => {
    if (typeof item !== "object" || item === null) return [];
    const {
      [command]: kind,
      [commandTarget]: target,
      [commandUpdate]: update,
    } = item as { [command]?: string; [commandTarget]?: string; [commandUpdate]?: object };
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

/** Model call, or an agent turn that creates its call in `prepare`, after its hooks. */
type ModelCallInput =
  | { readonly model: Model; readonly prepare?: undefined }
  | { readonly prepare: (state: never) => object | Promise<object> };

function replaceModel(model: Model, call: ModelCallInput): ModelCallInput {
  const { prepare } = call;
  if (prepare === undefined) return { ...call, model };
  return { ...call, prepare: async (state) => ({ ...(await prepare(state)), model }) };
}

/** Replaces the model of a question. Fallbacks of the question stay. */
function replaceQuestionModel(model: Model | undefined, request: object): object {
  return model === undefined ? request : { ...request, model };
}

function instrumentTool(tool: AnyTool, instruments: Instruments): AnyTool {
  const { isAlive, model, onToolExecuted, wrapToolBody, gate } = instruments;
  const { spec, resolve, reconcile, prepareArguments, graph } = tool;
  return {
    spec,
    ...(graph === undefined ? {} : { graph: instrumentGraphTool(graph as GraphTool, spec.name, instruments) }),
    call: (state, runtime, call) => {
      if (!isAlive()) return waitForever();
      const { attempt, idempotencyKey } = runtime as { readonly attempt: number; readonly idempotencyKey: string };
      const { id: callId, args } = call;
      const entry: ToolExecuted = { type: "tool.executed", tool: spec.name, callId, attempt, idempotencyKey, args };
      const callBody = (): unknown => tool.call(state, replaceToolModel(model, runtime), call);
      const enter = (): unknown => {
        onToolExecuted(entry);
        return wrapToolBody === undefined ? callBody() : wrapToolBody(entry, callBody);
      };
      const opening = gate?.(`${spec.name} ${JSON.stringify(args)}`);
      return opening === undefined ? enter() : opening.then(() => (isAlive() ? enter() : waitForever()));
    },
    ...(resolve === undefined ? {} : { resolve: (source) => resolve.call(tool, source) }),
    ...(prepareArguments === undefined ? {} : { prepareArguments: (args) => prepareArguments.call(tool, args) }),
    ...(reconcile === undefined
      ? {}
      : {
          reconcile: (state, runtime, call) => (isAlive() ? reconcile.call(tool, state, runtime, call) : waitForever()),
        }),
  };
}

/** Replaces the model of the questions of a tool. */
function replaceToolModel<Runtime extends { readonly generate: Generate }>(
  model: Model | undefined,
  runtime: Runtime,
): Runtime {
  if (model === undefined) return runtime;
  const { generate } = runtime;
  const replaced: Generate = (request) => generate({ ...request, model });
  return replaceRuntimeParts<{ readonly generate: Generate }>(runtime, { generate: replaced }) as Runtime;
}

/** Graph property of a tool that runs a graph. */
interface GraphTool {
  readonly graph: () => Graph;
}

/** Instruments the graph of a tool, lazily: the graph may be defined later than the tool. */
function instrumentGraphTool(record: GraphTool, tool: string, instruments: Instruments): GraphTool {
  let instrumented: Graph | undefined;
  return {
    ...record,
    graph: () => {
      instrumented ??= instrumentGraph(record.graph(), instruments, `${tool}.`);
      return instrumented;
    },
  };
}

function waitForever(): Promise<never> {
  return new Promise(() => undefined);
}
