/** OpenAI's chat completions format, with the checks of its server. */
import {
  type Body,
  createFrame,
  getList,
  isJsonObject,
  splitText,
  toObject,
  type WireFormat,
  type WireSession,
} from "./wire-format.ts";

const namePattern = /^[A-Za-z0-9_-]{1,64}$/;

export const openaiChatFormat: WireFormat = { open };

function open(): WireSession {
  return {
    findProblems: (body) => [...findProblems(body)],
    createFrames: ({ text, calls, end }) => {
      const createChunk = (delta: object, finish: string | null = null): string =>
        createFrame({
          id: "chatcmpl-1",
          object: "chat.completion.chunk",
          created: 1_700_000_000,
          model: "gpt",
          choices: [{ index: 0, delta, finish_reason: finish }],
        });
      const finish = { stop: calls.length > 0 ? "tool_calls" : "stop", length: "length", filter: "content_filter" }[
        end
      ];
      return [
        createChunk({ role: "assistant", content: "" }),
        ...splitText(text).map((content) => createChunk({ content })),
        ...calls.flatMap(({ id, name, args }, index) => [
          createChunk({
            tool_calls: [{ index, id: id.slice(0, 40), type: "function", function: { name, arguments: "" } }],
          }),
          ...splitText(args).map((piece) => createChunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
        ]),
        createChunk({}, finish),
        createFrame("[DONE]"),
      ];
    },
    createErrorBody: (status) =>
      JSON.stringify({
        error: { message: "Not now", type: "server_error", code: status === 429 ? "rate_limit" : null },
      }),
  };
}

function* findProblems(body: Body): Generator<string> {
  const messages = getList(body, "messages");
  if (messages.length === 0) yield "expected messages, got none";
  let pendingIds: unknown[] = [];
  for (const [index, message] of messages.entries()) {
    const { role, content, tool_calls: calls, tool_call_id: resultId } = message;
    const label = `message ${index}`;
    if (role === "tool") {
      if (!pendingIds.includes(resultId)) yield `${label} has a result for ${String(resultId)} without a call before`;
      pendingIds = pendingIds.filter((id) => id !== resultId);
      if (typeof content !== "string") yield `${label} has a result without text`;
      continue;
    }
    if (pendingIds.length > 0) yield `${label} follows calls without results: ${pendingIds.join()}`;
    pendingIds = [];
    if (!["system", "developer", "user", "assistant"].includes(String(role)))
      yield `${label} has the invalid role ${String(role)}`;
    if (role !== "assistant") {
      if (typeof content !== "string" && !Array.isArray(content)) yield `${label} has no content`;
      continue;
    }
    const callList = Array.isArray(calls) ? calls.map(toObject) : [];
    if (typeof content !== "string" && callList.length === 0) yield `${label} has neither content nor calls`;
    for (const { id, function: callFunction } of callList) {
      const { name, arguments: args } = toObject(callFunction);
      if (typeof id !== "string" || id === "" || id.length > 40)
        yield `${label} has a call with the invalid id ${JSON.stringify(id)}`;
      if (pendingIds.includes(id)) yield `${label} has two calls with the id "${String(id)}"`;
      if (typeof name !== "string" || !namePattern.test(name))
        yield `${label} calls a tool with the invalid name ${JSON.stringify(name)}`;
      if (!isJsonObject(args)) yield `${label} has a call with the invalid arguments ${JSON.stringify(args)}`;
      pendingIds.push(id);
    }
  }
  if (pendingIds.length > 0) yield `the calls ${pendingIds.join()} have no result`;
}
