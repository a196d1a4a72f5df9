/**
 * Tools as MCP tool calls. Each call runs a graph with a single tool node, so that argument validation, injected
 * values, middleware, limits, retries and redaction equal a call by a model. The thread is deleted after the answer.
 */
import { randomUUID } from "node:crypto";
import type { CallToolResult, InputRequiredResult, Tool as McpTool } from "@modelcontextprotocol/server";
import {
  type Graph,
  getState,
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
  type Store,
  type Tool,
  type ToolRegistry,
  type ToolResult,
  toolRegistry,
  type World,
} from "@statewright/core";
import { isRegistry } from "@statewright/core/adapter";
import { type CallRequest, forwardProgress } from "./call-request.ts";
import { createThreadId, isThreadName, type McpCaller } from "./caller.ts";
import { createErrorResult } from "./content.ts";
import { createFormRequest, readFormAnswers } from "./interrupt-forms.ts";
import type { McpLimits } from "./limits.ts";
import { getProgressText } from "./progress.ts";
import { type CallState, createToolGraph } from "./tool-graph.ts";
import {
  describeMissingForm,
  describeNotWaiting,
  describeTimeout,
  describeUnfinished,
  toMcpResult,
  toMcpTool,
} from "./tool-results.ts";
import { WaitingCalls } from "./waiting-calls.ts";

/** Served tools, with the parts of the server that their calls need. */
export interface ToolCallOptions {
  readonly tools: readonly Tool<CallState>[] | ToolRegistry<CallState>;
  readonly middleware: readonly Middleware[];
  readonly resolveContext: (caller: McpCaller) => unknown;
  readonly secrets: SecretSource | undefined;
  readonly store: Store;
  readonly limits: McpLimits;
  readonly world: World;
}

/** Tool call with its thread. */
interface RunningCall {
  readonly name: string;
  readonly id: string;
  readonly thread: string;
  readonly request: CallRequest;
}

/** Tool calls of MCP clients. */
export class ToolCalls {
  readonly #options: ToolCallOptions;
  readonly #registry: ToolRegistry<CallState>;
  readonly #graph: Graph;
  readonly #waiting: WaitingCalls;

  /** Throws the errors of `toolRegistry`, `toolNode` and `defineGraph`. */
  constructor(options: ToolCallOptions) {
    const { tools, middleware, store, world, limits } = options;
    this.#options = options;
    this.#registry = isRegistry(tools) ? tools : toolRegistry(tools);
    this.#graph = createToolGraph(this.#registry, middleware);
    this.#waiting = new WaitingCalls(store, world, limits.waiting);
  }

