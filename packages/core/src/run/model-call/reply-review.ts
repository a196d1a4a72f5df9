/**
 * Review of replies inside a single model call: an answer that does not fit its schema is requested again, within the
 * same recorded effect.
 */
import { StatewrightError } from "../../base/errors.ts";
import { type AssistantMessage, getMessageText, type Message } from "../../model/message.ts";
import type { ModelReply, ModelRequest } from "../../model/model.ts";
import {
  type AnswerFormat,
  formatRepairRequest,
  type OutputStrategy,
  parseAnswer,
} from "../../tool/definition/answer-format.ts";
import { finalCallName } from "../../tool/definition/final-call.ts";

/** Review of the replies of a model call. */
export interface ReplyReview {
  /** Converts the request as hooks see it to the request that is sent. */
  readonly prepare: (request: ModelRequest) => ModelRequest;
  /** Returns an accepted reply, or the next request. Throws after the last repair. */
  readonly check: (
    reply: ModelReply,
    sent: { readonly request: ModelRequest; readonly repairs: number },
  ) => { readonly accepted: ModelReply } | { readonly next: ModelRequest };
}

/** Key of the review of a model call; only the engine sets it. */
export const replyReview: unique symbol = Symbol("replyReview");

/** Sends a request until its reply is accepted. */
export async function sendReviewed(
  send: (request: ModelRequest) => Promise<ModelReply>,
  request: ModelRequest,
  review: ReplyReview | undefined,
): Promise<ModelReply> {
  if (review === undefined) return send(request);
  let outgoing = review.prepare(request);
  for (let repairs = 0; ; repairs++) {
    const verdict = review.check(await send(outgoing), { request: outgoing, repairs });
    if ("accepted" in verdict) return verdict.accepted;
    outgoing = verdict.next;
  }
}

/** Creates the review of answers by a schema. `where` names the call in errors. */
export function createOutputReview(where: string, format: AnswerFormat, strategy: OutputStrategy): ReplyReview {
  return {
    prepare: (request) => (strategy === "native" ? request : replaceOutputByTool(format, request)),
    check: (reply, { request, repairs }) => {
      const accepted = toTextAnswer(reply);
      const answer: AssistantMessage = { ...accepted, role: "assistant", id: `answer:${repairs + 1}` };
      const read = parseAnswer(format.schema, answer);
      if (read.ok) return { accepted };
      if (repairs >= format.repairs) throw createOutputError(where, answer, read.issues);
      const text = formatRepairRequest(strategy, reply, read.issues);
      return { next: { ...request, messages: [...request.messages, ...createRepair(answer, text)] } };
    },
  };
}

/** Creates the error of an answer that does not fit its schema. */
export function createOutputError(where: string, answer: AssistantMessage, issues: string): StatewrightError {
  return new StatewrightError("invalid_output", {
    what: `${where}: expected output that matches the schema, got an invalid output: ${issues}`,
    next: "Resume the thread to ask again, or describe the output in the prompt",
    details: { text: getMessageText(answer), wrong: [issues] },
  });
}

function replaceOutputByTool({ final }: AnswerFormat, { output: _output, ...request }: ModelRequest): ModelRequest {
  return { ...request, tools: [...request.tools, final.tool], toolChoice: { tool: finalCallName } };
}

/** Replaces the final call of a reply by its arguments as text: the answer is no tool call that waits for a result. */
function toTextAnswer(reply: ModelReply): ModelReply {
  if (!reply.content.some((block) => block.type === "call" && block.name === finalCallName)) return reply;
  const content = reply.content.flatMap((block): ModelReply["content"] => {
    if (block.type === "reasoning") return [block];
    if (block.type !== "call" || block.name !== finalCallName) return [];
    return [{ type: "text", text: block.raw ?? JSON.stringify(block.args) }];
  });
  return { ...reply, content, finish: reply.finish === "calls" ? "stop" : reply.finish };
}

/** Creates the messages of a repair: the invalid answer as text, if any, and the problem. */
function createRepair(answer: AssistantMessage, text: string): readonly Message[] {
  const content = answer.content.filter(({ type }) => type === "text");
  const problem: Message = { role: "user", id: `${answer.id}:repair`, content: [{ type: "text", text }] };
  return content.length === 0 ? [problem] : [{ ...answer, content, finish: "stop" }, problem];
}
