/** Arguments as one text, whatever the order of their keys: by it calls are told apart. */

/** A text that two values share when they hold the same data; undefined for what is no JSON. */
export function textOfArgs(args: unknown): string | undefined {
  try {
    return JSON.stringify(args, (_key, value: unknown) => inOneOrder(value));
  } catch {
    return undefined;
  }
}

const texts: WeakMap<object, string | undefined> = new WeakMap();

/** The same of arguments in a conversation, which never change: asked for with each further call, they are written once. */
export function textOfSavedArgs(args: unknown): string | undefined {
  if (typeof args !== "object" || args === null) return textOfArgs(args);
  if (!texts.has(args)) texts.set(args, textOfArgs(args));
  return texts.get(args);
}

function inOneOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
