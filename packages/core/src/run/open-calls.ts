/** The calls of a conversation that wait for their answers. */
import type { AssistantMessage, Message } from "../model/message.ts";
import type { OpenCall } from "./call-at-work.ts";

/**
 * The calls of the last assistant message that have no answer yet. A model may give two calls one id: the message is then
 * written again with an id for each, since providers refuse a transcript that tells them apart by place only.
 */
export function openCalls(messages: readonly Message[]): {
  readonly renamed: readonly AssistantMessage[];
  readonly calls: readonly OpenCall[];
} {
  const index = messages.findLastIndex((message) => message.role === "assistant");
  const asking = messages[index];
  if (asking?.role !== "assistant") return { renamed: [], calls: [] };
  const content = withOwnIds(asking.content);
  const answered = new Set(
    messages.slice(index + 1).flatMap((message) => (message.role === "tool" ? message.callId : [])),
  );
  const cut = asking.finish === "length";
  return {
    renamed: content === asking.content ? [] : [{ ...asking, content }],
    calls: content.flatMap((block) =>
      block.type === "call" && !answered.has(block.id) ? [{ block, cut, message: asking }] : [],
    ),
  };
}

function withOwnIds(content: AssistantMessage["content"]): AssistantMessage["content"] {
  const given = content.flatMap((block) => (block.type === "call" ? [block.id] : []));
  const taken = new Set(given);
  if (taken.size === given.length) return content;
  const seen = new Set<string>();
  return content.map((block) => {
    if (block.type !== "call") return block;
    let { id } = block;
    for (let nth = 2; seen.has(id) || (id !== block.id && taken.has(id)); nth++) id = `${block.id}_${nth}`;
    seen.add(id);
    return id === block.id ? block : { ...block, id };
  });
}
