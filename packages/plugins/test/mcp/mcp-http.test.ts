/** MCP servers at an address: answers at once and by stream, sessions, logins, and what no request may reach. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemWorld, textOf } from "@statewright/core";
import { afterEach, expect, test } from "vitest";
import { guardedFetch } from "../../src/mcp/guarded-fetch.ts";
import { answers, say } from "../support/calls.ts";
import { connect, endServers, variable } from "../support/mcp.ts";

endServers();

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly message: { readonly id?: number; readonly method?: string; readonly params?: Record<string, unknown> };
}

interface Site {
  readonly url: string;
  readonly asked: Asked[];
}

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

/** A web server with an MCP server at /mcp; `answer` takes what it wants to answer itself. */
async function site(answer: (asked: Asked, response: ServerResponse, url: string) => boolean): Promise<Site> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => {
      const isJson = request.headers["content-type"] === "application/json" && text !== "";
      const { method = "", url: path = "", headers } = request;
      const one: Asked = { method, path, headers, message: isJson ? JSON.parse(text) : { params: { text } } };
      asked.push(one);
      if (!answer(one, response, url)) usual(one, response);
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

function usual({ method, message: { id, method: about, params } }: Asked, response: ServerResponse): ServerResponse {
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

test("answers at once and by stream, with the headers of the user and the session, which is ended at the end", async () => {
  process.env["MCP_TEST_KEY"] = "k1";
  const { url, asked } = await site(() => false);
  const server = await connect({ name: "web", url, headers: { "x-key": variable("MCP_TEST_KEY") } });
  expect(server.info).toMatchObject({ name: "web" });
  expect(await say(server.tools, {})).toBe("echo");
  expect(await say(server.tools, {}, "stream")).toBe("stream");
  await server.close();
  const last = asked.at(-1);
  expect(last?.method).toBe("DELETE");
  expect(last?.headers["mcp-session-id"]).toMatch(/^session-/);
  expect(asked.every(({ headers }) => headers["x-key"] === "k1" && headers["accept-encoding"] === "identity")).toBe(
    true,
  );
});

test.each([404, 400])(
  "a session that the server has forgotten (%i) is opened anew, and the call is made once",
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
    expect(await say(server.tools, {})).toBe("echo");
    expect(asked.filter(({ message }) => message.method === "initialize")).toHaveLength(2);
  },
);

test("a stream that breaks off, a status of failure, an answer that is too large: the call is not left hanging", async () => {
  const { url } = await site(({ message }, response) => {
    if (message.method !== "tools/call" || message.params?.["name"] !== "echo") return false;
    const { say: said } = message.params["arguments"] as { readonly say: string };
    if (said === "large") reply(response, 200, { jsonrpc: "2.0", id: message.id, result: "x".repeat(5_000) });
    else reply(response, said === "500" ? 500 : 403, { error: said });
    return true;
  });
  const server = await connect({ name: "web", url, maxMessageLength: 4_000 });
  const [broken, failed, denied, large] = await answers(server.tools, [
    { name: "break", args: {} },
    { args: { say: "500" } },
    { args: { say: "403" } },
    { args: { say: "large" } },
  ]);
  const texts = [broken, failed, denied, large].map((answer) => (answer === undefined ? "" : textOf(answer)));
  expect(texts).toEqual([
    expect.stringMatching(/lost during the call.*Whether the call did something is not known/),
    expect.stringMatching(/the status 500.*not known/),
    expect.stringContaining("wants another authorization"),
    expect.stringContaining("larger than 4000 bytes"),
  ]);
});

test("R9 a private address that nobody has named is not asked, nor where a redirect leads to", async () => {
  const inside = await site(() => false);
  const world = systemWorld();
  const shared = { headers: { "x-key": "k" }, maxBytes: 1_000, timeoutMs: () => 5_000, world };
  const outside = guardedFetch({ url: new URL("https://mcp.example/mcp"), allowPrivate: false, ...shared });
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
  // Where the user allows it, what is not the server gets none of the headers that are for it.
  const allowed = guardedFetch({ url: new URL("https://mcp.example/mcp"), allowPrivate: true, ...shared });
  expect((await allowed(inside.url)).status).toBe(405);
  expect(inside.asked[0]?.headers["x-key"]).toBeUndefined();
});

test("a token goes with every request; a person logs in where the server wants that, and the connection is made then", async () => {
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
    message: expect.stringContaining("Look at its url, and at its token in headers or authProvider"),
  });
  const plain = await connect({ name: "web", url, authProvider: { token: async () => "t1" } });
  expect(await say(plain.tools, {})).toBe("echo");

  const kept: Record<string, unknown> = {};
  let sentTo: URL | undefined;
  const person = await connect({
    name: "web",
    url,
    authProvider: {
      redirectUrl: "http://127.0.0.1/back",
      clientMetadata: { redirect_uris: ["http://127.0.0.1/back"], client_name: "test" },
      clientInformation: () => kept["client"] as undefined,
      saveClientInformation: (client) => {
        kept["client"] = client;
      },
      tokens: () => kept["tokens"] as undefined,
      saveTokens: (given) => {
        kept["tokens"] = given;
      },
      redirectToAuthorization: (target) => {
        sentTo = target;
      },
      saveCodeVerifier: (verifier) => {
        kept["verifier"] = verifier;
      },
      codeVerifier: () => String(kept["verifier"]),
      saveDiscoveryState: (found) => {
        kept["discovery"] = found;
      },
      discoveryState: () => kept["discovery"] as undefined,
    },
    authorizationCode: async () => "from the person",
  });
  expect(sentTo?.pathname).toBe("/authorize");
  expect(await say(person.tools, {})).toBe("echo");
  const token = asked.find(({ path }) => path === "/token")?.message.params?.["text"];
  expect(new URLSearchParams(String(token)).get("code")).toBe("from the person");
});
