/**
 * Converts errors of AI SDK clients to `model_failed` errors with retry advice; the error contains no API key and no
 * request.
 */
import {
  isStatewrightError,
  type ModelFailure,
  type ModelFailureKind,
  type ModelRequest,
  StatewrightError,
} from "@statewright/core";
import { toModelFailureKind } from "@statewright/core/adapter";
import { formatAddress, toFields } from "./client-config.ts";
import { getClientRules } from "./client-rules.ts";
import { omitUndefined } from "./provider-json.ts";

/** Context of a failed model call. */
export interface FailedCall {
  readonly model: string;
  /** `request`: before the first stream part; `stream`: after the first part. */
  readonly phase: "request" | "stream";
  /** Request headers, whose values are removed from the error message. */
  readonly headers?: ModelRequest["headers"];
  /** Keys of the client and of the environment, removed from the error message. */
  readonly secrets?: readonly string[];
  /** Difference of the response from a stream of events, see {@link describeOtherContent}. */
  readonly otherContent?: string | undefined;
  /** Known token usage of the failed call. */
  readonly usage?: ModelFailure["usage"];
}

/** Converts a thrown value or an error part to a `StatewrightError`; returns a `StatewrightError` unchanged. */
export function toModelError(thrown: unknown, call: FailedCall): StatewrightError {
  if (isStatewrightError(thrown)) return thrown;
  const clientError = readClientError(thrown);
  const { otherContent = findOtherContent(thrown) } = call;
  const text = otherContent === undefined ? clientError.message : `${otherContent}: ${clientError.message}`;
  const message = cleanMessage(text, call);
  const cause = Object.assign(new Error(message), { name: clientError.name });
  if (clientError.name === "AI_LoadAPIKeyError") {
    return new StatewrightError("missing_secret", {
      what: `the API key of the model "${call.model}" is missing: ${message}`,
      next: "Set that variable, or create the model with its key and pass it to aiModel",
      cause,
    });
  }
  const { status, retryAfterMs } = clientError;
  const details: ModelFailure = {
    retryable: isRetryable(clientError, call),
    kind: getFailureKind(clientError, call),
    ...omitUndefined({ status, retryAfterMs, usage: call.usage }),
  };
  return createModelError(`${describeFailure(clientError, call)}: ${message}`, suggestFix(details), details, cause);
}

/**
 * Describes a response with another content type than a stream of events, such as the HTML page of a proxy; undefined
 * for a stream of events, and for a client that does not report its response headers.
 */
export function describeOtherContent(headers: unknown, address: string | undefined): string | undefined {
  const contentType = readHeaderMap(headers).get("content-type");
  if (contentType === undefined || /event-stream|x-ndjson|amazon/i.test(contentType)) return undefined;
  const source = address === undefined ? "" : ` from ${address}`;
  return `expected a stream of events, got ${contentType.split(";", 1)[0]}${source}`;
}

/** As {@link describeOtherContent}, for an error about a response with status 200. */
function findOtherContent(thrown: unknown): string | undefined {
  const { statusCode, responseHeaders, url } = toFields(thrown);
  return statusCode === 200 ? describeOtherContent(responseHeaders, formatAddress(url)) : undefined;
}

/**
 * Returns the type of an event that the client of a provider does not know, and reports as an error between readable
 * events; undefined for every other error.
 */
export function findUnknownEvent(client: string, error: unknown): string | undefined {
  const { events } = getClientRules(client);
  const { name, value } = toFields(error);
  const { type } = toFields(value);
  if (events === undefined || name !== "AI_TypeValidationError" || typeof type !== "string") return undefined;
  return events.has(type) ? undefined : type;
}

/** Returns a retryable error for a reply that broke off. */
export function createBrokenReplyError(reason: string, model: string, usage?: ModelFailure["usage"]): StatewrightError {
  const next = "Run it again: no part of the reply was used";
  return createModelError(
    `the reply of the model "${model}" broke off: ${reason}`,
    next,
    { retryable: true, kind: "broken_reply", ...omitUndefined({ usage }) },
    undefined,
  );
}

function createModelError(
  what: string,
  next: string,
  details: ModelFailure,
  cause: Error | undefined,
): StatewrightError {
  return new StatewrightError("model_failed", { what, next, details, cause });
}

/** Common fields of client errors; undefined if the client does not set a field. */
interface ClientError {
  readonly name: string;
  readonly message: string;
  /** HTTP status of a refusal; undefined for an unreadable response with status 200. */
  readonly status: number | undefined;
  /** The client's own `isRetryable` flag. */
  readonly retryable: boolean | undefined;
  readonly retryAfterMs: number | undefined;
  /** Error types and codes of the provider. */
  readonly codes: readonly unknown[];
}

