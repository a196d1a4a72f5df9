/** What a model says, without the secrets that its run has asked for. What is acted upon stays as it is, and is shown without. */

import { withoutSplit } from "../../base/redaction/redact-chunks.ts";
import type { Mask } from "../../base/redaction/redactor.ts";
import type { AssistantMessage } from "../../model/message.ts";
import type { ModelReply } from "../../model/model.ts";

/** The reply as it is saved: its words and thoughts without secrets. A thought that is signed cannot be changed: it goes. */
export function maskedReply({ hideUncommon, texts, uncommonTexts }: Mask, reply: ModelReply): ModelReply {
  if (texts().length === 0) return reply;
  const secrets = uncommonTexts();
  const whole = withoutSplit(withoutSplit(reply.content, secrets), secrets, "reasoning");
  const given = whole === reply.content ? undefined : new Set(reply.content);
  const content = whole.flatMap((block): AssistantMessage["content"] => {
    if (block.type !== "text" && block.type !== "reasoning") return [block];
    const text = hideUncommon(block.text);
    if (text === block.text && given?.has(block) !== false) return [block];
    return block.type === "reasoning" && block.provider !== undefined ? [] : [{ ...block, text }];
  });
  return isSame(content, reply.content) ? reply : { ...reply, content };
}

/** The message as it is told: the arguments of its calls without secrets too. */
export function shownMessage({ hideUncommon, texts }: Mask, message: AssistantMessage): AssistantMessage {
  if (texts().length === 0) return message;
  const content = message.content.map((block) => {
    if (block.type !== "call") return block;
    const args = hideUncommon(block.args);
    const raw = hideUncommon(block.raw);
    return args === block.args && raw === block.raw ? block : { ...block, args, ...(raw === undefined ? {} : { raw }) };
  });
  return isSame(content, message.content) ? message : { ...message, content };
}

function isSame(one: AssistantMessage["content"], other: AssistantMessage["content"]): boolean {
  return one.length === other.length && one.every((block, index) => block === other[index]);
}
