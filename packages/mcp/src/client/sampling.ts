/** Sampling: requests of a server to the user's model, if enabled, within the user's limits. */
import type { CreateMessageRequest, CreateMessageResult } from "@modelcontextprotocol/client";
import { listToolCalls, type Message, type Model, type ModelReply, type Usage } from "@statewright/core";

/** Sampling options of a server, for requests during its tool calls. */
export interface McpSampling {
  readonly model: Model;
  /** Maximum output tokens of an answer. Default 1,024. */
  readonly maxOutputTokens?: number;
  /** Maximum answers of a connection. Default 20. */
  readonly maxRequests?: number;
}

/** Answers a single sampling request. Throws with a message for the server. */
export async function sample(
  { model, maxOutputTokens: maxTokens = 1_024 }: McpSampling,
  { params }: CreateMessageRequest,
  signal: AbortSignal,
): Promise<{ readonly result: CreateMessageResult; readonly usage: Usage | undefined }> {
  if (params.tools !== undefined && params.tools.length > 0)
    throw new Error("Sampling requests with tools are not supported.");
  const reply = await model.respond(
    {
      messages: params.messages.map((message, index) => toMessage(message, index)),
      tools: [],
      maxOutputTokens: Math.min(params.maxTokens, maxTokens),
      ...(params.systemPrompt === undefined ? {} : { instructions: params.systemPrompt }),
      ...(params.temperature === undefined ? {} : { temperature: params.temperature }),
      ...(params.stopSequences === undefined ? {} : { stopSequences: params.stopSequences }),
    },
    { signal },
  );
  return { result: toSamplingResult(reply, model), usage: reply.usage };
}

type SamplingMessage = CreateMessageRequest["params"]["messages"][number];

function toMessage({ role, content }: SamplingMessage, index: number): Message {
  const id = `asked_${index + 1}`;
  const blocks = [content].flat().map((block) => {
    if (block.type === "text") return { type: "text" as const, text: block.text };
    if (block.type === "image" && role === "user")
      return { type: "image" as const, mimeType: block.mimeType, data: block.data };
    throw new Error(`Sampling requests with ${block.type} content of the ${role} are not supported.`);
  });
  if (role === "user") return { role, id, content: blocks };
  return { role, id, finish: "stop", content: blocks.flatMap((block) => (block.type === "text" ? [block] : [])) };
}

function toSamplingResult(reply: ModelReply, model: Model): CreateMessageResult {
  if (listToolCalls({ role: "assistant", id: "", ...reply }).length > 0)
    throw new Error("The model returned tool calls and no answer.");
  const text = reply.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const stopReason = reply.finish === "length" ? "maxTokens" : "endTurn";
  return { role: "assistant", content: { type: "text", text }, model: model.id, stopReason };
}
