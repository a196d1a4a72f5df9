/** State differences that faults may cause: assistant messages list the failed attempts of their requests. */

/** Returns the data without the failed attempts of its messages, for comparing runs with different faults. */
export function omitFailedAttempts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(omitFailedAttempts);
  if (typeof value !== "object" || value === null) return value;
  const isAnswer = "role" in value && value.role === "assistant";
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) =>
      isAnswer && key === "failedAttempts" ? [] : [[key, omitFailedAttempts(each)]],
    ),
  );
}
