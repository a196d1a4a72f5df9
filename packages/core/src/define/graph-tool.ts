/**
 * Graphs as tools: a tool call that runs a graph. The graph has its own namespace, so that an interrupted call
 * resumes from its last checkpoint; its interrupts are raised to the caller of the outermost graph.
 */
import { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkCount, checkOptions, listOptionNames } from "../base/options.ts";
import type { Usage } from "../model/message.ts";
import {
  type ArgsOf,
  type ContextNeeds,
  createInjections,
  type DefinedTool,
  type GivenArgs,
  type InjectedOf,
  type InjectMap,
  type StateNeeds,
  type ToolCall,
  type ToolDefinition,
  type ToolExecution,
  type ToolInput,
  type ToolResultData,
  toolSpec,
  type ValidInput,
} from "../tool/definition/tool.ts";
import type { ToolResult, ToolReturn } from "../tool/result.ts";
import type { CallerContext, ContextMapping, GraphDefinition, GraphTypes } from "./graph.ts";

/** Default maximum nesting of graph tool calls. */
const defaultMaxDepth = 5;

/** Tool call of a graph tool, with the context and state of the calling graph. */
export interface GraphCall<Context = unknown, State = unknown, Injected = unknown> {
  readonly callId: string;
  /** Branch of the run. */
  readonly branch: string;
  /** Context of the calling graph. */
  readonly context: Context;
  /** State of the calling graph when the call started or resumed; its type is the state that `inject` reads. */
  readonly state: State;
  /** Values of `inject`, resolved when the call started or resumed. */
  readonly injected: Injected;
}

/** Finished call of a graph tool, with the final state of the inner graph including private channels. */
export interface FinishedGraphCall<Context = unknown, Ended = unknown, State = unknown, Injected = unknown>
  extends GraphCall<Context, State, Injected> {
  readonly ended: Ended;
}

/**
 * Options shared with every other tool. `effect` is excluded: the nodes and tools of the inner graph declare their
 * effects.
 */
type SharedToolOptions<Name extends string, Input extends ToolInput, Value> = Pick<
  ToolDefinition<Name, Input, Record<never, never>, Value>,
  "name" | "input" | "output" | Exclude<keyof typeof graphToolOptionNames, "maxDepth">
>;

/** Options accepted by every builder of graph tools, such as `agentTool`. */
export const graphToolOptionNames = {
  label: true,
  description: true,
  prepareArguments: true,
  safety: true,
  retry: true,
  timeoutMs: true,
  onError: true,
  limits: true,
  execution: true,
  maxDepth: true,
} as const;

/** Options of `graphTool`, besides the graph. */
export interface GraphToolOptions<
  Inner extends GraphTypes,
  Name extends string,
  Input extends ToolInput,
  Context,
  Value,
  Inject extends InjectMap = Record<never, never>,
> extends SharedToolOptions<Name, Input, Value> {
  /**
   * Values for `toInput` and `toResult`: never shown to the model, resolved at the time of the call and again on resume,
   * never saved. The calling graph must have the state and context that they read. Default: none.
   */
  readonly inject?: Inject;
  /** Creates the graph's input from the tool arguments when the call starts; not called again on resume. */
  readonly toInput: (
    args: ArgsOf<Input>,
    call: GraphCall<NoInfer<Context & ContextNeeds<Inject>>, StateNeeds<NoInfer<Inject>>, InjectedOf<NoInfer<Inject>>>,
  ) => Inner["input"];
  /**
   * Creates the tool result from the graph's output: text, an output, or data. A thrown `ToolError` becomes the
   * result.
   */
  readonly toResult: (
    output: Inner["output"],
    call: FinishedGraphCall<
      NoInfer<Context & ContextNeeds<Inject>>,
      Inner["state"],
      StateNeeds<NoInfer<Inject>>,
      InjectedOf<NoInfer<Inject>>
    >,
  ) => ToolReturn<Value>;
  /** Describes the partial result of a call stopped by a limit; appended to the limit message. */
  readonly found?: (state: Inner["state"]) => string;
  /** Returns the model usage of the graph so far, for any outcome; reported with the tool result and its message. */
  readonly usage?: (state: Inner["state"]) => Usage | undefined;
  /** Maximum nesting of graph tool calls, including this call. Default 5. */
  readonly maxDepth?: number;
}

/** Graph, or a function that returns the graph on the first call; the function allows a graph as a tool of itself. */
export type GraphOrFactory<Inner extends GraphTypes> =
  | (GraphDefinition & { readonly types?: Inner })
  | (() => GraphDefinition & { readonly types?: Inner });

/** Engine record of a graph tool. */
export interface GraphToolRecord {
  readonly graph: () => GraphDefinition;
  /** True when a function returns the graph on first use; the graph may contain the tool itself. */
  readonly isLazy: boolean;
  readonly toInput: (args: never, call: never) => unknown;
  readonly toResult: (output: never, call: never) => unknown;
  readonly found: ((state: never) => string) | undefined;
  readonly usage: ((state: never) => Usage | undefined) | undefined;
  readonly context: ((context: never) => unknown) | undefined;
  readonly maxDepth: number;
}

