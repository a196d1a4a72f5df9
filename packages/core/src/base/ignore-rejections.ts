/** Promises inside values that are refused. */
import { deepestLevel } from "./json.ts";

/**
 * A refused value may hold promises that nobody will await: how they end concerns nobody then, and a rejection must not end
 * the process. Never throws.
 */
export function disregardPromises(value: unknown): void {
  try {
    disregardFrom(value, new Set());
  } catch {
    // The value cannot be looked at any further.
  }
}

function disregardFrom(value: unknown, seen: Set<unknown>): void {
  if (typeof value !== "object" || value === null || seen.has(value) || seen.size > deepestLevel) return;
  seen.add(value);
  if (value instanceof Promise) {
    value.catch(ofNoConcern);
    return;
  }
  if (value instanceof Map || value instanceof Set) for (const item of value) disregardFrom(item, seen);
  for (const item of Object.values(value)) disregardFrom(item, seen);
}

function ofNoConcern(): void {
  // Whatever it was for has been refused.
}
