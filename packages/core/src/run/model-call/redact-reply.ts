/**
 * Redacts the run's secrets in model replies. Tool arguments stay unchanged for execution and are redacted only in
 * events.
 */

import { redactSplitSecrets } from "../../base/redaction/redact-chunks.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import type { AssistantMessage } from "../../model/message.ts";
import type { ModelReply } from "../../model/model.ts";

/**
 * Redacts text and reasoning of a reply before it is saved. A signed reasoning block cannot be changed and is
 * removed.
 */
export function redactReply(
  { redactUncommon, listSecrets, listUncommonSecrets }: Redactor,
  reply: ModelReply,
): ModelReply {
  if (listSecrets().length === 0) return reply;
  const secrets = listUncommonSecrets();
  const cleaned = redactSplitSecrets(redactSplitSecrets(reply.content, secrets), secrets, "reasoning");
  const originalBlocks = cleaned === reply.content ? undefined : new Set(reply.content);
  const content = cleaned.flatMap((block): AssistantMessage["content"] => {
    if (block.type !== "text" && block.type !== "reasoning") return [block];
    const text = redactUncommon(block.text);
    if (text === block.text && originalBlocks?.has(block) !== false) return [block];
    return block.type === "reasoning" && block.provider !== undefined ? [] : [{ ...block, text }];
  });
  return isSameContent(content, reply.content) ? reply : { ...reply, content };
}

/** Redacts the message for events, including the arguments of its tool calls. */
export function redactMessage({ redactUncommon, listSecrets }: Redactor, message: AssistantMessage): AssistantMessage {
  if (listSecrets().length === 0) return message;
  const content = message.content.map((block) => {
    if (block.type !== "call") return block;
    const args = redactUncommon(block.args);
    const raw = redactUncommon(block.raw);
    return args === block.args && raw === block.raw ? block : { ...block, args, ...(raw === undefined ? {} : { raw }) };
  });
  return isSameContent(content, message.content) ? message : { ...message, content };
}

function isSameContent(left: AssistantMessage["content"], right: AssistantMessage["content"]): boolean {
  return left.length === right.length && left.every((block, index) => block === right[index]);
}
