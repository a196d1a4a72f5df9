/** Returns true for a JSON object. Values from JSON.parse have no other objects except arrays. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
