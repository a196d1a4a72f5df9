/** Over HTTP: what a request must be before anything of it is read, and who answers it then. */
import { createMcpHandler, isLegacyRequest } from "@modelcontextprotocol/server";
import { StatewrightError } from "@statewright/core";
import { serveHttp } from "@statewright/host";
import { connectionFor, type Served } from "./connection.ts";
import { accessOf, freshToken, loopback, type McpAccess, refused } from "./http-access.ts";
import { readBody } from "./http-body.ts";
import { httpSessions } from "./http-sessions.ts";

/** How a server is reached over HTTP, and by whom. */
export interface McpHttpOptions extends McpAccess {
  /** The path that it answers on. Default `/mcp`. */
  readonly path?: string;
}

/** A handler of web requests. */
export interface McpHttpHandler {
  readonly fetch: (request: Request) => Promise<Response>;
  readonly close: () => Promise<void>;
}

/** Where a server listens. */
export interface McpListenOptions extends McpHttpOptions {
  /** 0 takes a free one. */
  readonly port: number;
  /** The address to bind to. Default 127.0.0.1, which other machines do not reach; any other needs `hosts` too. */
  readonly host?: string;
}

/** A server that listens. */
export interface McpListener {
  readonly url: string;
  readonly port: number;
  /** The token that was made, where none was given. */
  readonly token: string | undefined;
  readonly close: () => Promise<void>;
}

/** A handler of web requests. Throws `invalid_option` where nobody could be told from anybody else. */
export function overHttp(served: Served, options: McpHttpOptions): McpHttpHandler {
  const { path = "/mcp", ...who } = options;
  const access = accessOf(who);
  const sessions = httpSessions(served);
  const report = (error: Error): void => served.world.log("warn", "a request over HTTP was not taken", { error });
  const stateless = createMcpHandler(({ authInfo }) => connectionFor(served, { id: authInfo?.clientId ?? "" }).server, {
    legacy: "reject",
    onerror: report,
  });

  let isClosed = false;

  async function answer(request: Request): Promise<Response> {
    const refusal = access.refusal(request);
    if (refusal !== undefined) return refusal;
    if (new URL(request.url).pathname !== path) return refused(404, "Not found");
    const { method } = request;
    if (method === "OPTIONS" && access.originOf(request) !== undefined)
      return new Response(null, { status: 204, headers: preflight });
    if (method !== "POST" && method !== "GET" && method !== "DELETE")
      return refused(405, "Method not allowed", { allow: "GET, POST, DELETE" });
    if (isClosed || served.isClosed()) return refused(503, "The server is stopping");
    const caller = await access.callerOf(request);
    if (caller === undefined) return refused(401, "Unauthorized: show a token", { "www-authenticate": "Bearer" });
    if (method !== "POST") return sessions.serve(request, undefined, caller);
    const body = await readBody(request, served.limits, served.world);
    if ("refusal" in body) return body.refusal;
    const { message } = body;
    const read = new Request(request.url, { method, headers: request.headers, signal: request.signal });
    if (await isLegacyRequest(read, message)) return sessions.serve(read, message, caller);
    return stateless.fetch(read, { parsedBody: message, authInfo: { token: "", clientId: caller.id, scopes: [] } });
  }

  return {
    fetch: async (request) => withOrigin(await answer(request), access.originOf(request)),
    close: async () => {
      isClosed = true;
      await Promise.all([stateless.close(), sessions.close()]);
    },
  };
}

const preflight: Readonly<Record<string, string>> = {
  "access-control-allow-methods": "GET, POST, DELETE",
  "access-control-allow-headers":
    "authorization, content-type, accept, last-event-id, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name",
};

/** A page that may call may read the answer. */
function withOrigin(response: Response, origin: string | undefined): Response {
  if (origin === undefined) return response;
  const headers = new Headers(response.headers);
  headers.set("access-control-allow-origin", origin);
  headers.set("access-control-expose-headers", "mcp-session-id");
  headers.append("vary", "Origin");
  return new Response(response.body, { status: response.status, headers });
}

/** Listen on an address of this machine. Throws `invalid_option` for one that others reach, where no `hosts` say by what names. */
export async function listening(served: Served, options: McpListenOptions): Promise<McpListener> {
  const { port, host = "127.0.0.1", path = "/mcp", ...who } = options;
  const isLocal = loopback.includes(host) || host === "::1";
  if (!isLocal && who.hosts === undefined)
    throw new StatewrightError("invalid_option", {
      what: `serveMcp was to listen on ${host}, which other machines reach`,
      next: 'Say by which names it is called: hosts: ["mcp.example"]; and put a server before it that speaks https',
    });
  const needsToken = who.token === undefined && who.tokens === undefined && who.authorize === undefined;
  const token = needsToken ? freshToken() : undefined;
  const handler = overHttp(served, { ...who, path, ...(token === undefined ? {} : { token }) });
  const server = await serveHttp(handler.fetch, {
    port,
    host,
    requestTimeoutMs: served.limits.requestMs,
    onError: (error) => served.world.log("error", "a request over HTTP failed", { error }),
  });
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${server.port}${path}`,
    port: server.port,
    token,
    close: async () => {
      await handler.close();
      await server.close();
    },
  };
}
