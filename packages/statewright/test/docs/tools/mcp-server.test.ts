import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { say, scriptedModel } from "@statewright/testing";
import { memoryStore } from "statewright";
import { expect, onTestFinished, test, vi } from "vitest";
import { listen, listenToSeveral, refunds, shop } from "./mcp-server.ts";

async function host({ url, token }: { readonly url: string; readonly token: string | undefined }): Promise<Client> {
  const client = new Client({ name: "host", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { approved: true } }));
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  onTestFinished(() => client.close());
  return client;
}

test("an MCP host talks to the agent of the page, continues its thread, and confirms a refund", async () => {
  vi.stubEnv("PAY_KEY", "sk-1");
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const model = scriptedModel([say("It was sent."), say("Yesterday.")]);
  const mcp = shop(model, memoryStore());
  onTestFinished(() => mcp.close());
  const client = await host(await listen(mcp));
  const first = await client.callTool({ name: "assistant", arguments: { message: "Where is order 7?" } });
  expect(first.structuredContent).toMatchObject({ status: "done", output: "It was sent." });
  const { thread } = first.structuredContent as { readonly thread: string };
  const second = await client.callTool({ name: "assistant", arguments: { message: "When?", thread } });
  expect(second.content[0]).toEqual({ type: "text", text: "Yesterday." });
  expect(model.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
  const paid = await client.callTool({ name: "refund", arguments: { orderId: "o7", cents: 900 } });
  expect([paid.content, refunds]).toEqual([[{ type: "text", text: "Refunded 9 EUR" }], ["local o7 900"]]);
});

test("several MCP clients have their own tokens, and the web handler resolves the owner of a token", async () => {
  const mcp = shop(scriptedModel([say("Hello ben.")]), memoryStore());
  onTestFinished(() => mcp.close());
  const token = "a-token-of-a-client";
  const { listener, fetch } = await listenToSeveral(mcp, `${token}-ann`, `${token}-ben`, () => "ann");
  const ben = await host({ url: listener.url, token: `${token}-ben` });
  const { structuredContent } = await ben.callTool({ name: "assistant", arguments: { message: "Hello" } });
  expect(structuredContent).toMatchObject({ output: "Hello ben." });
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  const headers = { "content-type": "application/json", authorization: "Bearer of-another-server" };
  const by = (name: string) => fetch(new Request(`https://${name}/mcp`, { method: "POST", headers, body }));
  expect((await by("evil.example")).status).toBe(403);
  // The request reaches the check of the missing session.
  expect(await (await by("mcp.example")).text()).toContain("Mcp-Session-Id header is required");
});
