/** Fetch through `openUrl`: every request has its address checked, and every response is bounded. */
import { ReadableStream } from "node:stream/web";
import type { FetchLike } from "@modelcontextprotocol/client";
import type { World } from "@statewright/core";
import { type OpenedUrl, openUrl } from "@statewright/host";

/** Limits of the requests. */
export interface GuardedFetchOptions {
  /** URL of the server. A private address in this URL is allowed, because the user wrote it. */
  readonly url: URL;
  /** Headers of the user, sent to the server's origin only, not to an authorization server. */
  readonly headers: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean | readonly string[];
  /** Maximum bytes of a response, or of an event of a stream. */
  readonly maxBytes: number;
  /** Returns the milliseconds until the first byte of a response. */
  readonly timeoutMs: () => number;
  readonly world: World;
}

/** Creates the fetch of the Streamable HTTP transport. Does not follow redirects: the caller receives them. */
export function createGuardedFetch({ url: server, headers: ownHeaders, ...bounds }: GuardedFetchOptions): FetchLike {
  const { allowPrivate, maxBytes, timeoutMs, world } = bounds;
  return async (target, init = {}) => {
    const url = new URL(target);
    const { method = "GET", signal } = init;
    const isNamed = url.host === server.host && isLocalName(server.hostname);
    const opened = await openUrl(url.href, {
      method,
      headers: {
        ...(url.origin === server.origin ? normalizeHeaders(ownHeaders) : {}),
        ...Object.fromEntries(new Headers(init.headers)),
      },
      ...(init.body === undefined || init.body === null ? {} : { body: getBodyText(init.body) }),
      ...(signal === undefined || signal === null ? {} : { signal }),
      allowPrivate: isNamed || allowPrivate,
      timeoutMs: timeoutMs(),
      world,
    });
    const isStream = (opened.headers["content-type"] ?? "").startsWith("text/event-stream");
    // An idle stream for server messages does not keep the process alive.
    const isIdle = method === "GET" || new Headers(init.headers).get("mcp-method") === "subscriptions/listen";
    if (isStream && isIdle) opened.body.socket.unref();
    const hasBody = opened.status !== 204 && opened.status !== 205 && opened.status !== 304;
    if (!hasBody) opened.end();
    const body = hasBody
      ? ReadableStream.from(limitBody(opened, { per: isStream ? "event" : "response", maxBytes }))
      : null;
    return new Response(body, { status: opened.status, headers: opened.headers });
  };
}

/**
 * Returns true for `localhost` and IP addresses, which the user wrote on purpose. A DNS name could resolve to any
 * address.
 */
function isLocalName(hostname: string): boolean {
  return hostname === "localhost" || hostname.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/.test(hostname);
}

function normalizeHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(new Headers(headers));
}

function getBodyText(body: unknown): string {
  if (typeof body === "string") return body;
  if (body instanceof URLSearchParams) return body.toString();
  throw new TypeError("The request body for an MCP server must be text.");
}

/**
 * Streams a response body within the limit. In an event stream the limit applies to each event, separated by empty
 * lines.
 */
async function* limitBody(
  opened: OpenedUrl,
  { per, maxBytes }: { readonly per: "event" | "response"; readonly maxBytes: number },
): AsyncGenerator<Uint8Array> {
  let count = 0;
  let tail = "";
  try {
    for await (const chunk of opened.body as AsyncIterable<Buffer>) {
      count += chunk.length;
      if (per === "event") {
        const text = tail + chunk.toString("latin1");
        const eventEnd = Math.max(text.lastIndexOf("\n\n"), text.lastIndexOf("\n\r\n"), text.lastIndexOf("\r\r"));
        if (eventEnd >= 0) count = text.length - eventEnd;
        tail = text.slice(-3);
      }
      if (count > maxBytes) throw new Error(`the response exceeds ${maxBytes} bytes`);
      yield chunk;
    }
  } finally {
    opened.end();
  }
}
