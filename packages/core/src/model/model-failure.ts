/** Failure kinds of model calls; retries and fallbacks depend on the kind. */
import { isError, isStatewrightError } from "../base/errors.ts";
import { isPlainObject } from "../base/json.ts";

/**
 * Reason why a model call failed. `connection`: the provider was unreachable. `timeout`: a local or provider timeout.
 * `broken_reply`: an incomplete or invalid answer. `quota`: no credit. `not_found`: unknown model. `context_length`:
 * the request exceeds the context window. `invalid_request`: the provider rejected the request.
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

const kindMap: Readonly<Record<ModelFailureKind, true>> = {
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

/** All failure kinds. */
export const modelFailureKinds: readonly ModelFailureKind[] = Object.keys(kindMap) as ModelFailureKind[];

/** Returns true if a value is a failure kind. */
export function isModelFailureKind(value: unknown): value is ModelFailureKind {
  return typeof value === "string" && Object.hasOwn(kindMap, value);
}

/**
 * Returns the failure kind of a thrown value, by its `details`; undefined for failures outside of the model, such as
 * a programming error.
 */
export function getModelFailureKind(thrown: unknown): ModelFailureKind | undefined {
  if (isStatewrightError(thrown, "missing_secret")) return "auth";
  if (!isStatewrightError(thrown)) return isProgrammingError(thrown) ? undefined : "other";
  if (thrown.code !== "model_failed") return undefined;
  const { kind, status } = isPlainObject(thrown.details) ? thrown.details : {};
  if (isModelFailureKind(kind)) return kind;
  return typeof status === "number" ? toModelFailureKind(status) : "other";
}

/** Maps an HTTP status to a failure kind. */
export function toModelFailureKind(status: number): ModelFailureKind {
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
  [409, "server_error"],
  [413, "context_length"],
  [429, "rate_limit"],
  [503, "overloaded"],
  [504, "timeout"],
  [529, "overloaded"],
]);

const programmingErrors: ReadonlySet<string> = new Set([
  "TypeError",
  "ReferenceError",
  "SyntaxError",
  "RangeError",
  "EvalError",
]);

/** Returns true for a programming error, which a retry cannot fix. */
export function isProgrammingError(thrown: unknown): boolean {
  try {
    return isError(thrown) && programmingErrors.has(thrown.name);
  } catch {
    // The name of the error is unreadable.
    return false;
  }
}
