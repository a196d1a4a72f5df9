/** Retry policy of nodes, tools and models; the delay is a pure function of policy, attempt and a random number. */
import { invalidOption } from "./invalid-option.ts";
import { checkCount, checkNumber, checkOptions } from "./options.ts";

/** Retry policy: number of attempts, including the first, and the backoff in milliseconds. */
export interface RetryPolicy<On = (error: unknown, attempt: number) => boolean> {
  readonly attempts: number;
  readonly initialMs?: number;
  readonly factor?: number;
  readonly maxMs?: number;
  /** Random share of the delay to subtract or add, 0 to 1. Default 0.2. */
  readonly jitter?: number;
  /** Predicate of the failures to retry. */
  readonly on?: On;
}

/** Default of `maxMs`. */
export const defaultMaxRetryMs = 30_000;

/**
 * Returns the delay in milliseconds before attempt `attempt + 1`: `initialMs * factor^(attempt - 1)`, at most
 * `maxMs`, spread by `jitter` with `chance` in [0, 1).
 */
export function computeRetryDelayMs(policy: Omit<RetryPolicy, "on">, attempt: number, chance: number): number {
  const { initialMs = 200, factor = 2, maxMs = defaultMaxRetryMs, jitter = 0.2 } = policy;
  const delay = initialMs === 0 ? 0 : Math.min(initialMs * factor ** (attempt - 1), maxMs);
  return Math.max(0, Math.round(delay * (1 + jitter * (2 * chance - 1))));
}

/**
 * Evaluates the predicate of a retry policy. A predicate that throws means false, so that the original failure is
 * reported.
 */
export function shouldRetry<Failure>(
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

/**
 * Throws `invalid_option` for an invalid policy: attempts below 1 or fractional, negative times, factor below 1,
 * jitter outside 0 to 1.
 */
export function checkRetry(owner: string, policy: Omit<RetryPolicy, "on">): void {
  checkOptions(`the retry policy of ${owner}`, policy, ["attempts", "initialMs", "factor", "maxMs", "jitter", "on"]);
  const { attempts, initialMs, factor, maxMs, jitter } = policy;
  const where = `the retry policy of ${owner}`;
  if (attempts === undefined) throw invalidOption({ where, option: "attempts", expected: "an integer ≥ 1" });
  checkCount(where, { attempts });
  checkNumber(where, { initialMs, maxMs }, 0);
  checkNumber(where, { factor }, 1);
  checkNumber(where, { jitter }, 0, 1);
}