function readClientError(thrown: unknown): ClientError {
  const fields = toFields(thrown);
  const { statusCode, isRetryable: isClientRetryable } = fields;
  const refused = typeof statusCode === "number" && statusCode >= 400;
  const unreadable = typeof statusCode === "number" && !refused;
  return {
    name: thrown instanceof Error ? thrown.name : "ModelError",
    message: findMessage(thrown) ?? "no reason given",
    status: refused ? statusCode : undefined,
    retryable:
      typeof isClientRetryable === "boolean" && (isClientRetryable || !unreadable)
        ? isClientRetryable
        : unreadable
          ? true
          : undefined,
    retryAfterMs: parseRetryAfterMs(fields["responseHeaders"]) ?? parseRetryInfoMs(fields["responseBody"]),
    codes: [...listErrorCodes(thrown), ...listBodyCodes(fields["responseBody"])],
  };
}

function findMessage(thrown: unknown): string | undefined {
  if (typeof thrown === "string") return thrown;
  const { message, error } = toFields(thrown);
  if (typeof message === "string" && message !== "") return message;
  return error === undefined ? undefined : findMessage(error);
}

function listErrorCodes(thrown: unknown): readonly unknown[] {
  const { type, code, error, data } = toFields(thrown);
  const inner = error ?? data;
  return inner === undefined ? [type, code] : [type, code, ...listErrorCodes(inner)];
}

/** Lists the details of Google's errors, which clients keep only in the body. */
function listErrorDetails(body: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (typeof body !== "string") return [];
  try {
    const parsed: unknown = JSON.parse(body);
    const { details } = toFields(toFields(Array.isArray(parsed) ? parsed[0] : parsed)["error"]);
    return Array.isArray(details) ? details.map(toFields) : [];
  } catch {
    return [];
  }
}

function listBodyCodes(body: unknown): readonly unknown[] {
  return listErrorDetails(body).flatMap(({ reason }) => (reason === undefined ? [] : [reason]));
}

/** Returns the delay of Google's `RetryInfo` in milliseconds. */
function parseRetryInfoMs(body: unknown): number | undefined {
  const delays = listErrorDetails(body).flatMap(({ retryDelay }) =>
    typeof retryDelay === "string" && /^\d+(?:\.\d+)?s$/.test(retryDelay) ? [Number.parseFloat(retryDelay) * 1000] : [],
  );
  return delays[0];
}

/** Client errors that a retry of the same request would repeat. */
const permanentErrors = /^AI_(?:Unsupported|InvalidPrompt|InvalidArgument|NoSuch|LoadSetting)/;
/** Client errors for an unreadable response or a timeout of the client. */
const transientErrors =
  /^(?:AI_(?:JSONParse|TypeValidation|EmptyResponseBody|InvalidResponseData|NoContentGenerated).*|AbortError|TimeoutError)$/;
/** Client message for a stream with an unreadable first frame. */
const unreadableStream = /^Expected a normalized .* stream error/;
/** Client messages for a failed connection. */
const networkErrors = /fetch failed|failed to fetch|cannot connect|ECONN|EPIPE|ETIMEDOUT|EAI_AGAIN|socket/i;
/** Client messages for a redirect loop, which a retry would repeat. */
const redirectLoops = /redirect count exceeded|too many redirects|maximum redirect/i;
/** Provider error codes in a stream that a retry of the same request would repeat. */
const permanentCodes: ReadonlySet<unknown> = new Set([
  "invalid_request_error",
  "authentication_error",
  "permission_error",
  "not_found_error",
  "invalid_prompt",
  "context_length_exceeded",
]);
/** Error codes that are never retryable, whatever the status. */
const billingCodes: ReadonlySet<unknown> = new Set(["insufficient_quota", "billing_error"]);
/** Messages of providers without an error code for an account without credit. */
const billingErrors = /credit balance is too low/i;

function isRetryable({ name, message, status, retryable, codes }: ClientError, { phase }: FailedCall): boolean {
  if (codes.some((word) => billingCodes.has(word)) || billingErrors.test(message) || redirectLoops.test(message))
    return false;
  // A conflict is a lock of the provider: retried, whatever the client reports.
  if (status === 409) return true;
  if (retryable !== undefined) return retryable;
  if (status !== undefined) return status === 408 || status === 429 || status >= 500;
  if (permanentErrors.test(name)) return false;
  if (transientErrors.test(name) || unreadableStream.test(message) || networkErrors.test(message)) return true;
  return phase === "stream" && !codes.some((word) => permanentCodes.has(word));
}

