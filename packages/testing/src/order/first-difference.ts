/** The first place where two values differ, so that a failure shows one line instead of two trees. */

/** A place and what stands there. */
export interface Difference {
  /** As `state.messages[2].content`. */
  readonly place: string;
  readonly one: unknown;
  readonly other: unknown;
}

type Equals = (one: unknown, other: unknown) => boolean;

/** Where `one` and `other` differ first, in the order of `one`; undefined where they are equal. */
export function firstDifference(
  one: unknown,
  other: unknown,
  place: string,
  equals: Equals = sameText,
): Difference | undefined {
  if (equals(one, other)) return undefined;
  const [left, right] = [partsOf(one), partsOf(other)];
  if (left === undefined || right === undefined || Array.isArray(one) !== Array.isArray(other))
    return { place, one, other };
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const inner = Array.isArray(one) ? `${place}[${key}]` : `${place}.${key}`;
    const found = firstDifference(left[key], right[key], inner, equals);
    if (found !== undefined) return found;
  }
  return { place, one, other };
}

function partsOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !("asymmetricMatch" in value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

function sameText(one: unknown, other: unknown): boolean {
  return Object.is(one, other) || textOfValue(one) === textOfValue(other);
}

/** A value in one line: enough of it to be known by. */
export function textOfValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function") return String(value);
  try {
    return JSON.stringify(value, readable) ?? String(value);
  } catch {
    return String(value);
  }
}

/** Matchers such as `expect.any(String)` say what they take; what JSON has no word for says what it is. */
function readable(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "object" || value === null || !("asymmetricMatch" in value)) return value;
  if ("toAsymmetricMatcher" in value && typeof value.toAsymmetricMatcher === "function")
    return String(value.toAsymmetricMatcher());
  return String(value);
}
