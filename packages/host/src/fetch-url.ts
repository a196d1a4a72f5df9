/**
 * The one way out to the network: a name is resolved once, every address is looked at, the connection goes to the one that
 * was looked at, redirects are followed by hand, and no more bytes are read than were asked for.
 */
import { lookup } from "node:dns/promises";
import { type IncomingMessage, request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { systemWorld, type World } from "@statewright/core";
import { HostError, systemCodeOf } from "./host-error.ts";
import { isPublicAddress } from "./public-address.ts";

/** What may be asked for, and how much of it. */
export interface FetchOptions {
  /** GET by default. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** How much is read of the body; 1 MiB by default. */
  readonly maxBytes?: number;
  /** Milliseconds for all of it, redirects included; 30,000 by default. */
  readonly timeoutMs?: number;
  readonly maxRedirects?: number;
  /** Let it lead to this machine and to private networks: to all addresses there, or to these. False by default. */
  readonly allowPrivate?: boolean | readonly string[];
  /** The only hosts that may be asked; all by default. */
  readonly allowHosts?: readonly string[];
  /** Finds the addresses of a name; those of the system by default. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  readonly signal?: AbortSignal;
  /** Called with the number of bytes that came, as they come. */
  readonly onBytes?: (total: number) => void;
  readonly world?: World;
}

/** What came back, whatever its status is. */
export interface FetchResult {
  readonly status: number;
  /** Where the last redirect led. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Whether there was more than `maxBytes`. */
  readonly truncated: boolean;
}

/** What is asked of one URL whose answer is read as it comes. */
export type OpenOptions = Omit<FetchOptions, "maxBytes" | "maxRedirects" | "onBytes">;

/** An answer that is read as it comes. */
export interface OpenedUrl {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body; whoever stops reading ends the connection. Nothing bounds it: its reader does. */
  readonly body: IncomingMessage;
  /** Let go of the connection. */
  end(): void;
}

const redirects = new Set([301, 302, 303, 307, 308]);

/**
 * Ask a URL and give its answer as soon as it begins, a redirect too: nothing is followed. `timeoutMs` is for the beginning,
 * `signal` for all of it. Throws what {@link fetchUrl} throws.
 */
export async function openUrl(url: string, options: OpenOptions = {}): Promise<OpenedUrl> {
  const { timeoutMs = 30_000, signal, world = systemWorld() } = options;
  if (signal?.aborted) throw new HostError("cancelled", "The request was cancelled.");
  const stop = new AbortController();
  const cancelTimer = world.schedule.after(timeoutMs, () => stop.abort(tooSlow(url, timeoutMs)));
  const onAbort = () => stop.abort(new HostError("cancelled", "The request was cancelled."));
  signal?.addEventListener("abort", onAbort, { once: true });
  const release = () => signal?.removeEventListener("abort", onAbort);
  try {
    const ask: Ask = {
      url: parsed(url),
      method: options.method ?? "GET",
      headers: options.headers ?? {},
      body: options.body,
    };
    const addresses = await until(stop.signal, allowedAddresses(ask.url, options));
    const { response, end } = await until(stop.signal, send(ask, addresses, stop.signal));
    response.once("close", release);
    refuseEncoded(ask.url, response);
    return { status: response.statusCode ?? 0, headers: headersOf(response), body: response, end };
  } catch (error) {
    release();
    stop.abort();
    throw error;
  } finally {
    cancelTimer();
  }
}

/**
 * Ask a URL of http or https. Throws `denied` for what must not be asked, `not_found` for a name without address, `timeout`,
 * `cancelled`, `too_large` after too many redirects, and `io`.
 */
export async function fetchUrl(url: string, options: FetchOptions = {}): Promise<FetchResult> {
  const { timeoutMs = 30_000, maxRedirects = 5, signal, world = systemWorld() } = options;
  if (signal?.aborted) throw new HostError("cancelled", "The request was cancelled.");
  const stop = new AbortController();
  const cancelTimer = world.schedule.after(timeoutMs, () => stop.abort(tooSlow(url, timeoutMs)));
  const onAbort = () => stop.abort(new HostError("cancelled", "The request was cancelled."));
  signal?.addEventListener("abort", onAbort, { once: true });
  let ask: Ask = {
    url: parsed(url),
    method: options.method ?? "GET",
    headers: options.headers ?? {},
    body: options.body,
  };
  try {
    for (let count = 0; count <= maxRedirects; count++) {
      const addresses = await until(stop.signal, allowedAddresses(ask.url, options));
      const { response, end } = await until(stop.signal, send(ask, addresses, stop.signal));
      const target = redirects.has(response.statusCode ?? 0) ? response.headers.location : undefined;
      if (target === undefined) {
        try {
          return await until(stop.signal, received(ask.url, response, options, stop.signal));
        } finally {
          end();
        }
      }
      end();
      ask = redirected(ask, parsed(target, ask.url), response.statusCode ?? 0);
    }
    throw new HostError("too_large", `${hostOf(url)} leads from one page to another more than ${maxRedirects} times.`);
  } finally {
    cancelTimer();
    signal?.removeEventListener("abort", onAbort);
  }
}

interface Ask {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
}

function parsed(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new HostError(
      "denied",
      `${JSON.stringify(text.slice(0, 200))} is no URL of http or https. Give a whole one.`,
    );
  if (url.username !== "" || url.password !== "")
    throw new HostError("denied", `The URL of ${url.hostname} holds a name or a password. Leave them out.`);
  return url;
}

function tooSlow(url: string, timeoutMs: number): HostError {
  return new HostError(
    "timeout",
    `${hostOf(url)} did not answer within ${timeoutMs} ms. Try later, or give it more time.`,
  );
}

function hostOf(url: string): string {
  return URL.parse(url)?.hostname ?? "The host";
}

/** The next question: a form that was sent is not sent again where the status says so, and secrets stay with their host. */
function redirected(ask: Ask, url: URL, status: number): Ask {
  const isKept = status === 307 || status === 308 || ask.method === "GET" || ask.method === "HEAD";
  const headers = url.origin === ask.url.origin ? ask.headers : publicHeaders(ask.headers);
  return isKept ? { ...ask, url, headers } : { url, method: "GET", headers, body: undefined };
}

function publicHeaders(headers: Ask["headers"]): Ask["headers"] {
  const harmless = /^(?:accept|accept-language|user-agent|content-type)$/i;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => harmless.test(name)));
}

