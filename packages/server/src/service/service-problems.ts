/** Failures of a caller's act that no error code of Statewright names. */
import { RequestProblem } from "../http/problem.ts";

/** Failure of an act that the caller has no right to. Says nothing about what the act names. */
export function createForbiddenProblem(action: string): RequestProblem {
  return new RequestProblem({
    status: 403,
    code: "forbidden",
    title: "The caller has no right to this action.",
    detail: `The caller has no right to the action ${action}.`,
  });
}

/** Failure of a change on a server that only reads. */
export function createReadOnlyProblem(): RequestProblem {
  return new RequestProblem({ status: 403, code: "read_only", title: "This server changes nothing." });
}

/** Failure for a graph that is not served, or not exposed to the caller. */
export function createUnknownGraphProblem(name: string): RequestProblem {
  return new RequestProblem({
    status: 404,
    code: "unknown_graph",
    title: "There is no such graph.",
    detail: `There is no graph ${JSON.stringify(name)}.`,
  });
}

/** Failure of a stream that would begin after the newest event of the thread. */
export function createUnknownEventProblem(after: number, newest: number): RequestProblem {
  return new RequestProblem({
    status: 409,
    code: "event_unknown",
    title: "The thread has no event with this number yet.",
    detail: `The stream would begin after event ${after}, and the newest event is ${newest}.`,
  });
}

/** Failure of a change whose condition names an older checkpoint. */
export function createChangedCheckpointProblem(expected: number, head: number | undefined): RequestProblem {
  return new RequestProblem({
    status: 412,
    code: "checkpoint_changed",
    title: "The head of the branch is another checkpoint.",
    detail: `The request is about checkpoint ${expected}, and the head is ${head ?? "missing"}.`,
  });
}

/** Failure of a value of a request that no schema of a graph checks. */
export function createInvalidRequestProblem(detail: string): RequestProblem {
  return new RequestProblem({ status: 422, code: "invalid_request", title: "The request is invalid.", detail });
}

/** Failure of a continuation on a thread without a paused, failed or crashed run. */
export function createNothingToResumeProblem(): RequestProblem {
  return new RequestProblem({ status: 409, code: "nothing_to_resume", title: "The thread has nothing to continue." });
}

/** Failure of a cancel or a pause on a thread without an unfinished run. */
export function createNothingAtWorkProblem(): RequestProblem {
  return new RequestProblem({ status: 409, code: "nothing_at_work", title: "No run of the thread is at work." });
}
