/** Handles rejections of promises inside refused values. */
import { maxDepth } from "./json.ts";

/**
 * Adds rejection handlers to the promises inside a refused value, because an unhandled rejection would end the
 * process. Contract: never throws.
 */
export function ignoreRejections(value: unknown): void {
  try {
    ignoreNestedRejections(value, new Set());
  } catch {
    // A getter or a proxy threw: stop the traversal.
  }
}

function ignoreNestedRejections(value: unknown, seen: Set<unknown>): void {
  if (typeof value !== "object" || value === null || seen.has(value) || seen.size > maxDepth) return;
  seen.add(value);
  if (value instanceof Promise) {
    value.catch(doNothing);
    return;
  }
  if (value instanceof Map || value instanceof Set) for (const item of value) ignoreNestedRejections(item, seen);
  for (const item of Object.values(value)) ignoreNestedRejections(item, seen);
  // The parts of a command have symbols as keys.
  for (const key of Object.getOwnPropertySymbols(value)) ignoreNestedRejections(Reflect.get(value, key), seen);
}

function doNothing(): void {
  // The value is already refused, so the rejection is irrelevant.
}
