/** Errors of files and child processes: one class, recognised by `code`, whose message says what to do next. */
import type { ProcessResult } from "./process.ts";

/** What went wrong: `outside` is a path that leaves its workspace, `io` is everything that has no code of its own. */
export type HostErrorCode =
  | "not_found"
  | "denied"
  | "outside"
  | "too_large"
  | "spawn_failed"
  | "timeout"
  | "cancelled"
  | "io";

/** The parts of an error beside its code and message. */
export interface HostErrorDetails {
  /** The code of the operating system, such as `ENOENT`. */
  readonly systemCode?: string;
  /** What a process had written before it was stopped; on `timeout` and `cancelled`. */
  readonly result?: ProcessResult;
}

/**
 * What files and processes throw. The message names the path or the command and the next step, never the root of a
 * workspace, an argument or a variable of the environment; the error of Node, which does name paths, is not attached.
 */
export class HostError extends Error {
  override readonly name = "HostError";
  readonly code: HostErrorCode;
  readonly systemCode: string | undefined;
  readonly result: ProcessResult | undefined;

  constructor(code: HostErrorCode, message: string, details: HostErrorDetails = {}) {
    super(message);
    this.code = code;
    this.systemCode = details.systemCode;
    this.result = details.result;
  }
}

/** Whether an error is a HostError, also one of another copy of this package. */
export function isHostError(error: unknown): error is HostError {
  return error instanceof Error && error.name === "HostError" && "code" in error;
}

/** The code of the operating system in an unknown error; empty when it has none. */
export function systemCodeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}
