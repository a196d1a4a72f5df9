/**
 * Graphs as MCP tool calls: a tool call starts or resumes a thread of the store. A thread interrupted by a crash or
 * by a disconnect of the client resumes from its last checkpoint; recorded effects do not run again.
 */
import { randomUUID } from "node:crypto";
import type { CallToolResult, Tool as McpTool } from "@modelcontextprotocol/server";
import {
  getState,
  isStatewrightError,
  type OpenInterrupt,
  type RunHandle,
  type RunResult,
  resume,
  run,
  type SecretSource,
  type Store,
  type World,
} from "@statewright/core";
import { listRuns } from "@statewright/core/inspect";
import type { RunRow } from "@statewright/core/store";
import { isJsonObject } from "@statewright/json-schema";
import { ActiveRuns } from "./active-runs.ts";
import type { CallRequest } from "./call-request.ts";
import { createThreadId, isThreadName, resolveForCaller, threadNameRule } from "./caller.ts";
import { createErrorResult } from "./content.ts";
import { describeContinuation, describeThread, findUnsafeKey, type GraphCall, hashArgs } from "./graph-call.ts";
import { type McpResult, toGraphResult, toWaitingResult } from "./graph-results.ts";
import { createGraphTools, findGraphTool } from "./graph-tools.ts";
import { resolveAnswers } from "./host-answers.ts";
import { readFormAnswers } from "./interrupt-forms.ts";
import type { McpLimits } from "./limits.ts";
import type { OfferedGraph } from "./offer-graph.ts";

/** Offered graphs, with the parts of the server that their runs need. */
export interface GraphCallOptions {
  readonly graphs: readonly OfferedGraph[];
  readonly secrets: SecretSource | undefined;
  readonly store: Store;
  readonly limits: McpLimits;
  readonly world: World;
}

/** Maximum number of threads with a remembered last reported run. */
const maxReportedRuns = 10_000;

/** Tool calls of the offered graphs. */
export class GraphCalls {
  readonly #options: GraphCallOptions;
  readonly #byName: ReadonlyMap<string, OfferedGraph>;
  readonly #runs: ActiveRuns;
  /** Last reported run by thread id: a repeated call with the same input then starts a new run. */
  readonly #reportedRuns = new Map<string, string>();

  constructor(options: GraphCallOptions) {
    const { graphs, world, limits } = options;
    this.#options = options;
    this.#byName = new Map(graphs.map((offered) => [offered.name, offered]));
    this.#runs = new ActiveRuns(world, limits.callMs);
  }

  list(): readonly McpTool[] {
    return this.#options.graphs.flatMap(createGraphTools);
  }

