/** Problems of requests of LangGraph clients. */
import { type Problem, RequestProblem } from "../http/problem.ts";
import { createProblem, isProblemCode, problemTable } from "../http/problem-table.ts";

/** Creates the problem of a body that does not fit, with the place as a JSON pointer. */
export function createInputProblem(pointer: string, detail: string): RequestProblem {
  return new RequestProblem(
    createProblem("invalid_input", { detail: `${pointer}: ${detail}.`, errors: [{ pointer, detail }] }),
  );
}

/** Creates the problem of a part of the protocol that this server refuses, with the reason. */
export function createRefusal(detail: string, status: keyof typeof refusalCodes = 422): RequestProblem {
  return new RequestProblem({ ...createProblem(refusalCodes[status], { detail }), status });
}

const refusalCodes = { 404: "not_found", 405: "method_not_allowed", 422: "invalid_request" } as const;

/**
 * Converts a problem to a response in the form of the protocol: `{ detail, code }`. Clients repeat a GET that is
 * answered with 429 or 503, so these have a `retry-after`.
 */
export function formatLangGraphProblem(problem: Problem): Response {
  const { code, title, detail, errors, retryAfterMs, headers } = problem;
  const status = isProblemCode(code) ? problemTable[code].langgraph : problem.status;
  const mayRetry = status === 429 || status === 503;
  const retryAfter = mayRetry ? { "retry-after": String(Math.max(1, Math.ceil((retryAfterMs ?? 1_000) / 1_000))) } : {};
  const body = { detail: detail ?? title, code, ...(errors === undefined ? {} : { errors }) };
  return Response.json(body, { status, headers: { ...headers, ...retryAfter } });
}
