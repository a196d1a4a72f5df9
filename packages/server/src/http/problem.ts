/** Failure of a request, in a form that each protocol turns into its own error. */

/** What a caller may know about a failure. */
export interface Problem {
  readonly status: number;
  /** Stable code: an error code of Statewright, or a code of the server such as `not_found`. */
  readonly code: string;
  /** Sentence for the code, the same for every occurrence. */
  readonly title: string;
  /** Sentence for this occurrence, without anything that the caller may not see. */
  readonly detail?: string | undefined;
  /** Places in the body that do not fit, as JSON pointers. */
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[] | undefined;
  /** Milliseconds after which the same request may succeed. Becomes the header `retry-after`. */
  readonly retryAfterMs?: number | undefined;
  /** Further headers of the response, such as `allow`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Id of the request, also in the log line of the failure. */
  readonly requestId?: string | undefined;
}

/** Error that ends a request with a problem. Handlers throw it; it never leaves the server otherwise. */
export class RequestProblem extends Error {
  readonly problem: Problem;

  constructor(problem: Problem, options: { readonly cause?: unknown } = {}) {
    super(problem.detail ?? problem.title, options);
    this.name = "RequestProblem";
    this.problem = problem;
  }
}
