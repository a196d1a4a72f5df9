/** Assertions of the conformance suites, independent of any test runner. */
import { type ErrorCode, isStatewrightError } from "@statewright/core";

/**
 * Throws unless both values are equal as JSON. The order of object keys does not matter; `undefined` properties count
 * as absent.
 */
export function assertEqual(actual: unknown, expected: unknown, subject: string): void {
  const [actualText, expectedText] = [toCanonicalJson(actual), toCanonicalJson(expected)];
  if (actualText !== expectedText) throw new Error(`${subject}:\n  expected ${expectedText}\n  got      ${actualText}`);
}

/** Throws an error with the message `failure` when `condition` is false. */
export function assertTrue(condition: boolean, failure: string): asserts condition {
  if (!condition) throw new Error(failure);
}

/** Throws unless the promise is rejected with a StatewrightError of this code. */
export async function assertRejected(promise: Promise<unknown>, code: ErrorCode, subject: string): Promise<void> {
  try {
    await promise;
  } catch (error) {
    if (isStatewrightError(error, code)) return;
    throw new Error(`${subject}: expected an error with code ${code}, got another error`, { cause: error });
  }
  throw new Error(`${subject}: expected an error with code ${code}, but the promise resolved`);
}

function toCanonicalJson(value: unknown): string {
  return (
    JSON.stringify(value, (_, each: unknown) =>
      isRecord(each) ? Object.fromEntries(Object.entries(each).sort(compareKeys)) : each,
    ) ?? "undefined"
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function compareKeys([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}