/**
 * Failure kinds by provider error code: more precise than the status, and available in a stream, which has no status.
 */
const kindsByCode: ReadonlyMap<unknown, ModelFailureKind> = new Map([
  ["insufficient_quota", "quota"],
  ["billing_error", "quota"],
  ["context_length_exceeded", "context_length"],
  ["request_too_large", "context_length"],
  ["overloaded_error", "overloaded"],
  ["rate_limit_error", "rate_limit"],
  ["rate_limit_exceeded", "rate_limit"],
  ["authentication_error", "auth"],
  ["API_KEY_INVALID", "auth"],
  ["API_KEY_EXPIRED", "auth"],
  ["permission_error", "auth"],
  ["not_found_error", "not_found"],
  ["model_not_found", "not_found"],
  ["api_error", "server_error"],
  ["server_error", "server_error"],
  ["timeout_error", "timeout"],
  ["invalid_prompt", "invalid_request"],
] as const);
/** Messages of providers without an error code for a request beyond the context length. */
const contextLengthErrors =
  /prompt is too long|maximum context length|context window|too many (?:input )?tokens|input token count/i;

function getFailureKind({ name, message, status, codes }: ClientError, { phase }: FailedCall): ModelFailureKind {
  const named = codes.map((word) => kindsByCode.get(word)).find((kind) => kind !== undefined);
  if (named !== undefined) return named;
  if (billingErrors.test(message)) return "quota";
  if (redirectLoops.test(message)) return "connection";
  if (status !== undefined) {
    const kind = toModelFailureKind(status);
    return kind === "invalid_request" && contextLengthErrors.test(message) ? "context_length" : kind;
  }
  if (codes.includes("invalid_request_error"))
    return contextLengthErrors.test(message) ? "context_length" : "invalid_request";
  if (name === "TimeoutError") return "timeout";
  if (permanentErrors.test(name)) return "invalid_request";
  if (phase === "stream") return "broken_reply";
  if (networkErrors.test(message)) return "connection";
  return transientErrors.test(name) || unreadableStream.test(message) || name === "AI_APICallError"
    ? "broken_reply"
    : "other";
}

/**
 * Returns the delay in milliseconds from `retry-after-ms` or `retry-after`; a date is relative to the `date` header
 * of the response.
 */
function parseRetryAfterMs(headers: unknown): number | undefined {
  const values = readHeaderMap(headers);
  const after = values.get("retry-after") ?? "";
  const waits = [
    Number.parseFloat(values.get("retry-after-ms") ?? ""),
    /^\d/.test(after) ? Number.parseFloat(after) * 1000 : Number.NaN,
    Date.parse(after) - Date.parse(values.get("date") ?? ""),
  ];
  return waits.find((wait) => Number.isFinite(wait) && wait >= 0);
}

function readHeaderMap(headers: unknown): ReadonlyMap<string, string> {
  return new Map(Object.entries(toFields(headers)).map(([name, value]) => [name.toLowerCase(), String(value)]));
}

function describeFailure({ status }: ClientError, { model, phase }: FailedCall): string {
  if (phase === "stream") return `the reply of the model "${model}" broke off`;
  if (status !== undefined) return `the model "${model}" responded with status ${status}`;
  return `the model "${model}" could not be called`;
}

function suggestFix({ retryable, kind, status, retryAfterMs }: ModelFailure): string {
  if (kind === "auth" || status === 401 || status === 403) return "Check the API key and its permissions";
  if (status === 404) return "Check the model name and the base URL of the provider";
  if (!retryable) return "Change the request or the account: the same request would fail again";
  if (retryAfterMs !== undefined) return `Run it again after ${Math.ceil(retryAfterMs / 1000)} s`;
  return "Run it again";
}

const keyPatterns =
  /\b(?:sk|pk|rk|xai|gsk|key|tok)[-_][A-Za-z0-9_*-]{6,}|\bAIza[A-Za-z0-9_-]{10,}|(?<=\bBearer\s)\S+|(?<=[?&]key=)[^&\s]+/g;

/** Removes keys and header values from a message and truncates the text, so that no echoed request remains. */
function cleanMessage(message: string, { headers, secrets = [] }: FailedCall): string {
  let text = message;
  for (const secret of secrets) text = text.replaceAll(secret, "[key]");
  for (const value of Object.values(headers ?? {})) {
    for (const word of value.split(/\s+/)) if (word.length >= 8) text = text.replaceAll(word, "[key]");
  }
  text = text.replace(keyPatterns, "[key]").replace(/\s+/g, " ").trim();
  return (text.length > 300 ? `${text.slice(0, 300)}…` : text).replace(/\.$/, "");
}
