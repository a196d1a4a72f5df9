/** Stream frames of OpenAI and Anthropic. */

const chunk = (delta: object, finish: string | null = null, more: object = {}): object => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_700_000_000,
  model: "gpt-4o-2024-08-06",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

const chatUsage = {
  prompt_tokens: 20,
  completion_tokens: 9,
  total_tokens: 29,
  prompt_tokens_details: { cached_tokens: 16 },
  completion_tokens_details: { reasoning_tokens: 3 },
};

/** OpenAI chat completions. */
export const chat = {
  text: (...pieces: string[]): object[] => [
    chunk({ role: "assistant", content: "" }),
    ...pieces.map((content) => chunk({ content })),
  ],
  call: (id: string, name: string, ...pieces: string[]): object[] => [
    chunk({
      role: "assistant",
      content: null,
      tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: "" } }],
    }),
    ...pieces.map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
  ],
  end: (reason: string): unknown[] => [chunk({}, reason), { ...chunk({}), choices: [], usage: chatUsage }, "[DONE]"],
};

/** OpenAI responses. */
export const responses = {
  start: (): object[] => [
    {
      type: "response.created",
      sequence_number: 0,
      response: { id: "resp_1", object: "response", created_at: 1_700_000_000, model: "gpt-5", output: [] },
    },
  ],
  reasoning: (text: string): object[] => [
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { type: "reasoning", id: "rs_1", summary: [], encrypted_content: null },
    },
    { type: "response.reasoning_summary_part.added", item_id: "rs_1", summary_index: 0 },
    { type: "response.reasoning_summary_text.delta", item_id: "rs_1", summary_index: 0, delta: text },
    { type: "response.reasoning_summary_part.done", item_id: "rs_1", summary_index: 0 },
    {
      type: "response.output_item.done",
      output_index: 0,
      item: {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text }],
        encrypted_content: "secret-thoughts",
      },
    },
  ],
  call: (id: string, name: string, ...pieces: string[]): object[] => [
    {
      type: "response.output_item.added",
      output_index: 1,
      item: { type: "function_call", id: "fc_1", call_id: id, name, arguments: "", status: "in_progress" },
    },
    ...pieces.map((delta) => ({
      type: "response.function_call_arguments.delta",
      item_id: "fc_1",
      output_index: 1,
      delta,
    })),
    {
      type: "response.output_item.done",
      output_index: 1,
      item: { type: "function_call", id: "fc_1", call_id: id, name, arguments: pieces.join(""), status: "completed" },
    },
  ],
  text: (text: string): object[] => [
    {
      type: "response.output_item.added",
      output_index: 2,
      item: { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] },
    },
    { type: "response.output_text.delta", item_id: "msg_1", output_index: 2, content_index: 0, delta: text },
    {
      type: "response.output_item.done",
      output_index: 2,
      item: {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text, annotations: [] }],
      },
    },
  ],
  /** OpenAI requests an approval for a tool call of an MCP server. */
  approval: (id: string, name: string, args: string): object[] => [
    {
      type: "response.output_item.added",
      output_index: 1,
      item: { type: "mcp_approval_request", id, server_label: "docs", name, arguments: args },
    },
    {
      type: "response.output_item.done",
      output_index: 1,
      item: { type: "mcp_approval_request", id, server_label: "docs", name, arguments: args },
    },
  ],
  end: (): object[] => [
    {
      type: "response.completed",
      response: {
        id: "resp_1",
        object: "response",
        created_at: 1_700_000_000,
        model: "gpt-5",
        output: [],
        incomplete_details: null,
        usage: {
          input_tokens: 20,
          input_tokens_details: { cached_tokens: 16 },
          output_tokens: 9,
          output_tokens_details: { reasoning_tokens: 3 },
        },
      },
    },
  ],
};

/** Anthropic messages. */
export const anthropicFrames = {
  start: (): object[] => [
    {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude-sonnet-4-5",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 4, cache_read_input_tokens: 16, cache_creation_input_tokens: 0, output_tokens: 1 },
      },
    },
    { type: "ping" },
  ],
  thinking: (index: number, text: string, signature: string): object[] => [
    { type: "content_block_start", index, content_block: { type: "thinking", thinking: "", signature: "" } },
    { type: "content_block_delta", index, delta: { type: "thinking_delta", thinking: text } },
    { type: "content_block_delta", index, delta: { type: "signature_delta", signature } },
    { type: "content_block_stop", index },
  ],
  redacted: (index: number, data: string): object[] => [
    { type: "content_block_start", index, content_block: { type: "redacted_thinking", data } },
    { type: "content_block_stop", index },
  ],
  text: (index: number, ...pieces: string[]): object[] => [
    { type: "content_block_start", index, content_block: { type: "text", text: "" } },
    ...pieces.map((text) => ({ type: "content_block_delta", index, delta: { type: "text_delta", text } })),
    { type: "content_block_stop", index },
  ],
  call: (index: number, id: string, name: string, ...pieces: string[]): object[] => [
    { type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } },
    ...pieces.map((partial_json) => ({
      type: "content_block_delta",
      index,
      delta: { type: "input_json_delta", partial_json },
    })),
    { type: "content_block_stop", index },
  ],
  search: (index: number): object[] => [
    {
      type: "content_block_start",
      index,
      content_block: { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
    },
    {
      type: "content_block_delta",
      index,
      delta: { type: "input_json_delta", partial_json: '{"query":"oslo"}' },
    },
    { type: "content_block_stop", index },
    {
      type: "content_block_start",
      index: index + 1,
      content_block: {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [
          {
            type: "web_search_result",
            url: "https://weather.example/oslo",
            title: "Oslo",
            encrypted_content: "opaque",
            page_age: null,
          },
        ],
      },
    },
    { type: "content_block_stop", index: index + 1 },
  ],
  end: (reason: string): object[] => [
    { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: "message_stop" },
  ],
};
