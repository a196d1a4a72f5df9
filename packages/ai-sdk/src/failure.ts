/** What a client threw, as an error of ours: whether a retry may help and how long to wait; no key and no request in it. */
import {
  isStatewrightError,
  kindOfStatus,
  type ModelFailure,
  type ModelFailureKind,
  type ModelRequest,
  StatewrightError,
} from "@statewright/core";
import { present } from "./provider-json.ts";

/** Where a model call failed. */
export interface FailedCall {
  /** The id of the model. */
  readonly model: string;
  /** Before the first part of the answer, or after it. */
  readonly during: "request" | "stream";
  /** Headers of the request: their values are taken out of the message. */
  readonly headers?: ModelRequest["headers"];
  /** What it is known to have cost. */
  readonly usage?: ModelFailure["usage"];
}

/** An error of ours from anything that a client threw or sent as an error part; one of ours is returned as it is. */
export function modelFailure(thrown: unknown, call: FailedCall): StatewrightError {
  if (isStatewrightError(thrown)) return thrown;
  const told = read(thrown);
  const message = cleaned(told.message, call.headers);
  const cause = Object.assign(new Error(message), { name: told.name });
  if (told.name === "AI_LoadAPIKeyError") {
    return new StatewrightError("missing_secret", {
      what: `the key of the model "${call.model}" is missing: ${message}`,
      next: "Set that variable, or make the model with its key and pass it to aiModel",
      cause,
    });
  }
  const { status, retryAfterMs } = told;
  const details: ModelFailure = {
    retryable: isRetryable(told, call),
    kind: kindOf(told, call),
    ...present({ status, retryAfterMs, usage: call.usage }),
  };
  return failed(`${happened(told, call)}: ${message}`, next(details), details, cause);
}

/** The error of a reply that came without its end; a retry may help. */
export function brokenReply(why: string, model: string, usage?: ModelFailure["usage"]): StatewrightError {
  const next = "Run it again: nothing of the reply was used";
  return failed(
    `the reply of the model "${model}" broke off: ${why}`,
    next,
    { retryable: true, kind: "broken_reply", ...present({ usage }) },
    undefined,
  );
}

function failed(what: string, next: string, details: ModelFailure, cause: Error | undefined): StatewrightError {
  return new StatewrightError("model_failed", { what, next, details, cause });
}

/** What errors of clients have in common; what a client does not say is undefined. */
interface Told {
  readonly name: string;
  readonly message: string;
  /** The status of a refusal; an answer of 200 that could not be read has none. */
  readonly status: number | undefined;
  /** The client's own judgement. */
  readonly retryable: boolean | undefined;
  readonly retryAfterMs: number | undefined;
  /** Types and codes by which the provider names the error. */
  readonly words: readonly unknown[];
}

