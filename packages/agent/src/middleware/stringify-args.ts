/** Serializes arguments with sorted keys, for comparison of tool calls. */

/**
 * Serializes a value as JSON with sorted keys, so that equal data gives equal text, and different data gives different
 * text; undefined for a value that is not plain data.
 */
export function stringifyArgs(args: unknown): string | undefined {
  try {
    return JSON.stringify(args, (_key, value: unknown) => sortKeys(value));
  } catch {
    return undefined;
  }
}

const stringifiedArgs: WeakMap<object, string | undefined> = new WeakMap();

/**
 * As {@link stringifyArgs}, cached: arguments in a conversation are immutable, and each further call compares with
 * them.
 */
export function stringifySavedArgs(args: unknown): string | undefined {
  if (typeof args !== "object" || args === null) return stringifyArgs(args);
  if (!stringifiedArgs.has(args)) stringifiedArgs.set(args, stringifyArgs(args));
  return stringifiedArgs.get(args);
}

function sortKeys(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError("not JSON");
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  // A Map, a Set and an instance of a class would all read as {}.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null && !ArrayBuffer.isView(value))
    throw new TypeError("not plain data");
  const entries = Object.entries(value);
  return Object.fromEntries(entries.toSorted(([left], [right]) => (left < right ? -1 : 1)));
}
