/**
 * OpenAI's responses format, with the checks of its server. The server stores its items, and requests may reference
 * them.
 */
import { randomUUID } from "node:crypto";
import {
  type Body,
  createFrame,
  getList,
  isJsonObject,
  splitText,
  type WireFormat,
  type WireSession,
} from "./wire-format.ts";

const namePattern = /^[A-Za-z0-9_-]{1,128}$/;

/** Item sent by the server, with its model and its reasoning item. */
interface SentItem {
  readonly model: string;
  readonly thought: string | undefined;
}

export const openaiResponsesFormat: WireFormat = { open };

function open(): WireSession {
  const sentItems = new Map<string, SentItem>();
  let model = "";
  return {
    findProblems: (body) => {
      model = String(body["model"]);
      return [...findProblems(body, sentItems, model)];
    },
    createFrames: ({ thought, text, calls, end }) => {
      const frames = [createFrame({ type: "response.created", sequence_number: 0, response: { ...response, model } })];
      let output_index = 0;
      const reasoning = thought === undefined ? undefined : `rs_${randomUUID()}`;
      const recordItem = (id: string): string => {
        sentItems.set(id, { model, thought: reasoning });
        return id;
      };
      if (thought !== undefined && reasoning !== undefined) {
        sentItems.set(reasoning, { model, thought: undefined });
        const item = { type: "reasoning", id: reasoning, summary: [], encrypted_content: null };
        frames.push(
          createFrame({ type: "response.output_item.added", output_index, item }),
          createFrame({ type: "response.reasoning_summary_part.added", item_id: reasoning, summary_index: 0 }),
          ...splitText(thought).map((delta) =>
            createFrame({ type: "response.reasoning_summary_text.delta", item_id: reasoning, summary_index: 0, delta }),
          ),
          createFrame({ type: "response.reasoning_summary_part.done", item_id: reasoning, summary_index: 0 }),
          createFrame({
            type: "response.output_item.done",
            output_index,
            item: {
              ...item,
              summary: [{ type: "summary_text", text: thought }],
              encrypted_content: `sealed ${reasoning}`,
            },
          }),
        );
        output_index += 1;
      }
      if (text !== "") {
        const id = recordItem(`msg_${randomUUID()}`);
        const item = { type: "message", id, role: "assistant", status: "in_progress", content: [] };
        frames.push(
          createFrame({ type: "response.output_item.added", output_index, item }),
          ...splitText(text).map((delta) =>
            createFrame({ type: "response.output_text.delta", item_id: id, output_index, content_index: 0, delta }),
          ),
          createFrame({
            type: "response.output_item.done",
            output_index,
            item: { ...item, status: "completed", content: [{ type: "output_text", text, annotations: [] }] },
          }),
        );
        output_index += 1;
      }
      for (const { id: call_id, name, args } of calls) {
        const id = recordItem(`fc_${randomUUID()}`);
        const item = { type: "function_call", id, call_id, name, arguments: "", status: "in_progress" };
        frames.push(
          createFrame({ type: "response.output_item.added", output_index, item }),
          ...splitText(args).map((delta) =>
            createFrame({ type: "response.function_call_arguments.delta", item_id: id, output_index, delta }),
          ),
          createFrame({
            type: "response.output_item.done",
            output_index,
            item: { ...item, arguments: args, status: "completed" },
          }),
        );
        output_index += 1;
      }
      const incomplete = { stop: undefined, length: "max_output_tokens", filter: "content_filter" }[end];
      const usage = {
        input_tokens: 20,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 3 },
      };
      frames.push(
        createFrame({
          type: incomplete === undefined ? "response.completed" : "response.incomplete",
          response: {
            ...response,
            model,
            incomplete_details: incomplete === undefined ? null : { reason: incomplete },
            usage,
          },
        }),
      );
      return frames;
    },
    createErrorBody: (status) =>
      JSON.stringify({
        error: { message: "Not now", type: "server_error", code: status === 429 ? "rate_limit" : null },
      }),
  };
}

const response = { id: "resp_1", object: "response", created_at: 1_700_000_000, output: [] };

function* findProblems(body: Body, sentItems: ReadonlyMap<string, SentItem>, model: string): Generator<string> {
  const input = getList(body, "input");
  if (input.length === 0) yield "expected input items, got none";
  const pendingIds = new Set<unknown>();
  const seenIds = new Set<unknown>();
  for (const [index, item] of input.entries()) {
    const { type, id, role, call_id: call, name, arguments: args, output } = item;
    const label = `item ${index}`;
    if (type === "function_call_output") {
      if (!pendingIds.delete(call)) yield `${label} has a result for ${String(call)} without a call before`;
      if (typeof output !== "string" && !Array.isArray(output)) yield `${label} has a result without output`;
      continue;
    }
    if (type !== "function_call" && type !== "reasoning" && type !== "item_reference" && pendingIds.size > 0)
      yield `${label} follows calls without results: ${[...pendingIds].join()}`;
    if (typeof id === "string") {
      if (seenIds.has(id)) yield `${label} shows "${id}" again`;
      seenIds.add(id);
      const sentItem = sentItems.get(id);
      if (sentItem === undefined) yield `${label} references the unknown item "${id}"`;
      else if (sentItem.model !== model && (type === "reasoning" || type === "item_reference"))
        yield `${label} is an item of the model ${sentItem.model}, but the request is for ${model}`;
      else if (type === "item_reference" && sentItem.thought !== undefined && !seenIds.has(sentItem.thought))
        yield `${label} references "${id}" without its reasoning item`;
    }
    if (type === "function_call") {
      if (typeof call !== "string" || call === "" || call.length > 64)
        yield `${label} has a call with the invalid id ${JSON.stringify(call)}`;
      if (pendingIds.has(call)) yield `${label} has a call with the duplicate id "${String(call)}"`;
      if (typeof name !== "string" || !namePattern.test(name))
        yield `${label} calls a tool with the invalid name ${JSON.stringify(name)}`;
      if (!isJsonObject(args)) yield `${label} has a call with the invalid arguments ${JSON.stringify(args)}`;
      pendingIds.add(call);
    } else if (type === undefined && !["system", "developer", "user", "assistant"].includes(String(role)))
      yield `${label} has the invalid role ${String(role)}`;
  }
  if (pendingIds.size > 0) yield `the calls ${[...pendingIds].join()} have no result`;
}
