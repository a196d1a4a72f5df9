/**
 * A local server in Anthropic's wire format: requests the weather in one or several calls, then repeats the tool
 * answer.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Base URL for a client, and the body, path and key of every request. */
export interface AnthropicServer {
  readonly baseUrl: string;
  readonly requests: readonly unknown[];
  readonly paths: readonly (string | undefined)[];
  readonly keys: readonly unknown[];
  close(): Promise<void>;
}

/** Starts the server on a free loopback port. */
export async function anthropicServer({ calls = 1 } = {}): Promise<AnthropicServer> {
  const requests: unknown[] = [];
  const paths: (string | undefined)[] = [];
  const keys: unknown[] = [];
  const server = createServer(async (request, response) => {
    const body = await getBody(request);
    requests.push(body);
    paths.push(request.url);
    keys.push(request.headers["x-api-key"]);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of answerTo(body, calls))
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { baseUrl: `http://127.0.0.1:${port}/v1`, requests, paths, keys, close: () => closed(server) };
}

type WireEvent = { readonly type: string; readonly [key: string]: unknown };

interface WireRequest {
  readonly messages: readonly { readonly role: string; readonly content: string | readonly WireBlock[] }[];
}

interface WireBlock {
  readonly type: string;
  readonly content?: unknown;
}

function answerTo(request: WireRequest, calls: number): readonly WireEvent[] {
  const last = request.messages.at(-1)?.content;
  const result = typeof last === "object" ? last.find((block) => block.type === "tool_result") : undefined;
  if (result === undefined)
    return message("tool_use", Array.from({ length: calls }, (_, nth) => callBlock(nth)).flat());
  return message("end_turn", textBlock(`The tool says: ${getText(result.content)}`));
}

function getText(content: unknown): string {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((block: { readonly text?: string }) => block.text ?? "").join("") : "";
}

function message(stopReason: string, blocks: readonly WireEvent[]): readonly WireEvent[] {
  return [
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
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    },
    ...blocks,
    { type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: 8 } },
    { type: "message_stop" },
  ];
}

function callBlock(index: number): readonly WireEvent[] {
  return [
    {
      type: "content_block_start",
      index,
      content_block: { type: "tool_use", id: `toolu_${index + 1}`, name: "get_weather", input: {} },
    },
    { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: '{"city":' } },
    { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: '"Oslo"}' } },
    { type: "content_block_stop", index },
  ];
}

function textBlock(text: string): readonly WireEvent[] {
  const middle = Math.floor(text.length / 2);
  return [
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ...[text.slice(0, middle), text.slice(middle)].map((piece) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text: piece },
    })),
    { type: "content_block_stop", index: 0 },
  ];
}

async function getBody(request: IncomingMessage): Promise<WireRequest> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text) as WireRequest;
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
