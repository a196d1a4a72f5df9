/** What a client threw, as an error of ours: whether a retry may help and how long to wait; no key and no request in it. */
import { isStatewrightError, type ModelFailure, type ModelRequest, StatewrightError } from "@statewright/core";
import { present } from "./plain.ts";

/** Where a model call failed. */
export interface FailedCall {
  /** The id of the model. */
  readonly model: string;
  /** Before the first part of the answer, or after it. */
  readonly during: "request" | "stream";
  /** Headers of the request: their values are taken out of the message. */
  readonly headers?: ModelRequest["headers"];
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
  const details: ModelFailure = { retryable: isRetryable(told, call), ...present({ status, retryAfterMs }) };
  return failed(`${happened(told, call)}: ${message}`, next(details), details, cause);
}

/** The error of a reply that came without its end; a retry may help. */
export function brokenReply(why: string, model: string): StatewrightError {
  const next = "Run it again: nothing of the reply was used";
  return failed(`the reply of the model "${model}" broke off: ${why}`, next, { retryable: true }, undefined);
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
  if (passing.test(name) || network.test(message)) return true;
  return during === "stream" && !words.some((word) => refusals.has(word));
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
