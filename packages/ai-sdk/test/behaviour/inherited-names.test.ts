import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { listToolCalls, type Message } from "@statewright/core";
import { expect, test } from "vitest";
import { aiModel, type LanguageModel } from "../../src/index.ts";
import { anthropicFrames, chat, responses } from "../support/frames.ts";
import { ask, createCallOptions, user, weather } from "../support/requests.ts";
import { events, startWireServer } from "../support/wire-server.ts";

const apiKey = "sk-test-123456";

interface Provider {
  readonly model: (baseURL: string) => LanguageModel;
  readonly call: (name: string) => readonly unknown[];
  readonly answer: readonly unknown[];
}

const toGemini = (part: object): object[] => [
  { candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP" }] },
];

const providers: Readonly<Record<string, Provider>> = {
  Anthropic: {
    model: (baseURL) => createAnthropic({ baseURL, apiKey })("claude-sonnet-4-5"),
    call: (name) => [
      ...anthropicFrames.start(),
      ...anthropicFrames.call(0, "toolu_1", name, "{}"),
      ...anthropicFrames.end("tool_use"),
    ],
    answer: [...anthropicFrames.start(), ...anthropicFrames.text(0, "Sorry."), ...anthropicFrames.end("end_turn")],
  },
  "OpenAI chat": {
    model: (baseURL) => createOpenAI({ baseURL, apiKey }).chat("gpt-4o"),
    call: (name) => [...chat.call("call_1", name, "{}"), ...chat.end("tool_calls")],
    answer: [...chat.text("Sorry."), ...chat.end("stop")],
  },
  "OpenAI responses": {
    model: (baseURL) => createOpenAI({ baseURL, apiKey })("gpt-5"),
    call: (name) => [...responses.start(), ...responses.call("call_1", name, "{}"), ...responses.end()],
    answer: [...responses.start(), ...responses.text("Sorry."), ...responses.end()],
  },
  Gemini: {
    model: (baseURL) => createGoogle({ baseURL, apiKey })("gemini-3-flash"),
    call: (name) => toGemini({ functionCall: { name, args: {} } }),
    answer: toGemini({ text: "Sorry." }),
  },
};

const names = ["constructor", "toString", "__proto__", "hasOwnProperty", "valueOf"];
const cases = Object.keys(providers).flatMap((provider) => names.map((name) => [provider, name] as const));

/** Lists the tool names of calls and answers in a request body, in order. */
function listSentNames(body: unknown): readonly unknown[] {
  const found: unknown[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { type, name, function: called, functionCall, functionResponse } = value as Record<string, unknown>;
    if (type === "tool_use" || type === "function_call") found.push(name);
    if (type === "function" && called !== undefined && "arguments" in (called as object))
      found.push((called as { readonly name?: unknown }).name);
    for (const part of [functionCall, functionResponse])
      if (part !== undefined) found.push((part as { readonly name?: unknown }).name);
    Object.values(value).forEach(visit);
  };
  visit((body as { readonly messages?: unknown; readonly input?: unknown; readonly contents?: unknown }) ?? {});
  return found;
}

test.each(cases)(
  "a call of a tool named as a member of every object is read and sent back under a text: %s, %s [FX76]",
  async (provider, name) => {
    const { model: create, call, answer } = providers[provider] as Provider;
    await using server = await startWireServer(events(call(name)), events(answer));
    const model = aiModel(create(`${server.url}/v1`));
    const question = ask("Hi", { tools: [weather] });
    const reply = await model.respond(question, createCallOptions());
    const calls = listToolCalls({ role: "assistant", id: "a1", ...reply });
    expect(calls.map((block) => block.name)).toEqual([name]);
    const messages: Message[] = [
      user("Hi"),
      { role: "assistant", id: "a1", ...reply },
      {
        role: "tool",
        id: "t1",
        callId: calls[0]?.id ?? "",
        name,
        isError: true,
        content: [{ type: "text", text: `There is no tool "${name}".` }],
      },
    ];
    await model.respond({ ...question, messages }, createCallOptions());
    const sent = listSentNames(server.requests[1]?.body);
    expect(sent.length).toBeGreaterThan(0);
    for (const each of sent) expect(each).toBe(`${name}_`);
  },
);
