/** Anthropic's messages format, with the checks of its server. */
import { randomUUID } from "node:crypto";
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

const idPattern = /^[A-Za-z0-9_-]+$/;
const namePattern = /^[A-Za-z0-9_-]{1,128}$/;

export const anthropicFormat: WireFormat = { open };

function open(): WireSession {
  const signed = new Map<string, string>();
  return {
    findProblems: (body) => [...findProblems(body, signed)],
    createFrames: ({ thought, text, calls, end }) => {
      const frames = [createFrame({ type: "message_start", message }, "message_start")];
      let index = 0;
      const addBlock = (content: object, deltas: readonly object[]): void => {
        frames.push(createFrame({ type: "content_block_start", index, content_block: content }, "content_block_start"));
        for (const delta of deltas)
          frames.push(createFrame({ type: "content_block_delta", index, delta }, "content_block_delta"));
        frames.push(createFrame({ type: "content_block_stop", index }, "content_block_stop"));
        index += 1;
      };
      if (thought !== undefined) {
        const signature = randomUUID();
        signed.set(signature, thought);
        addBlock({ type: "thinking", thinking: "", signature: "" }, [
          ...splitText(thought).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature },
        ]);
      }
      if (text !== "")
        addBlock(
          { type: "text", text: "" },
          splitText(text).map((piece) => ({ type: "text_delta", text: piece })),
        );
      for (const { id, name, args } of calls)
        addBlock(
          { type: "tool_use", id: id.replaceAll(/[^A-Za-z0-9_-]/g, "_"), name, input: {} },
          splitText(args).map((partial_json) => ({ type: "input_json_delta", partial_json })),
        );
      const stop_reason = { stop: calls.length > 0 ? "tool_use" : "end_turn", length: "max_tokens", filter: "refusal" }[
        end
      ];
      frames.push(
        createFrame(
          { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 9 } },
          "message_delta",
        ),
      );
      frames.push(createFrame({ type: "message_stop" }, "message_stop"));
      return frames;
    },
    createErrorBody: (status) =>
      JSON.stringify({
        type: "error",
        error: { type: status === 429 ? "rate_limit_error" : "overloaded_error", message: "Not now" },
      }),
  };
}

const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude",
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 4, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 1 },
};

function* findProblems(body: Body, signed: ReadonlyMap<string, string>): Generator<string> {
  const messages = getList(body, "messages");
  if (typeof body["max_tokens"] !== "number") yield "max_tokens is missing";
  if (messages[0]?.["role"] !== "user") yield "expected the first message to have the role user";
  if (messages.at(-1)?.["role"] !== "user") yield "expected the last message to have the role user";
  let pendingIds: readonly unknown[] = [];
  const usedIds = new Set<unknown>();
  for (const [index, { role, content }] of messages.entries()) {
    const label = `message ${index}`;
    if (role !== "user" && role !== "assistant") yield `${label} has the invalid role ${String(role)}`;
    if (index > 0 && messages[index - 1]?.["role"] === role) yield `${label} has the same role as the message before`;
    const blocks = Array.isArray(content) ? content.map(toObject) : [];
    if (blocks.length === 0) yield `${label} is empty`;
    for (const block of blocks) yield* findBlockProblems(block, label, signed);
    const resultIds = blocks.filter(({ type }) => type === "tool_result").map(({ tool_use_id }) => tool_use_id);
    if (
      blocks.findIndex(({ type }) => type !== "tool_result") <
        blocks.findLastIndex(({ type }) => type === "tool_result") &&
      blocks.some(({ type }) => type !== "tool_result")
    )
      yield `${label} has a tool result after other content`;
    if (pendingIds.join() !== resultIds.join())
      yield `${label} has results for [${resultIds.join()}], expected [${pendingIds.join()}]`;
    pendingIds = blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id);
    for (const id of pendingIds) {
      if (usedIds.has(id)) yield `${label} has a call with the duplicate id "${String(id)}"`;
      usedIds.add(id);
    }
  }
  if (pendingIds.length > 0) yield `the calls ${pendingIds.join()} have no result`;
}

function* findBlockProblems(block: Body, label: string, signed: ReadonlyMap<string, string>): Generator<string> {
  const { type, text, id, name, input, signature, thinking } = block;
  if (type === "text" && (typeof text !== "string" || text.trim() === "")) yield `${label} has an empty text`;
  if (type === "tool_use") {
    if (typeof id !== "string" || !idPattern.test(id))
      yield `${label} has a call with the invalid id ${JSON.stringify(id)}`;
    if (typeof name !== "string" || !namePattern.test(name))
      yield `${label} calls a tool with the invalid name ${JSON.stringify(name)}`;
    if (!isJsonObject(JSON.stringify(input))) yield `${label} has a call without an input object`;
  }
  if (type === "thinking" && (typeof signature !== "string" || signed.get(signature) !== thinking))
    yield `${label} has reasoning without a valid signature`;
}
