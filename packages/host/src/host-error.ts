/** Errors of files and child processes: a single class, identified by `code`, with the fix in the message. */
import type { ProcessResult } from "./process-result.ts";

/** Error code: `outside` is a path outside its workspace, `io` covers all other failures. */
export type HostErrorCode =
  | "not_found"
  | "denied"
  | "outside"
  | "too_large"
  | "spawn_failed"
  | "timeout"
  | "cancelled"
  | "io";

/** Optional data of an error. */
export interface HostErrorDetails {
  /** System error code, such as `ENOENT`. */
  readonly systemCode?: string;
  /** Output of the process before termination; set for `timeout` and `cancelled`. */
  readonly result?: ProcessResult;
}

/**
 * Error of files and processes. The message contains the path or the command and the fix, but never the workspace
 * root, an argument or an environment variable; the original Node error, which contains paths, is not attached.
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

/** Returns true for a HostError, including an error from another copy of this package. */
export function isHostError(error: unknown): error is HostError {
  return error instanceof Error && error.name === "HostError" && "code" in error;
}

/** Returns the system error code of an unknown error; empty when missing. */
export function getSystemCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}
