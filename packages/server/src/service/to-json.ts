/** Converts saved values to JSON for the wire. */
import type { Json, JsonObject } from "@statewright/core";
import { toBase64 } from "@statewright/core/adapter";

/** Maximum levels of a value; deeper parts are null. A state is a tree, so that only a class instance can be deeper. */
const maxDepth = 512;

/**
 * Returns a value as JSON. Dates become ISO texts, bytes base64 texts, big integers decimal texts, maps lists of pairs,
 * sets lists; numbers that are not finite, functions and symbols become null, and undefined properties are left out.
 */
export function toJson(value: unknown, depth = 0): Json {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || depth > maxDepth) return null;
  const convert = (item: unknown): Json => toJson(item, depth + 1);
  if (Array.isArray(value)) return value.map(convert);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return toBase64(value);
  if (value instanceof Map) return [...value].map(([key, item]) => [convert(key), convert(item)]);
  if (value instanceof Set) return [...value].map(convert);
  return toJsonObject(value, depth);
}

/** Returns an object as JSON, by the rules of {@link toJson}. */
export function toJsonObject(value: object, depth = 0): JsonObject {
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [key, toJson(item, depth + 1)]));
}
