/**
 * Graphs as MCP tool calls: a tool call starts or resumes a thread of the store. A thread interrupted by a crash or
 * by a disconnect of the client resumes from its last checkpoint; recorded effects do not run again.
 */
import { createHash, randomUUID } from "node:crypto";
import type { CallToolResult, InputRequiredResult, Tool as McpTool } from "@modelcontextprotocol/server";
import {
  type Graph,
  getMessageText,
  getState,
  isStatewrightError,
  type JsonObject,
  listRuns,
  type Message,
  type OpenInterrupt,
  type RunHandle,
  type RunResult,
  resume,
  run,
  type SecretSource,
  type Store,
  type World,
} from "@statewright/core";
import type { RunRow } from "@statewright/core/store";
import { isJsonObject } from "@statewright/json-schema";
import { toAnnotations } from "./annotations.ts";
import { type CallRequest, forwardProgress, isDisconnected } from "./call-request.ts";
import { createThreadId, isThreadName, resolveForCaller, threadNameRule } from "./caller.ts";
import { createErrorResult, createTextBlock, toStructuredContent } from "./content.ts";
import { createFormRequest, readFormAnswers, requiresPerson } from "./interrupt-forms.ts";
import type { McpLimits } from "./limits.ts";
import type { OfferedGraph } from "./offer-graph.ts";
import { getGraphProgressText } from "./progress.ts";

/** Options of {@link createGraphCalls}. */
export interface GraphCallOptions {
  readonly graphs: readonly OfferedGraph[];
  readonly secrets: SecretSource | undefined;
  readonly store: Store;
  readonly limits: McpLimits;
  readonly world: World;
}

/** Tool calls of graphs. */
export interface GraphCalls {
  readonly list: () => readonly McpTool[];
  readonly has: (name: string) => boolean;
  readonly call: (name: string, args: unknown, request: CallRequest) => Promise<CallToolResult | InputRequiredResult>;
  /** Drains every run at the end of its superstep. Resolves when all runs are saved. */
  readonly close: () => Promise<void>;
}

type FinishedRun = RunResult<object>;
type Answer = CallToolResult | InputRequiredResult;

/** Target of a tool call: one thread of one graph. */
interface CallTarget {
  readonly offered: OfferedGraph;
  /** Thread name of the client. */
  readonly thread: string;
  /** Thread id in the store. */
  readonly threadId: string;
  readonly request: CallRequest;
}

/** Maximum number of threads with a remembered last reported run. */
const maxReportedRuns = 10_000;

