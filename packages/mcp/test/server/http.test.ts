/** Requests that an HTTP server refuses, and isolation between clients, over real sockets. */

import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { defineContext, defineGraph, defineState, defineTool, END, memoryStore, START } from "@statewright/core";
import { type McpCaller, offerGraph, serveMcp } from "@statewright/mcp/server";
import { assert, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { connectOverHttp, type Generation } from "./support/clients.ts";
import { type RawRequest, raw, request } from "./support/raw.ts";

/** Time limit of the test: it waits only for the other process. */
const patient = { timeout: 60_000 };

const token = "a token that is long enough".replaceAll(" ", "-");

test("an HTTP MCP server binds to loopback, checks Host and Origin, requires a token and JSON, and is not readable by web pages [R6]", async () => {
  const ran: string[] = [];
  const note = defineTool({
    name: "note",
    description: "Note.",
    input: z.object({ text: z.string() }),
    run: ({ text }) => {
      ran.push(text);
      return "Noted";
    },
  });
  const mcp = serveMcp({
    name: "notes",
    version: "1.0.0",
    tools: [note],
    limits: { messageBytes: 100_000, requestMs: 2_000 },
  });
  onTestFinished(() => mcp.close());
  const { port, url } = await mcp.listen({ port: 0, token });

  // The server is not reachable from other machines under any host name.
  expect(url).toBe(`http://127.0.0.1:${port}/mcp`);
  for (const { address, family, internal } of Object.values(networkInterfaces()).flatMap((each) => each ?? []))
    if (family === "IPv4" && !internal) await expect(reach(address, port)).rejects.toThrow(/ECONNREFUSED/);
  await expect(mcp.listen({ port: 0, token, host: "0.0.0.0" })).rejects.toMatchObject({ code: "invalid_option" });
  await expect(mcp.listen({ port: 0, token: "short" })).rejects.toMatchObject({ code: "invalid_option" });
  expect(() => mcp.http({})).toThrow(/expected exactly one of token, tokens and authorize/);

  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const body = (text: string): string =>
    JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "note", arguments: { text }, _meta: meta },
    });
  const good = {
    host: `127.0.0.1:${port}`,
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "note",
  };
  const headers = (changed: Readonly<Record<string, string | undefined>> = {}): RawRequest["headers"] =>
    Object.entries({ ...good, ...changed }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
  const ask = (parts: Partial<RawRequest>) => raw(port, request({ headers: headers(), body: body("bad"), ...parts }));

  const welcome = await ask({ body: body("good") });
  expect([welcome.status, ran]).toEqual([200, ["good"]]);
  expect((await ask({ headers: headers({ host: `LocalHost:${port}` }), body: body("good") })).status).toBe(200);

  const refused: readonly (readonly [string, number, Partial<RawRequest>])[] = [
    ["a name that was pointed here", 403, { headers: headers({ host: `evil.example:${port}` }) }],
    ["a name that begins like ours", 403, { headers: headers({ host: "127.0.0.1.evil.example" }) }],
    ["a user in the place of a name", 400, { headers: headers({ host: "127.0.0.1@evil.example" }) }],
    ["an address that others have", 403, { headers: headers({ host: "0.0.0.0" }) }],
    ["two names", 400, { headers: [...headers(), ["host", "evil.example"]] }],
    ["no name", 400, { headers: headers({ host: undefined }) }],
    ["another name in the target", 400, { target: `http://evil.example/mcp` }],
    ["a foreign page", 403, { headers: headers({ origin: "https://evil.example" }) }],
    ["a page without an origin", 403, { headers: headers({ origin: "null" }) }],
    ["a page of another server here", 403, { headers: headers({ origin: `http://127.0.0.1:${port}` }) }],
    [
      "a preflight request of a foreign page",
      403,
      { method: "OPTIONS", headers: headers({ origin: "https://evil.example" }) },
    ],
    ["no token", 401, { headers: headers({ authorization: undefined }) }],
    ["a wrong token", 401, { headers: headers({ authorization: `Bearer ${token.replace("long", "wrong")}` }) }],
    ["the beginning of the token", 401, { headers: headers({ authorization: `Bearer ${token.slice(0, -1)}` }) }],
    ["more than the token", 401, { headers: headers({ authorization: `Bearer ${token}a` }) }],
    ["two tokens", 401, { headers: headers({ authorization: `Bearer x, Bearer ${token}` }) }],
    ["the token as a password", 401, { headers: headers({ authorization: `Basic ${btoa(`:${token}`)}` }) }],
    [
      "the token in the address",
      401,
      { target: `/mcp?token=${token}`, headers: headers({ authorization: undefined }) },
    ],
    ["no token for a stream", 401, { method: "GET", headers: headers({ authorization: undefined }), body: "" }],
    ["text", 415, { headers: headers({ "content-type": "text/plain" }) }],
    [
      "a text type that contains the word JSON",
      415,
      { headers: headers({ "content-type": "text/plain; application/json" }) },
    ],
    ["a form", 415, { headers: headers({ "content-type": "application/x-www-form-urlencoded" }) }],
    ["JSON in other letters", 415, { headers: headers({ "content-type": "application/json; charset=utf-16" }) }],
    ["no type", 415, { headers: headers({ "content-type": undefined }) }],
    ["packed JSON", 415, { headers: headers({ "content-encoding": "gzip" }) }],
    ["half of some JSON", 400, { body: body("bad").slice(0, -2) }],
    [
      "a deep body",
      400,
      { body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":${"[".repeat(200)}${"]".repeat(200)}}` },
    ],
    ["a body of many parts", 400, { body: `[${"0,".repeat(40_000)}0]`.replaceAll("0", "[[]]").slice(0, 99_000) }],
    ["a reserved key", 400, { body: body("bad").replace('"text"', '"__proto__"') }],
    ["a large body", 413, { body: body("x".repeat(100_000)) }],
    ["another method", 405, { method: "PUT" }],
    ["another path", 404, { target: "/" }],
    ["a foreign page on another path", 403, { target: "/", headers: headers({ origin: "https://evil.example" }) }],
  ];
  for (const [what, status, parts] of refused) {
    const answer = await ask(parts);
    expect([what, answer.status]).toEqual([what, status]);
    expect(answer.head).not.toContain("access-control");
    expect(answer.body).not.toContain(token);
  }
  const chunk = `${(60_000).toString(16)}\r\n${"x".repeat(60_000)}\r\n`;
  const endless = await raw(port, request({ headers: headers() }, "transfer-encoding: chunked\r\n"), () => chunk);
  expect(endless.status).toBe(413);
  const bytes = Buffer.concat([
    Buffer.from(request({ headers: headers() }, "content-length: 3\r\n")),
    Buffer.from([0x22, 0xff, 0x22]),
  ]);
  expect((await raw(port, bytes)).status).toBe(400);
  expect(ran).toEqual(["good", "good"]);

  // An allowed origin may call and read.
  const open = await mcp.listen({ port: 0, token, origins: ["https://app.example"] });
  const fromPage = headers({ host: `127.0.0.1:${open.port}`, origin: "https://app.example" });
  const read = await raw(open.port, request({ headers: fromPage, body: body("page") }));
  expect([read.status, ran.at(-1)]).toEqual([200, "page"]);
  expect(read.head).toContain("access-control-allow-origin: https://app.example");
});

