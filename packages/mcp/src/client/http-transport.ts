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
  type JSONRPCMessage,
  type JSONRPCRequest,
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
export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  return new GuardedHttpTransport(options);
}

class GuardedHttpTransport implements HttpTransport {
  readonly pid: undefined = undefined;
  readonly hasPerRequestStream = true;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<ServerTransport["onmessage"]>;
  readonly #inner: StreamableHTTPClientTransport;
  readonly #world: World;
  /** Requests without a response. */
  readonly #pendingRequests = new Map<RequestId, AbortController>();
  #endReason: string | undefined;

  constructor({ url, headers, allowPrivate, authProvider, maxMessageLength, timeoutMs, world }: HttpTransportOptions) {
    this.#world = world;
    this.#inner = new StreamableHTTPClientTransport(url, {
      ...(authProvider === undefined ? {} : { authProvider }),
      fetch: createGuardedFetch({ url, headers, allowPrivate, maxBytes: maxMessageLength, timeoutMs, world }),
      reconnectionScheduler: (reconnect, delay) => world.schedule.after(delay, reconnect),
    });
    this.#inner.onclose = () => this.#end("the connection closed");
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onmessage = (message) => {
      if (isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) {
        if (message.id !== undefined) this.#pendingRequests.delete(message.id);
      }
      this.onmessage?.(message);
    };
  }

  get sessionId() {
    return this.#inner.sessionId;
  }

  getEndReason(): string | undefined {
    return this.#endReason;
  }

  holdOpen(): void {
    // Connections of HTTP do not keep this process alive between requests.
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  finishAuth(code: string | URLSearchParams): Promise<void> {
    return typeof code === "string" ? this.#inner.finishAuth(code) : this.#inner.finishAuth(code);
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (isJSONRPCRequest(message)) {
      await this.#sendRequest(message, options);
      return;
    }
    try {
      await this.#inner.send(message, omitUndefined(options));
    } finally {
      // The response of a cancelled request is not needed, even if the notification failed.
      if (isJSONRPCNotification(message) && message.method === "notifications/cancelled") {
        const id = message.params?.["requestId"] as RequestId;
        this.#pendingRequests.get(id)?.abort();
        this.#pendingRequests.delete(id);
      }
    }
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  async close(): Promise<void> {
    if (this.#endReason !== undefined) return;
    let stopTimer: (() => void) | undefined;
    const timeout = new Promise<void>((resolve) => {
      stopTimer = this.#world.schedule.after(closeGraceMs, resolve);
    });
    // The termination is optional: a session left on the server is harmless.
    await Promise.race([Promise.allSettled([this.#inner.terminateSession()]), timeout]);
    stopTimer?.();
    await this.stop();
  }

  async stop(): Promise<void> {
    await this.#inner.close();
    this.#end("the client closed the connection");
  }

  async #sendRequest(request: JSONRPCRequest, options: TransportSendOptions | undefined): Promise<void> {
    const stop = new AbortController();
    this.#pendingRequests.set(request.id, stop);
    const outer = options?.requestSignal;
    const requestSignal = outer === undefined ? stop.signal : AbortSignal.any([outer, stop.signal]);
    try {
      await this.#inner.send(request, {
        ...omitUndefined(options),
        requestSignal,
        onRequestStreamEnd: () => this.#failRequest(request.id),
      });
    } catch (error) {
      this.#pendingRequests.delete(request.id);
      throw error;
    }
  }

  /** Ends a request whose response stream ended without a response. */
  #failRequest(id: RequestId): void {
    if (!this.#pendingRequests.delete(id)) return;
    const error = { code: responseLostCode, message: "the response ended too early" };
    this.onmessage?.({ jsonrpc: "2.0", id, error });
  }

  #end(reason: string): void {
    if (this.#endReason !== undefined) return;
    this.#endReason = reason;
    for (const stop of this.#pendingRequests.values()) stop.abort();
    this.#pendingRequests.clear();
    this.onclose?.();
  }
}

type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport["send"]>[1]>;

/** Returns the options without undefined values. */
function omitUndefined(options: TransportSendOptions = {}): SendOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
