/**
 * HTTP transport: checks a request before reading its body, then dispatches it to a session or to the stateless
 * handler.
 */
import { createMcpHandler, isLegacyRequest } from "@modelcontextprotocol/server";
import { invalidOption } from "@statewright/core/adapter";
import { serveHttp } from "@statewright/host";
import { createToken, isLoopbackAddress } from "@statewright/host/access";
import { createConnection, type ServerConfig } from "./connection.ts";
import { createAccess, createRefusal, hasAuthentication, type McpAccess } from "./http-access.ts";
import { readBody } from "./http-body.ts";
import { HttpSessions } from "./http-sessions.ts";

/** Options of the HTTP transport. */
export interface McpHttpOptions extends McpAccess {
  /** Path of the endpoint. Default `/mcp`. */
  readonly path?: string;
}

/** Handler of web requests. */
export interface McpHttpHandler {
  /** Answers a web request. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Closes the sessions; later requests are refused. */
  readonly close: () => Promise<void>;
}

/** Options of an HTTP listener. */
export interface McpListenOptions extends McpHttpOptions {
  /** TCP port; 0 selects a free port. */
  readonly port: number;
  /** Address to bind to. Default 127.0.0.1, not reachable from other machines; any other address needs `hosts`. */
  readonly host?: string;
  /** Maximum number of open connections. Default 256. */
  readonly maxConnections?: number;
  /** Maximum bytes of all headers of a request. Default 16,384. */
  readonly maxHeaderBytes?: number;
  /** Milliseconds until an idle connection is closed. Default 5,000. */
  readonly keepAliveTimeoutMs?: number;
}

/** Listening HTTP server. */
export interface McpListener {
  readonly url: string;
  readonly port: number;
  /** Generated token; undefined if the options contain a token. */
  readonly token: string | undefined;
  /** Closes the sessions and stops listening. */
  readonly close: () => Promise<void>;
}

/** Creates a handler of web requests. Throws `invalid_option` for access options without client authentication. */
export function createHttpHandler(config: ServerConfig, options: McpHttpOptions): McpHttpHandler {
  const { path = "/mcp", ...accessOptions } = options;
  const access = createAccess(accessOptions);
  const sessions = new HttpSessions(config);
  const report = (error: Error): void => config.world.log("warn", "an HTTP request was rejected", { error });
  const stateless = createMcpHandler(
    ({ authInfo }) => createConnection(config, { id: authInfo?.clientId ?? "" }).server,
    {
      legacy: "reject",
      onerror: report,
    },
  );

  let isClosed = false;

  async function handleRequest(request: Request): Promise<Response> {
    const refusal = access.refuse(request);
    if (refusal !== undefined) return refusal;
    if (new URL(request.url).pathname !== path) return createRefusal(404, "Not found");
    const { method } = request;
    if (method === "OPTIONS" && access.findAllowedOrigin(request) !== undefined)
      return new Response(null, { status: 204, headers: preflightHeaders });
    if (method !== "POST" && method !== "GET" && method !== "DELETE")
      return createRefusal(405, "Method not allowed", { allow: "GET, POST, DELETE" });
    if (isClosed || config.isClosed()) return createRefusal(503, "The server is stopping");
    const caller = await access.findCaller(request);
    if (caller === undefined) return createRefusal(401, "Unauthorized: show a token", { "www-authenticate": "Bearer" });
    if (method !== "POST") return sessions.serve(request, undefined, caller);
    const body = await readBody(request, config.limits, config.world);
    if ("refusal" in body) return body.refusal;
    const { message } = body;
    const bodylessRequest = new Request(request.url, { method, headers: request.headers, signal: request.signal });
    if (await isLegacyRequest(bodylessRequest, message)) return sessions.serve(bodylessRequest, message, caller);
    return stateless.fetch(bodylessRequest, {
      parsedBody: message,
      authInfo: { token: "", clientId: caller.id, scopes: [] },
    });
  }

  return {
    fetch: async (request) => addCorsHeaders(await handleRequest(request), access.findAllowedOrigin(request)),
    close: async () => {
      isClosed = true;
      await Promise.all([stateless.close(), sessions.close()]);
    },
  };
}

const preflightHeaders: Readonly<Record<string, string>> = {
  "access-control-allow-methods": "GET, POST, DELETE",
  "access-control-allow-headers":
    "authorization, content-type, accept, last-event-id, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name",
};

/** Adds the CORS headers for an allowed origin. */
function addCorsHeaders(response: Response, origin: string | undefined): Response {
  if (origin === undefined) return response;
  const headers = new Headers(response.headers);
  headers.set("access-control-allow-origin", origin);
  headers.set("access-control-expose-headers", "mcp-session-id");
  headers.append("vary", "Origin");
  return new Response(response.body, { status: response.status, headers });
}

/** Listens on an address of this machine. Throws `invalid_option` for a non-loopback address without `hosts`. */
export async function listenHttp(config: ServerConfig, options: McpListenOptions): Promise<McpListener> {
  const { port, host = "127.0.0.1", path = "/mcp", ...otherOptions } = options;
  const { maxConnections, maxHeaderBytes, keepAliveTimeoutMs, ...accessOptions } = otherOptions;
  if (!isLoopbackAddress(host) && accessOptions.hosts === undefined)
    throw invalidOption({
      where: "serveMcp",
      option: "hosts",
      expected: `set for the host "${host}", which is reachable from other machines`,
      got: undefined,
      fix: 'Add the host names of the server, such as hosts: ["mcp.example"], and use an HTTPS proxy',
    });
  const token = hasAuthentication(accessOptions) ? undefined : createToken();
  const handler = createHttpHandler(config, { ...accessOptions, path, ...(token === undefined ? {} : { token }) });
  const server = await serveHttp(handler.fetch, {
    port,
    host,
    requestTimeoutMs: config.limits.requestMs,
    ...(maxConnections === undefined ? {} : { maxConnections }),
    ...(maxHeaderBytes === undefined ? {} : { maxHeaderBytes }),
    ...(keepAliveTimeoutMs === undefined ? {} : { keepAliveTimeoutMs }),
    onError: (error) => config.world.log("error", "an HTTP request failed", { error }),
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
