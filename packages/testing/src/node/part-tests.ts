/** Tests of one part: a single node, or a single tool, run by the real engine. */
import {
  type Answers,
  callsOf,
  type DefinedTool,
  type Delta,
  defineGraph,
  defineState,
  END,
  type Graph,
  type GraphTypes,
  type JsonObject,
  type Message,
  type Model,
  messages,
  type OpenInterrupt,
  START,
  StatewrightError,
  type Tool,
  type ToolResult,
  textOf,
  toolNode,
  type World,
} from "@statewright/core";
import { type TestStatus, testRun } from "../run/test-run.ts";
import type { Trace } from "../trace/trace.ts";

type Needed<Name extends string, Value> = unknown extends Value
  ? { readonly [Key in Name]?: Value }
  : { readonly [Key in Name]: Value };

/** What `nodeTest` takes. */
export type NodeTestOptions<Types extends GraphTypes> = Needed<"context", Types["given"]> & {
  /** Whole values of channels; the others have their initial ones. */
  readonly state?: Partial<Types["state"]>;
  /** What a task node is sent. */
  readonly input?: unknown;
  readonly model?: Model;
  /** Answers to what the node asks. */
  readonly answers?: Answers<Types["interrupts"] & Types["innerInterrupts"]>;
  readonly secrets?: Readonly<Record<string, string>>;
};

/** What one execution of a node did. */
export interface NodeTest<Types extends GraphTypes> {
  readonly status: TestStatus;
  /** The state with what the node wrote. */
  readonly state: Types["state"];
  /** What it wrote, by channel. */
  readonly changes: { readonly [Channel in keyof Types["state"]]?: Delta };
  /** Where control goes from here, by the graph's own edges. */
  readonly next: readonly (Types["nodes"] | typeof END)[];
  /** Questions that it asked and that have no answer. */
  readonly interrupts: readonly OpenInterrupt[];
  readonly trace: Trace<Types>;
}

/** Run one node of a graph once, from a given state. Rejects with the error that the node fails with. */
export async function nodeTest<Types extends GraphTypes>(
  graph: Graph<Types>,
  node: Types["nodes"],
  options: NodeTestOptions<Types>,
): Promise<NodeTest<Types>> {
  const { state = {}, input, answers, secrets = {}, ...given } = options as LooseNodeOptions;
  const t = await testRun(graph, {
    ...given,
    secrets: { get: (name: string) => secrets[name] },
    startAt: { node, state, input },
  } as unknown as Parameters<typeof testRun<Types, unknown>>[1]);
  await t.step();
  if (t.status === "waiting" && answers !== undefined)
    await t.resume(answers as Answers<Types["interrupts"] & Types["innerInterrupts"]>, {
      until: ({ trace }) => committed(trace) !== undefined,
    });
  if (t.status === "failed") throw t.error;
  const step = committed(t.trace);
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

function committed(trace: Trace) {
  return trace.entries.find((entry) => entry.type === "step.committed");
}

/** A tool that `defineTool` did not make: that of a plugin or a server, a class. What its arguments are is known to its schema alone. */
type UntypedTool<State, Context> = Tool<State, Context> & { readonly is?: never };

/** What `toolTest` takes: the arguments of the model, and the state, context and secrets that the tool injects. */
export type ToolTestOptions<Args, State, Context> = Needed<"state", State> &
  Needed<"context", Context> & {
    readonly args: Args;
    readonly secrets?: Readonly<Record<string, string>>;
  };

/** What one call of a tool came to. */
export interface ToolTest {
  readonly result: ToolResult;
  /** What the model reads. */
  readonly text: string;
  /** The lines of progress that it gave. */
  readonly progress: readonly string[];
  /** How often its body was entered. */
  readonly attempts: number;
  /** The world of the call, with its virtual clock. */
  readonly world: World;
}

/** Make one call of a tool through the whole machine of a call: arguments are parsed, hidden ones injected, retries made in no time. */
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
  const asks: Message = {
    role: "assistant",
    id: "asks",
    finish: "calls",
    content: [{ type: "call", id: "call_1", name, args }],
  };
  const t = await testRun(oneTool(tool, state), {
    input: { messages: [asks] },
    context,
    secrets: { get: (name) => secrets[name] },
  });
  await t.finish();
  if (t.status === "failed") throw t.error;
  const ended = t.trace.entries.findLast((entry) => entry.type === "tool.completed" || entry.type === "tool.failed");
  const answer = t.state.messages.at(-1);
  if (ended === undefined || answer === undefined) throw noAnswer(name, callsOf(asks).length);
  return {
    result: ended.result,
    text: textOf(answer),
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

const ofOneTool: WeakSet<Graph> = new WeakSet();

/** Whether a graph is the one that `toolTest` makes around a tool: it is nobody's, so no coverage counts it. */
export function isOfToolTest(graph: Graph): boolean {
  return ofOneTool.has(graph);
}

/** A graph of one tool node, in which the tool sees the given state. */
function oneTool(tool: Tool<never, never>, state: unknown) {
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
  const graph = defineGraph({ name: "tool-test", state: defineState({ messages: messages() }) })
    .nodes({ tools: toolNode({ tools: [bound] }) })
    .edges({ [START]: "tools", tools: END });
  ofOneTool.add(graph);
  return graph;
}

function noAnswer(tool: string, calls: number): StatewrightError {
  return new StatewrightError("machine_failed", {
    what: `${calls} call of the tool "${tool}" had no answer`,
    next: "Report this with the tool",
  });
}
