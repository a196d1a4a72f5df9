/** What faults may change in a state: a message of a model says which requests were made for it in vain. */

/** The same plain data without the `lost` of its messages, to compare a run with one that had other faults. */
export function withoutLost(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutLost);
  if (typeof value !== "object" || value === null) return value;
  const isAnswer = "role" in value && value.role === "assistant";
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => (isAnswer && key === "lost" ? [] : [[key, withoutLost(each)]])),
  );
}
