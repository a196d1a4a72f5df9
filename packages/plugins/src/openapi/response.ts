/** What a server answers, as a result that the model reads: bounded, and without the secrets that were sent. */
import { type EffectClass, type Json, ToolError, type ToolOutput } from "@statewright/core";
import { type FetchResult, isHostError } from "@statewright/host";
import { wellFormed } from "./parameter-style.ts";
import { type OpenCredential, withoutSecrets } from "./security.ts";

/** What is known of a call when its answer comes. */
export interface Asked {
  /** The operation, as people and models read it. */
  readonly name: string;
  readonly effect: EffectClass;
  readonly credentials: readonly OpenCredential[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const longestError = 4_000;
/** What of the headers tells a reader where to go on. */
const toldHeaders = ["location", "link", "etag", "x-request-id", "retry-after"];

/** The result of an answer; a status of 300 and more is thrown as the error that it is. */
export function outputOf(answer: FetchResult, asked: Asked): ToolOutput {
  const { status, headers, body, truncated } = answer;
  const type = (headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (status >= 300) throw refusal(answer, type, asked);
  const clean = (text: string): string => withoutSecrets(text, asked.credentials);
  const told = toldHeaders.flatMap((name) =>
    headers[name] === undefined ? [] : [[name, clean(headers[name])] as const],
  );
  const details = { status, headers: Object.fromEntries(told) };
  const location = details.headers["location"];
  if (body.length === 0)
    return { content: `[${status}, without content${location === undefined ? "" : `: ${location}`}]`, details };
  if (!isText(type)) {
    if (truncated) throw ToolError.failed(`${asked.name} answered with more than ${body.length} bytes of ${type}.`);
    const mimeType = type === "" ? "application/octet-stream" : type;
    return {
      content: `[${status}: ${mimeType}, ${body.length} bytes]`,
      artifacts: [{ name: "answer", mimeType, body }],
      details,
    };
  }
  const text = clean(new TextDecoder().decode(body));
  if (truncated) return { content: `${text}\n[There is more: only ${body.length} bytes were read.]`, details };
  const value = /[/+]json$/.test(type) ? parsed(text) : undefined;
  return { content: text, details, ...(value === undefined ? {} : { value }) };
}

/** The error of a request that had no answer. */
export function failure(thrown: unknown, { name, effect }: Asked, mayRedirect: boolean): unknown {
  if (!isHostError(thrown)) return thrown;
  const { code, message, systemCode = "" } = thrown;
  const cause = { cause: thrown };
  if (code === "cancelled") return ToolError.cancelled();
  if (code === "denied") return new ToolError("denied", message, cause);
  if (code === "timeout") return new ToolError("timeout", message, cause);
  if (code === "too_large" && !mayRedirect)
    return new ToolError("denied", `${name} was sent to another address, which is not allowed.`, cause);
  if (code === "too_large") return ToolError.failed(message, cause);
  // Nothing was sent, or asking again does no harm.
  if (code === "not_found" || unsent.has(systemCode) || effect !== "once") return ToolError.unavailable(message, cause);
  return new ToolError(
    "unknown_outcome",
    `${name} was sent and not answered: nobody knows whether it was done. Find out before you try again.`,
    cause,
  );
}

const unsent = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EMFILE", "ENFILE", "ENOTFOUND", "EAI_AGAIN"]);

function refusal({ status, headers, body, truncated }: FetchResult, type: string, asked: Asked): ToolError {
  const { name, effect, credentials, now } = asked;
  const said = isText(type) ? withoutSecrets(new TextDecoder().decode(body), credentials).trim() : "";
  const isCut = truncated || said.length > longestError;
  const shown = said.length > longestError ? wellFormed(said.slice(0, longestError)) : said;
  const message = `${name} was answered with ${status}${shown === "" ? "." : `: ${shown}${isCut ? " [cut]" : ""}`}`;
  const details = { status };
  const retryAfterMs = retryAfter(headers["retry-after"], now);
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
  // A server that says when to come back has done nothing; one that has just failed may have.
  const isIdle = status === 429 || (status === 503 && retryAfterMs !== undefined);
  if (isIdle || (effect !== "once" && [408, 502, 503, 504].includes(status)))
    return ToolError.unavailable(message, { details, ...wait });
  if ([408, 502, 503, 504].includes(status)) return new ToolError("unknown_outcome", message, { details });
  if (status === 404 || status === 410) return ToolError.notFound(message, { details });
  if (status === 400 || status === 422) return ToolError.invalidArgs(message, { details });
  if (status === 401 || status === 403) return new ToolError("denied", message, { details });
  return ToolError.failed(message, { details });
}

/** What `Retry-After` says, in milliseconds: it gives seconds or a date. */
function retryAfter(given: string | undefined, now: number): number | undefined {
  if (given === undefined) return undefined;
  if (/^\d{1,9}$/.test(given)) return Number(given) * 1_000;
  const at = Date.parse(given);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

function isText(type: string): boolean {
  return /^text\/|[/+](?:json|xml|javascript|yaml)$|^application\/(?:x-ndjson|x-www-form-urlencoded)$|^$/.test(type);
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
