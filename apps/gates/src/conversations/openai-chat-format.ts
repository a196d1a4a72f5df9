/** OpenAI's chat completions, with what its server refuses. */
import {
  type Body,
  frame,
  isJsonObject,
  listAt,
  objectOf,
  pieces,
  type WireFormat,
  type WireSession,
} from "./wire-format.ts";

const nameFits = /^[A-Za-z0-9_-]{1,64}$/;

export const openaiChatFormat: WireFormat = { open };

function open(): WireSession {
  return {
    problems: (body) => [...problemsOf(body)],
    frames: ({ text, calls, end }) => {
      const chunk = (delta: object, finish: string | null = null): string =>
        frame({
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
        chunk({ role: "assistant", content: "" }),
        ...pieces(text).map((content) => chunk({ content })),
        ...calls.flatMap(({ id, name, args }, index) => [
          chunk({ tool_calls: [{ index, id: id.slice(0, 40), type: "function", function: { name, arguments: "" } }] }),
          ...pieces(args).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
        ]),
        chunk({}, finish),
        frame("[DONE]"),
      ];
    },
    refusal: (status) =>
      JSON.stringify({
        error: { message: "Not now", type: "server_error", code: status === 429 ? "rate_limit" : null },
      }),
  };
}

function* problemsOf(body: Body): Generator<string> {
  const messages = listAt(body, "messages");
  if (messages.length === 0) yield "there are no messages";
  let due: unknown[] = [];
  for (const [index, message] of messages.entries()) {
    const { role, content, tool_calls: calls, tool_call_id: answers } = message;
    const where = `message ${index}`;
    if (role === "tool") {
      if (!due.includes(answers)) yield `${where} answers ${String(answers)}, which is not called before it`;
      due = due.filter((id) => id !== answers);
      if (typeof content !== "string") yield `${where} is an answer without text`;
      continue;
    }
    if (due.length > 0) yield `${where} stands where answers to ${due.join()} are due`;
    due = [];
    if (!["system", "developer", "user", "assistant"].includes(String(role)))
      yield `${where} has the role ${String(role)}`;
    if (role !== "assistant") {
      if (typeof content !== "string" && !Array.isArray(content)) yield `${where} has no content`;
      continue;
    }
    const made = Array.isArray(calls) ? calls.map(objectOf) : [];
    if (typeof content !== "string" && made.length === 0) yield `${where} has neither content nor calls`;
    for (const { id, function: called } of made) {
      const { name, arguments: args } = objectOf(called);
      if (typeof id !== "string" || id === "" || id.length > 40)
        yield `${where} has a call with the id ${JSON.stringify(id)}`;
      if (due.includes(id)) yield `${where} has two calls with the id "${String(id)}"`;
      if (typeof name !== "string" || !nameFits.test(name)) yield `${where} calls the tool ${JSON.stringify(name)}`;
      if (!isJsonObject(args)) yield `${where} has a call whose arguments are ${JSON.stringify(args)}`;
      due.push(id);
    }
  }
  if (due.length > 0) yield `the calls ${due.join()} have no answer`;
}
