/**
 * Tools as MCP tool calls. Each call runs a graph with one tool node, so that argument validation, injected values,
 * middleware, limits, retries and redaction equal a call by a model. The thread is deleted after the answer.
 */
import { randomUUID } from "node:crypto";
import type { CallToolResult, InputRequiredResult, Tool as McpTool } from "@modelcontextprotocol/server";
import {
  approval,
  type ContentBlock,
  channel,
  clientAnswer,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  deleteThread,
  END,
  type Graph,
  getState,
  type InterruptShape,
  isStatewrightError,
  type JsonObject,
  type Message,
  type Middleware,
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
import { isRegistry } from "@statewright/core/adapter";
import { describeTool } from "@statewright/core/inspect";
import { toAnnotations } from "./annotations.ts";
import { type CallRequest, forwardProgress } from "./call-request.ts";
import { createThreadId, isThreadName, type McpCaller } from "./caller.ts";
import { artifactUri, createErrorResult, toMcpBlocks, toOutputSchema, toStructuredContent } from "./content.ts";
import { createFormRequest, readFormAnswers } from "./interrupt-forms.ts";
import type { McpLimits } from "./limits.ts";
import { getProgressText } from "./progress.ts";

/** State of tools called by MCP clients: the message with the tool call. */
export interface CallState {
  readonly messages: readonly Message[];
}

/** Options of {@link createToolCalls}. */
export interface ToolCallOptions {
  readonly tools: readonly Tool<CallState>[] | ToolRegistry<CallState>;
  readonly middleware: readonly Middleware[];
  readonly resolveContext: (caller: McpCaller) => unknown;
  readonly secrets: SecretSource | undefined;
  readonly store: Store;
  readonly limits: McpLimits;
  readonly world: World;
}

/** Tool calls of MCP clients. */
export interface ToolCalls {
  readonly list: () => readonly McpTool[];
  readonly has: (name: string) => boolean;
  readonly call: (name: string, args: unknown, request: CallRequest) => Promise<CallToolResult | InputRequiredResult>;
  /** Deletes the threads of tool calls that wait for people. */
  readonly close: () => Promise<void>;
}

/** Creates the tool calls of a server. Throws the errors of `toolRegistry`, `toolNode` and `defineGraph`. */
export function createToolCalls(options: ToolCallOptions): ToolCalls {
  const { store, limits, world, secrets, resolveContext } = options;
  const registry = isRegistry(options.tools) ? options.tools : toolRegistry(options.tools);
  const graph = createToolGraph(registry, options.middleware);
  /** Client ids by thread of the tool calls that wait for people, oldest first. */
  const waiting = new Map<string, string>();

  async function startCall(
    name: string,
    args: unknown,
    request: CallRequest,
  ): Promise<CallToolResult | InputRequiredResult> {
    const id = randomUUID();
    const thread = createThreadId(request.caller, name, id);
    const callMessage: Message = {
      role: "assistant",
      id: "asks",
      finish: "calls",
      content: [{ type: "call", id: "call_1", name, args: args as JsonObject }],
      offered: [name],
    };
    return followRun({ name, id, thread, request }, (signal) =>
      run(graph, {
        ...createRunOptions(request),
        thread,
        signal,
        input: { messages: [callMessage] },
        metadata: { mcp: request.caller.id, tool: name },
      }),
    );
  }

  /** Continues a tool call after a form request, with the arguments shown in the form. */
  async function continueCall(
    name: string,
    id: string,
    request: CallRequest,
  ): Promise<CallToolResult | InputRequiredResult> {
    if (!isThreadName(id)) return createErrorResult(describeNotWaiting(name));
    const thread = createThreadId(request.caller, name, id);
    const interrupts = await listOpenInterrupts(thread);
    if (interrupts === undefined) return createErrorResult(describeNotWaiting(name));
    waiting.delete(thread);
    const { answers, unanswered } = readFormAnswers(interrupts, request.responses);
    if (unanswered.length > 0) {
      await deleteCallThread(thread);
      return createErrorResult(`"${name}" was not run: its form has no answer.`);
    }
    return followRun({ name, id, thread, request }, (signal) =>
      resume(graph, { ...createRunOptions(request), thread, signal, answers, by: request.caller.id }),
    );
  }

  function createRunOptions(request: CallRequest) {
    const { caller, progress } = request;
    const context = resolveContext(caller);
    return {
      store,
      context,
      world,
      toolUpdates: progress !== undefined,
      ...(secrets === undefined ? {} : { secrets }),
    };
  }

  async function listOpenInterrupts(thread: string): Promise<readonly OpenInterrupt[] | undefined> {
    try {
      const { status, interrupts } = await getState(graph, { store, thread });
      return status === "waiting" ? interrupts : undefined;
    } catch (error) {
      if (isStatewrightError(error, "unknown_thread")) return undefined;
      throw error;
    }
  }

  async function followRun(
    call: RunningCall,
    start: (signal: AbortSignal) => RunHandle<object>,
  ): Promise<CallToolResult | InputRequiredResult> {
    const { name, request, thread } = call;
    const timeout = new AbortController();
    const stopTimer = world.schedule.after(limits.callMs, () => timeout.abort(new Error("the call timed out")));
    let toolResult: ToolResult | undefined;
    let keepThread = false;
    try {
      const handle = start(AbortSignal.any([request.signal, timeout.signal]));
      const stopListening = handle.on((event) => {
        if ((event.type === "tool.completed" || event.type === "tool.failed") && event.within === undefined)
          toolResult = event.result;
      });
      const stopProgress = forwardProgress(handle, request, getProgressText);
      const runResult = await handle.result.finally(() => {
        stopListening();
        stopProgress();
      });
      if (runResult.status === "waiting") {
        const formRequest = request.canAsk ? createFormRequest(name, runResult.interrupts, call.id) : undefined;
        if (formRequest === undefined) return createErrorResult(describeMissingForm(name, request.canAsk));
        keepThread = true;
        await addWaiting(thread, request.caller);
        return formRequest;
      }
      if (timeout.signal.aborted) return createErrorResult(describeTimeout(name, limits.callMs));
      if (toolResult === undefined) return createErrorResult(describeUnfinished(name, runResult));
    } catch (error) {
      // A tool error that fails the run still has a tool result.
      if (toolResult === undefined) {
        world.log("error", `tool call "${name}" could not run`, { error });
        return createErrorResult(`"${name}" could not run. The server log contains the reason.`);
      }
    } finally {
      stopTimer();
      keepThread ||= (toolResult?.artifacts?.length ?? 0) > 0;
      if (!keepThread) await deleteCallThread(thread);
    }
    return toMcpResult(registry.get(name), toolResult, call);
  }

  /**
   * Adds a waiting tool call. Above the limit it deletes the oldest call of the client with the most waiting calls,
   * so that a client cannot displace the calls of other clients.
   */
  async function addWaiting(thread: string, caller: McpCaller): Promise<void> {
    waiting.set(thread, caller.id);
    while (waiting.size > limits.waiting) {
      const oldest = findEvictedThread(waiting);
      waiting.delete(oldest);
      await deleteCallThread(oldest);
    }
  }

  async function deleteCallThread(thread: string): Promise<void> {
    try {
      await deleteThread(store, thread);
    } catch (error) {
      // A call cancelled before its start has no thread.
      if (!isStatewrightError(error, "unknown_thread"))
        world.log("warn", "could not delete the thread of a tool call", { thread, error });
    }
  }

  function toMcpResult(
    tool: Tool<CallState> | undefined,
    result: ToolResult,
    { name, id }: RunningCall,
  ): CallToolResult {
    const getUri = (handle: string): string => artifactUri(name, id, handle);
    const content = result.content.flatMap((block: ContentBlock) => toMcpBlocks(block, getUri));
    if (result.isError) return { content, isError: true };
    const value = toStructuredContent(result.value, limits.resultBytes);
    if (value === undefined && toOutputSchema(tool?.spec.output) !== undefined)
      return createErrorResult(`The result of "${name}" exceeds the size limit of this server. Request less data.`);
    return { content, ...(value === undefined ? {} : { structuredContent: value }) };
  }

  return {
    list: () => [...registry.tools().values()].map((tool) => toMcpTool(tool)),
    has: (name) => registry.get(name) !== undefined,
    call: (name, args, request) =>
      request.state === undefined ? startCall(name, args, request) : continueCall(name, request.state, request),
    close: async () => {
      for (const thread of waiting.keys()) await deleteCallThread(thread);
      waiting.clear();
    },
  };
}

/** Returns the oldest thread of the client with the most waiting calls. */
function findEvictedThread(waiting: ReadonlyMap<string, string>): string {
  const threads = new Map<string, string[]>();
  for (const [thread, caller] of waiting) threads.set(caller, [...(threads.get(caller) ?? []), thread]);
  const [longest = []] = [...threads.values()].sort((a, b) => b.length - a.length);
  return longest[0] ?? "";
}

interface RunningCall {
  readonly name: string;
  readonly id: string;
  readonly thread: string;
  readonly request: CallRequest;
}

/** Converts a tool to an MCP tool: the model's view of the tool, plus annotations. */
function toMcpTool(tool: Tool<CallState>): McpTool {
  const { name, label, description, input } = describeTool(tool);
  const outputSchema = toOutputSchema(tool.spec.output);
  return {
    name,
    title: label,
    description,
    inputSchema: input as McpTool["inputSchema"],
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchema as NonNullable<McpTool["outputSchema"]> }),
    annotations: toAnnotations(tool.spec),
  };
}

