/** Finish reason of a reply, as the provider reports it and in the terms of Statewright. */
import type { FinishReason, ModelReply } from "@statewright/core";
import type { Part } from "./stream-part.ts";

/**
 * Returns the finish reason in the specification's terms and in the provider's own. Clients of V2 and V3 end a
 * truncated stream with "unknown", or with "other" and no raw reason; clients of V4 with "interrupted".
 */
export function parseFinishReason(
  reason: Part<"finish">["finishReason"],
  client: string,
): {
  readonly reason: string;
  readonly word: string | undefined;
} {
  if (typeof reason === "string") return { reason: reason === "unknown" ? "interrupted" : reason, word: undefined };
  const { unified, raw } = reason;
  // The Responses API reports a word only for an incomplete response; its client reads any word beside a call as an
  // ordinary end.
  if (unified === "tool-calls" && raw !== undefined && responsesClient.test(client))
    return { reason: "other", word: raw };
  if (unified !== "other") return { reason: unified, word: raw };
  if (raw === undefined) return { reason: "interrupted", word: raw };
  return { reason: completeWords.test(raw) ? "stop" : "other", word: raw };
}

/** Words of compatible servers for a complete reply, which clients do not know. */
const completeWords = /^(?:(?:function|tool)[-_ ]?(?:calls?|use)|eos|eos_token|end_turn|stop_sequence)$/i;

const responsesClient = /^(?:openai|azure)\b.*\.responses$/;

/** Returns why a reply with this finish reason is broken; undefined for a complete reply. */
export function findBreakReason(reason: string): string | undefined {
  if (reason === "interrupted") return "the stream ended before the reply was complete";
  return reason === "error" ? "the model stopped because of an error" : undefined;
}

/**
 * Derives `calls` from the content of a complete reply: providers disagree about `stop` and `tool-calls`. Any other
 * reason means that the provider stopped the reply; its tool calls must not run.
 */
export function toFinishReason(reason: string, content: ModelReply["content"]): FinishReason {
  if (reason === "length") return "length";
  if (reason === "content-filter") return "filter";
  if (reason !== "stop" && reason !== "tool-calls") return "other";
  return content.some((block) => block.type === "call") ? "calls" : "stop";
}

/**
 * Anthropic pauses a long turn of provider-executed tools: the reply continues in a request with the partial reply.
 */
export function isPaused(reason: Part<"finish">["finishReason"]): boolean {
  return typeof reason === "object" && reason.raw === "pause_turn";
}
