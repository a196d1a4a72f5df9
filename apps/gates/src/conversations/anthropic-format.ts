/** Anthropic's messages, with what its server refuses. */
import { randomUUID } from "node:crypto";
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

const idFits = /^[A-Za-z0-9_-]+$/;
const nameFits = /^[A-Za-z0-9_-]{1,128}$/;

export const anthropicFormat: WireFormat = { open };

function open(): WireSession {
  const signed = new Map<string, string>();
  return {
    problems: (body) => [...problemsOf(body, signed)],
    frames: ({ thought, text, calls, end }) => {
      const frames = [frame({ type: "message_start", message }, "message_start")];
      let index = 0;
      const block = (content: object, deltas: readonly object[]): void => {
        frames.push(frame({ type: "content_block_start", index, content_block: content }, "content_block_start"));
        for (const delta of deltas)
          frames.push(frame({ type: "content_block_delta", index, delta }, "content_block_delta"));
        frames.push(frame({ type: "content_block_stop", index }, "content_block_stop"));
        index += 1;
      };
      if (thought !== undefined) {
        const signature = randomUUID();
        signed.set(signature, thought);
        block({ type: "thinking", thinking: "", signature: "" }, [
          ...pieces(thought).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature },
        ]);
      }
      if (text !== "")
        block(
          { type: "text", text: "" },
          pieces(text).map((piece) => ({ type: "text_delta", text: piece })),
        );
      for (const { id, name, args } of calls)
        block(
          { type: "tool_use", id: id.replaceAll(/[^A-Za-z0-9_-]/g, "_"), name, input: {} },
          pieces(args).map((partial_json) => ({ type: "input_json_delta", partial_json })),
        );
      const stop_reason = { stop: calls.length > 0 ? "tool_use" : "end_turn", length: "max_tokens", filter: "refusal" }[
        end
      ];
      frames.push(
        frame(
          { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 9 } },
          "message_delta",
        ),
      );
      frames.push(frame({ type: "message_stop" }, "message_stop"));
      return frames;
    },
    refusal: (status) =>
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

function* problemsOf(body: Body, signed: ReadonlyMap<string, string>): Generator<string> {
  const messages = listAt(body, "messages");
  if (typeof body["max_tokens"] !== "number") yield "max_tokens is missing";
  if (messages[0]?.["role"] !== "user") yield "the first message is not the user's";
  if (messages.at(-1)?.["role"] !== "user") yield "the last message is not the user's";
  let due: readonly unknown[] = [];
  const used = new Set<unknown>();
  for (const [index, { role, content }] of messages.entries()) {
    const where = `message ${index}`;
    if (role !== "user" && role !== "assistant") yield `${where} has the role ${String(role)}`;
    if (index > 0 && messages[index - 1]?.["role"] === role) yield `${where} has the role of the one before it`;
    const blocks = Array.isArray(content) ? content.map(objectOf) : [];
    if (blocks.length === 0) yield `${where} is empty`;
    for (const block of blocks) yield* blockProblems(block, where, signed);
    const answers = blocks.filter(({ type }) => type === "tool_result").map(({ tool_use_id }) => tool_use_id);
    if (
      blocks.findIndex(({ type }) => type !== "tool_result") <
        blocks.findLastIndex(({ type }) => type === "tool_result") &&
      blocks.some(({ type }) => type !== "tool_result")
    )
      yield `${where} has an answer behind something else`;
    if (due.join() !== answers.join()) yield `${where} answers [${answers.join()}] where [${due.join()}] are due`;
    due = blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id);
    for (const id of due) {
      if (used.has(id)) yield `${where} has a call with the id "${String(id)}" of another one`;
      used.add(id);
    }
  }
  if (due.length > 0) yield `the calls ${due.join()} have no answer`;
}

function* blockProblems(block: Body, where: string, signed: ReadonlyMap<string, string>): Generator<string> {
  const { type, text, id, name, input, signature, thinking } = block;
  if (type === "text" && (typeof text !== "string" || text.trim() === "")) yield `${where} has a text without a letter`;
  if (type === "tool_use") {
    if (typeof id !== "string" || !idFits.test(id)) yield `${where} has a call with the id ${JSON.stringify(id)}`;
    if (typeof name !== "string" || !nameFits.test(name)) yield `${where} calls the tool ${JSON.stringify(name)}`;
    if (!isJsonObject(JSON.stringify(input))) yield `${where} has a call whose input is no object`;
  }
  if (type === "thinking" && (typeof signature !== "string" || signed.get(signature) !== thinking))
    yield `${where} has a thought that was not thought here`;
}
