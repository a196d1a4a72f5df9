import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createScratchFolder, listAlive, play } from "../support/demo.ts";
import { createRepository, token } from "../support/trees.ts";

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Body {
  readonly tools?: readonly unknown[];
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
}

/** A server on this host that speaks the wire format of Anthropic's messages, and plays an auditor. */
async function provider(): Promise<{ readonly url: string; readonly received: readonly Received[] }> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => {
      received.push({ path: request.url ?? "", headers: request.headers, text });
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(
        reply(JSON.parse(text) as Body)
          .map(frame)
          .join(""),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, received };
}

type Frame = { readonly type: string };

function frame(data: Frame): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function reply({ tools, messages }: Body): readonly Frame[] {
  const turns = messages.filter(({ role }) => role === "assistant").length;
  if ((tools ?? []).length === 0) return message([{ text: "Two sentences of a judge." }]);
  if (turns === 0) return message([{ call: "list_files", args: {} }]);
  if (turns > 1) return message([{ text: "A teapot, by the look of it." }]);
  return message([
    { text: "Let me look." },
    { call: "read_file", args: { path: "src/index.ts" } },
    { call: "read_file", args: { path: "../outside.txt" } },
    { call: "count_lines", args: {} },
    { call: "scan_todos", args: {} },
    { call: "find_copies", args: {} },
  ]);
}

type Part = { readonly text: string } | { readonly call: string; readonly args: object };

function message(parts: readonly Part[]): readonly Frame[] {
  const usage = { input_tokens: 4, output_tokens: 1 };
  const calls = parts.some((part) => "call" in part);
  const start = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], stop_reason: null, usage };
  const end = {
    delta: { stop_reason: calls ? "tool_use" : "end_turn", stop_sequence: null },
    usage: { output_tokens: 9 },
  };
  return [
    { type: "message_start", message: start } as Frame,
    ...parts.flatMap((part, index) => block(part, index)),
    { type: "message_delta", ...end } as Frame,
    { type: "message_stop" },
  ];
}

let ids = 0;

function block(part: Part, index: number): readonly Frame[] {
  const opened =
    "text" in part
      ? { type: "text", text: "" }
      : { type: "tool_use", id: `toolu_${++ids}`, name: part.call, input: {} };
  const delta =
    "text" in part
      ? { type: "text_delta", text: part.text }
      : { type: "input_json_delta", partial_json: JSON.stringify(part.args) };
  return [
    { type: "content_block_start", index, content_block: opened } as Frame,
    { type: "content_block_delta", index, delta } as Frame,
    { type: "content_block_stop", index } as Frame,
  ];
}

const key = "sk-ant-test-0123456789";

test("the demo with --model runs the audit with a real model after it states what it sends where", async () => {
  const { url, received } = await provider();
  const home = createScratchFolder();
  const target = createRepository(join(home, "teapot"));
  const args = [target, "--model", "anthropic/claude-sonnet-4-5"];
  const played = await play(home, args, { env: { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: url } });
  expect(played.err).toBe("");
  expect(played.code).toBe(0);

  const said = played.out.slice(0, played.out.indexOf("Run an agent"));
  expect(said).toContain("Model: anthropic/claude-sonnet-4-5. The demo sends file names of this tree");
  expect(said).toContain(`${url}, with the key in ANTHROPIC_API_KEY.`);

  // Three survey requests and one judge request: neither the kill nor the resume repeated a request.
  expect(received).toHaveLength(4);
  expect(received.every(({ path, headers }) => path === "/v1/messages" && headers["x-api-key"] === key)).toBe(true);
  expect(played.out).toContain("SIGKILL with 3 tool calls in flight.");
  expect(played.out).toContain("“A teapot, by the look of it.”");
  expect(played.out).toMatch(
    /✗ read_file \.\.\/outside\.txt {2}invalid_args: "\.\.\/outside\.txt" is outside the source tree\./,
  );
  expect(played.out).toContain("Verdict: act now. Two sentences of a judge.");

  const sent = received.map(({ text }) => text).join("\n");
  expect(sent).toContain("export const kettle");
  expect(sent).not.toContain(token);
  expect(sent).not.toContain(home);
  expect(listAlive(played.pids)).toEqual([]);
});

test("the demo with only an API key set sends no request", async () => {
  const { url, received } = await provider();
  const home = createScratchFolder();
  const played = await play(home, [createRepository(join(home, "teapot"))], {
    env: { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: url, OPENAI_API_KEY: key, OPENAI_BASE_URL: url },
  });
  expect(played.code).toBe(0);
  expect(played.out).toContain("It needs no key and sends no data.");
  expect(received).toEqual([]);
});

test("the demo with an unreachable provider fails with the next step and continues later", async () => {
  const home = createScratchFolder();
  const target = createRepository(join(home, "teapot"));
  const env = { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: "http://127.0.0.1:9/v1" };
  const failed = await play(home, [target, "--model", "anthropic/claude-sonnet-4-5"], { env });
  expect(failed.code).toBe(1);
  expect(failed.err).toContain("Failed: model_failed");
  expect(failed.out).toContain(`npm run demo -- --resume ${failed.state}`);

  const { url } = await provider();
  const resumed = await play(home, ["--resume", failed.state], { env: { ...env, ANTHROPIC_BASE_URL: url } });
  expect(resumed.err).toBe("");
  expect(resumed.code).toBe(0);
});

test("the demo names a provider package that is not installed", async () => {
  const home = createScratchFolder();
  const target = createRepository(join(home, "teapot"));
  const failed = await play(home, [target, "--model", "nobody/model-1"]);
  expect(failed.code).toBe(1);
  expect(failed.err).toContain("npm install @ai-sdk/nobody");
});