/** All addresses of a host, each of which may be asked; one that may not be refuses the host. */
async function allowedAddresses(url: URL, options: FetchOptions): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (options.allowHosts !== undefined && !options.allowHosts.includes(host))
    throw new HostError(
      "denied",
      `${host} is not among the hosts that may be asked: ${options.allowHosts.join(", ")}.`,
    );
  const addresses = isIP(host) === 0 ? await resolved(host, options.resolve ?? systemAddresses) : [host];
  const { allowPrivate = false } = options;
  const mayAsk = (address: string): boolean =>
    typeof allowPrivate === "boolean" ? allowPrivate : allowPrivate.includes(address);
  if (!addresses.every((address) => isPublicAddress(address) || mayAsk(address)))
    throw new HostError("denied", `${host} leads to this machine or to a private network. Give a public address.`);
  return addresses;
}

async function resolved(host: string, resolve: NonNullable<FetchOptions["resolve"]>): Promise<readonly string[]> {
  try {
    const addresses = await resolve(host);
    if (addresses.length > 0) return addresses;
  } catch (error) {
    if (systemCodeOf(error) !== "ENOTFOUND") throw ioError(host, error);
  }
  throw new HostError("not_found", `There is no host called ${host}. Correct its name.`, { systemCode: "ENOTFOUND" });
}

async function systemAddresses(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function send(
  { url, method, headers, body }: Ask,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly response: IncomingMessage; readonly end: () => void }> {
  // The system is not asked again: it could answer otherwise.
  const pinned: LookupFunction = (_name, how, found) => {
    const all = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first] = all;
    if (how.all === true) found(null, all);
    else found(null, first?.address ?? "", first?.family);
  };
  const start = url.protocol === "https:" ? secureRequest : plainRequest;
  return new Promise((resolve, reject) => {
    const request = start(url, {
      method,
      headers: { "user-agent": "statewright", ...headers, "accept-encoding": "identity" },
      lookup: pinned,
      // A connection of its own: one that is kept could lead to where an earlier name led.
      agent: false,
    });
    const onAbort = () => request.destroy(asError(signal.reason));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    const end = () => {
      signal.removeEventListener("abort", onAbort);
      request.destroy();
    };
    request.once("response", (response) => resolve({ response, end }));
    // After an answer that nobody understands, such as one that changes the protocol, there is no error but this.
    request.once("close", () => reject(ioError(url.hostname, undefined)));
    request.on("error", (error) => {
      signal.removeEventListener("abort", onAbort);
      reject(error instanceof HostError ? error : ioError(url.hostname, error));
    });
    request.end(body);
  });
}

async function received(
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
    throw signal.aborted ? asError(signal.reason) : ioError(url.hostname, error);
  }
  return {
    status: response.statusCode ?? 0,
    url: url.href,
    headers: headersOf(response),
    body: Buffer.concat(chunks).subarray(0, maxBytes),
    truncated: total > maxBytes,
  };
}

/** What was asked for without an encoding is not unpacked: a few bytes could become very many. */
function refuseEncoded(url: URL, { headers }: IncomingMessage): void {
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity")
    throw new HostError("io", `${url.hostname} answers in the encoding ${encoding}, though it was asked for none.`);
}

function headersOf(response: IncomingMessage): Record<string, string> {
  const headers = Object.entries(response.headers).map(([name, value]) => [name, [value ?? ""].flat().join(", ")]);
  return Object.fromEntries(headers);
}

/** What a promise gives, unless the signal fires before. */
function until<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(asError(signal.reason));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new HostError("cancelled", "The request was cancelled.");
}

function ioError(host: string, error: unknown): HostError {
  if (error instanceof HostError) return error;
  const systemCode = systemCodeOf(error);
  return new HostError("io", `${host} could not be asked (${systemCode || "no reason was given"}). Try later.`, {
    systemCode,
  });
}
