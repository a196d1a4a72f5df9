/** Errors of runs under faults: which errors the injected faults may cause. */
import { isStatewrightError } from "@statewright/core";
import type { FaultCounts } from "./faults.ts";

/** Faults that may have caused an error. */
interface PossibleCauses {
  readonly faults: FaultCounts;
  /** True when another process has taken the thread from the process of the error. */
  readonly isCutOff: boolean;
}

/** Returns true for an error that the injected faults may cause. */
export function isExcused(error: unknown, { faults, isCutOff }: PossibleCauses): boolean {
  const hasCompetitors = (faults.intrude ?? 0) + (faults.take ?? 0) > 0;
  const storeFailed = faults.store !== undefined;
  if (/the other side is/.test(String(error))) return true;
  if (!isStatewrightError(error)) return false;
  switch (error.code) {
    case "already_answered":
    case "unknown_interrupt":
      return hasCompetitors || storeFailed || faults.clock !== undefined;
    case "thread_busy":
      // The process that handles a request of a run at rest holds the thread for a moment.
      return hasCompetitors || storeFailed || (faults.drain ?? 0) + (faults.cancel ?? 0) > 0;
    case "thread_exists":
    case "unknown_thread":
    case "unknown_checkpoint":
      return hasCompetitors || storeFailed;
    case "fenced":
      return isCutOff;
    case "store_full":
    case "store_locked":
    case "store_unreachable":
    case "store_failed":
      return storeFailed;
    default:
      return false;
  }
}

/** Formats an error with its cause. */
export function describeError(error: unknown): string {
  return error instanceof Error && error.cause !== undefined && !isStatewrightError(error)
    ? `${error} (${String(error.cause)})`
    : String(error);
}
