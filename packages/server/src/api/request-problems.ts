/** Failures of requests of the native API that no schema of a body finds. */
import { type Problem, RequestProblem } from "../http/problem.ts";
import { createProblem } from "../http/problem-table.ts";

/** Failure of a parameter, a header, or a combination of both with the body. */
export function createRequestProblem(parts: Pick<Problem, "detail" | "errors">): RequestProblem {
  return new RequestProblem(createProblem("invalid_request", parts));
}

/** Failure of a condition of `If-Match`: the head of the branch is another checkpoint. */
export function createChangedProblem(expected: string, head: number): RequestProblem {
  const detail = `If-Match expects ${expected}, and the head is "${head}".`;
  return new RequestProblem(createProblem("checkpoint_changed", { detail }));
}

/** Failure of an upload whose media type a page of another site could send. */
export function createFileTypeProblem(sent: string): RequestProblem {
  const detail = `Content-Type: expected the type of the file, got ${sent === "" ? "none" : sent}. Send application/octet-stream and name the type in the parameter mimeType.`;
  return new RequestProblem(createProblem("unsupported_media_type", { detail }));
}
