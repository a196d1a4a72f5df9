/** Concurrent requests of clients before the server knows about the other one. */
import { defineGraph, defineState, END, START } from "@statewright/core";
import { offerGraph, serveMcp } from "@statewright/mcp/server";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";

const token = "a-token-that-is-long-enough";

interface Answer {
  readonly status: number;
  readonly session: string | null;
  readonly text: string;
}

/** Starts a server with one graph that runs until the test releases it. */
function server(limits = {}) {
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow = defineGraph({ name: "slow", state: defineState({ n: z.int().default(0) }) })
    .nodes({
      work: async ({ n }) => {
        await gate;
        return { n: n + 1 };
      },
    })
    .edges({ [START]: "work", work: END });
  const mcp = serveMcp({
    name: "slow",
    version: "1.0.0",
    graphs: [offerGraph(slow, { description: "Take long." })],
    limits,
  });
  onTestFinished(() => mcp.close());
  const { fetch } = mcp.http({ token });
  const send = async (headers: Readonly<Record<string, string>>, message: object): Promise<Answer> => {
    const answer = await fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
      }),
    );
    return { status: answer.status, session: answer.headers.get("mcp-session-id"), text: await answer.text() };
  };
  return { send, letGo: release };
}

test("of two concurrent calls that start one thread, the second can continue the active run of the first", async () => {
  const { send, letGo } = server();
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const call = (name: string, args: object): Promise<Answer> =>
    send(
      { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name },
      { method: "tools/call", params: { name, arguments: args, _meta } },
    );
  const both = [call("slow", { n: 1, thread: "t" }), call("slow", { n: 1, thread: "t" })];
  const { text } = await Promise.race(both);
  expect(text).toContain("is already running. Call slow_continue with the thread");
  const joined = call("slow_continue", { thread: "t" });
  letGo();
  for (const answer of await Promise.all([...both, joined]))
    expect(answer.text === text || answer.text.includes('"status":"done"')).toBe(true);
  expect((await joined).text).toContain('"status":"done"');
});

test("a client that opens many sessions at once stays within its session limit", async () => {
  const { send } = server({ sessions: 2 });
  const clientInfo = { name: "raw", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const opened = await Promise.all(Array.from({ length: 8 }, () => send({}, { method: "initialize", params })));
  expect(opened.map(({ status }) => status).sort()).toEqual([200, 200, 503, 503, 503, 503, 503, 503]);
  // A later client is accepted: the oldest one is evicted.
  expect((await send({}, { method: "initialize", params })).status).toBe(200);
  const alive = [];
  for (const { session } of opened) {
    if (session === null) continue;
    const headers = { "mcp-session-id": session, "mcp-protocol-version": "2025-06-18" };
    alive.push((await send(headers, { method: "tools/list", params: {} })).status);
  }
  expect(alive.sort()).toEqual([200, 404]);
});
