/** Tests of a single node or a single tool, executed by the real engine. */
import {
  type Answers,
  channel,
  type DefinedTool,
  defineGraph,
  defineState,
  END,
  type Graph,
  type GraphTypes,
  getMessageText,
  type JsonObject,
  listToolCalls,
  type Message,
  type Model,
  type OpenInterrupt,
  START,
  StatewrightError,
  type Tool,
  type ToolResult,
  toolNode,
  type World,
} from "@statewright/core";
import type { Delta } from "@statewright/core/store";
import { testRun } from "../run/create-test-run.ts";
import type { TestRun, TestStatus } from "../run/test-run.ts";
import type { Trace } from "../trace/trace.ts";

type RequiredOption<Name extends string, Value> = unknown extends Value
  ? { readonly [Key in Name]?: Value }
  : { readonly [Key in Name]: Value };

/** Options of `nodeTest`. */
export type NodeTestOptions<Types extends GraphTypes> = RequiredOption<"context", Types["given"]> & {
  /** Complete values of channels; other channels have initial values. */
  readonly state?: Partial<Types["state"]>;
  /** Input of a task node. */
  readonly input?: unknown;
  /** Replaces every model of the node. */
  readonly model?: Model;
  /** Answers to the interrupts of the node. */
  readonly answers?: Answers<Types["interrupts"] & Types["innerInterrupts"]>;
  /** Secrets by name. Default: none. */
  readonly secrets?: Readonly<Record<string, string>>;
};

/** Result of an execution of a node. */
export interface NodeTest<Types extends GraphTypes> {
  readonly status: TestStatus;
  /** State after the writes of the node. */
  readonly state: Types["state"];
  /** Writes of the node by channel. */
  readonly changes: { readonly [Channel in keyof Types["state"]]?: Delta };
  /** Next nodes, by the edges of the graph. */
  readonly next: readonly (Types["nodes"] | typeof END)[];
  /** Open interrupts of the node. */
  readonly interrupts: readonly OpenInterrupt[];
  readonly trace: Trace<Types>;
}

/** Runs a single node of a graph once, from a given state. Rejects with the error of a failed node. */
export async function nodeTest<Types extends GraphTypes>(
  graph: Graph<Types>,
  node: Types["nodes"],
  options: NodeTestOptions<Types>,
): Promise<NodeTest<Types>> {
  const { state = {}, input, answers, secrets = {}, ...common } = options as LooseNodeOptions;
  const t = (await testRun(graph as Graph, {
    ...common,
    secrets: { get: (name: string) => secrets[name] },
    startAt: { node, state, input },
  })) as TestRun<Types>;
  await t.step();
  if (t.status === "waiting" && answers !== undefined)
    await t.resume(answers as Answers<Types["interrupts"] & Types["innerInterrupts"]>, {
      until: ({ trace }) => findCommittedStep(trace) !== undefined,
    });
  if (t.status === "failed") throw t.error;
  const step = findCommittedStep(t.trace);
  return {
    status: t.status,
    state: t.state,
    changes: (step?.changes ?? {}) as NodeTest<Types>["changes"],
    next: (step?.next ?? []) as NodeTest<Types>["next"],
    interrupts: t.interrupts,
    trace: t.trace,
  };
}

interface LooseNodeOptions {
  readonly state?: Readonly<Record<string, unknown>>;
  readonly input?: unknown;
  readonly answers?: Readonly<Record<string, unknown>>;
  readonly secrets?: Readonly<Record<string, string>>;
}

function findCommittedStep(trace: Trace) {
  return trace.entries.find((entry) => entry.type === "step.committed");
}

/**
 * Tool not made by `defineTool`, such as a plugin tool, a server tool or a class; its arguments are typed by its
 * schema only.
 */
type UntypedTool<State, Context> = Tool<State, Context> & { readonly is?: never };

