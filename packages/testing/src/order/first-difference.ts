/** First difference of two values, so that a failure shows a single line instead of two trees. */

/** Path and the two differing values. */
export interface Difference {
  /** Path such as `state.messages[2].content`. */
  readonly path: string;
  readonly first: unknown;
  readonly second: unknown;
}

type Equals = (one: unknown, other: unknown) => boolean;

/** Returns the first difference in the key order of the first value; undefined for equal values. */
export function findFirstDifference(
  first: unknown,
  second: unknown,
  path: string,
  equals: Equals = hasSameText,
): Difference | undefined {
  if (equals(first, second)) return undefined;
  const [left, right] = [toRecord(first), toRecord(second)];
  if (left === undefined || right === undefined || Array.isArray(first) !== Array.isArray(second))
    return { path, first, second };
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const innerPath = Array.isArray(first) ? `${path}[${key}]` : `${path}.${key}`;
    const difference = findFirstDifference(left[key], right[key], innerPath, equals);
    if (difference !== undefined) return difference;
  }
  return { path, first, second };
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !("asymmetricMatch" in value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

function hasSameText(first: unknown, second: unknown): boolean {
  return Object.is(first, second) || formatValue(first) === formatValue(second);
}

/** Formats a value in a single line. */
export function formatValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function") return String(value);
  try {
    return JSON.stringify(value, replaceUnprintable) ?? String(value);
  } catch {
    return String(value);
  }
}

/**
 * JSON replacer: asymmetric matchers such as `expect.any(String)` print their description, a bigint prints its
 * digits.
 */
function replaceUnprintable(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "object" || value === null || !("asymmetricMatch" in value)) return value;
  if ("toAsymmetricMatcher" in value && typeof value.toAsymmetricMatcher === "function")
    return String(value.toAsymmetricMatcher());
  return String(value);
}
