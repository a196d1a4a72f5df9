/** MCP servers over HTTP: JSON and streamed answers, sessions, authorization, and blocked requests. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { OAuthClientProvider } from "@modelcontextprotocol/client";
import { getMessageText } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { afterEach, expect, test } from "vitest";
import { createGuardedFetch } from "../../src/client/guarded-fetch.ts";
import { callTool, collectAnswers, startCalls } from "../support/calls.ts";
import { connect, endServers, formatVariable } from "../support/mcp.ts";

endServers();

interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly message: { readonly id?: number; readonly method?: string; readonly params?: Record<string, unknown> };
}

interface Site {
  readonly url: string;
  readonly asked: RecordedRequest[];
}

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

/** Starts a web server with an MCP server at /mcp; `answer` may handle a request itself. */
async function site(answer: (asked: RecordedRequest, response: ServerResponse, url: string) => boolean): Promise<Site> {
  const asked: RecordedRequest[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => {
      const isJson = request.headers["content-type"] === "application/json" && text !== "";
      const { method = "", url: path = "", headers } = request;
      const one: RecordedRequest = { method, path, headers, message: isJson ? JSON.parse(text) : { params: { text } } };
      asked.push(one);
      if (!answer(one, response, url)) getUsualSize(one, response);
    });
  });
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  open.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url, asked };
}

const tools = ["echo", "stream", "break"].map((name) => ({ name, inputSchema: { type: "object" } }));

