/**
 * HTTP server for a handler of web requests: bound to one address, with limits on time and connections, and no open
 * connection after `close`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { getSystemCode, HostError } from "./host-error.ts";

/** Address and limits of a server. */
export interface ServeHttpOptions {
  /** Port; 0 selects a free port. */
  readonly port: number;
  /** Address to bind. Default: 127.0.0.1, unreachable from other machines. */
  readonly host?: string;
  /** Timeout in milliseconds for receiving a whole request, and for its headers. Default: 30,000. */
  readonly requestTimeoutMs?: number;
  /** Maximum number of open connections. Default: 256. */
  readonly maxConnections?: number;
  /** Maximum bytes of all headers of a request; a larger request receives status 431. Default: 16,384. */
  readonly maxHeaderBytes?: number;
  /** Milliseconds until an idle connection is closed. Default: 5,000. */
  readonly keepAliveTimeoutMs?: number;
  /** Callback for an error thrown by the handler; the client receives status 500 without the error text. */
  readonly onError?: (error: unknown) => void;
}

/** Listening server. */
export interface HttpServer {
  readonly host: string;
  readonly port: number;
  /**
   * Stops accepting requests, closes open connections, and resolves when all are closed. `graceMs`: milliseconds that
   * open responses have to end. Default 0: all connections are closed at once.
   */
  close(options?: { readonly graceMs?: number }): Promise<void>;
}

/** Other end of the connection of a request. */
export interface HttpPeer {
  /** IP address; undefined when the connection is already closed. */
  readonly address: string | undefined;
}

/** Handles a request. The signal of the request fires when the client disconnects before the response was sent. */
export type HttpHandler = (request: Request, peer: HttpPeer) => Promise<Response>;

/**
 * Starts an HTTP server. A request body is read only as far as the handler reads it. Throws `io` if the address
 * cannot be bound.
 */
export async function serveHttp(handler: HttpHandler, options: ServeHttpOptions): Promise<HttpServer> {
  const { port, host = "127.0.0.1", requestTimeoutMs = 30_000, maxConnections = 256, onError } = options;
  const { maxHeaderBytes = 16_384, keepAliveTimeoutMs = 5_000 } = options;
  const server = createServer(
    {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
      keepAliveTimeout: keepAliveTimeoutMs,
    },
    (incoming, outgoing) => {
      // A closing server keeps no connection open for a further request.
      outgoing.once("close", () => {
        if (!server.listening) setImmediate(() => server.closeIdleConnections());
      });
      // The body is sent outside of `sendHead`: an open stream then keeps no request and no response.
      sendHead(handler, incoming, outgoing)
        .then((answer) => (answer === undefined ? undefined : sendBody(answer, outgoing)))
        .catch((error: unknown) => {
          onError?.(error);
          if (outgoing.headersSent) outgoing.destroy();
          else outgoing.writeHead(500, { connection: "close" }).end();
        });
    },
  );
  server.maxConnections = maxConnections;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(createListenError(host, port, error)));
    server.listen(port, host, resolve);
  });
  return {
    host,
    port: (server.address() as AddressInfo).port,
    close: ({ graceMs = 0 } = {}) => closeServer(server, graceMs),
  };
}

/** Closes a server. Idle connections close at once, others after their response, at the latest after `graceMs`. */
function closeServer(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    if (graceMs === 0) server.closeAllConnections();
  });
}

/** Body of a response, and the signal that fires when its client disconnects. */
interface AnswerBody {
  readonly body: ReadableStream<Uint8Array>;
  readonly disconnected: AbortSignal;
}

/** Answers a request with the status and the headers. Returns the body; undefined for a finished response. */
async function sendHead(
  handler: HttpHandler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<AnswerBody | undefined> {
  const disconnect = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) disconnect.abort();
  });
  const request = toRequest(incoming, disconnect.signal);
  // An IPv4 address on a socket for both versions of IP.
  const peer: HttpPeer = { address: incoming.socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, "") };
  const response = request === undefined ? new Response(null, { status: 400 }) : await handler(request, peer);
  if (disconnect.signal.aborted) {
    await response.body?.cancel();
    return undefined;
  }
  for (const [name, value] of response.headers) outgoing.setHeader(name, value);
  // Closes the connection instead of waiting for an unread request body.
  if (!incoming.complete) outgoing.setHeader("connection", "close");
  outgoing.writeHead(response.status);
  if (response.body !== null) return { body: response.body, disconnected: disconnect.signal };
  outgoing.end();
  return undefined;
}

/** Streams the body with backpressure from the client. */
async function sendBody({ body, disconnected }: AnswerBody, outgoing: ServerResponse): Promise<void> {
  // A body that is ready in this turn of the event loop is sent in one write with the headers.
  outgoing.cork();
  outgoing.flushHeaders();
  setImmediate(() => {
    if (!outgoing.writableEnded) outgoing.uncork();
  });
  const reader = body.getReader();
  const cancelReader = (): void => {
    reader.cancel().catch(ignoreCancelError);
  };
  disconnected.addEventListener("abort", cancelReader, { once: true });
  for (;;) {
    const { done, value } = await reader.read();
    if (done || disconnected.aborted) break;
    if (!outgoing.write(value)) await waitForDrain(outgoing, reader.closed);
  }
  disconnected.removeEventListener("abort", cancelReader);
  outgoing.end();
}

/** Resolves when the connection takes bytes again. A body that fails meanwhile breaks the connection at once. */
function waitForDrain(outgoing: ServerResponse, bodyClosed: Promise<unknown>): Promise<void> {
  bodyClosed.catch(() => outgoing.destroy());
  return new Promise((resolve) => {
    const finish = (): void => {
      outgoing.off("drain", finish);
      outgoing.off("close", finish);
      resolve();
    };
    outgoing.on("drain", finish);
    outgoing.on("close", finish);
  });
}

function ignoreCancelError(): void {
  // The stream already failed by itself; the cancel error carries no new information.
}

/**
 * Host name or address with an optional port. No user and no path, so that two parsers cannot read two different
 * hosts.
 */
const hostPattern = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/** Converts an incoming message to a web request; undefined for a missing or ambiguous target or Host header. */
function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { method = "GET", url: target = "", rawHeaders } = incoming;
  const headers = new Headers();
  let hosts = 0;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
    if (name.toLowerCase() === "host") hosts++;
    headers.append(name, value);
  }
  const host = headers.get("host") ?? "";
  const url = `http://${host}${target}`;
  if (hosts !== 1 || !hostPattern.test(host) || !target.startsWith("/") || !URL.canParse(url)) return undefined;
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers, signal });
  if (method === "CONNECT" || method === "TRACE" || method === "TRACK") return undefined;
  return new Request(url, { method, headers, signal, body: toBodyStream(incoming), duplex: "half" });
}

function toBodyStream(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  return Readable.toWeb(incoming) as ReadableStream<Uint8Array>;
}

function createListenError(host: string, port: number, error: Error): HostError {
  const systemCode = getSystemCode(error);
  return new HostError(
    "io",
    `The server cannot listen on ${host}:${port} (${systemCode}). Use another port or address.`,
    {
      systemCode,
    },
  );
}
