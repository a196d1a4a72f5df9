/** Errors of tools: `kind` says what happened, `disposition` who acts next. */

import { describeThrown, isError, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { describeValue } from "../../base/json.ts";

/** What happened to a call. */
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

/** Who acts next: the machine retries, the model repairs, the run fails once the call is answered, or control takes over (cancel, interrupt). */
export type ToolErrorDisposition = "retry" | "repair" | "fail" | "control";

/** What a {@link ToolError} may carry besides its kind and message. */
export interface ToolErrorOptions {
  readonly disposition?: ToolErrorDisposition;
  /** Wait this long before the next attempt, in milliseconds. */
  readonly retryAfterMs?: number;
  /** What the model reads, where it is not the message. */
  readonly modelMessage?: string;
  /** What people are shown, where it is not the message. */
  readonly userMessage?: string;
  readonly details?: unknown;
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

/** Every kind there is. */
export const toolErrorKinds: readonly string[] = Object.keys(dispositions);

/** Tell whether a value names a kind of tool error. */
export function isToolErrorKind(value: unknown): boolean {
  return typeof value === "string" && toolErrorKinds.includes(value);
}

const dispositionNames: readonly string[] = ["retry", "repair", "fail", "control"];

/** A program without types may say any word; what was to be told stands in the error. */
function unknownWord(what: string, given: unknown, message: string, known: readonly string[]): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `a ToolError that says ${describeValue(message)} was given the ${what} ${describeValue(given)}, which there is not`,
    next: `Give one of ${known.join(", ")}`,
  });
}

const brand: unique symbol = Symbol.for("statewright.toolError") as never;

/**
 * A failure that a tool throws on purpose; becomes the call's answer, which the model reads. Throws `invalid_option` for a
 * kind or a disposition that there is not.
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
    if (!isToolErrorKind(kind)) throw unknownWord("kind", kind, message, toolErrorKinds);
    const { disposition } = options;
    if (disposition !== undefined && !dispositionNames.includes(disposition))
      throw unknownWord("disposition", disposition, message, dispositionNames);
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

  /** The tool could not do it. */
  static failed(message: string, options?: ToolErrorOptions): ToolError {
    return new ToolError("failed", message, options);
  }
  /** What was asked for does not exist. */
  static notFound(message: string, options?: ToolErrorOptions): ToolError {
    return new ToolError("not_found", message, options);
  }
  /** The arguments make no sense. */
  static invalidArgs(message: string, options?: ToolErrorOptions): ToolError {
    return new ToolError("invalid_args", message, options);
  }
  /** The tool stopped because it was told to. */
  static cancelled(): ToolError {
    return new ToolError("cancelled", "Cancelled");
  }
  /** The other side is not there now; it says that nothing happened. */
  static unavailable(message: string, options?: ToolErrorOptions): ToolError {
    return new ToolError("unavailable", message, options);
  }
  /** The attempt took longer than `timeoutMs`. */
  static timeout(timeoutMs: number): ToolError {
    return new ToolError("timeout", `Timed out after ${timeoutMs} ms`);
  }
}

/** Tell whether a value is a tool error, of any copy of the package. */
export function isToolError(value: unknown): value is ToolError {
  return isError(value) && brand in value;
}

/** What becomes of a tool's failures: the model reads them (default), the run fails, or the model reads this in their place. */
export type ToolErrorPolicy = "return" | "fail" | { readonly message: string };

/** What ended an attempt before the tool did: it says which kind of failure it is, and the tool may still say more. */
export function toldWhenStopped(stop: ToolError, thrown: unknown): ToolError {
  if (thrown === stop || saysNothing(thrown)) return stop;
  const { message, modelMessage, userMessage, details } = toToolError(thrown);
  const { disposition } = stop;
  return new ToolError(stop.kind, message, { disposition, modelMessage, userMessage, details, cause: thrown });
}

/** The error of a signal that has fired only says that it has; so does a tool error that says no more than "Cancelled". */
function saysNothing(thrown: unknown): boolean {
  if (isToolError(thrown)) return thrown.kind === "cancelled" && thrown.message === "Cancelled";
  return isError(thrown) && /^(Abort|Timeout)Error$/.test(toErrorRecord(thrown).name);
}

/** Anything that a tool threw as a tool error; its text is what the model reads, without a stack. */
export function toToolError(thrown: unknown): ToolError {
  if (isToolError(thrown)) return thrown;
  if (isError(thrown)) return new ToolError("failed", describeThrown(thrown), { cause: thrown });
  return new ToolError("failed", typeof thrown === "string" ? thrown : "The tool failed without saying why", {
    cause: thrown,
  });
}
