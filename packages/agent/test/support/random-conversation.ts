/**
 * Random conversations: one or two user messages in a row, replies with or without tool calls, short and long results.
 */
import type { ContentBlock, Message, Random, ToolCallBlock } from "@statewright/core";

/** Creates a conversation for the next model request: it ends with a user message or with tool answers. */
export function createRandomConversation(random: Random, turns: number): readonly Message[] {
  const drawBelow = (limit: number): number => Math.floor(random.next() * limit);
  const messages: Message[] = [];
  const id = (): string => `m${messages.length}`;
  let calls = 0;
  const words = (limit: number): string => "lorem ipsum ".repeat(1 + drawBelow(limit)).trim();
  const say = (role: "user" | "assistant"): void => {
    const content = [{ type: "text" as const, text: words(20) }];
    messages.push(role === "user" ? { role, id: id(), content } : { role, id: id(), content, finish: "stop" });
  };
  const exchange = (): void => {
    const made: ToolCallBlock[] = Array.from({ length: 1 + drawBelow(3) }, () => ({
      type: "call",
      id: `call_${++calls}`,
      name: ["search", "read", "notes"][drawBelow(3)] ?? "read",
      args: { text: words(5) },
    }));
    messages.push({ role: "assistant", id: id(), content: made, finish: "calls" });
    for (const call of made) {
      const content: ContentBlock[] =
        drawBelow(4) === 0 ? [{ type: "json", value: { rows: [words(30)] } }] : [{ type: "text", text: words(80) }];
      messages.push({ role: "tool", id: id(), callId: call.id, name: call.name, content, isError: drawBelow(5) === 0 });
    }
  };
  if (drawBelow(3) === 0) messages.push({ role: "system", id: id(), content: words(10) });
  if (drawBelow(6) === 0) say("assistant");
  for (let turn = 0; turn < turns; turn++) {
    const isLast = turn === turns - 1;
    if (turn > 0 && drawBelow(8) === 0) messages.push({ role: "system", id: id(), content: words(4) });
    for (let said = 0; said < (drawBelow(5) === 0 ? 2 : 1); said++) say("user");
    for (let made = drawBelow(4) + (isLast && drawBelow(2) === 0 ? 6 : 0); made > 0; made--) exchange();
    if (!isLast) say("assistant");
  }
  return messages;
}
