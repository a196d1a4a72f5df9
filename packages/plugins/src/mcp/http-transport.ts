/** The Streamable HTTP transport: the official one behind a guarded fetch, with an end for every request. */
import {
  type AuthProvider,
  isJSONRPCErrorResponse,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type OAuthClientProvider,
  type RequestId,
  StreamableHTTPClientTransport,
  type TransportSendOptions,
} from "@modelcontextprotocol/client";
import type { World } from "@statewright/core";
import { guardedFetch } from "./guarded-fetch.ts";
import type { OwnedTransport } from "./stdio-transport.ts";

/** Where a server is, and how much it may say. */
export interface HttpStart {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean | readonly string[];
  readonly authProvider: AuthProvider | OAuthClientProvider | undefined;
  readonly maxMessageLength: number;
  readonly timeoutMs: () => number;
  readonly world: World;
}

/** A transport that a person can be logged in for. */
export interface HttpTransport extends OwnedTransport {
  /** Take the code that a person came back with. */
  readonly finishAuth: (given: string | URLSearchParams) => Promise<void>;
}

/** The code of the error that stands for an answer which will not come any more. */
export const lostCode = -32_098;

/** How long the end of a session may take to be said. */
const closeGraceMs = 2_000;

/** The transport of a server at an address. */
export function httpTransport({ url, headers, authProvider, world, ...rest }: HttpStart): HttpTransport {
  const inner = new StreamableHTTPClientTransport(url, {
    ...(authProvider === undefined ? {} : { authProvider }),
    fetch: guardedFetch({
      url,
      headers,
      allowPrivate: rest.allowPrivate,
      maxBytes: rest.maxMessageLength,
      timeoutMs: rest.timeoutMs,
      world,
    }),
    reconnectionScheduler: (reconnect, delay) => world.schedule.after(delay, reconnect),
  });
  /** Requests without an answer. */
  const open = new Map<RequestId, AbortController>();
  let end: string | undefined;

  const die = (how: string): void => {
    if (end !== undefined) return;
    end = how;
    for (const stop of open.values()) stop.abort();
    open.clear();
    transport.onclose?.();
  };
  const lost = (id: RequestId): void => {
    if (!open.delete(id)) return;
    transport.onmessage?.({ jsonrpc: "2.0", id, error: { code: lostCode, message: "its answer ended too early" } });
  };

  const transport: HttpTransport = {
    pid: undefined,
    hasPerRequestStream: true,
    get sessionId() {
      return inner.sessionId;
    },
    ended: () => end,
    holdOpen: () => undefined,
    start: () => inner.start(),
    finishAuth: (given) => (typeof given === "string" ? inner.finishAuth(given) : inner.finishAuth(given)),
    send: async (message, options) => {
      if (isJSONRPCRequest(message)) {
        const stop = new AbortController();
        open.set(message.id, stop);
        const outer = options?.requestSignal;
        const requestSignal = outer === undefined ? stop.signal : AbortSignal.any([outer, stop.signal]);
        try {
          await inner.send(message, { ...given(options), requestSignal, onRequestStreamEnd: () => lost(message.id) });
        } catch (error) {
          open.delete(message.id);
          throw error;
        }
        return;
      }
      try {
        await inner.send(message, given(options));
      } finally {
        // Nobody waits for its answer, whether the server has heard that or not.
        if (isJSONRPCNotification(message) && message.method === "notifications/cancelled") {
          const id = message.params?.["requestId"] as RequestId;
          open.get(id)?.abort();
          open.delete(id);
        }
      }
    },
    setProtocolVersion: (version) => inner.setProtocolVersion(version),
    close: async () => {
      if (end !== undefined) return;
      let stopTimer: (() => void) | undefined;
      const enough = new Promise<void>((resolve) => {
        stopTimer = world.schedule.after(closeGraceMs, resolve);
      });
      // A server may keep its session: nothing depends on it.
      await Promise.race([Promise.allSettled([inner.terminateSession()]), enough]);
      stopTimer?.();
      await inner.close();
      die("it was closed");
    },
    stop: async () => {
      await inner.close();
      die("it was closed");
    },
  };
  inner.onclose = () => die("the connection was closed");
  inner.onerror = (error) => transport.onerror?.(error);
  inner.onmessage = (message) => {
    if (isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) {
      if (message.id !== undefined) open.delete(message.id);
    }
    transport.onmessage?.(message);
  };
  return transport;
}

type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport["send"]>[1]>;

/** Options without what is undefined. */
function given(options: TransportSendOptions = {}): SendOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