/** Creates the tool calls of graphs. */
export function createGraphCalls({ graphs, secrets, store, limits, world }: GraphCallOptions): GraphCalls {
  const byName = new Map(graphs.map((offered) => [offered.name, offered]));
  const activeRuns = new Map<string, RunHandle<object>>();
  /** Last reported run by thread id: a repeated call with the same input then starts a new run. */
  const reportedRuns = new Map<string, string>();

  async function call(name: string, args: unknown, request: CallRequest): Promise<Answer> {
    const unsafeKey = findUnsafeKey(args);
    if (unsafeKey !== undefined)
      return createErrorResult(`The arguments of "${name}" contain the forbidden key "${unsafeKey}".`);
    const { thread, ...callArgs } = (args ?? {}) as Readonly<Record<string, unknown>>;
    const isContinuation = byName.get(name) === undefined;
    const offered = byName.get(isContinuation ? name.slice(0, -continueSuffix.length) : name);
    if (offered === undefined) return createErrorResult(`Unknown tool "${name}".`);
    const threadName = request.state ?? thread ?? (isContinuation ? undefined : `t_${randomUUID()}`);
    if (!isThreadName(threadName))
      return createErrorResult(`Invalid thread name for "${name}". Use ${threadNameRule}.`);
    const target: CallTarget = {
      offered,
      thread: threadName,
      threadId: createThreadId(request.caller, offered.name, threadName),
      request,
    };
    try {
      if (request.state !== undefined) return await continueWithForms(target);
      if (!isContinuation) return await startThread(target, callArgs);
      return await continueThread(target, callArgs["answers"]);
    } catch (error) {
      return toFailedResult(target, error);
    }
  }

  /** Starts a run with an input, or resumes the run with the same input whose result was not reported yet. */
  async function startThread(target: CallTarget, args: Readonly<Record<string, unknown>>): Promise<Answer> {
    const { offered, threadId, request } = target;
    const input = offered.toInput(args);
    const digest = hashArgs(args);
    const last = await findLastRun(threadId);
    if (last !== undefined && last.status !== "cancelled") {
      const isSame = last.metadata?.["input"] === digest;
      if (isSame && (last.status !== "done" || reportedRuns.get(threadId) !== last.id))
        return continueThread(target, undefined);
      if (last.status !== "done") return createErrorResult(describeBusyThread(target, last));
    }
    return followRun(target, () =>
      run(offered.graph, {
        ...createRunOptions(target),
        input: input as object,
        metadata: { mcp: request.caller.id, tool: offered.name, input: digest },
      }),
    );
  }

  /** Resumes the thread, with answers given by the host itself. */
  async function continueThread(target: CallTarget, answers: unknown): Promise<Answer> {
    const { offered, threadId, request } = target;
    const activeRun = activeRuns.get(threadId);
    if (activeRun !== undefined) {
      if (answers !== undefined)
        return createErrorResult(`${describeThread(target)} is running and has no open interrupt.`);
      const stopProgress = forwardProgress(activeRun, request, getGraphProgressText);
      return toAnswer(target, await activeRun.result.finally(stopProgress));
    }
    if ((await findLastRun(threadId)) === undefined)
      return createErrorResult(`"${offered.name}" has no thread "${target.thread}".`);
    if (answers === undefined) return followRun(target, () => resume(offered.graph, createRunOptions(target)));
    if (!isJsonObject(answers))
      return createErrorResult("The answers must be an object. Pass the answers by interrupt id.");
    const resolved = resolveAnswers(offered, await listOpenInterrupts(target), answers);
    if (typeof resolved === "string") return createErrorResult(resolved);
    return followRun(target, () =>
      resume(offered.graph, { ...createRunOptions(target), answers: resolved, by: request.caller.id }),
    );
  }

  /** Resumes the thread with form answers of a person. The run keeps waiting if all interrupts stay open. */
  async function continueWithForms(target: CallTarget): Promise<Answer> {
    const { offered, request } = target;
    const interrupts = await listOpenInterrupts(target);
    const { answers } = readFormAnswers(interrupts, request.responses);
    if (Object.keys(answers).length === 0) return toWaitingResult(target, interrupts);
    return followRun(target, () =>
      resume(offered.graph, { ...createRunOptions(target), answers, by: request.caller.id }),
    );
  }

  function createRunOptions({ offered, threadId, request }: CallTarget) {
    const context = resolveForCaller(offered.context, request.caller);
    const toolUpdates = request.progress !== undefined;
    return { store, thread: threadId, context, world, toolUpdates, ...(secrets === undefined ? {} : { secrets }) };
  }

  async function findLastRun(stored: string): Promise<RunRow | undefined> {
    const [last] = await listRuns(store, { thread: stored, limit: 1 });
    return last;
  }

  async function listOpenInterrupts({ offered, threadId }: CallTarget): Promise<readonly OpenInterrupt[]> {
    const { interrupts } = await getState(offered.graph, { store, thread: threadId });
    return interrupts;
  }

  /**
   * Runs until the result, an interrupt or a drain. A cancel ends the run; a disconnect or a timeout of the call
   * drains it.
   */
  async function followRun(target: CallTarget, start: () => RunHandle<object>): Promise<Answer> {
    const { threadId, request } = target;
    const { signal } = request;
    // A second call may have started the run since the check of the caller.
    if (activeRuns.has(threadId))
      return createErrorResult(`${describeThread(target)} is already running. ${describeContinuation(target)}`);
    const handle = start();
    activeRuns.set(threadId, handle);
    const stopProgress = forwardProgress(handle, request, getGraphProgressText);
    const drainRun = (reason: string): void => {
      handle.drain(reason);
      world.log("info", `run drains at its next superstep: ${reason}`, { thread: threadId });
    };
    const stop = (): void => {
      if (isDisconnected(signal)) drainRun("its client disconnected");
      else handle.cancel("the client cancelled the call");
    };
    const stopTimer = world.schedule.after(limits.callMs, () => drainRun("its call timed out"));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    try {
      return toAnswer(target, await handle.result);
    } finally {
      stopTimer();
      stopProgress();
      signal.removeEventListener("abort", stop);
      if (activeRuns.get(threadId) === handle) activeRuns.delete(threadId);
    }
  }

  function toAnswer(target: CallTarget, result: FinishedRun): Answer {
    const { offered, thread, threadId, request } = target;
    if (result.status === "waiting") {
      const formRequest = request.canAsk ? createFormRequest(offered.name, result.interrupts, thread) : undefined;
      return formRequest ?? toWaitingResult(target, result.interrupts);
    }
    if (result.status === "done") {
      rememberReported(threadId, result.run);
      return toDoneResult(target, result);
    }
    const reason = result.status === "paused" ? `: ${result.cause.message}` : "";
    return createStatusResult(target, result.status, [
      `${describeThread(target)} is ${result.status}${reason}. ${describeContinuation(target)}`,
    ]);
  }

  function rememberReported(stored: string, id: string): void {
    reportedRuns.delete(stored);
    reportedRuns.set(stored, id);
    for (const oldest of reportedRuns.keys()) {
      if (reportedRuns.size <= maxReportedRuns) return;
      reportedRuns.delete(oldest);
    }
  }

  function toDoneResult(
    target: CallTarget,
    { output, state }: Extract<FinishedRun, { readonly status: "done" }>,
  ): CallToolResult {
    const { offered } = target;
    const conversation = offered.graph.output === undefined ? findConversation(offered.graph, state) : undefined;
    if (conversation?.stopped !== undefined)
      return createErrorResult(
        `${offered.name} stopped before an answer: ${conversation.stopped}. ${describeContinuation(target)}`,
      );
    const value = conversation === undefined ? (output as JsonObject) : conversation.text;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (Buffer.byteLength(text) > limits.resultBytes)
      return createErrorResult(
        `${describeThread(target)} is done, but its result exceeds the size limit of this server.`,
      );
    return createStatusResult(
      target,
      "done",
      [text, `\n${describeThread(target)} is done. Pass the thread to continue it.`],
      {
        output: value,
      },
    );
  }

  function toWaitingResult(target: CallTarget, interrupts: readonly OpenInterrupt[]): CallToolResult {
    const { offered } = target;
    const lines = interrupts.map((interrupt) => {
      const needsPerson = !canHostAnswer(offered, interrupt);
      const description = `${interrupt.key}: ${JSON.stringify(interrupt.payload ?? null)}`;
      return needsPerson
        ? `- A person must answer at the host of this server. ${description}`
        : `- ${description} Answer "${interrupt.id}" with ${JSON.stringify(interrupt.schema ?? {})}.`;
    });
    const instruction = `Call ${offered.name}${continueSuffix} with the thread${interrupts.some((each) => canHostAnswer(offered, each)) ? " and the answers by interrupt id" : " after the answer"}.`;
    const listed = interrupts.map(({ id, key, payload, schema }) => ({ id, key, payload, schema }));
    return createStatusResult(
      target,
      "waiting",
      [`${describeThread(target)} waits for answers.`, ...lines, instruction],
      { questions: listed },
    );
  }

  function createStatusResult(
    { thread }: CallTarget,
    status: string,
    texts: readonly string[],
    more: Readonly<Record<string, unknown>> = {},
  ): CallToolResult {
    const all = toStructuredContent({ thread, status, ...more }, limits.resultBytes) ?? { thread, status };
    const [first = "", ...rest] = status === "waiting" ? [texts.join("\n")] : texts;
    return { content: [first, ...rest].map(createTextBlock), structuredContent: all };
  }

  function toFailedResult(target: CallTarget, error: unknown): CallToolResult {
    if (isStatewrightError(error) && error.kind === "input") return createErrorResult(error.message);
    world.log("error", `tool call of the graph "${target.offered.name}" failed`, { thread: target.threadId, error });
    return createErrorResult(`${target.offered.name} failed before an answer. ${describeContinuation(target)}`);
  }

  return {
    list: () => graphs.flatMap((offered) => [createStartTool(offered), createContinueTool(offered)]),
    has: (name) =>
      byName.has(name) || (name.endsWith(continueSuffix) && byName.has(name.slice(0, -continueSuffix.length))),
    call,
    close: async () => {
      const running = [...activeRuns.values()];
      for (const handle of running) handle.drain("the server is stopping");
      await Promise.allSettled(running.map(({ result }) => result));
    },
  };
}

