/** Failures of requests of the native API that no schema of a body finds. */
import { type Problem, RequestProblem } from "../http/problem.ts";

/** Failure of a parameter, a header, or a combination of both with the body. */
export function createRequestProblem(parts: Pick<Problem, "detail" | "errors">): RequestProblem {
  return new RequestProblem({
    ...{ status: 422, code: "invalid_request", title: "The request does not have the expected form." },
    ...parts,
  });
}

/** Failure of a condition of `If-Match`: the head of the branch is another checkpoint. */
export function createChangedProblem(expected: string, head: number): RequestProblem {
  return new RequestProblem({
    ...{ status: 412, code: "checkpoint_changed", title: "The newest checkpoint is another one." },
    detail: `If-Match expects ${expected}, and the head is "${head}".`,
  });
}

/** Failure of an upload whose media type a page of another site could send. */
export function createFileTypeProblem(sent: string): RequestProblem {
  return new RequestProblem({
    ...{ status: 415, code: "unsupported_media_type", title: "The body does not have an accepted media type." },
    detail: `Content-Type: expected the type of the file, got ${sent === "" ? "none" : sent}. Send application/octet-stream and name the type in the parameter mimeType.`,
  });
}