function reach(address: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, timeout: 1_000 });
    socket.once("connect", () => {
      socket.destroy();
      resolve();
    });
    socket.once("error", reject);
    socket.once("timeout", () => {
      socket.destroy();
      reject(new Error("ECONNREFUSED, as good as"));
    });
  });
}

test("a stalled body, excess sessions and excess calls are refused, and an older idle session is evicted", async () => {
  const open: (() => void)[] = [];
  const wait = defineTool({
    name: "wait",
    description: "Wait.",
    input: z.object({}),
    run: () =>
      new Promise<string>((resolve) => {
        open.push(() => resolve("Over"));
      }),
  });
  const mcp = serveMcp({
    name: "small",
    version: "1.0.0",
    tools: [wait],
    limits: { requestMs: 300, sessions: 1, calls: 1 },
  });
  onTestFinished(() => mcp.close());
  const at = await mcp.listen({ port: 0 });
  const headers = [
    ["host", "localhost"],
    ["authorization", `Bearer ${at.token}`],
    ["content-type", "application/json"],
  ] as const;
  const late = await raw(at.port, request({ headers }, "content-length: 100\r\n"));
  expect(late.status).toBe(408);

  const left = await connectOverHttp(at, { generation: "2025" });
  const used = await connectOverHttp(at, { generation: "2025" });
  await expect(left.listTools()).rejects.toThrow(/Session not found/);
  const waits = used.callTool({ name: "wait", arguments: {} });
  await expect.poll(() => open.length, patient).toBe(1);
  await expect(connectOverHttp(at, { generation: "2025" })).rejects.toThrow(/Too many sessions/);
  const other = await connectOverHttp(at);
  expect(await other.callTool({ name: "wait", arguments: {} })).toMatchObject({
    isError: true,
    content: [{ text: "1 tool calls are already running. Retry after one of them has ended." }],
  });
  open[0]?.();
  expect(await waits).toMatchObject({ content: [{ text: "Over" }] });
});

test("connections with a session share no run, progress, interrupt, answer or session with other clients [R7]", () =>
  shareNothing("2025"));

test("connections without a session share no run, progress, interrupt or answer with other clients [R7]", () =>
  shareNothing("2026"));

