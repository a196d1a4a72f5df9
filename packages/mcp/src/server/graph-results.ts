/** Results of graph runs as MCP results: a value, a form request, open interrupts, or a status. */
import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import {
  type Graph,
  getMessageText,
  type JsonObject,
  type Message,
  type OpenInterrupt,
  type RunResult,
} from "@statewright/core";
import { createErrorResult, createTextBlock, toStructuredContent } from "./content.ts";
import { describeContinuation, describeThread, type GraphCall } from "./graph-call.ts";
import { continueSuffix } from "./graph-tools.ts";
import { canHostAnswer } from "./host-answers.ts";
import { createFormRequest } from "./interrupt-forms.ts";

/** Result of a tool call, or a request for a form. */
export type McpResult = CallToolResult | InputRequiredResult;

/** Converts the result of a run. Structured content and values are limited to `maxBytes`. */
export function toGraphResult(call: GraphCall, result: RunResult<object>, maxBytes: number): McpResult {
  const { offered, thread, request } = call;
  if (result.status === "waiting") {
    const formRequest = request.canAsk ? createFormRequest(offered.name, result.interrupts, thread) : undefined;
    return formRequest ?? toWaitingResult(call, result.interrupts, maxBytes);
  }
  if (result.status === "done") return toDoneResult(call, result, maxBytes);
  const reason = result.status === "paused" ? `: ${result.cause.message}` : "";
  const text = `${describeThread(call)} is ${result.status}${reason}. ${describeContinuation(call)}`;
  return createStatusResult(call, { status: result.status, texts: [text] }, maxBytes);
}

function toDoneResult(
  call: GraphCall,
  { output, state }: Extract<RunResult<object>, { readonly status: "done" }>,
  maxBytes: number,
): CallToolResult {
  const { offered } = call;
  const conversation = offered.graph.output === undefined ? findConversation(offered.graph, state) : undefined;
  if (conversation?.stopped !== undefined)
    return createErrorResult(
      `${offered.name} stopped before an answer: ${conversation.stopped}. ${describeContinuation(call)}`,
    );
  const value = conversation === undefined ? (output as JsonObject) : conversation.text;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (Buffer.byteLength(text) > maxBytes)
    return createErrorResult(`${describeThread(call)} is done, but its result exceeds the size limit of this server.`);
  const texts = [text, `\n${describeThread(call)} is done. Pass the thread to continue it.`];
  return createStatusResult(call, { status: "done", texts, values: { output: value } }, maxBytes);
}

/** Lists open interrupts, with their schemas for those that the host's model may answer. */
export function toWaitingResult(
  call: GraphCall,
  interrupts: readonly OpenInterrupt[],
  maxBytes: number,
): CallToolResult {
  const { offered } = call;
  const lines = interrupts.map((interrupt) => {
    const description = `${interrupt.key}: ${JSON.stringify(interrupt.payload ?? null)}`;
    return canHostAnswer(offered, interrupt)
      ? `- ${description} Answer "${interrupt.id}" with ${JSON.stringify(interrupt.schema ?? {})}.`
      : `- A person must answer at the host of this server. ${description}`;
  });
  const hasAnswerable = interrupts.some((interrupt) => canHostAnswer(offered, interrupt));
  const end = hasAnswerable ? "and the answers by interrupt id" : "after the answer";
  const texts = [
    `${describeThread(call)} waits for answers.`,
    ...lines,
    `Call ${offered.name}${continueSuffix} with the thread ${end}.`,
  ];
  const listed = interrupts.map(({ id, key, payload, schema }) => ({ id, key, payload, schema }));
  return createStatusResult(call, { status: "waiting", texts, values: { interrupts: listed } }, maxBytes);
}

function createStatusResult(
  { thread }: GraphCall,
  result: {
    readonly status: string;
    readonly texts: readonly string[];
    /** Structured content, in addition to the thread and the status; omitted above the limit. */
    readonly values?: Readonly<Record<string, unknown>>;
  },
  maxBytes: number,
): CallToolResult {
  const { status, texts, values } = result;
  const all = toStructuredContent({ thread, status, ...values }, maxBytes) ?? { thread, status };
  const [first = "", ...rest] = status === "waiting" ? [texts.join("\n")] : texts;
  return { content: [first, ...rest].map(createTextBlock), structuredContent: all };
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
