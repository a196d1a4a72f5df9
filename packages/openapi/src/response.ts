/** Conversion of HTTP responses to tool output: bounded, with the sent secrets redacted. */
import { type EffectClass, type Json, ToolError, type ToolOutput } from "@statewright/core";
import { type FetchResult, isHostError } from "@statewright/host";
import { toWellFormed } from "./parameter-style.ts";
import { type ResolvedCredential, redactSecrets } from "./security.ts";

/** Context of a request, for its response. */
export interface RequestContext {
  /** Operation name for people and models. */
  readonly name: string;
  readonly effect: EffectClass;
  readonly credentials: readonly ResolvedCredential[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const maxErrorLength = 4_000;
/** Response headers included in the details. */
const detailHeaders = ["location", "link", "etag", "x-request-id", "retry-after"];

/** Converts a response to tool output. Throws a tool error for a status ≥ 300. */
export function toOutput(response: FetchResult, context: RequestContext): ToolOutput {
  const { status, headers, body, truncated } = response;
  const type = (headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (status >= 300) throw toResponseError(response, type, context);
  const redact = (text: string): string => redactSecrets(text, context.credentials);
  const headerEntries = detailHeaders.flatMap((name) =>
    headers[name] === undefined ? [] : [[name, redact(headers[name])] as const],
  );
  const details = { status, headers: Object.fromEntries(headerEntries) };
  const location = details.headers["location"];
  if (body.length === 0)
    return { content: `[${status}, no content${location === undefined ? "" : `: ${location}`}]`, details };
  if (!isText(type)) {
    if (truncated) throw ToolError.failed(`The response of ${context.name} exceeds ${body.length} bytes of ${type}.`);
    const mimeType = type === "" ? "application/octet-stream" : type;
    return {
      content: `[${status}: ${mimeType}, ${body.length} bytes]`,
      artifacts: [{ name: "answer", mimeType, body }],
      details,
    };
  }
  const text = redact(new TextDecoder().decode(body));
  if (truncated) return { content: `${text}\n[truncated after ${body.length} bytes]`, details };
  const value = /[/+]json$/.test(type) ? parseJson(text) : undefined;
  return { content: text, details, ...(value === undefined ? {} : { value }) };
}

/** Converts the error of a request without a response to a tool error. */
export function toRequestError(
  thrown: unknown,
  { name, effect }: RequestContext,
  { maxRedirects }: { readonly maxRedirects: number },
): unknown {
  if (!isHostError(thrown)) return thrown;
  const { code, message, systemCode = "" } = thrown;
  const cause = { cause: thrown };
  if (code === "cancelled") return ToolError.cancelled();
  if (code === "denied") return new ToolError("denied", message, cause);
  if (code === "timeout") return new ToolError("timeout", message, cause);
  if (code === "too_large" && maxRedirects === 0)
    return new ToolError("denied", `${name} was redirected to another address, which is not allowed.`, cause);
  if (code === "too_large") return ToolError.failed(message, cause);
  // Either the request was not sent, or the operation may repeat.
  if (code === "not_found" || unsentCodes.has(systemCode) || effect !== "once")
    return ToolError.unavailable(message, cause);
  return new ToolError(
    "unknown_outcome",
    `${name} was sent, but no response arrived. Its outcome is unknown. Check the outcome before a retry.`,
    cause,
  );
}

const unsentCodes = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EMFILE",
  "ENFILE",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

function toResponseError(
  { status, headers, body, truncated }: FetchResult,
  type: string,
  context: RequestContext,
): ToolError {
  const { name, effect, credentials, now } = context;
  const bodyText = isText(type) ? redactSecrets(new TextDecoder().decode(body), credentials).trim() : "";
  const isTruncated = truncated || bodyText.length > maxErrorLength;
  const shown = bodyText.length > maxErrorLength ? toWellFormed(bodyText.slice(0, maxErrorLength)) : bodyText;
  const message = `${name} failed with status ${status}${shown === "" ? "." : `: ${shown}${isTruncated ? " [truncated]" : ""}`}`;
  const details = { status };
  const retryAfterMs = parseRetryAfter(headers["retry-after"], now);
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
  // A server that names a retry time did not process the request; a server with another 5xx status may have.
  const isUnprocessed = status === 429 || (status === 503 && retryAfterMs !== undefined);
  if (isUnprocessed || (effect !== "once" && [408, 502, 503, 504].includes(status)))
    return ToolError.unavailable(message, { details, ...wait });
  if ([408, 502, 503, 504].includes(status)) return new ToolError("unknown_outcome", message, { details });
  if (status === 404 || status === 410) return ToolError.notFound(message, { details });
  if (status === 400 || status === 422) return ToolError.invalidArgs(message, { details });
  if (status === 401 || status === 403) return new ToolError("denied", message, { details });
  return ToolError.failed(message, { details });
}

/** Parses `Retry-After`, in seconds or as a date, to milliseconds. */
function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000;
  const dateMs = Date.parse(header);
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - now);
}

function isText(type: string): boolean {
  return /^text\/|[/+](?:json|xml|javascript|yaml)$|^application\/(?:x-ndjson|x-www-form-urlencoded)$|^$/.test(type);
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