async function shareNothing(generation: Generation): Promise<void> {
  const Who = defineContext({ who: z.string() });
  const trip = defineGraph({
    name: "trip",
    context: Who,
    state: defineState({ city: z.string(), seat: z.string().default(""), by: z.string().default("") }),
    input: z.object({ city: z.string() }),
    interrupts: { seat: z.object({ seat: z.string() }) },
  })
    .nodes({
      ask: async ({ city }, { interrupt, progress, context }) => {
        progress(`to ${city}`);
        return { seat: (await interrupt("seat", { payload: { city } })).seat, by: context.who };
      },
    })
    .edges({ [START]: "ask", ask: END });
  const book = defineTool({
    name: "book",
    description: "Book.",
    input: z.object({ title: z.string() }),
    limits: { resultBytes: 2_000, artifactBytes: 1_000 },
    safety: { confirm: "always" },
    run: ({ title }) => title.repeat(1_000),
  });
  const mcp = serveMcp({
    name: "travel",
    version: "1.0.0",
    tools: [book],
    graphs: [offerGraph(trip, { description: "Travel.", context: ({ id }) => ({ who: id }) })],
    store: memoryStore(),
  });
  onTestFinished(() => mcp.close());
  const tokens = { ann: `${token}-of-ann`, ben: `${token}-of-ben` };
  const { url } = await mcp.listen({ port: 0, tokens });

  /** A client and its received messages. */
  const enter = async (name: "ann" | "ben", seat: string) => {
    const seen: string[] = [];
    const client = await connectOverHttp(
      { url, token: tokens[name] },
      {
        generation,
        person: ({ message }) => {
          seen.push(message);
          return { action: "accept", content: message.includes("needs approval") ? { approved: true } : { seat } };
        },
      },
    );
    const call = async (tool: string, args: Record<string, unknown>) => {
      const result = await client.callTool(
        { name: tool, arguments: args },
        { onprogress: ({ message = "" }) => seen.push(message) },
      );
      seen.push(JSON.stringify(result));
      return result;
    };
    return { client, seen, call };
  };
  const ann = await enter("ann", "1A");
  const ben = await enter("ben", "9F");
  const again = await enter("ann", "2B");

  // Concurrent calls on threads of one name, with equal request ids.
  const args = (city: string, thread: string) => ({ city, thread });
  const [one, two, three] = await Promise.all([
    ann.call("trip", args("Oslo", "t")),
    ben.call("trip", args("Rome", "t")),
    again.call("trip", args("Bern", "u")),
  ]);
  expect(one.structuredContent).toMatchObject({ output: { city: "Oslo", seat: "1A", by: "ann" } });
  expect(two.structuredContent).toMatchObject({ output: { city: "Rome", seat: "9F", by: "ben" } });
  expect(three.structuredContent).toMatchObject({ output: { city: "Bern", seat: "2B", by: "ann" } });
  expect(ann.seen.join("\n")).not.toMatch(/Rome|Bern|9F|2B|ben/);
  expect(ben.seen.join("\n")).not.toMatch(/Oslo|Bern|1A|2B|ann/);
  expect(again.seen.join("\n")).not.toMatch(/Oslo|Rome|1A|9F|ben/);

  // A thread of ann is available on all her connections and to no other client under any name.
  expect((await again.call("trip_continue", { thread: "t" })).structuredContent).toMatchObject({
    output: { city: "Oslo" },
  });
  for (const thread of ["u", "ann.trip.u", "../ann.trip.u", "mcp.ann.trip.u", "u\u0000"])
    expect((await ben.call("trip_continue", { thread })).isError).toBe(true);

  // Artifacts of her calls.
  const { content } = await ann.call("book", { title: "Oslo " });
  const { uri } = content.find((block) => block.type === "resource_link") as { uri: string };
  expect((await again.client.readResource({ uri })).contents).toHaveLength(1);
  await expect(ben.client.readResource({ uri })).rejects.toThrow(/not found/i);

  if (generation === "2026") {
    // The state token of her interrupt, presented by another client.
    const asked = await fetchRpc(url, tokens.ann, "book", { title: "Oslo " }, {});
    const { requestState, inputRequests } = asked.result;
    const yes = Object.fromEntries(
      Object.keys(inputRequests).map((id) => [id, { action: "accept", content: { approved: true } }]),
    );
    const his = await fetchRpc(url, tokens.ben, "book", { title: "Oslo " }, { requestState, inputResponses: yes });
    expect(his.result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("No call of") }] });
    // She may answer once, with the presented interrupt only, whatever else the answer contains.
    const callAsAnn = () =>
      fetchRpc(url, tokens.ann, "book", { title: "Rome " }, { requestState, inputResponses: yes });
    expect(JSON.stringify((await callAsAnn()).result.content)).toContain("Oslo Oslo");
    expect((await callAsAnn()).result).toMatchObject({ isError: true });
    return;
  }
  // Her session with his token does not exist.
  const session = ann.client.transport?.sessionId;
  assert(session !== undefined);
  const steal = (method: string, by: string, body?: string) =>
    fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${by}`,
        "mcp-session-id": session,
        "mcp-protocol-version": "2025-11-25",
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      ...(body === undefined ? {} : { body }),
    });
  const cancel = JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
  const list = JSON.stringify({ jsonrpc: "2.0", id: 99, method: "tools/list" });
  for (const [method, body] of [["POST", list], ["POST", cancel], ["GET"], ["DELETE"]] as const) {
    const stolen = await steal(method, tokens.ben, body);
    expect([method, stolen.status, await stolen.text()]).toEqual([
      method,
      404,
      expect.stringContaining("Session not found"),
    ]);
  }
  expect((await steal("POST", tokens.ann, list)).status).toBe(200);
  expect((await ann.call("trip_continue", { thread: "t" })).isError).not.toBe(true);
}

test("a client with many open interrupts evicts its own and none of another client", async () => {
  const ran: string[] = [];
  const send = defineTool({
    name: "send",
    description: "Send.",
    input: z.object({ to: z.string() }),
    safety: { access: "write", confirm: "always" },
    run: ({ to }) => {
      ran.push(to);
      return "Sent";
    },
  });
  const mcp = serveMcp({ name: "post", version: "1.0.0", tools: [send], limits: { waiting: 3 } });
  onTestFinished(() => mcp.close());
  const tokens = { ann: `${token}-of-ann`, ben: `${token}-of-ben` };
  const { url } = await mcp.listen({ port: 0, tokens });
  const ask = async (by: string, to: string) => {
    const { requestState, inputRequests } = (await fetchRpc(url, by, "send", { to }, {})).result;
    const [id = ""] = Object.keys(inputRequests);
    const inputResponses = { [id]: { action: "accept", content: { approved: true } } };
    return async () =>
      (await fetchRpc(url, by, "send", { to }, { requestState, inputResponses })).result.isError === true;
  };
  const hers = await ask(tokens.ann, "ann's");
  const his = [];
  for (const nth of [1, 2, 3, 4, 5]) his.push(await ask(tokens.ben, `ben's ${nth}`));
  expect(await hers()).toBe(false);
  expect(await his[2]?.()).toBe(true);
  expect(await his[4]?.()).toBe(false);
  expect(ran).toEqual(["ann's", "ben's 5"]);
});

