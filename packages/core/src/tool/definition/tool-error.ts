/** Errors of tools. `kind` is the failure; `disposition` decides about the next action. */

import { describeThrown, isError, type StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { describeValue } from "../../base/json.ts";

/** Kind of a tool failure. */
export type ToolErrorKind =
  | "failed"
  | "not_found"
  | "invalid_args"
  | "cancelled"
  | "timeout"
  | "denied"
  | "skipped"
  | "limit"
  | "crashed"
  | "invalid_output"
  | "unknown_outcome"
  | "unavailable";

/**
 * Next action: `retry` by the machine, `repair` by the model, `fail` the run after all calls have results, or
 * `control` (cancel, interrupt).
 */
export type ToolErrorDisposition = "retry" | "repair" | "fail" | "control";

/** Options of a {@link ToolError}. */
export interface ToolErrorOptions {
  /** What follows the error. Default: by its kind. */
  readonly disposition?: ToolErrorDisposition;
  /** Delay before the next attempt, in milliseconds. */
  readonly retryAfterMs?: number;
  /** Message for the model. Default: the message. */
  readonly modelMessage?: string;
  /** Message for people. Default: the message. */
  readonly userMessage?: string;
  /** Data about the failure. Default: none. */
  readonly details?: unknown;
  /** Original error. */
  readonly cause?: unknown;
}

const dispositions: Readonly<Record<ToolErrorKind, ToolErrorDisposition>> = {
  failed: "repair",
  not_found: "repair",
  invalid_args: "repair",
  cancelled: "control",
  timeout: "retry",
  denied: "repair",
  skipped: "repair",
  limit: "repair",
  crashed: "repair",
  invalid_output: "repair",
  unknown_outcome: "repair",
  unavailable: "retry",
};

/** All kinds. */
export const toolErrorKinds: readonly string[] = Object.keys(dispositions);

/** Returns true if a value is a kind of tool error. */
export function isToolErrorKind(value: unknown): boolean {
  return typeof value === "string" && toolErrorKinds.includes(value);
}

const dispositionNames: readonly string[] = ["retry", "repair", "fail", "control"];

/**
 * Creates the error for an unknown kind or disposition (possible in untyped JavaScript), with the message of the
 * ToolError.
 */
function createUnknownValueError(
  what: string,
  value: unknown,
  message: string,
  known: readonly string[],
): StatewrightError {
  return invalidOption({
    where: `ToolError with message ${describeValue(message)}`,
    option: what,
    expected: `one of ${known.join(", ")}`,
    got: value,
  });
}

const brand: unique symbol = Symbol.for("statewright.toolError") as never;

/**
 * A deliberate failure of a tool; becomes the result of the call, for the model. Throws `invalid_option` for an
 * unknown kind or disposition.
 */
export class ToolError extends Error {
  readonly kind: ToolErrorKind;
  readonly disposition: ToolErrorDisposition;
  readonly modelMessage: string;
  readonly userMessage: string;
  readonly retryAfterMs: number | undefined;
  readonly details: unknown;

  constructor(kind: ToolErrorKind, message: string, options: ToolErrorOptions = {}) {
    super(message, { cause: options.cause });
    if (!isToolErrorKind(kind)) throw createUnknownValueError("kind", kind, message, toolErrorKinds);
    const { disposition } = options;
    if (disposition !== undefined && !dispositionNames.includes(disposition))
      throw createUnknownValueError("disposition", disposition, message, dispositionNames);
    this.name = "ToolError";
    this.kind = kind;
    this.disposition =
      disposition ?? (kind === "failed" && options.retryAfterMs !== undefined ? "retry" : dispositions[kind]);
    this.modelMessage = options.modelMessage ?? message;
    this.userMessage = options.userMessage ?? message;
    this.retryAfterMs = options.retryAfterMs;
    this.details = options.details;
    Object.defineProperty(this, brand, { value: true });
  }

  /** The tool failed. */
  static failed(message: string, options?: ToolErrorOptions): ToolError {
    return new ToolError("failed", message, options);
  }
  /** The requested object does not exist. */
  static notFound(message: string, options?: ToolErrorOptions): ToolError {
    return new ToolError("not_found", message, options);
  }
  /** The arguments are invalid. */
  static invalidArgs(message: string, options?: ToolErrorOptions): ToolError {
    return new ToolError("invalid_args", message, options);
  }
  /** The tool stopped because of its abort signal. */
  static cancelled(): ToolError {
    return new ToolError("cancelled", "Cancelled");
  }
  /** The service is unavailable, and the call had no effect. */
  static unavailable(message: string, options?: ToolErrorOptions): ToolError {
    return new ToolError("unavailable", message, options);
  }
  /** The attempt took longer than `timeoutMs`. */
  static timeout(timeoutMs: number): ToolError {
    return new ToolError("timeout", `Timed out after ${timeoutMs} ms`);
  }
}

/** Returns true if a value is a tool error, of any copy of the package. */
export function isToolError(value: unknown): value is ToolError {
  return isError(value) && brand in value;
}

/**
 * Policy of a tool's failures: `return` the error to the model (default), `fail` the run, or return `message` to the
 * model.
 */
export type ToolErrorPolicy = "return" | "fail" | { readonly message: string };

/**
 * Combines the error that aborted an attempt with a later error of the tool: the kind of the former, the messages of
 * the latter.
 */
export function mergeStopError(stop: ToolError, thrown: unknown): ToolError {
  if (thrown === stop || isBareAbort(thrown)) return stop;
  const { message, modelMessage, userMessage, details } = toToolError(thrown);
  const { disposition } = stop;
  return new ToolError(stop.kind, message, { disposition, modelMessage, userMessage, details, cause: thrown });
}

/**
 * Returns true for an error without information beyond the abort: an AbortError, a TimeoutError, or a "Cancelled"
 * tool error.
 */
function isBareAbort(thrown: unknown): boolean {
  if (isToolError(thrown)) return thrown.kind === "cancelled" && thrown.message === "Cancelled";
  return isError(thrown) && /^(Abort|Timeout)Error$/.test(toErrorRecord(thrown).name);
}

/** Converts a thrown value to a tool error. The model reads the message without a stack. */
export function toToolError(thrown: unknown): ToolError {
  if (isToolError(thrown)) return thrown;
  if (isError(thrown)) return new ToolError("failed", describeThrown(thrown), { cause: thrown });
  return new ToolError("failed", typeof thrown === "string" ? thrown : "The tool failed without a message", {
    cause: thrown,
  });
}
