/** Problems of requests of LangGraph clients. */
import { type Problem, RequestProblem } from "../http/problem.ts";

/** Creates the problem of a body that does not fit, with the place as a JSON pointer. */
export function createInputProblem(pointer: string, detail: string): RequestProblem {
  return new RequestProblem({
    status: 422,
    code: "invalid_input",
    title: "The input does not match the schema of the graph.",
    detail: `${pointer}: ${detail}.`,
    errors: [{ pointer, detail }],
  });
}

/** Creates the problem of a part of the protocol that this server refuses, with the reason. */
export function createRefusal(detail: string, status: 404 | 405 | 409 | 422 = 422): RequestProblem {
  const code = status === 405 ? "method_not_allowed" : status === 404 ? "not_found" : "not_supported";
  return new RequestProblem({ status, code, title: refusedTitle, detail });
}

const refusedTitle = "This server does not support the request.";

const statuses: Readonly<Record<string, number>> = { thread_busy: 422, interrupt_expired: 409, not_json: 422 };

/**
 * Converts a problem to a response in the form of the protocol: `{ detail, code }`. Clients repeat a GET that is
 * answered with 429 or 503, so these have a `retry-after`.
 */
export function formatLangGraphProblem(problem: Problem): Response {
  const { code, title, detail, errors, retryAfterMs, headers } = problem;
  const status = statuses[code] ?? problem.status;
  const mayRetry = status === 429 || status === 503;
  const retryAfter = mayRetry ? { "retry-after": String(Math.max(1, Math.ceil((retryAfterMs ?? 1_000) / 1_000))) } : {};
  const body = { detail: detail ?? title, code, ...(errors === undefined ? {} : { errors }) };
  return Response.json(body, { status, headers: { ...headers, ...retryAfter } });
}
