import fc from "fast-check";
import { expect, test } from "vitest";
import { checkRetry, computeRetryDelayMs } from "../../src/base/retry.ts";
import { getFailure } from "../support/failure.ts";

test("a retry delay grows by the factor up to the maximum", () => {
  const policy = { attempts: 9, initialMs: 100, factor: 3, maxMs: 1_000, jitter: 0 };
  expect([1, 2, 3, 4, 5].map((attempt) => computeRetryDelayMs(policy, attempt, 0.5))).toEqual([
    100, 300, 900, 1_000, 1_000,
  ]);
});

test("jitter changes a retry delay by at most its share, and the delay is never negative [E19]", () => {
  const spread = [0, 0.5, 0.999].map((chance) =>
    computeRetryDelayMs({ attempts: 2, initialMs: 1_000, jitter: 0.5 }, 1, chance),
  );
  expect(spread).toEqual([500, 1_000, 1_499]);
  fc.assert(
    fc.property(
      fc.record({
        attempts: fc.constant(3),
        initialMs: fc.nat(10_000),
        factor: fc.double({ min: 1, max: 10, noNaN: true }),
        maxMs: fc.nat(60_000),
        jitter: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      fc.integer({ min: 1, max: 2_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (policy, attempt, chance) => {
        const delay = computeRetryDelayMs(policy, attempt, chance);
        expect(Number.isInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(policy.maxMs * (1 + policy.jitter) + 1);
      },
    ),
  );
});

test("a retry delay of zero stays zero at any attempt", () => {
  expect(computeRetryDelayMs({ attempts: 5_000, initialMs: 0 }, 4_000, 0.9)).toBe(0);
});

test.each([
  { attempts: 0 },
  { attempts: 1.5 },
  { attempts: Number.NaN },
  { attempts: Number.POSITIVE_INFINITY },
  { attempts: 2, initialMs: -1 },
  { attempts: 2, factor: 0.5 },
  { attempts: 2, maxMs: Number.NaN },
  { attempts: 2, jitter: 1.1 },
])("the retry policy %j is refused", async (policy) => {
  const error = await getFailure(() => checkRetry('the node "a"', policy), "invalid_option");
  expect(error.message).toContain('the node "a"');
});
