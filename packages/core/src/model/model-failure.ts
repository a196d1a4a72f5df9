/** Kinds of failure of a model call: what a retry and a fallback go by. */
import { isError, isStatewrightError } from "../base/errors.ts";
import { isPlainObject } from "../base/json.ts";

/**
 * Why a model gave no answer. `connection`: it was not reached. `timeout`: it took too long, by our limits or its own.
 * `broken_reply`: its answer broke off, or was none. `quota`: no credit is left. `not_found`: there is no such model.
 * `context_length`: the request is too long for it. `invalid_request`: it refused the request as such.
 */
export type ModelFailureKind =
  | "rate_limit"
  | "overloaded"
  | "server_error"
  | "connection"
  | "timeout"
  | "broken_reply"
  | "auth"
  | "quota"
  | "not_found"
  | "context_length"
  | "invalid_request"
  | "other";

const known: Readonly<Record<ModelFailureKind, true>> = {
  rate_limit: true,
  overloaded: true,
  server_error: true,
  connection: true,
  timeout: true,
  broken_reply: true,
  auth: true,
  quota: true,
  not_found: true,
  context_length: true,
  invalid_request: true,
  other: true,
};

/** Every kind of failure. */
export const modelFailureKinds: readonly ModelFailureKind[] = Object.keys(known) as ModelFailureKind[];

/** Tell whether a value names a kind of failure. */
export function isModelFailureKind(value: unknown): value is ModelFailureKind {
  return typeof value === "string" && Object.hasOwn(known, value);
}

/** Of which kind a failure is, by what its `details` say; undefined for what no model did, such as a mistake in the program. */
export function modelFailureKind(thrown: unknown): ModelFailureKind | undefined {
  if (isStatewrightError(thrown, "missing_secret")) return "auth";
  if (!isStatewrightError(thrown)) return isProgramming(thrown) ? undefined : "other";
  if (thrown.code !== "model_failed") return undefined;
  const { kind, status } = isPlainObject(thrown.details) ? thrown.details : {};
  if (isModelFailureKind(kind)) return kind;
  return typeof status === "number" ? kindOfStatus(status) : "other";
}

/** The kind of failure that a status of HTTP tells. */
export function kindOfStatus(status: number): ModelFailureKind {
  const kind = kindByStatus.get(status);
  if (kind !== undefined) return kind;
  return status >= 500 ? "server_error" : "invalid_request";
}

const kindByStatus: ReadonlyMap<number, ModelFailureKind> = new Map([
  [401, "auth"],
  [402, "quota"],
  [403, "auth"],
  [404, "not_found"],
  [408, "timeout"],
  [413, "context_length"],
  [429, "rate_limit"],
  [503, "overloaded"],
  [504, "timeout"],
  [529, "overloaded"],
]);

const programming: ReadonlySet<string> = new Set([
  "TypeError",
  "ReferenceError",
  "SyntaxError",
  "RangeError",
  "EvalError",
]);

/** Tell whether something thrown is a mistake in the program, which every further attempt would meet again. */
export function isProgramming(thrown: unknown): boolean {
  try {
    return isError(thrown) && programming.has(thrown.name);
  } catch {
    // An error whose name cannot be read tells nothing.
    return false;
  }
}
