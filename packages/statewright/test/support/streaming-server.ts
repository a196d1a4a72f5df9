/**
 * A local server in Anthropic's wire format that counts its requests. It streams a text and a tool call, then a final
 * answer. A request selected to stay open gets only its first frames.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface StreamingServer extends AsyncDisposable {
  readonly baseUrl: string;
  /** Number of messages per request. */
  readonly requests: readonly number[];
}

/** `frames` maps the number of a request to the frames after which its stream stays open; other requests end. */
export async function startStreamingServer(frames: Readonly<Record<number, number>> = {}): Promise<StreamingServer> {
  const requests: number[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    request.on("end", () => {
      const { messages } = JSON.parse(text) as { readonly messages: readonly unknown[] };
      requests.push(messages.length);
      answer(response, JSON.stringify(messages).includes("tool_result"), frames[requests.length]);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(response: ServerResponse, isAnswered: boolean, openAfter: number | undefined): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const frames = isAnswered
    ? message("end_turn", text("All ", "done."))
    : message("tool_use", [...text("I ", "note."), ...call()]);
  for (const frame of frames.slice(0, openAfter))
    response.write(`event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`);
  if (openAfter === undefined) response.end();
}

interface Frame {
  readonly type: string;
  readonly [key: string]: unknown;
}

function message(reason: string, blocks: readonly Frame[]): readonly Frame[] {
  const usage = { input_tokens: 10, output_tokens: 1 };
  const head = { id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4-5", content: [] };
  return [
    { type: "message_start", message: { ...head, stop_reason: null, stop_sequence: null, usage } },
    ...blocks,
    { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 8 } },
    { type: "message_stop" },
  ];
}

function text(...pieces: readonly string[]): readonly Frame[] {
  return [
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ...pieces.map((piece) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: piece } })),
    { type: "content_block_stop", index: 0 },
  ];
}

function call(): readonly Frame[] {
  return [
    {
      type: "content_block_start",
      index: 1,
      content_block: { type: "tool_use", id: "toolu_1", name: "note", input: {} },
    },
    ...['{"te', 'xt":"hi"}'].map((piece) => ({
      type: "content_block_delta",
      index: 1,
      delta: { type: "input_json_delta", partial_json: piece },
    })),
    { type: "content_block_stop", index: 1 },
  ];
}