  list(): readonly McpTool[] {
    return [...this.#registry.tools().values()].map(toMcpTool);
  }

  has(name: string): boolean {
    return this.#registry.get(name) !== undefined;
  }

  call(name: string, args: unknown, request: CallRequest): Promise<CallToolResult | InputRequiredResult> {
    return request.state === undefined
      ? this.#start(name, args, request)
      : this.#continue(name, request.state, request);
  }

  /** Deletes the threads of tool calls that wait for people. */
  close(): Promise<void> {
    return this.#waiting.close();
  }

  async #start(name: string, args: unknown, request: CallRequest): Promise<CallToolResult | InputRequiredResult> {
    const id = randomUUID();
    const thread = createThreadId(request.caller, name, id);
    const callMessage: Message = {
      role: "assistant",
      id: "asks",
      finish: "calls",
      content: [{ type: "call", id: "call_1", name, args: args as JsonObject }],
      offered: [name],
    };
    return this.#complete({ name, id, thread, request }, (signal) =>
      run(this.#graph, {
        ...this.#createRunOptions(request),
        thread,
        signal,
        input: { messages: [callMessage] },
        metadata: { mcp: request.caller.id, tool: name },
      }),
    );
  }

  /** Continues a tool call after a form request, with the arguments shown in the form. */
  async #continue(name: string, id: string, request: CallRequest): Promise<CallToolResult | InputRequiredResult> {
    if (!isThreadName(id)) return createErrorResult(describeNotWaiting(name));
    const thread = createThreadId(request.caller, name, id);
    const interrupts = await this.#listOpenInterrupts(thread);
    if (interrupts === undefined) return createErrorResult(describeNotWaiting(name));
    this.#waiting.remove(thread);
    const { answers, unanswered } = readFormAnswers(interrupts, request.responses);
    if (unanswered.length > 0) {
      await this.#waiting.deleteThread(thread);
      return createErrorResult(`"${name}" was not run: its form has no answer.`);
    }
    return this.#complete({ name, id, thread, request }, (signal) =>
      resume(this.#graph, { ...this.#createRunOptions(request), thread, signal, answers, by: request.caller.id }),
    );
  }

  /** Runs a call to its result or to a form request. Deletes the thread unless it waits or has artifacts. */
  async #complete(
    call: RunningCall,
    start: (signal: AbortSignal) => RunHandle<object>,
  ): Promise<CallToolResult | InputRequiredResult> {
    const { name, id, thread, request } = call;
    const { limits, world } = this.#options;
    let toolResult: ToolResult | undefined;
    let keepThread = false;
    try {
      const finished = await this.#follow(request, start, (result) => {
        toolResult = result;
      });
      if (finished.run.status === "waiting") {
        const formRequest = request.canAsk ? createFormRequest(name, finished.run.interrupts, id) : undefined;
        if (formRequest === undefined) return createErrorResult(describeMissingForm(name, request));
        keepThread = true;
        await this.#waiting.add(thread, request.caller);
        return formRequest;
      }
      if (finished.isTimedOut) return createErrorResult(describeTimeout(name, limits.callMs));
      if (toolResult === undefined) return createErrorResult(describeUnfinished(name, finished.run));
    } catch (error) {
      // A tool error that fails the run still has a tool result.
      if (toolResult === undefined) {
        world.log("error", `tool call "${name}" could not run`, { error });
        return createErrorResult(`"${name}" could not run. The server log contains the reason.`);
      }
    } finally {
      keepThread ||= (toolResult?.artifacts?.length ?? 0) > 0;
      if (!keepThread) await this.#waiting.deleteThread(thread);
    }
    return toMcpResult(this.#registry.get(name), toolResult, { name, id, maxBytes: limits.resultBytes });
  }

  /** Starts a run and waits for its end, within the time limit of a call. Reports the result of the tool. */
  async #follow(
    request: CallRequest,
    start: (signal: AbortSignal) => RunHandle<object>,
    onToolResult: (result: ToolResult) => void,
  ): Promise<{ readonly run: RunResult<object>; readonly isTimedOut: boolean }> {
    const { world, limits } = this.#options;
    const timeout = new AbortController();
    const stopTimer = world.schedule.after(limits.callMs, () => timeout.abort(new Error("the call timed out")));
    let stopListening = (): void => undefined;
    let stopProgress = (): void => undefined;
    try {
      const handle = start(AbortSignal.any([request.signal, timeout.signal]));
      stopListening = handle.on((event) => {
        if ((event.type === "tool.completed" || event.type === "tool.failed") && event.within === undefined)
          onToolResult(event.result);
      });
      stopProgress = forwardProgress(handle, request, getProgressText);
      return { run: await handle.result, isTimedOut: timeout.signal.aborted };
    } finally {
      stopTimer();
      stopListening();
      stopProgress();
    }
  }

  #createRunOptions({ caller, progress }: CallRequest) {
    const { store, world, secrets, resolveContext } = this.#options;
    return {
      store,
      context: resolveContext(caller),
      world,
      toolUpdates: progress !== undefined,
      ...(secrets === undefined ? {} : { secrets }),
    };
  }

  async #listOpenInterrupts(thread: string): Promise<readonly OpenInterrupt[] | undefined> {
    try {
      const { status, interrupts } = await getState(this.#graph, { store: this.#options.store, thread });
      return status === "waiting" ? interrupts : undefined;
    } catch (error) {
      if (isStatewrightError(error, "unknown_thread")) return undefined;
      throw error;
    }
  }
}
