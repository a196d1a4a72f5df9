/**
 * Tools as MCP calls: each call is a run of a graph of one tool node, so that arguments, hidden values, middleware, limits,
 * retries and redaction are what they are under a model. Its thread is removed when the call has its answer.
 */
import { randomUUID } from "node:crypto";
import type { CallToolResult, InputRequiredResult, Tool as McpTool } from "@modelcontextprotocol/server";
import {
  approval,
  type ContentBlock,
  clientAnswer,
  defineGraph,
  defineMiddleware,
  defineState,
  deleteThread,
  describeTool,
  END,
  type Graph,
  getState,
  type InterruptShape,
  interruptFor,
  isRegistry,
  isStatewrightError,
  type JsonObject,
  type Message,
  type Middleware,
  messages,
  type OpenInterrupt,
  type RunHandle,
  type RunResult,
  resume,
  run,
  type SecretSource,
  START,
  type StateShape,
  type Store,
  type Tool,
  type ToolRegistry,
  type ToolResult,
  toolNode,
  toolRegistry,
  type World,
} from "@statewright/core";
import { annotationsOf } from "./annotations.ts";
import { type CallRequest, tellProgress } from "./call-request.ts";
import { isThreadName, type McpCaller, storedThread } from "./caller.ts";
import { artifactUri, failure, mcpBlocks, outputSchemaOf, structured } from "./content.ts";
import { answersIn, askFor } from "./interrupt-forms.ts";
import type { McpLimits } from "./limits.ts";
import { lineOf } from "./progress.ts";

/** The state that tools see which are called from outside: the message that holds their call. */
export interface CallState {
  readonly messages: readonly Message[];
}

/** What calls of tools need. */
export interface ToolCallOptions {
  readonly tools: readonly Tool<CallState>[] | ToolRegistry<CallState>;
  readonly middleware: readonly Middleware[];
  readonly contextFor: (caller: McpCaller) => unknown;
  readonly secrets: SecretSource | undefined;
  readonly store: Store;
  readonly limits: McpLimits;
  readonly world: World;
}

/** Calls of tools from outside. */
export interface ToolCalls {
  readonly list: () => readonly McpTool[];
  readonly has: (name: string) => boolean;
  readonly call: (name: string, args: unknown, request: CallRequest) => Promise<CallToolResult | InputRequiredResult>;
  /** Give up the calls that wait for people. */
  readonly close: () => Promise<void>;
}

/** Make tools callable from outside. Throws what `toolRegistry`, `toolNode` and `defineGraph` throw. */
export function toolCalls(options: ToolCallOptions): ToolCalls {
  const { store, limits, world, secrets, contextFor } = options;
  const registry = isRegistry(options.tools) ? options.tools : toolRegistry(options.tools);
  const graph = graphOf(registry, options.middleware);
  /** Threads of calls that wait for people, oldest first, and whose they are. */
  const waiting = new Map<string, string>();

  async function begin(
    name: string,
    args: unknown,
    request: CallRequest,
  ): Promise<CallToolResult | InputRequiredResult> {
    const id = randomUUID();
    const thread = storedThread(request.caller, name, id);
    const asks: Message = {
      role: "assistant",
      id: "asks",
      finish: "calls",
      content: [{ type: "call", id: "call_1", name, args: args as JsonObject }],
      offered: [name],
    };
    return follow({ name, id, thread, request }, (signal) =>
      run(graph, {
        ...usual(request),
        thread,
        signal,
        input: { messages: [asks] },
        metadata: { mcp: request.caller.id, tool: name },
      }),
    );
  }

  /** Go on with a call about which people were asked. Its arguments are those that they were shown. */
  async function goOn(name: string, id: string, request: CallRequest): Promise<CallToolResult | InputRequiredResult> {
    if (!isThreadName(id)) return failure(notWaiting(name));
    const thread = storedThread(request.caller, name, id);
    const asked = await openQuestions(thread);
    if (asked === undefined) return failure(notWaiting(name));
    waiting.delete(thread);
    const { answers, unanswered } = answersIn(asked, request.responses);
    if (unanswered.length > 0) {
      await forget(thread);
      return failure(`"${name}" was not run: nobody answered what it asks.`);
    }
    return follow({ name, id, thread, request }, (signal) =>
      resume(graph, { ...usual(request), thread, signal, answers, by: request.caller.id }),
    );
  }

  function usual(request: CallRequest) {
    const { caller, progress } = request;
    const context = contextFor(caller);
    return {
      store,
      context,
      world,
      toolUpdates: progress !== undefined,
      ...(secrets === undefined ? {} : { secrets }),
    };
  }

  async function openQuestions(thread: string): Promise<readonly OpenInterrupt[] | undefined> {
    try {
      const { status, interrupts } = await getState(graph, { store, thread });
      return status === "waiting" ? interrupts : undefined;
    } catch (error) {
      if (isStatewrightError(error, "unknown_thread")) return undefined;
      throw error;
    }
  }

  async function follow(
    call: AtWork,
    start: (signal: AbortSignal) => RunHandle<object>,
  ): Promise<CallToolResult | InputRequiredResult> {
    const { name, request, thread } = call;
    const limit = new AbortController();
    const stopTimer = world.schedule.after(limits.callMs, () => limit.abort(new Error("the call took too long")));
    let given: ToolResult | undefined;
    let keep = false;
    try {
      const handle = start(AbortSignal.any([request.signal, limit.signal]));
      const stopListening = handle.on((event) => {
        if ((event.type === "tool.completed" || event.type === "tool.failed") && event.within === undefined)
          given = event.result;
      });
      const stopTelling = tellProgress(handle, request, lineOf);
      const ended = await handle.result.finally(() => {
        stopListening();
        stopTelling();
      });
      if (ended.status === "waiting") {
        const asks = request.canAsk ? askFor(name, ended.interrupts, call.id) : undefined;
        if (asks === undefined) return failure(cannotAsk(name, request.canAsk));
        keep = true;
        await hold(thread, request.caller);
        return asks;
      }
      if (limit.signal.aborted) return failure(tooLong(name, limits.callMs));
      if (given === undefined) return failure(unfinished(name, ended));
    } catch (error) {
      // A tool whose failures fail the run has given its answer all the same.
      if (given === undefined) {
        world.log("error", `a call of the tool "${name}" could not be made`, { error });
        return failure(`"${name}" could not be run. The log of the server says why.`);
      }
    } finally {
      stopTimer();
      keep ||= (given?.artifacts?.length ?? 0) > 0;
      if (!keep) await forget(thread);
    }
    return mcpResult(registry.get(name), given, call);
  }

  /** Remember that a call waits. Where too many do, the oldest of the client with the most is given up: nobody crowds others out. */
  async function hold(thread: string, caller: McpCaller): Promise<void> {
    waiting.set(thread, caller.id);
    while (waiting.size > limits.waiting) {
      const oldest = oldestOfMost(waiting);
      waiting.delete(oldest);
      await forget(oldest);
    }
  }

  async function forget(thread: string): Promise<void> {
    try {
      await deleteThread(store, thread);
    } catch (error) {
      // One that was cancelled before it began has left nothing.
      if (!isStatewrightError(error, "unknown_thread"))
        world.log("warn", "the thread of a call stays", { thread, error });
    }
  }

  function mcpResult(tool: Tool<CallState> | undefined, result: ToolResult, { name, id }: AtWork): CallToolResult {
    const addressOf = (handle: string): string => artifactUri(name, id, handle);
    const content = result.content.flatMap((block: ContentBlock) => mcpBlocks(block, addressOf));
    if (result.isError) return { content, isError: true };
    const value = structured(result.value, limits.resultBytes);
    if (value === undefined && outputSchemaOf(tool?.spec.output) !== undefined)
      return failure(`"${name}" gave more data than this server hands out. Ask for less.`);
    return { content, ...(value === undefined ? {} : { structuredContent: value }) };
  }

  return {
    list: () => [...registry.tools().values()].map((tool) => mcpToolOf(tool)),
    has: (name) => registry.get(name) !== undefined,
    call: (name, args, request) =>
      request.state === undefined ? begin(name, args, request) : goOn(name, request.state, request),
    close: async () => {
      for (const thread of waiting.keys()) await forget(thread);
      waiting.clear();
    },
  };
}

