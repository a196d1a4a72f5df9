/** Retry: one policy for nodes, tools and models; the delay is a pure function of policy, attempt and chance. */
import { StatewrightError } from "./errors.ts";
import { checkOptions } from "./options.ts";

/** How often and when a failed attempt is tried again. `attempts` counts the first one. Times are in milliseconds. */
export interface RetryPolicy<On = (error: unknown, attempt: number) => boolean> {
  readonly attempts: number;
  readonly initialMs?: number;
  readonly factor?: number;
  readonly maxMs?: number;
  /** Share of the delay that chance may take away or add, 0 to 1. */
  readonly jitter?: number;
  /** Which failures are tried again. */
  readonly on?: On;
}

/** The longest wait of a policy that says nothing else, in milliseconds. */
export const longestRetryMs = 30_000;

/** Delay before attempt `attempt + 1`: `initialMs * factor^(attempt - 1)`, at most `maxMs`, spread by `jitter` with `chance` in [0, 1). */
export function retryDelayMs(policy: Omit<RetryPolicy, "on">, attempt: number, chance: number): number {
  const { initialMs = 200, factor = 2, maxMs = longestRetryMs, jitter = 0.2 } = policy;
  const delay = initialMs === 0 ? 0 : Math.min(initialMs * factor ** (attempt - 1), maxMs);
  return Math.max(0, Math.round(delay * (1 + jitter * (2 * chance - 1))));
}

/** Ask a policy's predicate. One that throws has not said yes: the failure that it was asked about is the one to tell. */
export function saysYes<Failure>(
  on: (error: Failure, attempt: number) => boolean,
  error: Failure,
  attempt: number,
): boolean {
  try {
    return on(error, attempt);
  } catch {
    return false;
  }
}

/** Refuse a policy that cannot be meant: attempts below 1 or not whole, negative times, jitter outside 0 to 1. */
export function checkRetry(owner: string, policy: Omit<RetryPolicy, "on">): void {
  checkOptions(`the retry policy of ${owner}`, policy, ["attempts", "initialMs", "factor", "maxMs", "jitter", "on"]);
  const { attempts, initialMs = 0, factor = 1, maxMs = 0, jitter = 0 } = policy;
  const sound =
    [initialMs, factor, maxMs, jitter].every((value) => typeof value === "number") &&
    Number.isInteger(attempts) &&
    attempts >= 1 &&
    initialMs >= 0 &&
    factor >= 1 &&
    maxMs >= 0 &&
    jitter >= 0 &&
    jitter <= 1;
  if (sound) return;
  throw new StatewrightError("invalid_option", {
    what: `the retry policy of ${owner} cannot be followed`,
    next: "Give attempts as a whole number from 1, times from 0, factor from 1, jitter from 0 to 1",
    details: policy,
  });
}