/** Name suffix of the second tool of each graph: `name_continue`. */
const continueSuffix = "_continue";

function describeThread({ thread, offered }: CallTarget): string {
  return `Thread "${thread}" of ${offered.name}`;
}

function describeContinuation({ thread, offered }: CallTarget): string {
  return `Call ${offered.name}${continueSuffix} with the thread "${thread}" to continue.`;
}

function describeBusyThread(target: CallTarget, { status }: RunRow): string {
  return `${describeThread(target)} has a run with status ${status}. ${describeContinuation(target)} Or pass another thread.`;
}

function canHostAnswer({ hostAnswers }: OfferedGraph, interrupt: OpenInterrupt): boolean {
  return hostAnswers === "all" || (hostAnswers === "questions" && !requiresPerson(interrupt));
}

/**
 * Resolves answers of a host to open interrupts that the host may answer. Returns the reason as a string for invalid
 * answers.
 */
function resolveAnswers(
  offered: OfferedGraph,
  interrupts: readonly OpenInterrupt[],
  entries: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | string {
  const answers: Record<string, unknown> = {};
  for (const [name, answer] of Object.entries(entries)) {
    const [interrupt, another] = interrupts.filter(({ id, key }) => id === name || key === name);
    if (interrupt === undefined) return `No open interrupt ${JSON.stringify(name)}.`;
    if (another !== undefined) return `Several open interrupts have the key "${name}". Answer them by id.`;
    if (!canHostAnswer(offered, interrupt)) return `Only a person may answer "${interrupt.key}", not this call.`;
    answers[interrupt.id] = answer;
  }
  return answers;
}

/**
 * Returns the last message text of a conversation, or the reason for a missing answer. Undefined for a graph without
 * a messages channel.
 */
function findConversation(
  { state }: Graph,
  finalState: object,
): { readonly text: string; readonly stopped?: string | undefined } | undefined {
  if (state.channels["messages"]?.kind !== "messages") return undefined;
  const all = (finalState as { readonly messages?: readonly Message[] }).messages ?? [];
  const last = all.at(-1);
  if (last === undefined) return { text: "" };
  const ending = last.role === "assistant" ? last.ended : undefined;
  if (ending === undefined || ending.by === "answer") return { text: getMessageText(last) };
  return { text: getMessageText(last), stopped: ending.reason ?? `ended by ${ending.by}` };
}

function createStartTool({ name, spec, input }: OfferedGraph): McpTool {
  const properties = { ...(input["properties"] as JsonObject | undefined), thread: threadProperty };
  return {
    name,
    title: spec.label,
    description: spec.description,
    inputSchema: { ...(input as McpTool["inputSchema"]), properties },
    outputSchema,
    annotations: toAnnotations(spec),
  };
}

function createContinueTool({ name, spec }: OfferedGraph): McpTool {
  const label = `${spec.label}: go on`;
  return {
    name: name + continueSuffix,
    title: label,
    description: `Continue a thread of ${name} that was interrupted, failed, or waits for answers; or read its result. Recorded effects do not run again.`,
    inputSchema: {
      type: "object",
      properties: {
        thread: { type: "string", description: "Thread name from an earlier result." },
        answers: { type: "object", description: "Answers by interrupt id, from an earlier result." },
      },
      required: ["thread"],
      additionalProperties: false,
    },
    outputSchema,
    annotations: toAnnotations({ ...spec, label }),
  };
}

const threadProperty = {
  type: "string",
  description: `Thread name from an earlier result, to continue a conversation. Or a new name (${threadNameRule}), to find the thread again after an interruption.`,
};

const outputSchema: NonNullable<McpTool["outputSchema"]> = {
  type: "object",
  properties: {
    thread: { type: "string" },
    status: { type: "string" },
    output: {},
    questions: { type: "array", items: { type: "object" } },
  },
  required: ["thread", "status"],
};

/** Hashes arguments, independent of the order of their keys. */
function hashArgs(args: unknown): string {
  const sorted = JSON.stringify(args, (_key, value: unknown) =>
    isJsonObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
  return createHash("sha256").update(sorted).digest("hex");
}

/**
 * Finds a key that could pollute a prototype in code that copies the arguments. Recursive: the depth of messages is
 * limited.
 */
function findUnsafeKey(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, part] of Object.entries(value)) {
    if (key === "__proto__" || key === "constructor" || key === "prototype") return key;
    const found = findUnsafeKey(part);
    if (found !== undefined) return found;
  }
  return undefined;
}