/** The first thread of the client that has the most. */
function oldestOfMost(waiting: ReadonlyMap<string, string>): string {
  const threads = new Map<string, string[]>();
  for (const [thread, caller] of waiting) threads.set(caller, [...(threads.get(caller) ?? []), thread]);
  const [most = []] = [...threads.values()].sort((a, b) => b.length - a.length);
  return most[0] ?? "";
}

interface AtWork {
  readonly name: string;
  readonly id: string;
  readonly thread: string;
  readonly request: CallRequest;
}

/** A tool as clients are shown it: what a model sees of it, and what it says of itself. */
function mcpToolOf(tool: Tool<CallState>): McpTool {
  const { name, label, description, input } = describeTool(tool);
  const outputSchema = outputSchemaOf(tool.spec.output);
  return {
    name,
    title: label,
    description,
    inputSchema: input as McpTool["inputSchema"],
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchema as NonNullable<McpTool["outputSchema"]> }),
    annotations: annotationsOf(tool.spec),
  };
}

function graphOf(registry: ToolRegistry<CallState>, given: readonly Middleware[]): Graph {
  const middleware = given.some(asksPeople) ? given : [...given, confirms];
  const channels: StateShape = Object.assign({}, ...middleware.map((each) => each.channels));
  const questions: InterruptShape = Object.assign({}, ...middleware.map((each) => each.interrupts));
  const clients = [...registry.tools().values()].filter(({ spec }) => spec.client === true);
  return defineGraph({
    name: "mcp-tool-call",
    state: defineState({ ...channels, messages: messages() }),
    interrupts: {
      ...questions,
      ...Object.fromEntries(clients.map(({ spec }) => [spec.name, clientAnswer(spec)])),
      approve: approval,
    },
  })
    .nodes({ tools: toolNode({ tools: registry, middleware }) })
    .edges({ [START]: "tools", tools: END }) as Graph;
}

/** Whether middleware says that it asks people about calls. One that says nothing may only look at them. */
function asksPeople({ beforeTool, asks = [] }: Middleware): boolean {
  return beforeTool !== undefined && asks.length > 0;
}

/** Where no middleware asks, tools that want a person's yes get one or are not run. */
const confirms: Middleware = defineMiddleware({
  name: "confirmsForMcp",
  required: true,
  asks: ["approve"],
  beforeTool: ({ call, tool }) =>
    tool.safety.confirm === "always" ? interruptFor(call, `${tool.label} needs a yes`) : undefined,
});

function cannotAsk(name: string, canAsk: boolean): string {
  const why = canAsk
    ? "what it asks cannot be shown in a form"
    : "this client cannot ask one: it does not support elicitation";
  return `"${name}" was not run: a person must be asked first, and ${why}.`;
}

function notWaiting(name: string): string {
  return `No call of "${name}" waits for this answer. Call it again.`;
}

function tooLong(name: string, callMs: number): string {
  return `"${name}" took longer than ${callMs} ms and was cancelled.`;
}

function unfinished(name: string, { status }: Pick<RunResult<unknown>, "status">): string {
  return status === "cancelled" ? "Cancelled" : `"${name}" has no answer: its call is ${status}.`;
}
