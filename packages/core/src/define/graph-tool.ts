/**
 * Graphs as tools: a tool whose call runs a graph. What the graph does is recorded on a line of its own, so that a call which
 * was cut short goes on where it stood; its questions come to whoever runs the outermost graph.
 */
import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { Usage } from "../model/message.ts";
import {
  type ArgsOf,
  type DefinedTool,
  type GivenBy,
  type ToolCall,
  type ToolDefinition,
  type ToolInput,
  toolSpec,
} from "../tool/definition/tool.ts";
import type { ToolResult, ToolReturn } from "../tool/result.ts";
import type { GraphDefinition, GraphTypes } from "./graph.ts";

/** How deep calls of graphs may stand in one another where a tool does not say otherwise. */
const usualDepth = 5;

/** What a graph that runs as a tool is bound to: the call, and what surrounds it. */
export interface GraphCall<Context = unknown> {
  readonly callId: string;
  /** The context of the graph that calls the tool. */
  readonly context: Context;
  /** The state of that graph when the call began, or goes on. */
  readonly state: unknown;
}

/** The same, with the state that the graph ended with: its private channels too, which its output does not show. */
export interface EndedGraphCall<Context = unknown, State = unknown> extends GraphCall<Context> {
  readonly ended: State;
}

/** The parts that it shares with every other tool. Its effect is no part: what may happen once is said by what is inside. */
type UsualParts<Name extends string, Input extends ToolInput, Value> = Pick<
  ToolDefinition<Name, Input, Record<never, never>, Value>,
  "name" | "input" | "output" | Exclude<keyof typeof graphToolParts, "maxDepth">
>;

