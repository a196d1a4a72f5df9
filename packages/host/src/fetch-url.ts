/**
 * HTTP client of the package. Resolves a host once, checks every address, connects to a checked address only, follows
 * redirects itself, and bounds the number of bytes read.
 */
import { lookup } from "node:dns/promises";
import { type IncomingMessage, request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { getSystemCode, HostError } from "./host-error.ts";
import { isPublicAddress } from "./public-address.ts";

/** Method, headers, body and limits of a request. */
export interface FetchOptions {
  /** HTTP method. Default: GET. */
  readonly method?: string;
  /** Headers of the request. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Body of the request. Default: none. */
  readonly body?: string | Uint8Array;
  /** Maximum number of body bytes to read. Default: 1 MiB. */
  readonly maxBytes?: number;
  /** Timeout in milliseconds for the whole request, including redirects. Default: 30,000. */
  readonly timeoutMs?: number;
  /** Maximum number of redirects. Default 5. */
  readonly maxRedirects?: number;
  /**
   * Allows addresses of this machine and of private networks: all of them, or the listed addresses. Default: false.
   */
  readonly allowPrivate?: boolean | readonly string[];
  /** Allowlist of hosts. Default: all hosts. */
  readonly allowHosts?: readonly string[];
  /** Resolver of host names to addresses. Default: the system resolver. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  /** Aborts the request and the read of its body. */
  readonly signal?: AbortSignal;
  /** Callback with the total number of bytes received so far, on each chunk. */
  readonly onBytes?: (total: number) => void;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
}

/** Response of any status. */
export interface FetchResult {
  readonly status: number;
  /** URL after the last redirect. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** True when the body is longer than `maxBytes`. */
  readonly truncated: boolean;
}

/** Method, headers, body and limits of a request with a streamed response. */
export type OpenOptions = Omit<FetchOptions, "maxBytes" | "maxRedirects" | "onBytes">;

/** Response with a streamed body. */
export interface OpenedUrl {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Response body without size limit. Destroying the stream closes the connection. */
  readonly body: IncomingMessage;
  /** Closes the connection. */
  end(): void;
}

const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/**
 * Sends a request and returns the response once its headers have arrived; redirects are not followed. `timeoutMs`
 * limits the time until the headers, `signal` covers the whole response. Throws the errors of {@link fetchUrl}.
 */
export async function openUrl(url: string, options: OpenOptions = {}): Promise<OpenedUrl> {
  const { timeoutMs = 30_000, signal, world = systemWorld() } = options;
  if (signal?.aborted) throw new HostError("cancelled", "The request was cancelled.");
  const stop = new AbortController();
  const cancelTimer = world.schedule.after(timeoutMs, () => stop.abort(createTimeoutError(url, timeoutMs)));
  const onAbort = () => stop.abort(new HostError("cancelled", "The request was cancelled."));
  signal?.addEventListener("abort", onAbort, { once: true });
  const release = () => signal?.removeEventListener("abort", onAbort);
  try {
    const request: UrlRequest = {
      url: parseUrl(url),
      method: options.method ?? "GET",
      headers: options.headers ?? {},
      body: options.body,
    };
    const addresses = await rejectOnAbort(stop.signal, resolveAllowedAddresses(request.url, options));
    const { response, end } = await rejectOnAbort(stop.signal, sendRequest(request, addresses, stop.signal));
    response.once("close", release);
    refuseEncoded(request.url, response);
    return { status: response.statusCode ?? 0, headers: toHeaderRecord(response), body: response, end };
  } catch (error) {
    release();
    stop.abort();
    throw error;
  } finally {
    cancelTimer();
  }
}

/**
 * Requests an http or https URL. Throws `denied` for a forbidden URL or address, `not_found` for a host without
 * address, `timeout`, `cancelled`, `too_large` after too many redirects, and `io`.
 */
export async function fetchUrl(url: string, options: FetchOptions = {}): Promise<FetchResult> {
  const { timeoutMs = 30_000, maxRedirects = 5, signal, world = systemWorld() } = options;
  if (signal?.aborted) throw new HostError("cancelled", "The request was cancelled.");
  const stop = new AbortController();
  const cancelTimer = world.schedule.after(timeoutMs, () => stop.abort(createTimeoutError(url, timeoutMs)));
  const onAbort = () => stop.abort(new HostError("cancelled", "The request was cancelled."));
  signal?.addEventListener("abort", onAbort, { once: true });
  let request: UrlRequest = {
    url: parseUrl(url),
    method: options.method ?? "GET",
    headers: options.headers ?? {},
    body: options.body,
  };
  try {
    for (let count = 0; count <= maxRedirects; count++) {
      const addresses = await rejectOnAbort(stop.signal, resolveAllowedAddresses(request.url, options));
      const { response, end } = await rejectOnAbort(stop.signal, sendRequest(request, addresses, stop.signal));
      const target = redirectStatuses.has(response.statusCode ?? 0) ? response.headers.location : undefined;
      if (target === undefined) {
        try {
          return await rejectOnAbort(stop.signal, readResponse(request.url, response, options, stop.signal));
        } finally {
          end();
        }
      }
      end();
      request = toRedirectedRequest(request, parseUrl(target, request.url), response.statusCode ?? 0);
    }
    throw new HostError(
      "too_large",
      `${getHost(url)} redirected more than ${maxRedirects} times. Raise maxRedirects, or request the final URL.`,
    );
  } finally {
    cancelTimer();
    signal?.removeEventListener("abort", onAbort);
  }
}

interface UrlRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
}

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new HostError(
      "denied",
      `${JSON.stringify(text.slice(0, 200))} is not an http or https URL. Pass an absolute URL.`,
    );
  if (url.username !== "" || url.password !== "")
    throw new HostError("denied", `The URL of ${url.hostname} contains a user name or a password. Remove both.`);
  return url;
}