function createToolGraph(registry: ToolRegistry<CallState>, userMiddleware: readonly Middleware[]): Graph {
  const middleware = userMiddleware.some(hasInterrupts) ? userMiddleware : [...userMiddleware, confirmMiddleware];
  const channels: StateShape = Object.assign({}, ...middleware.map((each) => each.channels));
  const interrupts: InterruptShape = Object.assign({}, ...middleware.map((each) => each.interrupts));
  const clientTools = [...registry.tools().values()].filter(({ spec }) => spec.client === true);
  return defineGraph({
    name: "mcp-tool-call",
    state: defineState({ ...channels, messages: channel.messages() }),
    interrupts: {
      ...interrupts,
      ...Object.fromEntries(clientTools.map(({ spec }) => [spec.name, clientAnswer(spec)])),
      approve: approval,
    },
  })
    .nodes({ tools: toolNode({ tools: registry, middleware }) })
    .edges({ [START]: "tools", tools: END }) as Graph;
}

/**
 * Returns true for middleware that declares interrupts of tool calls. Middleware without interrupts may only observe
 * calls.
 */
function hasInterrupts({ beforeTool, asks = [] }: Middleware): boolean {
  return beforeTool !== undefined && asks.length > 0;
}

/** Asks for approval of tools with `confirm: "always"` if no other middleware does. */
const confirmMiddleware: Middleware = defineMiddleware({
  name: "confirmsForMcp",
  required: true,
  asks: ["approve"],
  beforeTool: ({ call, tool }) =>
    tool.safety.confirm === "always" ? decide.interrupt(call, `${tool.label} needs a yes`) : undefined,
});

function describeMissingForm(name: string, canAsk: boolean): string {
  const reason = canAsk ? "its interrupt does not fit a form" : "this client does not support elicitation";
  return `"${name}" was not run: it needs the answer of a person, and ${reason}.`;
}

function describeNotWaiting(name: string): string {
  return `No call of "${name}" waits for this answer. Call the tool again.`;
}

function describeTimeout(name: string, callMs: number): string {
  return `"${name}" was cancelled after ${callMs} ms.`;
}

function describeUnfinished(name: string, { status }: Pick<RunResult<unknown>, "status">): string {
  return status === "cancelled" ? "Cancelled" : `"${name}" has no result: its run is ${status}.`;
}