/** The options of a graph as a tool that go for whatever makes a tool of one, such as `agentTool`. */
export const graphToolParts = {
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

/** What `graphTool` takes beside the graph. */
export interface GraphToolOptions<
  Inner extends GraphTypes,
  Name extends string,
  Input extends ToolInput,
  Context,
  Value,
> extends UsualParts<Name, Input, Value> {
  /** What the graph is given, made from the arguments when the call begins; a call that goes on is not given it again. */
  readonly given: (args: ArgsOf<Input>, call: GraphCall<NoInfer<Context>>) => Inner["input"];
  /** What the tool returns, made from the graph's output: text, an output, or data. A `ToolError` that it throws is the answer. */
  readonly answer: (
    output: Inner["output"],
    call: EndedGraphCall<NoInfer<Context>, Inner["state"]>,
  ) => ToolReturn<Value>;
  /** What is told of a call that was stopped by a limit, beside that it was: what it had found by then. */
  readonly found?: (state: Inner["state"]) => string;
  /** What of models the graph has used by then, whatever came of it: told with the call's result and its message. */
  readonly usage?: (state: Inner["state"]) => Usage | undefined;
  /** How many calls of graphs may stand in one another, this one included. Default 5. */
  readonly maxDepth?: number;
}

/** A graph, or what gives it when it is first called: so a graph may be a tool of its own. */
export type GraphOrLater<Inner extends GraphTypes> =
  | (GraphDefinition & { readonly types?: Inner })
  | (() => GraphDefinition & { readonly types?: Inner });

/** The graph of a tool, as the engine sees it. */
export interface GraphToolRecord {
  readonly graph: () => GraphDefinition;
  /** It is known only when it is asked for, and may be the very graph that has the tool. */
  readonly isLater: boolean;
  readonly given: (args: never, call: never) => unknown;
  readonly answer: (output: never, call: never) => unknown;
  readonly found: ((state: never) => string) | undefined;
  readonly usage: ((state: never) => Usage | undefined) | undefined;
  readonly context: ((context: never) => unknown) | undefined;
  readonly maxDepth: number;
}

/**
 * A graph as a tool. It gets the context of the graph that calls it, or what `context` makes of that; its questions are
 * answered as `tool.key`. Its effect is `idempotent`: begun again after a crash, a call does nothing twice that is recorded
 * inside. A `ToolError` that a node throws fails the attempt with its words; a retry goes on in that node. Throws what `defineTool` throws, and `invalid_option` for what is no graph and for mappings that are not functions.
 */
export function graphTool<
  Inner extends GraphTypes,
  const Name extends string,
  Input extends ToolInput,
  Value = unknown,
>(
  graph: GraphOrLater<Inner>,
  options: GraphToolOptions<Inner, Name, Input, Inner["given"], Value> & { readonly context?: undefined },
): DefinedTool<Name, ArgsOf<Input>, unknown, Inner["given"], Value>;
export function graphTool<
  Inner extends GraphTypes,
  const Name extends string,
  Input extends ToolInput,
  Context,
  Value = unknown,
>(
  graph: GraphOrLater<Inner>,
  options: GraphToolOptions<Inner, Name, Input, Context, Value> & {
    readonly context: (context: Context) => Inner["given"];
  },
): DefinedTool<Name, ArgsOf<Input>, unknown, Context, Value>;
export function graphTool(
  graph: GraphOrLater<GraphTypes>,
  options: UsualParts<string, ToolInput, unknown> &
    Pick<GraphToolRecord, "given" | "answer"> & {
      readonly found?: (state: never) => string;
      readonly usage?: (state: never) => Usage | undefined;
      readonly context?: ((context: never) => unknown) | undefined;
      readonly maxDepth?: number;
    },
): DefinedTool<string, unknown, unknown, unknown, unknown> {
  checkOptions("graphTool", options, names);
  const {
    given,
    answer,
    found,
    usage,
    context,
    maxDepth = usualDepth,
    prepareArguments,
    execution,
    ...parts
  } = options;
  const spec = toolSpec({ ...parts, ...(execution === undefined ? {} : { execution }), effect: "idempotent" });
  const { name } = spec;
  refuseUnfit(name, graph, { given, answer, found, usage, context, maxDepth });
  const record: GraphToolRecord = { ...graphOrLater(name, graph), given, answer, found, usage, context, maxDepth };
  return Object.freeze({
    name,
    spec,
    call: runsElsewhere,
    graph: record,
    ...(prepareArguments === undefined ? {} : { prepareArguments }),
    is: (call: ToolCall): call is ToolCall & { readonly name: string } => call.name === name,
    gave: (result: ToolResult): result is ToolResult & GivenBy<string, unknown, unknown> => result.name === name,
  });
}

/** The graph that runs in a tool's calls; undefined for any other tool. */
export function graphOfTool(tool: { readonly graph?: object | undefined } | undefined): GraphToolRecord | undefined {
  return tool?.graph as GraphToolRecord | undefined;
}

const names = optionNames<
  GraphToolOptions<GraphTypes, string, ToolInput, unknown, unknown> & { readonly context?: unknown }
>({
  ...graphToolParts,
  name: true,
  input: true,
  output: true,
  given: true,
  answer: true,
  found: true,
  usage: true,
  context: true,
});

/** A graph that is given later is looked at when it is first asked for. */
function graphOrLater(tool: string, graph: GraphOrLater<GraphTypes>): Pick<GraphToolRecord, "graph" | "isLater"> {
  if (typeof graph !== "function") return { graph: () => graph, isLater: false };
  let known: GraphDefinition | undefined;
  const later = (): GraphDefinition => {
    known ??= checkedGraph(tool, graph());
    return known;
  };
  return { graph: later, isLater: true };
}

function checkedGraph(tool: string, graph: unknown): GraphDefinition {
  if (isGraph(graph)) return graph;
  throw unfit(
    `the graph of the tool "${tool}"`,
    graph,
    "what defineGraph or createAgent gives, or a function that gives it",
  );
}

function isGraph(value: unknown): value is GraphDefinition {
  return typeof value === "object" && value !== null && "nodes" in value && value.nodes instanceof Map;
}

function refuseUnfit(
  tool: string,
  graph: unknown,
  { given, answer, found, usage, context, maxDepth }: Omit<GraphToolRecord, "graph" | "isLater">,
): void {
  if (typeof graph !== "function") checkedGraph(tool, graph);
  for (const [name, mapping] of Object.entries({ given, answer, found, usage, context }))
    if (typeof mapping !== "function" && (mapping !== undefined || name === "given" || name === "answer"))
      throw unfit(`${name} of the tool "${tool}"`, mapping, `${name}: (${argument[name] ?? ""}) => …`);
  if (!(Number.isInteger(maxDepth) && maxDepth >= 1))
    throw unfit(`maxDepth of the tool "${tool}"`, maxDepth, "a whole number from 1");
}

const argument: Readonly<Record<string, string>> = {
  given: "args",
  answer: "output",
  found: "state",
  usage: "state",
  context: "context",
};

function unfit(what: string, given: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `${what} is ${describeValue(given)}`, next: `Give ${wanted}` });
}

function runsElsewhere(): never {
  throw new StatewrightError("machine_failed", {
    what: "the body of a tool that is a graph was called",
    next: "Give the graph or the agent that holds the tool to run: the engine runs inner graphs itself",
  });
}
