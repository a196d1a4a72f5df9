/**
 * Streamable HTTP transport: the SDK's transport with a guarded fetch; every request ends with a response or an
 * error.
 */
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
import { createGuardedFetch } from "./guarded-fetch.ts";
import type { ServerTransport } from "./stdio-transport.ts";

/** Options of the HTTP transport: address, credentials and limits. */
export interface HttpTransportOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean | readonly string[];
  readonly authProvider: AuthProvider | OAuthClientProvider | undefined;
  readonly maxMessageLength: number;
  readonly timeoutMs: () => number;
  readonly world: World;
}

/** Transport with login support. */
export interface HttpTransport extends ServerTransport {
  /** Finishes a login with the authorization code. */
  readonly finishAuth: (code: string | URLSearchParams) => Promise<void>;
}

/** Code of the error response for a request that can receive no response any more. */
export const responseLostCode = -32_098;

/** Maximum milliseconds to terminate a session. */
const closeGraceMs = 2_000;

/** Creates the transport of a server at a URL. */
export function createHttpTransport({
  url,
  headers,
  authProvider,
  world,
  ...rest
}: HttpTransportOptions): HttpTransport {
  const inner = new StreamableHTTPClientTransport(url, {
    ...(authProvider === undefined ? {} : { authProvider }),
    fetch: createGuardedFetch({
      url,
      headers,
      allowPrivate: rest.allowPrivate,
      maxBytes: rest.maxMessageLength,
      timeoutMs: rest.timeoutMs,
      world,
    }),
    reconnectionScheduler: (reconnect, delay) => world.schedule.after(delay, reconnect),
  });
  /** Requests without a response. */
  const pendingRequests = new Map<RequestId, AbortController>();
  let endReason: string | undefined;

  const endTransport = (reason: string): void => {
    if (endReason !== undefined) return;
    endReason = reason;
    for (const stop of pendingRequests.values()) stop.abort();
    pendingRequests.clear();
    transport.onclose?.();
  };
  const failRequest = (id: RequestId): void => {
    if (!pendingRequests.delete(id)) return;
    transport.onmessage?.({
      jsonrpc: "2.0",
      id,
      error: { code: responseLostCode, message: "the response ended too early" },
    });
  };

  const transport: HttpTransport = {
    pid: undefined,
    hasPerRequestStream: true,
    get sessionId() {
      return inner.sessionId;
    },
    getEndReason: () => endReason,
    holdOpen: () => undefined,
    start: () => inner.start(),
    finishAuth: (code) => (typeof code === "string" ? inner.finishAuth(code) : inner.finishAuth(code)),
    send: async (message, options) => {
      if (isJSONRPCRequest(message)) {
        const stop = new AbortController();
        pendingRequests.set(message.id, stop);
        const outer = options?.requestSignal;
        const requestSignal = outer === undefined ? stop.signal : AbortSignal.any([outer, stop.signal]);
        try {
          await inner.send(message, {
            ...omitUndefined(options),
            requestSignal,
            onRequestStreamEnd: () => failRequest(message.id),
          });
        } catch (error) {
          pendingRequests.delete(message.id);
          throw error;
        }
        return;
      }
      try {
        await inner.send(message, omitUndefined(options));
      } finally {
        // The response of a cancelled request is not needed, even if the notification failed.
        if (isJSONRPCNotification(message) && message.method === "notifications/cancelled") {
          const id = message.params?.["requestId"] as RequestId;
          pendingRequests.get(id)?.abort();
          pendingRequests.delete(id);
        }
      }
    },
    setProtocolVersion: (version) => inner.setProtocolVersion(version),
    close: async () => {
      if (endReason !== undefined) return;
      let stopTimer: (() => void) | undefined;
      const timeout = new Promise<void>((resolve) => {
        stopTimer = world.schedule.after(closeGraceMs, resolve);
      });
      // The termination is optional: a session left on the server is harmless.
      await Promise.race([Promise.allSettled([inner.terminateSession()]), timeout]);
      stopTimer?.();
      await inner.close();
      endTransport("the client closed the connection");
    },
    stop: async () => {
      await inner.close();
      endTransport("the client closed the connection");
    },
  };
  inner.onclose = () => endTransport("the connection closed");
  inner.onerror = (error) => transport.onerror?.(error);
  inner.onmessage = (message) => {
    if (isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) {
      if (message.id !== undefined) pendingRequests.delete(message.id);
    }
    transport.onmessage?.(message);
  };
  return transport;
}

type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport["send"]>[1]>;

/** Returns the options without undefined values. */
function omitUndefined(options: TransportSendOptions = {}): SendOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