/**
 * Creates a tool whose calls run a graph. The inner graph gets the context of the calling graph, or the result of
 * `context`; answer its interrupts as `tool.key`. The effect is `idempotent`: a restarted call does not repeat
 * recorded effects. A `ToolError` thrown by a node fails the attempt with its message; a retry resumes at that node.
 * Throws the errors of `defineTool`, and `invalid_option` for an invalid graph and for mappings that are not
 * functions.
 */
export function graphTool<
  Inner extends GraphTypes,
  const Name extends string,
  Input extends ToolInput,
  const Inject extends InjectMap = Record<never, never>,
  Mapping extends ContextMapping<Inner> = undefined,
  Value = unknown,
>(
  graph: GraphOrFactory<Inner>,
  options: GraphToolOptions<Inner, Name, Input, CallerContext<Inner, NoInfer<Mapping>>, Value, Inject> &
    ValidInput<Input, Inject> & {
      /** Creates the context of the inner graph from the context of the calling graph. Default: the same context. */
      readonly context?: Mapping;
    },
): DefinedTool<
  Name,
  ArgsOf<Input>,
  StateNeeds<Inject>,
  CallerContext<Inner, Mapping> & ContextNeeds<Inject>,
  Value,
  unknown,
  GivenArgs<Input>
> {
  checkOptions("graphTool", options, names);
  const {
    toInput,
    toResult,
    found,
    usage,
    context,
    maxDepth = defaultMaxDepth,
    prepareArguments,
    execution,
    inject,
    ...parts
  } = options;
  const { kinds, resolve } = createInjections(parts.name, inject);
  const spec = toolSpec({
    ...parts,
    ...(execution === undefined ? {} : { execution: execution as ToolExecution }),
    inject: kinds,
    effect: "idempotent",
  });
  const { name } = parts;
  checkGraphToolOptions(name, graph, { toInput, toResult, found, usage, context, maxDepth });
  const record: GraphToolRecord = { ...resolveGraph(name, graph), toInput, toResult, found, usage, context, maxDepth };
  return Object.freeze({
    name,
    spec,
    call: refuseDirectCall,
    graph: record,
    ...(resolve === undefined ? {} : { resolve }),
    ...(prepareArguments === undefined ? {} : { prepareArguments }),
    is: (call: ToolCall): call is ToolCall<ArgsOf<Input>> & { readonly name: Name } => call.name === name,
    isResult: (result: ToolResult): result is ToolResult & ToolResultData<Name, Value, unknown> => result.name === name,
  });
}

/** Returns the graph record of a graph tool; undefined for any other tool. */
export function getToolGraph(tool: { readonly graph?: object | undefined } | undefined): GraphToolRecord | undefined {
  return tool?.graph as GraphToolRecord | undefined;
}

const names = listOptionNames<
  GraphToolOptions<GraphTypes, string, ToolInput, unknown, unknown> & { readonly context?: unknown }
>({
  ...graphToolOptionNames,
  name: true,
  input: true,
  output: true,
  inject: true,
  toInput: true,
  toResult: true,
  found: true,
  usage: true,
  context: true,
});

/** Resolves the graph. The graph of a function is created and checked on first use. */
function resolveGraph(tool: string, graph: GraphOrFactory<GraphTypes>): Pick<GraphToolRecord, "graph" | "isLazy"> {
  if (typeof graph !== "function") return { graph: () => graph, isLazy: false };
  let resolved: GraphDefinition | undefined;
  const getGraph = (): GraphDefinition => {
    resolved ??= checkGraph(tool, graph());
    return resolved;
  };
  return { graph: getGraph, isLazy: true };
}

function checkGraph(tool: string, graph: unknown): GraphDefinition {
  if (isGraph(graph)) return graph;
  throw invalidOption({
    where: `tool "${tool}"`,
    option: "graph",
    expected: "the result of defineGraph or createAgent, or a function that returns the result",
    got: graph,
  });
}

function isGraph(value: unknown): value is GraphDefinition {
  return typeof value === "object" && value !== null && "nodes" in value && value.nodes instanceof Map;
}

function checkGraphToolOptions(
  tool: string,
  graph: unknown,
  { toInput, toResult, found, usage, context, maxDepth }: Omit<GraphToolRecord, "graph" | "isLazy">,
): void {
  if (typeof graph !== "function") checkGraph(tool, graph);
  for (const [name, mapping] of Object.entries({ toInput, toResult, found, usage, context }))
    if (typeof mapping !== "function" && (mapping !== undefined || name === "toInput" || name === "toResult"))
      throw invalidOption({
        where: `tool "${tool}"`,
        option: name,
        expected: "a function",
        got: mapping,
        fix: `Pass ${name}: (${parameterNames[name] ?? ""}) => …`,
      });
  checkCount(`tool "${tool}"`, { maxDepth });
}

const parameterNames: Readonly<Record<string, string>> = {
  toInput: "args",
  toResult: "output",
  found: "state",
  usage: "state",
  context: "context",
};

function refuseDirectCall(): never {
  throw new StatewrightError("machine_failed", {
    what: "the body of a graph tool was called directly",
    next: "Pass the graph or the agent that has the tool to run: the engine runs inner graphs itself",
  });
}
