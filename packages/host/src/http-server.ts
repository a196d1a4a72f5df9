/** An HTTP server for a handler of web requests: bound to one address, what it waits for is bounded, nothing is left open when it is closed. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { HostError, systemCodeOf } from "./host-error.ts";

/** Where a server listens, and what it bounds. */
export interface ServeHttpOptions {
  /** 0 takes a free one. */
  readonly port: number;
  /** The address; 127.0.0.1 by default, which other machines do not reach. */
  readonly host?: string;
  /** Milliseconds in which a request must have come whole, and its headers; 30,000 by default. */
  readonly requestTimeoutMs?: number;
  /** Connections that may be open at the same time; 256 by default. */
  readonly maxConnections?: number;
  /** Told of what a handler threw; its request gets the status 500 and no word about it. */
  readonly onError?: (error: unknown) => void;
}

/** A server that listens. */
export interface HttpServer {
  readonly host: string;
  readonly port: number;
  /** Take no more requests, cut those that are open, and resolve when nothing is left. */
  close(): Promise<void>;
}

/** Answers one request. Its signal fires when the other side has gone before the answer was sent. */
export type HttpHandler = (request: Request) => Promise<Response>;

/** Serve HTTP. The body of a request is read only as far as the handler reads it. Throws `io` when the address cannot be had. */
export async function serveHttp(handler: HttpHandler, options: ServeHttpOptions): Promise<HttpServer> {
  const { port, host = "127.0.0.1", requestTimeoutMs = 30_000, maxConnections = 256, onError } = options;
  const server = createServer(
    {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      maxHeaderSize: 16_384,
      keepAliveTimeout: 5_000,
    },
    (incoming, outgoing) => {
      answer(handler, incoming, outgoing).catch((error: unknown) => {
        onError?.(error);
        if (outgoing.headersSent) outgoing.destroy();
        else outgoing.writeHead(500, { connection: "close" }).end();
      });
    },
  );
  server.maxConnections = maxConnections;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(unheard(host, port, error)));
    server.listen(port, host, resolve);
  });
  return {
    host,
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(handler: HttpHandler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  const request = requestOf(incoming, gone.signal);
  const response = request === undefined ? new Response(null, { status: 400 }) : await handler(request);
  if (gone.signal.aborted) {
    await response.body?.cancel();
    return;
  }
  for (const [name, value] of response.headers) outgoing.setHeader(name, value);
  // What was not read of a body is not waited for.
  if (!incoming.complete) outgoing.setHeader("connection", "close");
  outgoing.writeHead(response.status);
  if (response.body === null) outgoing.end();
  else await send(response.body, outgoing, gone.signal);
}

/** The body as it comes, no faster than the other side takes it. */
async function send(body: ReadableStream<Uint8Array>, outgoing: ServerResponse, gone: AbortSignal): Promise<void> {
  outgoing.flushHeaders();
  const reader = body.getReader();
  const giveUp = (): void => {
    reader.cancel().catch(cancelledAlready);
  };
  gone.addEventListener("abort", giveUp, { once: true });
  for (;;) {
    const { done, value } = await reader.read();
    if (done || gone.aborted) break;
    if (!outgoing.write(value)) await drained(outgoing);
  }
  gone.removeEventListener("abort", giveUp);
  outgoing.end();
}

function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      outgoing.off("drain", over);
      outgoing.off("close", over);
      resolve();
    };
    outgoing.on("drain", over);
    outgoing.on("close", over);
  });
}

function cancelledAlready(): void {
  // The stream had failed by itself: nobody reads it any more.
}

/** A name or an address, and a port: no user, no path, nothing that two readers could take for two hosts. */
const hostGrammar = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/** The request as the web has it; nothing for one whose target or Host header says two things or none. */
function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
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
  if (hosts !== 1 || !hostGrammar.test(host) || !target.startsWith("/") || !URL.canParse(url)) return undefined;
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers, signal });
  if (method === "CONNECT" || method === "TRACE" || method === "TRACK") return undefined;
  return new Request(url, { method, headers, signal, body: bodyOf(incoming), duplex: "half" });
}

function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  return Readable.toWeb(incoming) as ReadableStream<Uint8Array>;
}

function unheard(host: string, port: number, error: Error): HostError {
  const systemCode = systemCodeOf(error);
  return new HostError(
    "io",
    `The server cannot listen on ${host}:${port} (${systemCode}). Choose another port or address.`,
    {
      systemCode,
    },
  );
}
