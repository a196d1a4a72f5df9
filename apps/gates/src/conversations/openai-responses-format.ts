/** OpenAI's responses, with what its server refuses. It keeps what it said: requests may point at it. */
import { randomUUID } from "node:crypto";
import { type Body, frame, isJsonObject, listAt, pieces, type WireFormat, type WireSession } from "./wire-format.ts";

const nameFits = /^[A-Za-z0-9_-]{1,128}$/;

/** An item that the server said: which of its thoughts it belongs to, and who said it. */
interface Said {
  readonly model: string;
  readonly thought: string | undefined;
}

export const openaiResponsesFormat: WireFormat = { open };

function open(): WireSession {
  const said = new Map<string, Said>();
  let model = "";
  return {
    problems: (body) => {
      model = String(body["model"]);
      return [...problemsOf(body, said, model)];
    },
    frames: ({ thought, text, calls, end }) => {
      const frames = [frame({ type: "response.created", sequence_number: 0, response: { ...response, model } })];
      let output_index = 0;
      const reasoning = thought === undefined ? undefined : `rs_${randomUUID()}`;
      const remember = (id: string): string => {
        said.set(id, { model, thought: reasoning });
        return id;
      };
      if (thought !== undefined && reasoning !== undefined) {
        said.set(reasoning, { model, thought: undefined });
        const item = { type: "reasoning", id: reasoning, summary: [], encrypted_content: null };
        frames.push(
          frame({ type: "response.output_item.added", output_index, item }),
          frame({ type: "response.reasoning_summary_part.added", item_id: reasoning, summary_index: 0 }),
          ...pieces(thought).map((delta) =>
            frame({ type: "response.reasoning_summary_text.delta", item_id: reasoning, summary_index: 0, delta }),
          ),
          frame({ type: "response.reasoning_summary_part.done", item_id: reasoning, summary_index: 0 }),
          frame({
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
        const id = remember(`msg_${randomUUID()}`);
        const item = { type: "message", id, role: "assistant", status: "in_progress", content: [] };
        frames.push(
          frame({ type: "response.output_item.added", output_index, item }),
          ...pieces(text).map((delta) =>
            frame({ type: "response.output_text.delta", item_id: id, output_index, content_index: 0, delta }),
          ),
          frame({
            type: "response.output_item.done",
            output_index,
            item: { ...item, status: "completed", content: [{ type: "output_text", text, annotations: [] }] },
          }),
        );
        output_index += 1;
      }
      for (const { id: call_id, name, args } of calls) {
        const id = remember(`fc_${randomUUID()}`);
        const item = { type: "function_call", id, call_id, name, arguments: "", status: "in_progress" };
        frames.push(
          frame({ type: "response.output_item.added", output_index, item }),
          ...pieces(args).map((delta) =>
            frame({ type: "response.function_call_arguments.delta", item_id: id, output_index, delta }),
          ),
          frame({
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
        frame({
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
    refusal: (status) =>
      JSON.stringify({
        error: { message: "Not now", type: "server_error", code: status === 429 ? "rate_limit" : null },
      }),
  };
}

const response = { id: "resp_1", object: "response", created_at: 1_700_000_000, output: [] };

function* problemsOf(body: Body, said: ReadonlyMap<string, Said>, model: string): Generator<string> {
  const input = listAt(body, "input");
  if (input.length === 0) yield "there is no input";
  const open = new Set<unknown>();
  const shown = new Set<unknown>();
  for (const [index, item] of input.entries()) {
    const { type, id, role, call_id: call, name, arguments: args, output } = item;
    const where = `item ${index}`;
    if (type === "function_call_output") {
      if (!open.delete(call)) yield `${where} answers ${String(call)}, which is not called before it`;
      if (typeof output !== "string" && !Array.isArray(output)) yield `${where} is an answer without output`;
      continue;
    }
    if (type !== "function_call" && type !== "reasoning" && type !== "item_reference" && open.size > 0)
      yield `${where} stands where answers to ${[...open].join()} are due`;
    if (typeof id === "string") {
      if (shown.has(id)) yield `${where} shows "${id}" again`;
      shown.add(id);
      const known = said.get(id);
      if (known === undefined) yield `${where} points at "${id}", which was never said here`;
      else if (known.model !== model && (type === "reasoning" || type === "item_reference"))
        yield `${where} is another model's, ${known.model}, where ${model} is asked`;
      else if (type === "item_reference" && known.thought !== undefined && !shown.has(known.thought))
        yield `${where} points at "${id}" without the thought that it belongs to`;
    }
    if (type === "function_call") {
      if (typeof call !== "string" || call === "" || call.length > 64)
        yield `${where} has a call with the id ${JSON.stringify(call)}`;
      if (open.has(call)) yield `${where} has a call with the id "${String(call)}" of another one`;
      if (typeof name !== "string" || !nameFits.test(name)) yield `${where} calls the tool ${JSON.stringify(name)}`;
      if (!isJsonObject(args)) yield `${where} has a call whose arguments are ${JSON.stringify(args)}`;
      open.add(call);
    } else if (type === undefined && !["system", "developer", "user", "assistant"].includes(String(role)))
      yield `${where} has the role ${String(role)}`;
  }
  if (open.size > 0) yield `the calls ${[...open].join()} have no answer`;
}
