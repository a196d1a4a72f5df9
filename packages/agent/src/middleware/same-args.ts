/** Arguments as one text, whatever the order of their keys: by it calls are told apart. */

/** A text that two values share when they hold the same data; undefined for what is no JSON. */
export function textOfArgs(args: unknown): string | undefined {
  try {
    return JSON.stringify(args, (_key, value: unknown) => inOneOrder(value));
  } catch {
    return undefined;
  }
}

function inOneOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
