/** Response of a problem as `application/problem+json` (RFC 9457). */
import type { Problem } from "./problem.ts";

/** Formats a problem as `application/problem+json`. The form of the native API and of the AI SDK stream. */
export function formatProblem(problem: Problem): Response {
  const { status, code, title, detail, errors, requestId } = problem;
  const instance = requestId === undefined ? undefined : `urn:statewright:request:${requestId}`;
  const body = { type: `urn:statewright:error:${code}`, title, status, code, detail, instance, errors };
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/problem+json", ...listProblemHeaders(problem) },
  });
}

/** Headers of a problem in each protocol: `retry-after`, `cache-control` and those that the problem names. */
function listProblemHeaders({ headers, retryAfterMs }: Problem): Readonly<Record<string, string>> {
  return {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...(retryAfterMs === undefined ? {} : { "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) }),
    ...headers,
  };
}
