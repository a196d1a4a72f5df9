/** One conversation in the stream format of each provider: reasoning or text and a tool call, then the final answer. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import type { Model } from "@statewright/core";
import { aiModel } from "../../src/index.ts";
import { anthropicFrames, chat, responses } from "./frames.ts";
import { toFrameText } from "./wire-server.ts";

/** Client of a provider, and the streams of its server. */
export interface RecordedStreams {
  readonly client: string;
  readonly model: (at: { readonly baseURL: string; readonly fetch?: typeof fetch }) => Model;
  /** Frames of the message with the tool call. */
  readonly calling: readonly unknown[];
  /** Number of frames after the frame that completes the message. */
  readonly after: number;
  /** Frames of the final answer. */
  readonly answering: readonly unknown[];
}

const apiKey = "sk-test-1234567890";

const googleFrame = (parts: readonly object[], more: object = {}): object => ({
  candidates: [{ content: { role: "model", parts }, ...more }],
});
const googleUsage = { usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 9, totalTokenCount: 29 } };

export const recordedStreams: readonly RecordedStreams[] = [
  {
    client: "anthropic",
    model: (at) => aiModel(createAnthropic({ ...at, apiKey })("claude-sonnet-4-5")),
    calling: [
      ...anthropicFrames.start(),
      ...anthropicFrames.text(0, "I ", "look ü."),
      ...anthropicFrames.call(1, "toolu_1", "get_weather", '{"ci', 'ty":"Os', 'lo"}'),
      ...anthropicFrames.end("tool_use"),
    ],
    after: 0,
    answering: [...anthropicFrames.start(), ...anthropicFrames.text(0, "Rain."), ...anthropicFrames.end("end_turn")],
  },
  {
    client: "openai chat",
    model: (at) => aiModel(createOpenAI({ ...at, apiKey }).chat("gpt-4o")),
    calling: [...chat.call("call_1", "get_weather", '{"ci', 'ty":"Os', 'lo"}'), ...chat.end("tool_calls")],
    after: 2,
    answering: [...chat.text("Rain."), ...chat.end("stop")],
  },
  {
    client: "openai responses",
    model: (at) => aiModel(createOpenAI({ ...at, apiKey })("gpt-5")),
    calling: [
      ...responses.start(),
      ...responses.call("call_1", "get_weather", '{"ci', 'ty":"Os', 'lo"}'),
      ...responses.end(),
    ],
    after: 0,
    answering: [...responses.start(), ...responses.text("Rain."), ...responses.end()],
  },
  {
    client: "google",
    model: (at) => aiModel(createGoogle({ ...at, apiKey })("gemini-3-flash")),
    calling: [
      googleFrame([{ text: "I look ü." }]),
      googleFrame([{ functionCall: { name: "get_weather", args: { city: "Oslo" } } }]),
      { ...googleFrame([{ text: "" }], { finishReason: "STOP" }), ...googleUsage },
    ],
    after: 0,
    answering: [{ ...googleFrame([{ text: "Rain." }], { finishReason: "STOP" }), ...googleUsage }],
  },
];

/** Serializes frames like a server. */
export function toBytes(frames: readonly unknown[]): Uint8Array {
  return new TextEncoder().encode(frames.map(toFrameText).join(""));
}
