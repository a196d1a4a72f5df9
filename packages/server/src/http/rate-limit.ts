/** Rate limits: a hook of the host, and a token bucket in memory. */
import type { World } from "@statewright/core";
import { checkCount, checkOptions, checkTime } from "@statewright/core/adapter";
import type { Action, Caller } from "../access/caller.ts";

/** Decision about a request. The numbers become the headers `ratelimit-limit`, `-remaining` and `-reset`. */
export interface RateDecision {
  /** Milliseconds after which the request may succeed; absent for an accepted request. */
  readonly retryAfterMs?: number | undefined;
  /** Requests of a full bucket. */
  readonly limit?: number | undefined;
  /** Requests that are left now. */
  readonly remaining?: number | undefined;
  /** Milliseconds until the bucket is full. */
  readonly resetMs?: number | undefined;
}

/** Decides about a request of a caller. */
export type RateLimit = (caller: Caller, action: Action) => RateDecision | Promise<RateDecision>;

/** Token bucket per caller, in memory: each process counts for itself. */
export interface RateLimitOptions {
  /** Requests of a caller in an interval, and at once. */
  readonly requests: number;
  /** Length of the interval in milliseconds. Default 60,000. */
  readonly perMs?: number;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** Maximum number of buckets. Above it the oldest bucket is removed. */
const maxBuckets = 10_000;

/** Creates the rate limit of a server from its option: a function, or a token bucket. Throws `invalid_option`. */
export function createRateLimit(option: RateLimit | RateLimitOptions | undefined, world: World): RateLimit | undefined {
  if (option === undefined || typeof option === "function") return option;
  checkOptions("serve limit", option, ["requests", "perMs"]);
  const { requests, perMs = 60_000 } = option;
  checkCount("serve limit", { requests });
  checkTime("serve limit", { perMs });
  const buckets = new Map<string, Bucket>();
  return ({ id, tenant }) => {
    const now = world.clock.monotonic();
    const key = `${tenant}/${id}`;
    const { tokens, at } = buckets.get(key) ?? { tokens: requests, at: now };
    const filled = Math.min(requests, tokens + ((now - at) * requests) / perMs);
    const isAccepted = filled >= 1;
    const left = isAccepted ? filled - 1 : filled;
    // A written bucket moves to the end, so that the first one is the oldest.
    buckets.delete(key);
    buckets.set(key, { tokens: left, at: now });
    const [oldest] = buckets.keys();
    if (buckets.size > maxBuckets && oldest !== undefined) buckets.delete(oldest);
    return {
      retryAfterMs: isAccepted ? undefined : ((1 - left) * perMs) / requests,
      limit: requests,
      remaining: Math.floor(left),
      resetMs: ((requests - left) * perMs) / requests,
    };
  };
}

/** Headers of a decision, in whole seconds. */
export function listRateHeaders({ limit, remaining, resetMs }: RateDecision): Readonly<Record<string, string>> {
  return {
    ...(limit === undefined ? {} : { "ratelimit-limit": String(limit) }),
    ...(remaining === undefined ? {} : { "ratelimit-remaining": String(remaining) }),
    ...(resetMs === undefined ? {} : { "ratelimit-reset": String(Math.ceil(resetMs / 1_000)) }),
  };
}
