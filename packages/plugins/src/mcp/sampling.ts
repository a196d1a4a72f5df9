/** Requests of a server to a model, where the user allows them: the user's model answers, within the user's limits. */
import type { CreateMessageRequest, CreateMessageResult } from "@modelcontextprotocol/client";
import { callsOf, type Message, type Model, type ModelReply, type Usage } from "@statewright/core";

/** What a server may ask of a model while one of its calls is at work. */
export interface McpSampling {
  readonly model: Model;
  /** The most tokens of one answer. Default 1,024. */
  readonly maxOutputTokens?: number;
  /** How many answers there are for one connection. Default 20. */
  readonly maxRequests?: number;
}

/** Answer one request. Throws with a text for the server. */
export async function sample(
  { model, maxOutputTokens: most = 1_024 }: McpSampling,
  { params }: CreateMessageRequest,
  signal: AbortSignal,
): Promise<{ readonly result: CreateMessageResult; readonly usage: Usage | undefined }> {
  if (params.tools !== undefined && params.tools.length > 0)
    throw new Error("Tools in a sampling request are refused.");
  const reply = await model.respond(
    {
      messages: params.messages.map((message, index) => messageOf(message, index)),
      tools: [],
      maxOutputTokens: Math.min(params.maxTokens, most),
      ...(params.systemPrompt === undefined ? {} : { instructions: params.systemPrompt }),
      ...(params.temperature === undefined ? {} : { temperature: params.temperature }),
      ...(params.stopSequences === undefined ? {} : { stopSequences: params.stopSequences }),
    },
    { signal },
  );
  return { result: resultOf(reply, model), usage: reply.usage };
}

type Asked = CreateMessageRequest["params"]["messages"][number];

function messageOf({ role, content }: Asked, index: number): Message {
  const id = `asked_${index + 1}`;
  const blocks = [content].flat().map((block) => {
    if (block.type === "text") return { type: "text" as const, text: block.text };
    if (block.type === "image" && role === "user")
      return { type: "image" as const, mimeType: block.mimeType, data: block.data };
    throw new Error(`A sampling request with ${block.type} of the ${role} is refused.`);
  });
  if (role === "user") return { role, id, content: blocks };
  return { role, id, finish: "stop", content: blocks.flatMap((block) => (block.type === "text" ? [block] : [])) };
}

function resultOf(reply: ModelReply, model: Model): CreateMessageResult {
  if (callsOf({ role: "assistant", id: "", ...reply }).length > 0) throw new Error("The model did not answer.");
  const text = reply.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const stopReason = reply.finish === "length" ? "maxTokens" : "endTurn";
  return { role: "assistant", content: { type: "text", text }, model: model.id, stopReason };
}