  has(name: string): boolean {
    return findGraphTool(this.#byName, name) !== undefined;
  }

  async call(name: string, args: unknown, request: CallRequest): Promise<McpResult> {
    const unsafeKey = findUnsafeKey(args);
    if (unsafeKey !== undefined)
      return createErrorResult(`The arguments of "${name}" contain the forbidden key "${unsafeKey}".`);
    const tool = findGraphTool(this.#byName, name);
    if (tool === undefined) return createErrorResult(`Unknown tool "${name}".`);
    const { offered, isContinuation } = tool;
    const { thread, ...callArgs } = (args ?? {}) as Readonly<Record<string, unknown>>;
    const threadName = request.state ?? thread ?? (isContinuation ? undefined : `t_${randomUUID()}`);
    if (!isThreadName(threadName))
      return createErrorResult(`Invalid thread name for "${name}". Use ${threadNameRule}.`);
    const threadId = createThreadId(request.caller, offered.name, threadName);
    const call: GraphCall = { offered, thread: threadName, threadId, request };
    try {
      if (request.state !== undefined) return await this.#continueWithForms(call);
      if (!isContinuation) return await this.#start(call, callArgs);
      return await this.#continue(call, callArgs["answers"]);
    } catch (error) {
      return this.#toFailedResult(call, error);
    }
  }

  /** Drains every run at the end of its superstep. Resolves when all runs are saved. */
  close(): Promise<void> {
    return this.#runs.close();
  }

  /** Starts a run with an input, or resumes the run with the same input whose result was not reported yet. */
  async #start(call: GraphCall, args: Readonly<Record<string, unknown>>): Promise<McpResult> {
    const { offered, threadId, request } = call;
    const input = offered.toInput(args);
    const digest = hashArgs(args);
    const last = await this.#findLastRun(threadId);
    if (last !== undefined && last.status !== "cancelled") {
      const isSame = last.metadata?.["input"] === digest;
      if (isSame && (last.status !== "done" || this.#reportedRuns.get(threadId) !== last.id))
        return this.#continue(call, undefined);
      if (last.status !== "done") return createErrorResult(describeBusyThread(call, last));
    }
    return this.#follow(call, () =>
      run(offered.graph, {
        ...this.#createRunOptions(call),
        input: input as object,
        metadata: { mcp: request.caller.id, tool: offered.name, input: digest },
      }),
    );
  }

  /** Resumes the thread, with answers given by the host itself. */
  async #continue(call: GraphCall, answers: unknown): Promise<McpResult> {
    const { offered, threadId, request } = call;
    const activeRun = this.#runs.get(threadId);
    if (activeRun !== undefined) {
      if (answers !== undefined)
        return createErrorResult(`${describeThread(call)} is running and has no open interrupt.`);
      return this.#report(call, await this.#runs.join(activeRun, request));
    }
    if ((await this.#findLastRun(threadId)) === undefined)
      return createErrorResult(`"${offered.name}" has no thread "${call.thread}".`);
    if (answers === undefined) return this.#follow(call, () => resume(offered.graph, this.#createRunOptions(call)));
    if (!isJsonObject(answers))
      return createErrorResult("The answers must be an object. Pass the answers by interrupt id.");
    const resolved = resolveAnswers(offered, await this.#listOpenInterrupts(call), answers);
    if (typeof resolved === "string") return createErrorResult(resolved);
    return this.#resumeWithAnswers(call, resolved);
  }

  /** Resumes the thread with form answers of a person. The run keeps waiting if all interrupts stay open. */
  async #continueWithForms(call: GraphCall): Promise<McpResult> {
    const interrupts = await this.#listOpenInterrupts(call);
    const { answers } = readFormAnswers(interrupts, call.request.responses);
    if (Object.keys(answers).length === 0) return toWaitingResult(call, interrupts, this.#options.limits.resultBytes);
    return this.#resumeWithAnswers(call, answers);
  }

  #resumeWithAnswers(call: GraphCall, answers: Readonly<Record<string, unknown>>): Promise<McpResult> {
    const { offered, request } = call;
    return this.#follow(call, () =>
      resume(offered.graph, { ...this.#createRunOptions(call), answers, by: request.caller.id }),
    );
  }

  async #follow(call: GraphCall, start: () => RunHandle<object>): Promise<McpResult> {
    const { threadId, request } = call;
    // A second call may have started the run since the check of the caller.
    if (this.#runs.get(threadId) !== undefined)
      return createErrorResult(`${describeThread(call)} is already running. ${describeContinuation(call)}`);
    return this.#report(call, await this.#runs.follow(threadId, start(), request));
  }

  #report(call: GraphCall, result: RunResult<object>): McpResult {
    if (result.status === "done") this.#rememberReported(call.threadId, result.run);
    return toGraphResult(call, result, this.#options.limits.resultBytes);
  }

  #rememberReported(threadId: string, id: string): void {
    const reported = this.#reportedRuns;
    reported.delete(threadId);
    reported.set(threadId, id);
    for (const oldest of reported.keys()) {
      if (reported.size <= maxReportedRuns) return;
      reported.delete(oldest);
    }
  }

  #createRunOptions({ offered, threadId, request }: GraphCall) {
    const { store, world, secrets } = this.#options;
    const context = resolveForCaller(offered.context, request.caller);
    const toolUpdates = request.progress !== undefined;
    return { store, thread: threadId, context, world, toolUpdates, ...(secrets === undefined ? {} : { secrets }) };
  }

  async #findLastRun(thread: string): Promise<RunRow | undefined> {
    const [last] = await listRuns(this.#options.store, { thread, limit: 1 });
    return last;
  }

  async #listOpenInterrupts({ offered, threadId }: GraphCall): Promise<readonly OpenInterrupt[]> {
    const { interrupts } = await getState(offered.graph, { store: this.#options.store, thread: threadId });
    return interrupts;
  }

  #toFailedResult(call: GraphCall, error: unknown): CallToolResult {
    if (isStatewrightError(error) && error.kind === "input") return createErrorResult(error.message);
    const { offered, threadId: thread } = call;
    this.#options.world.log("error", `tool call of the graph "${offered.name}" failed`, { thread, error });
    return createErrorResult(`${offered.name} failed before an answer. ${describeContinuation(call)}`);
  }
}

function describeBusyThread(call: GraphCall, { status }: RunRow): string {
  return `${describeThread(call)} has a run with status ${status}. ${describeContinuation(call)} Or pass another thread.`;
}