function getUsualSize(
  { method, message: { id, method: about, params } }: RecordedRequest,
  response: ServerResponse,
): ServerResponse {
  const result = (value: unknown): ServerResponse => reply(response, 200, { jsonrpc: "2.0", id, result: value });
  if (method === "GET") return reply(response, 405);
  if (method === "DELETE") return reply(response, 200);
  if (id === undefined) return reply(response, 202);
  if (about === "initialize") {
    response.setHeader("mcp-session-id", `session-${sessions++}`);
    return result({
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "web", version: "1" },
    });
  }
  if (about === "tools/list") return result({ tools });
  const name = params?.["name"];
  const content = [{ type: "text", text: String(name) }];
  if (name === "echo") return result({ content });
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (name === "break") {
    response.write(": alive\n\n");
    return response.destroy();
  }
  response.write(
    `data: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "hm" } })}\n\n`,
  );
  return response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { content } })}\n\n`);
}

let sessions = 1;

function reply(
  response: ServerResponse,
  status: number,
  body?: unknown,
  headers: Record<string, string> = {},
): ServerResponse {
  response.writeHead(status, { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers });
  return response.end(body === undefined ? undefined : JSON.stringify(body));
}

test("an HTTP MCP server answers directly and by stream, with user and session headers, and the session is deleted at the end", async () => {
  process.env["MCP_TEST_KEY"] = "k1";
  const { url, asked } = await site(() => false);
  const server = await connect({ name: "web", url, headers: { "x-key": formatVariable("MCP_TEST_KEY") } });
  expect(server.info).toMatchObject({ name: "web" });
  expect(await callTool(server.tools, {})).toBe("echo");
  expect(await callTool(server.tools, {}, "stream")).toBe("stream");
  await server.close();
  const last = asked.at(-1);
  expect(last?.method).toBe("DELETE");
  expect(last?.headers["mcp-session-id"]).toMatch(/^session-/);
  expect(asked.every(({ headers }) => headers["x-key"] === "k1" && headers["accept-encoding"] === "identity")).toBe(
    true,
  );
});

test.each([404, 400])(
  "a session forgotten by the server (%i) is reopened, and the call is made once",
  async (status) => {
    let forgotten = "";
    const { url, asked } = await site(({ headers, message }, response) => {
      const isGone = message.method === "tools/call" && headers["mcp-session-id"] === forgotten;
      if (isGone) reply(response, status, { error: "no such session" });
      return isGone;
    });
    const server = await connect({ name: "web", url });
    forgotten = asked.find(({ headers }) => headers["mcp-session-id"] !== undefined)?.headers[
      "mcp-session-id"
    ] as string;
    expect(await callTool(server.tools, {})).toBe("echo");
    expect(asked.filter(({ message }) => message.method === "initialize")).toHaveLength(2);
  },
);

test("an MCP call fails without hanging after a broken stream, an error status or an oversized answer", async () => {
  const { url } = await site(({ message }, response) => {
    if (message.method !== "tools/call" || message.params?.["name"] !== "echo") return false;
    const { say: said } = message.params["arguments"] as { readonly say: string };
    if (said === "large") reply(response, 200, { jsonrpc: "2.0", id: message.id, result: "x".repeat(5_000) });
    else reply(response, said === "500" ? 500 : 403, { error: said });
    return true;
  });
  const server = await connect({ name: "web", url, maxMessageLength: 4_000 });
  const [broken, failed, denied, large] = await collectAnswers(server.tools, [
    { name: "break", args: {} },
    { args: { say: "500" } },
    { args: { say: "403" } },
    { args: { say: "large" } },
  ]);
  const texts = [broken, failed, denied, large].map((answer) => (answer === undefined ? "" : getMessageText(answer)));
  expect(texts).toEqual([
    expect.stringMatching(/lost during the call.*The outcome of the call is unknown/),
    expect.stringMatching(/status 500.*outcome of the call is unknown/),
    expect.stringContaining("requires other credentials"),
    expect.stringContaining("exceeds 4000 bytes"),
  ]);
});

const token = { token: async () => "expired" };
test.each([
  [401, "no", {}, "requires credentials (401). Pass authProvider: { token: async () => … }, or a header in headers"],
  [401, "no", { headers: { "X-Api-Key": "k" } }, "rejected the credentials in headers (401). Check the expiry"],
  [401, "no", { authProvider: token }, "rejected the credentials of authProvider (401). Check the expiry"],
  [403, "no", {}, "denied the request without credentials (403). Use credentials with access: authProvider"],
  [403, "no", { authProvider: token }, "denied the request with these credentials (403). Use credentials"],
  [404, "<html>Nothing here</html>", {}, "(404). Fix the url: its path matters, and is often /mcp"],
  [404, "", { protocol: "auto" }, "(404). Fix the url: its path matters"],
  [405, "", {}, "does not support Streamable HTTP (405). Fix the url"],
  [429, "slow down", {}, "received too many requests (429). Try later"],
  [
    500,
    "out of\n\u001b[2Jmemory.",
    {},
    "failed (500): out of \\u001b[2Jmemory. Retry later, or check the log of the server",
  ],
  [
    400,
    '{"error":{"message":"no such revision"}}',
    {},
    "rejected the request (400): no such revision. Fix the url; a server of",
  ],
  [200, "<html>Welcome</html>", {}, "the response is not MCP"],
] as const)(
  "an MCP server that answers %i %j fails with the location, the cause and the fix: %j",
  async (status, body, given, said) => {
    const { url } = await site((_asked, response) => {
      response.writeHead(status, { "content-type": "text/html" }).end(body);
      return true;
    });
    const secret = `${url}?key=secret`;
    const thrown: unknown = await connect({ name: "web", url: secret, ...given }).catch((error: unknown) => error);
    expect(thrown).toMatchObject({ code: "mcp_failed", message: expect.stringContaining(said) });
    const { message } = thrown as Error;
    expect(message).toContain(url);
    expect(message).not.toMatch(/secret|POSTing|<html>/);
  },
);

test("an unreachable MCP address fails with the address and the place to check", async () => {
  await expect(connect({ name: "web", url: "http://127.0.0.1:1/mcp" })).rejects.toMatchObject({
    code: "mcp_failed",
    message: expect.stringMatching(
      /at http:\/\/127\.0\.0\.1:1\/mcp is not reachable: .*ECONNREFUSED.* check its url\./,
    ),
  });
});

test("an MCP call with expired credentials is refused to the model, and the tool.failed event has location and fix", async () => {
  const { url } = await site(({ message: { method } }, response) => {
    const isRefused = method === "tools/call" || method === "resources/read";
    if (isRefused) reply(response, 401);
    return isRefused;
  });
  const server = await connect({ name: "web", url, headers: { authorization: "Bearer old" } });
  const live = startCalls(server.tools, [{ args: {} }]);
  const [answer] = await live.answers();
  expect(answer === undefined ? "" : getMessageText(answer)).toBe(
    'MCP server "web" denied the call: it requires other credentials.',
  );
  expect(live.events.find((event) => event.type === "tool.failed")).toMatchObject({
    result: {
      error: {
        kind: "denied",
        message: `The MCP server "web" at ${url} rejected the credentials in headers (401). Check the expiry and the audience of the credentials.`,
      },
    },
  });
  await expect(server.resources.read("file:///a")).rejects.toMatchObject({
    code: "mcp_failed",
    message: expect.stringMatching(/could not read .*\(401\)\. Check the expiry/),
  });
});

test("a private address that is not named is not contacted, directly or by redirect [R9]", async () => {
  const inside = await site(() => false);
  const world = systemWorld();
  const shared = { headers: { "x-key": "k" }, maxBytes: 1_000, timeoutMs: () => 5_000, world };
  const outside = createGuardedFetch({ url: new URL("https://mcp.example/mcp"), allowPrivate: false, ...shared });
  await expect(outside(inside.url)).rejects.toMatchObject({ code: "denied" });
  await expect(
    connect({ name: "web", url: "http://[::ffff:127.0.0.1]:1/mcp", startTimeoutMs: 5_000 }),
  ).rejects.toMatchObject({
    code: "mcp_failed",
  });
  const leading = await site((_asked, response) => {
    reply(response, 307, undefined, { location: inside.url });
    return true;
  });
  await expect(connect({ name: "web", url: leading.url })).rejects.toMatchObject({
    code: "mcp_failed",
    message: expect.stringContaining("redirect"),
  });
  expect(inside.asked).toEqual([]);
  // With the user's permission other hosts are reached, without the headers for the server.
  const allowed = createGuardedFetch({ url: new URL("https://mcp.example/mcp"), allowPrivate: true, ...shared });
  expect((await allowed(inside.url)).status).toBe(405);
  expect(inside.asked[0]?.headers["x-key"]).toBeUndefined();
});

test("a token is sent with every request, and an OAuth login completes the connection when the server requires it", async () => {
  const { url, asked } = await site(({ path, headers, method, message }, response, at) => {
    const origin = new URL(at).origin;
    if (path === "/.well-known/oauth-protected-resource/mcp")
      reply(response, 200, { resource: at, authorization_servers: [origin] });
    else if (path.startsWith("/.well-known/oauth-authorization-server"))
      reply(response, 200, {
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
      });
    else if (path === "/register") reply(response, 201, { ...(message as object), client_id: "us" });
    else if (path === "/token") reply(response, 200, { access_token: "t1", token_type: "Bearer" });
    else if (path === "/mcp" && headers.authorization !== "Bearer t1")
      reply(response, 401, undefined, {
        "www-authenticate": `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`,
      });
    else return method === "NEVER";
    return true;
  });
  await expect(connect({ name: "web", url })).rejects.toMatchObject({
    code: "mcp_failed",
    message: expect.stringContaining(`"web" at ${url} requires credentials (401). Pass authProvider: { token: `),
  });
  const plain = await connect({ name: "web", url, authProvider: { token: async () => "t1" } });
  expect(await callTool(plain.tools, {})).toBe("echo");

  const savedTokens: Record<string, unknown> = {};
  let sentTo: URL | undefined;
  const authProvider: OAuthClientProvider = {
    redirectUrl: "http://127.0.0.1/back",
    clientMetadata: { redirect_uris: ["http://127.0.0.1/back"], client_name: "test" },
    clientInformation: () => savedTokens["client"] as undefined,
    saveClientInformation: (client) => {
      savedTokens["client"] = client;
    },
    tokens: () => savedTokens["tokens"] as undefined,
    saveTokens: (given) => {
      savedTokens["tokens"] = given;
    },
    redirectToAuthorization: (target) => {
      sentTo = target;
    },
    saveCodeVerifier: (verifier) => {
      savedTokens["verifier"] = verifier;
    },
    codeVerifier: () => String(savedTokens["verifier"]),
    saveDiscoveryState: (found) => {
      savedTokens["discovery"] = found;
    },
    discoveryState: () => savedTokens["discovery"] as undefined,
  };
  await expect(connect({ name: "web", url, authProvider })).rejects.toMatchObject({
    code: "mcp_failed",
    message: expect.stringContaining(`"web" at ${url} requires a login by a person (401). Pass authorizationCode`),
  });
  const person = await connect({
    name: "web",
    url,
    authProvider,
    authorizationCode: async () => "from the person",
  });
  expect(sentTo?.pathname).toBe("/authorize");
  expect(await callTool(person.tools, {})).toBe("echo");
  const token = asked.find(({ path }) => path === "/token")?.message.params?.["text"];
  expect(new URLSearchParams(String(token)).get("code")).toBe("from the person");
  const closed = await site(({ path }, response) => {
    reply(response, path === "/mcp" ? 401 : 404);
    return true;
  });
  const unknown = { ...authProvider, clientInformation: () => undefined, discoveryState: () => undefined };
  await expect(connect({ name: "web", url: closed.url, authProvider: unknown })).rejects.toMatchObject({
    code: "mcp_failed",
    message: expect.stringContaining("Register a client, and pass it as clientInformation"),
  });
});