function createTimeoutError(url: string, timeoutMs: number): HostError {
  return new HostError(
    "timeout",
    `${getHost(url)} did not answer within ${timeoutMs} ms. Retry later, or raise timeoutMs.`,
  );
}

function getHost(url: string): string {
  return URL.parse(url)?.hostname ?? "The host";
}

/**
 * Creates the request of a redirect: method and body are kept only for statuses with this rule, and credentials are
 * not sent to another origin.
 */
function toRedirectedRequest(request: UrlRequest, url: URL, status: number): UrlRequest {
  const keepsMethod = status === 307 || status === 308 || request.method === "GET" || request.method === "HEAD";
  const headers = url.origin === request.url.origin ? request.headers : filterPublicHeaders(request.headers);
  return keepsMethod ? { ...request, url, headers } : { url, method: "GET", headers, body: undefined };
}

function filterPublicHeaders(headers: UrlRequest["headers"]): UrlRequest["headers"] {
  const publicNames = /^(?:accept|accept-language|user-agent|content-type)$/i;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => publicNames.test(name)));
}

/** Resolves all addresses of a host. Throws `denied` if any address is not allowed. */
async function resolveAllowedAddresses(url: URL, options: FetchOptions): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (options.allowHosts !== undefined && !options.allowHosts.includes(host))
    throw new HostError(
      "denied",
      `The host ${host} is not in allowHosts: ${options.allowHosts.join(", ")}. Use one of these hosts.`,
    );
  const addresses = isIP(host) === 0 ? await resolveHost(host, options.resolve ?? resolveBySystem) : [host];
  const { allowPrivate = false } = options;
  const isAllowedPrivate = (address: string): boolean =>
    typeof allowPrivate === "boolean" ? allowPrivate : allowPrivate.includes(address);
  if (!addresses.every((address) => isPublicAddress(address) || isAllowedPrivate(address)))
    throw new HostError("denied", `${host} resolves to this machine or to a private network. Use a public address.`);
  return addresses;
}

async function resolveHost(host: string, resolve: NonNullable<FetchOptions["resolve"]>): Promise<readonly string[]> {
  try {
    const addresses = await resolve(host);
    if (addresses.length > 0) return addresses;
  } catch (error) {
    if (getSystemCode(error) !== "ENOTFOUND") throw toIoError(host, error);
  }
  throw new HostError("not_found", `The host ${host} was not found. Fix its name.`, { systemCode: "ENOTFOUND" });
}

async function resolveBySystem(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function sendRequest(
  { url, method, headers, body }: UrlRequest,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly response: IncomingMessage; readonly end: () => void }> {
  // Uses the checked addresses: a second lookup could return other addresses.
  const lookupPinned: LookupFunction = (_name, options, callback) => {
    const all = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first] = all;
    if (options.all === true) callback(null, all);
    else callback(null, first?.address ?? "", first?.family);
  };
  const start = url.protocol === "https:" ? secureRequest : plainRequest;
  return new Promise((resolve, reject) => {
    const request = start(url, {
      method,
      headers: { "user-agent": "statewright", ...headers, "accept-encoding": "identity" },
      lookup: lookupPinned,
      // New connection per request: a pooled connection could lead to an address of an earlier lookup.
      agent: false,
    });
    const onAbort = () => request.destroy(toError(signal.reason));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    const end = () => {
      signal.removeEventListener("abort", onAbort);
      request.destroy();
    };
    request.once("response", (response) => resolve({ response, end }));
    // For an unsupported response, such as a protocol upgrade, "close" is the only event.
    request.once("close", () => reject(toIoError(url.hostname, undefined)));
    request.on("error", (error) => {
      signal.removeEventListener("abort", onAbort);
      reject(error instanceof HostError ? error : toIoError(url.hostname, error));
    });
    request.end(body);
  });
}

async function readResponse(
  url: URL,
  response: IncomingMessage,
  { maxBytes = 2 ** 20, onBytes }: FetchOptions,
  signal: AbortSignal,
): Promise<FetchResult> {
  refuseEncoded(url, response);
  const chunks: Buffer[] = [];
  let total = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      total += chunk.length;
      onBytes?.(total);
      if (total > maxBytes) break;
    }
  } catch (error) {
    throw signal.aborted ? toError(signal.reason) : toIoError(url.hostname, error);
  }
  return {
    status: response.statusCode ?? 0,
    url: url.href,
    headers: toHeaderRecord(response),
    body: Buffer.concat(chunks).subarray(0, maxBytes),
    truncated: total > maxBytes,
  };
}

/** Refuses an encoded body that was not requested, instead of decoding: a few bytes could expand to very many. */
function refuseEncoded(url: URL, { headers }: IncomingMessage): void {
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity")
    throw new HostError("io", `${url.hostname} answered with the encoding ${encoding}, but identity was requested.`);
}

function toHeaderRecord(response: IncomingMessage): Record<string, string> {
  const headers = Object.entries(response.headers).map(([name, value]) => [name, [value ?? ""].flat().join(", ")]);
  return Object.fromEntries(headers);
}

/** Resolves or rejects with the promise; rejects with the abort reason if the signal fires first. */
function rejectOnAbort<Value>(signal: AbortSignal, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(toError(signal.reason));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new HostError("cancelled", "The request was cancelled.");
}

function toIoError(host: string, error: unknown): HostError {
  if (error instanceof HostError) return error;
  const systemCode = getSystemCode(error);
  return new HostError("io", `The request to ${host} failed (${systemCode || "no error code"}). Retry later.`, {
    systemCode,
  });
}