/** Options of `toolTest`: the arguments of the model, and the state, context and secrets injected into the tool. */
export type ToolTestOptions<Args, State, Context> = RequiredOption<"state", State> &
  RequiredOption<"context", Context> & {
    /** Arguments of the call. */
    readonly args: Args;
    /** Secrets by name. Default: none. */
    readonly secrets?: Readonly<Record<string, string>>;
  };

/** Result of a tool call. */
export interface ToolTest {
  readonly result: ToolResult;
  /** Text of the tool message. */
  readonly text: string;
  /** Progress lines of the call. */
  readonly progress: readonly string[];
  /** Number of executions of the tool body. */
  readonly attempts: number;
  /** World of the call, with the virtual clock. */
  readonly world: World;
}

/**
 * Runs a single tool call through the engine: arguments are parsed, hidden arguments are injected, and retries take no
 * real time.
 */
export function toolTest<Args, State, Context>(
  tool: DefinedTool<string, Args, State, Context>,
  options: ToolTestOptions<Args, State, Context>,
): Promise<ToolTest>;
export function toolTest<State, Context>(
  tool: UntypedTool<State, Context>,
  options: ToolTestOptions<JsonObject, State, Context>,
): Promise<ToolTest>;
export async function toolTest(tool: Tool<never, never>, options: object): Promise<ToolTest> {
  const { name } = tool.spec;
  const { args, state, context, secrets = {} } = options as LooseToolOptions;
  const callMessage: Message = {
    role: "assistant",
    id: "asks",
    finish: "calls",
    content: [{ type: "call", id: "call_1", name, args }],
  };
  const t = await testRun(createToolGraph(tool, state), {
    input: { messages: [callMessage] },
    context,
    secrets: { get: (name) => secrets[name] },
  });
  await t.finish();
  if (t.status === "failed") throw t.error;
  const completion = t.trace.entries.findLast(
    (entry) => entry.type === "tool.completed" || entry.type === "tool.failed",
  );
  const answer = t.state.messages.at(-1);
  if (completion === undefined || answer === undefined)
    throw createMissingAnswerError(name, listToolCalls(callMessage).length);
  return {
    result: completion.result,
    text: getMessageText(answer),
    progress: t.trace.entries.flatMap((entry) => (entry.type === "tool.progress" ? [entry.text] : [])),
    attempts: t.trace.entries.filter((entry) => entry.type === "tool.executed").length,
    world: t.world,
  };
}

interface LooseToolOptions {
  readonly args: JsonObject;
  readonly state?: unknown;
  readonly context?: unknown;
  readonly secrets?: Readonly<Record<string, string>>;
}

const toolTestGraphs: WeakSet<Graph> = new WeakSet();

/** Returns true for a graph created by `toolTest`, which coverage ignores. */
export function isToolTestGraph(graph: Graph): boolean {
  return toolTestGraphs.has(graph);
}

/** Creates a graph with a single tool node, in which the tool sees the given state. */
function createToolGraph(tool: Tool<never, never>, state: unknown) {
  const bound: Tool<{ readonly messages: readonly Message[] }> = {
    spec: tool.spec,
    call: (_state, runtime, call) => tool.call(state as never, runtime as never, call),
    ...(tool.prepareArguments === undefined ? {} : { prepareArguments: (args) => tool.prepareArguments?.(args) }),
    ...(tool.resolve === undefined
      ? {}
      : { resolve: async (source) => await tool.resolve?.({ ...source, state: state as never }) }),
    ...(tool.reconcile === undefined
      ? {}
      : { reconcile: (_state, runtime, call) => tool.reconcile?.(state as never, runtime as never, call) }),
    ...(tool.graph === undefined ? {} : { graph: tool.graph }),
  };
  const graph = defineGraph({ name: "tool-test", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools: [bound] }) })
    .edges({ [START]: "tools", tools: END });
  toolTestGraphs.add(graph);
  return graph;
}

function createMissingAnswerError(tool: string, calls: number): StatewrightError {
  return new StatewrightError("machine_failed", {
    what: `toolTest: expected an answer of the tool "${tool}", got none for ${calls} call`,
    next: "Report this error with the definition of the tool",
  });
}