function read(thrown: unknown): Told {
  const fields = fieldsOf(thrown);
  const { statusCode, isRetryable: judged } = fields;
  const refused = typeof statusCode === "number" && statusCode >= 400;
  const unread = typeof statusCode === "number" && !refused;
  return {
    name: thrown instanceof Error ? thrown.name : "ModelError",
    message: messageOf(thrown) ?? "no reason given",
    status: refused ? statusCode : undefined,
    retryable: typeof judged === "boolean" && (judged || !unread) ? judged : unread ? true : undefined,
    retryAfterMs: retryAfterMs(fields["responseHeaders"]),
    words: wordsOf(thrown),
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function messageOf(thrown: unknown): string | undefined {
  if (typeof thrown === "string") return thrown;
  const { message, error } = fieldsOf(thrown);
  if (typeof message === "string" && message !== "") return message;
  return error === undefined ? undefined : messageOf(error);
}

function wordsOf(thrown: unknown): readonly unknown[] {
  const { type, code, error, data } = fieldsOf(thrown);
  const inner = error ?? data;
  return inner === undefined ? [type, code] : [type, code, ...wordsOf(inner)];
}

/** Client errors that the same request would meet again. */
const lasting = /^AI_(?:Unsupported|InvalidPrompt|InvalidArgument|NoSuch|LoadSetting)/;
/** Client errors that say that the answer could not be read, or that the client gave up waiting. */
const passing =
  /^(?:AI_(?:JSONParse|TypeValidation|EmptyResponseBody|InvalidResponseData|NoContentGenerated).*|AbortError|TimeoutError)$/;
/** What a client says of itself when the first frame of a stream was one that it could not read. */
const unread = /^Expected a normalized .* stream error/;
/** A connection that was not made, by the message of the client. */
const network = /fetch failed|failed to fetch|cannot connect|ECONN|EPIPE|ETIMEDOUT|EAI_AGAIN|socket/i;
/** Errors in a stream that the same request would meet again, by the provider's name for them. */
const refusals: ReadonlySet<unknown> = new Set([
  "invalid_request_error",
  "authentication_error",
  "permission_error",
  "not_found_error",
  "invalid_prompt",
  "context_length_exceeded",
]);
/** Refusals that no waiting mends, whatever the status says. */
const unpaid: ReadonlySet<unknown> = new Set(["insufficient_quota", "billing_error"]);

function isRetryable({ name, message, status, retryable, words }: Told, { during }: FailedCall): boolean {
  if (words.some((word) => unpaid.has(word))) return false;
  if (retryable !== undefined) return retryable;
  if (status !== undefined) return status === 408 || status === 409 || status === 429 || status >= 500;
  if (lasting.test(name)) return false;
  if (passing.test(name) || unread.test(message) || network.test(message)) return true;
  return during === "stream" && !words.some((word) => refusals.has(word));
}

/** Providers' names for what went wrong, where they say more than a status, or stand in a stream, which has none. */
const kindsByWord: ReadonlyMap<unknown, ModelFailureKind> = new Map([
  ["insufficient_quota", "quota"],
  ["billing_error", "quota"],
  ["context_length_exceeded", "context_length"],
  ["request_too_large", "context_length"],
  ["overloaded_error", "overloaded"],
  ["rate_limit_error", "rate_limit"],
  ["rate_limit_exceeded", "rate_limit"],
  ["authentication_error", "auth"],
  ["permission_error", "auth"],
  ["not_found_error", "not_found"],
  ["model_not_found", "not_found"],
  ["api_error", "server_error"],
  ["server_error", "server_error"],
  ["timeout_error", "timeout"],
  ["invalid_prompt", "invalid_request"],
] as const);
/** A request that is too long, as providers say it that have no name for it. */
const tooLong =
  /prompt is too long|maximum context length|context window|too many (?:input )?tokens|input token count/i;

function kindOf({ name, message, status, words }: Told, { during }: FailedCall): ModelFailureKind {
  const named = words.map((word) => kindsByWord.get(word)).find((kind) => kind !== undefined);
  if (named !== undefined) return named;
  if (status !== undefined) {
    const kind = kindOfStatus(status);
    return kind === "invalid_request" && tooLong.test(message) ? "context_length" : kind;
  }
  if (words.includes("invalid_request_error")) return tooLong.test(message) ? "context_length" : "invalid_request";
  if (name === "TimeoutError") return "timeout";
  if (lasting.test(name)) return "invalid_request";
  if (during === "stream") return "broken_reply";
  if (network.test(message)) return "connection";
  return passing.test(name) || unread.test(message) || name === "AI_APICallError" ? "broken_reply" : "other";
}

/** Milliseconds to wait by `retry-after-ms` or `retry-after`; a date is measured against the date of the same response. */
function retryAfterMs(headers: unknown): number | undefined {
  const values = new Map(Object.entries(fieldsOf(headers)).map(([name, value]) => [name.toLowerCase(), String(value)]));
  const after = values.get("retry-after") ?? "";
  const waits = [
    Number.parseFloat(values.get("retry-after-ms") ?? ""),
    /^\d/.test(after) ? Number.parseFloat(after) * 1000 : Number.NaN,
    Date.parse(after) - Date.parse(values.get("date") ?? ""),
  ];
  return waits.find((wait) => Number.isFinite(wait) && wait >= 0);
}

function happened({ status }: Told, { model, during }: FailedCall): string {
  if (during === "stream") return `the reply of the model "${model}" broke off`;
  if (status !== undefined) return `the model "${model}" answered with status ${status}`;
  return `the model "${model}" could not be asked`;
}

function next({ retryable, status, retryAfterMs }: ModelFailure): string {
  if (status === 401 || status === 403) return "Check the key and what it may do";
  if (status === 404) return "Check the name of the model and the address of the provider";
  if (!retryable) return "Change the request or the account: the same request would fail again";
  if (retryAfterMs !== undefined) return `Run it again after ${Math.ceil(retryAfterMs / 1000)} s`;
  return "Run it again";
}

const keys =
  /\b(?:sk|pk|rk|xai|gsk|key|tok)[-_][A-Za-z0-9_*-]{6,}|\bAIza[A-Za-z0-9_-]{10,}|(?<=\bBearer\s)\S+|(?<=[?&]key=)[^&\s]+/g;

/** A message without keys, short enough that it holds no request that a server sent back. */
function cleaned(message: string, headers: FailedCall["headers"]): string {
  let text = message;
  for (const value of Object.values(headers ?? {})) {
    for (const word of value.split(/\s+/)) if (word.length >= 8) text = text.replaceAll(word, "[key]");
  }
  text = text.replace(keys, "[key]").replace(/\s+/g, " ").trim();
  return (text.length > 300 ? `${text.slice(0, 300)}…` : text).replace(/\.$/, "");
}
