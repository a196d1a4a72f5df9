/** Requests of a client: credentials, query, JSON, and retries where a retry is safe. */
import { ClientError, createResponseError } from "./client-error.ts";
import type { Runtime } from "./runtime.ts";

/** Value of a query parameter; undefined leaves it out. */
export type QueryValue = string | number | boolean | readonly string[] | undefined;

/** Request of a call. */
export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path below the API, with encoded segments. */
  readonly path: string;
  readonly query?: Readonly<Record<string, QueryValue>> | undefined;
  /** Value that is sent as JSON. */
  readonly body?: unknown;
  /** Body that is sent as it is. */
  readonly content?: { readonly body: Blob | Uint8Array<ArrayBuffer> | string; readonly type: string } | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** True for a request that the server recognises when it comes again. Default: reads, and methods that are idempotent. */
  readonly isRepeatable?: boolean | undefined;
}

/** Sends requests to one server. */
export interface Requester {
  /** Sends a request and returns its successful response. Throws {@link ClientError}. */
  readonly send: (request: ApiRequest) => Promise<Response>;
  /** Sends a request and returns the JSON of its response. */
  readonly sendJson: <Value>(request: ApiRequest) => Promise<Value>;
  readonly runtime: Runtime;
  /** URL of the API. */
  readonly url: string;
}

/** Options of a requester. */
export interface RequesterOptions {
  readonly url: string;
  readonly runtime: Runtime;
  readonly attempts: number;
  /** Returns the headers of each request. */
  readonly getHeaders: () => Promise<Readonly<Record<string, string>>>;
}

const jsonType = "application/json";

/** Creates a requester. */
export function createRequester({ url, runtime, attempts, getHeaders }: RequesterOptions): Requester {
  const base = `${url.replace(/\/+$/, "")}/api`;
  const sendOnce = async (request: ApiRequest): Promise<Response> => {
    const { method, path, query = {}, body, headers, signal } = request;
    const content =
      request.content ?? (body === undefined ? undefined : { body: JSON.stringify(body), type: jsonType });
    const response = await runtime.fetch(`${base}${path}${formatQuery(query)}`, {
      method,
      headers: {
        accept: jsonType,
        ...(content === undefined ? {} : { "content-type": content.type }),
        ...(await getHeaders()),
        ...headers,
      },
      ...(content === undefined ? {} : { body: content.body }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (response.ok) return response;
    throw await createResponseError(response);
  };
  const send = async (request: ApiRequest): Promise<Response> => {
    const isRepeatable = request.isRepeatable ?? request.method !== "POST";
    for (let attempt = 1; ; attempt++) {
      try {
        return await sendOnce(request);
      } catch (error) {
        const failure = toClientError(error, { url: base, signal: request.signal });
        if (!isRepeatable || attempt >= attempts || !isTransient(failure)) throw failure;
        await runtime.sleep(getDelayMs(attempt, failure, runtime), request.signal);
      }
    }
  };
  return {
    send,
    sendJson: async <Value>(request: ApiRequest) => {
      const response = await send(request);
      // The server answers as its OpenAPI document says.
      return (response.status === 204 ? undefined : await response.json()) as Value;
    },
    runtime,
    url: base,
  };
}

/** Returns the error of a failed call: an abort as it is, and a failed connection with a code. */
export function toClientError(
  error: unknown,
  { url, signal }: { readonly url: string; readonly signal: AbortSignal | undefined },
): unknown {
  if (error instanceof ClientError || signal?.aborted === true) return error;
  const message = `client: expected a response from ${url}, got none. Check the URL, the network and the server.`;
  return new ClientError(message, {
    code: "connection_failed",
    status: 0,
    cause: error,
  });
}

/** Returns true for a failure that may be gone at the next attempt. */
export function isTransient(error: unknown): error is ClientError {
  return error instanceof ClientError && [0, 429, 502, 503, 504].includes(error.status);
}

const maxDelayMs = 30_000;

/** Returns the delay before the next attempt: what the server asks for, else 1, 2, 4 … 30 seconds with jitter. */
export function getDelayMs(attempt: number, error: unknown, { random }: Pick<Runtime, "random">): number {
  const asked = error instanceof ClientError ? error.retryAfterMs : undefined;
  if (asked !== undefined) return asked;
  const delayMs = Math.min(1_000 * 2 ** (attempt - 1), maxDelayMs);
  return delayMs * (0.5 + random() / 2);
}

function formatQuery(query: Readonly<Record<string, QueryValue>>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.set(name, Array.isArray(value) ? value.join(",") : String(value));
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}
