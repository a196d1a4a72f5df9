/** A conversation whose provider fails continues with another provider, through the clients of both. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { type AssistantMessage, createAgent, defineTool, getMessageText, type RunEvent } from "statewright";
import { modelFallback } from "statewright/middleware";
import { expect, test } from "vitest";
import * as z from "zod";

const stream = (frames: readonly unknown[]): Response =>
  new Response(
    frames
      .map((frame) => (typeof frame === "string" ? `data: ${frame}\n\n` : `data: ${JSON.stringify(frame)}\n\n`))
      .join(""),
    { headers: { "content-type": "text/event-stream" } },
  );

const usage = { input_tokens: 10, output_tokens: 1 };
const opening = {
  type: "message_start",
  message: {
    ...{ id: "msg_1", type: "message", role: "assistant", model: "claude", content: [], usage },
    ...{ stop_reason: null, stop_sequence: null },
  },
};
const calling = [
  opening,
  {
    type: "content_block_start",
    index: 0,
    content_block: { type: "tool_use", id: "toolu_1", name: "look", input: {} },
  },
  { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"city":"Oslo"}' } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 8 } },
  { type: "message_stop" },
];
const half = [
  opening,
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "In Oslo it is dr" } },
];
const overloaded = (): Response =>
  new Response(JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }), {
    status: 529,
    headers: { "retry-after": "600" },
  });

const chunk = (delta: object, finish: string | null = null): object => ({
  ...{ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "gpt-4o" },
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const saying = [
  chunk({ role: "assistant", content: "It " }),
  chunk({ content: "rains." }),
  chunk({}, "stop"),
  "[DONE]",
];

/** Creates a `fetch` that answers in order and records its requests. */
function answering(...answers: readonly (() => Response)[]): { readonly fetch: typeof fetch; readonly sent: string[] } {
  const sent: string[] = [];
  return {
    sent,
    fetch: async (_url, init) => {
      const answer = answers[sent.length] ?? answers.at(-1);
      sent.push(String(init?.body));
      if (answer === undefined) throw new Error("no answer");
      return answer();
    },
  };
}

const look = defineTool({
  name: "look",
  description: "Look outside.",
  input: z.object({ city: z.string() }),
  effect: "pure",
  run: ({ city }) => `Rain in ${city}`,
});

test.each<[string, () => Response, string]>([
  ["is overloaded", overloaded, "overloaded"],
  ["breaks off", () => stream(half), "broken_reply"],
])(
  "a provider that %s behind a call is replaced by another, which reads the call and its answer",
  async (_what, failing, kind) => {
    const first = answering(() => stream(calling), failing);
    const second = answering(() => stream(saying));
    const openai = createOpenAI({ apiKey: "sk-test-123456", fetch: second.fetch });
    const agent = createAgent({
      name: "weather",
      model: createAnthropic({ apiKey: "sk-ant-test-123456", fetch: first.fetch })("claude-sonnet-4-5"),
      tools: [look],
      retry: { attempts: 1 },
      models: { house: openai.chat },
      middleware: [modelFallback(["house/gpt-4o"])],
    });
    const handle = agent.run({ input: "Oslo?" });
    const events: RunEvent[] = [];
    handle.on((event) => events.push(event));
    const { state } = await handle.result;
    const answer = state.messages.at(-1) as AssistantMessage;
    expect(getMessageText(answer)).toBe("It rains.");
    expect(answer).toMatchObject({
      answeredBy: "openai/gpt-4o",
      failedAttempts: [{ model: "anthropic/claude-sonnet-4-5", kind }],
    });
    expect(first.sent).toHaveLength(2);
    expect(JSON.parse(second.sent[0] ?? "")).toMatchObject({
      messages: [
        { role: "user" },
        {
          role: "assistant",
          tool_calls: [{ id: "toolu_1", function: { name: "look", arguments: '{"city":"Oslo"}' } }],
        },
        { role: "tool", tool_call_id: "toolu_1", content: "Rain in Oslo" },
      ],
    });
    const observed = events.flatMap((event) => (event.type === "message.retracted" ? [event.text] : []));
    expect(observed).toEqual(kind === "overloaded" ? [] : ["In Oslo it is dr"]);
  },
);
