/** Conversion of thrown values to problems. */
import { isStatewrightError, type StatewrightError } from "@statewright/core";
import { type Problem, RequestProblem } from "./problem.ts";
import { createProblem, isProblemCode, type ProblemRow, problemTable } from "./problem-table.ts";

/** Milliseconds after which a client may repeat a request that a store or an engine refused for now. */
const defaultRetryMs = 1_000;

/** Options of {@link toProblem}. */
export interface ToProblemOptions {
  /** Shows the message of the error to the caller. Default false: a message may hold paths, values and ids. */
  readonly exposeErrors?: boolean;
}

/**
 * Converts a thrown value to the problem that its caller may see: code and title, without message, stack, cause or path.
 * An unknown error is `internal`.
 */
export function toProblem(error: unknown, { exposeErrors = false }: ToProblemOptions = {}): Problem {
  if (error instanceof RequestProblem) return addTableTitle(error.problem);
  const detail = exposeErrors && error instanceof Error ? { detail: error.message } : {};
  if (!isStatewrightError(error) || !isProblemCode(error.code)) return createProblem("internal", detail);
  const row: ProblemRow = problemTable[error.code];
  if (row.kind === "internal") return createProblem("internal", detail);
  if (row.kind === "unavailable") return createProblem(error.code, { ...detail, retryAfterMs: defaultRetryMs });
  return createProblem(error.code, { ...detail, ...listIssues(error) });
}

/** A code has the same title in every response. */
function addTableTitle(problem: Problem): Problem {
  const { code } = problem;
  return isProblemCode(code) ? { ...problem, title: problemTable[code].title } : problem;
}

/** Places of an answer or input that do not fit its public schema. */
function listIssues({ code, details }: StatewrightError): Pick<Problem, "errors"> {
  if (code !== "invalid_input" && code !== "invalid_answer") return {};
  const issues: unknown = Array.isArray(details) ? details : getField(details, "issues");
  if (!Array.isArray(issues)) return {};
  const errors = issues.flatMap((issue: unknown) => {
    const path = getField(issue, "path");
    const message = getField(issue, "message");
    if (typeof message !== "string") return [];
    return [{ pointer: toPointer(Array.isArray(path) ? path : []), detail: message }];
  });
  return errors.length === 0 ? {} : { errors: errors.slice(0, maxIssues) };
}

/** Maximum places that a problem lists. */
const maxIssues = 32;

function getField(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** Formats a path as a JSON pointer (RFC 6901). */
export function toPointer(path: readonly unknown[]): string {
  return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
