/** The few assertions that the suites need, without a test runner. */
import { type ErrorCode, isStatewrightError } from "@statewright/core";

/** Throws unless both are the same data; a property that is `undefined` counts as absent. */
export function same(actual: unknown, expected: unknown, what: string): void {
  const [found, wanted] = [canonical(actual), canonical(expected)];
  if (found !== wanted) throw new Error(`${what}:\n  expected ${wanted}\n  found    ${found}`);
}

/** Throws unless `condition` holds. */
export function holds(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

/** Throws unless the promise is rejected with an error of this code. */
export async function refused(work: Promise<unknown>, code: ErrorCode, what: string): Promise<void> {
  try {
    await work;
  } catch (thrown) {
    if (isStatewrightError(thrown, code)) return;
    throw new Error(`${what}: refused with another error than ${code}`, { cause: thrown });
  }
  throw new Error(`${what}: was not refused with ${code}`);
}

function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, each: unknown) =>
      isRecord(each) ? Object.fromEntries(Object.entries(each).sort(byKey)) : each,
    ) ?? "undefined"
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function byKey([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}