async function fetchRpc(
  url: string,
  by: string,
  name: string,
  args: object,
  more: object,
): Promise<{ readonly result: { requestState: string; inputRequests: object; content: unknown; isError?: boolean } }> {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
  };
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${by}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": name,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name, arguments: args, ...more, _meta },
    }),
  });
  return (await answer.json()) as never;
}

test("an MCP server takes the access option of an HTTP server: its callers, and the right to start runs [V2]", async () => {
  const seen: string[] = [];
  const note = defineTool({
    name: "note",
    description: "Note.",
    input: z.object({}),
    run: () => "Noted",
  });
  const asked: string[] = [];
  const mcp = serveMcp({
    name: "notes",
    version: "1.0.0",
    tools: [note],
    context: ({ id }: McpCaller) => seen.push(id),
  });
  onTestFinished(() => mcp.close());
  const handler = mcp.http({
    access: {
      tokens: {
        ann: { token: "token-of-ann-0123456789", tenant: "acme" },
        bob: "token-of-bob-0123456789",
        "eve@mail.example": { token: "token-of-eve-0123456789", tenant: "acme-of-a-name-with-40-characters-000000" },
      },
      authorize: (caller, { action }) => {
        asked.push(`${caller.id} ${action}`);
        return caller.id !== "bob";
      },
    },
  });
  const send = async (headers: Readonly<Record<string, string>>): Promise<number> => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const params = { name: "note", arguments: {}, _meta: meta };
    const response = await handler.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "tools/call",
          "mcp-name": "note",
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
      }),
    );
    await response.text();
    return response.status;
  };
  expect(await send({ authorization: "Bearer token-of-ann-0123456789" })).toBe(200);
  expect(await send({ "x-api-key": "token-of-eve-0123456789" })).toBe(200);
  expect(await send({ authorization: "Bearer token-of-bob-0123456789" })).toBe(401);
  expect(await send({ authorization: "Bearer token-of-nobody-0123456789" })).toBe(401);
  expect(asked).toEqual(["ann run.start", "eve@mail.example run.start", "bob run.start"]);
  expect(seen).toEqual(["acme", expect.stringMatching(/^h[0-9a-f]{31}$/)]);
  expect(() => mcp.http({ token, access: { token } })).toThrow(/expected exactly one of/);
});
