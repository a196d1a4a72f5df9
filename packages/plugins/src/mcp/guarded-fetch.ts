/** A fetch whose every request leaves by the one way out to the network: addresses are checked, answers are bounded. */
import { ReadableStream } from "node:stream/web";
import type { FetchLike } from "@modelcontextprotocol/client";
import type { World } from "@statewright/core";
import { type OpenedUrl, openUrl } from "@statewright/host";

/** What bounds the requests. */
export interface GuardedFetchOptions {
  /** The server: private addresses that stand in it by themselves were named by the user. */
  readonly url: URL;
  /** The user's own, for the server alone: whoever logs people in for it does not get them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean | readonly string[];
  /** Of one answer, or of one event of a stream. */
  readonly maxBytes: number;
  /** Until an answer begins. */
  readonly timeoutMs: () => number;
  readonly world: World;
}

/** A fetch of the Streamable HTTP transport. Redirects are not followed: who asked sees them. */
export function guardedFetch({ url: server, headers: own, ...bounds }: GuardedFetchOptions): FetchLike {
  const { allowPrivate, maxBytes, timeoutMs, world } = bounds;
  return async (target, init = {}) => {
    const url = new URL(target);
    const { method = "GET", signal } = init;
    const isNamed = url.host === server.host && namesPrivate(server.hostname);
    const opened = await openUrl(url.href, {
      method,
      headers: {
        ...(url.origin === server.origin ? lowerCased(own) : {}),
        ...Object.fromEntries(new Headers(init.headers)),
      },
      ...(init.body === undefined || init.body === null ? {} : { body: textOf(init.body) }),
      ...(signal === undefined || signal === null ? {} : { signal }),
      allowPrivate: isNamed || allowPrivate,
      timeoutMs: timeoutMs(),
      world,
    });
    const isStream = (opened.headers["content-type"] ?? "").startsWith("text/event-stream");
    // What a server may want to say some time does not keep our process alive.
    const isIdle = method === "GET" || new Headers(init.headers).get("mcp-method") === "subscriptions/listen";
    if (isStream && isIdle) opened.body.socket.unref();
    const hasBody = opened.status !== 204 && opened.status !== 205 && opened.status !== 304;
    if (!hasBody) opened.end();
    const body = hasBody ? ReadableStream.from(bounded(opened, isStream, maxBytes)) : null;
    return new Response(body, { status: opened.status, headers: opened.headers });
  };
}

/** A user who writes such a host means this machine or a network around it; a name could lead anywhere. */
function namesPrivate(hostname: string): boolean {
  return hostname === "localhost" || hostname.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/.test(hostname);
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(new Headers(headers));
}

function textOf(body: unknown): string {
  if (typeof body === "string") return body;
  if (body instanceof URLSearchParams) return body.toString();
  throw new TypeError("The body of a request to an MCP server is no text.");
}

/** The bytes of an answer as they come; of a stream those of one event count, which an empty line ends. */
async function* bounded(opened: OpenedUrl, isStream: boolean, maxBytes: number): AsyncGenerator<Uint8Array> {
  let count = 0;
  let before = "";
  try {
    for await (const chunk of opened.body as AsyncIterable<Buffer>) {
      count += chunk.length;
      if (isStream) {
        const text = before + chunk.toString("latin1");
        const at = Math.max(text.lastIndexOf("\n\n"), text.lastIndexOf("\n\r\n"), text.lastIndexOf("\r\r"));
        if (at >= 0) count = text.length - at;
        before = text.slice(-3);
      }
      if (count > maxBytes) throw new Error(`its answer is larger than ${maxBytes} bytes`);
      yield chunk;
    }
  } finally {
    opened.end();
  }
}
