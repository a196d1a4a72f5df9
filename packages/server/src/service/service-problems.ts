/** Failures of a caller's act that no error code of core names. */
import { RequestProblem } from "../http/problem.ts";
import { createProblem } from "../http/problem-table.ts";

/** Failure of an act that the caller has no right to. Says nothing about what the act names. */
export function createForbiddenProblem(action: string): RequestProblem {
  return new RequestProblem(createProblem("forbidden", { detail: `The action is ${action}.` }));
}

/** Failure of a change on a server that only reads. */
export function createReadOnlyProblem(): RequestProblem {
  return new RequestProblem(createProblem("read_only"));
}

/** Failure for a graph that is not served, or not exposed to the caller. */
export function createUnknownGraphProblem(name: string): RequestProblem {
  return new RequestProblem(createProblem("unknown_graph", { detail: `The name is ${JSON.stringify(name)}.` }));
}

/** Failure of a change whose condition names an older checkpoint. */
export function createChangedCheckpointProblem(expected: number, head: number | undefined): RequestProblem {
  const detail = `The request is about checkpoint ${expected}, and the head is ${head ?? "missing"}.`;
  return new RequestProblem(createProblem("checkpoint_changed", { detail }));
}

/** Failure of an answer to an interrupt of a branch that the head has left: a page that shows it is out of date. */
export function createLeftBranchProblem(branch: string, head: string): RequestProblem {
  const detail = `The interrupt is on the branch "${branch}", and the head of the thread is on "${head}". Pass branch: "${branch}" to answer it.`;
  return new RequestProblem({ ...createProblem("checkpoint_changed", { detail }), status: 409 });
}

/** Failure of a value of a request that no schema of a graph checks. */
export function createInvalidRequestProblem(detail: string): RequestProblem {
  return new RequestProblem(createProblem("invalid_request", { detail }));
}

/** Failure of a continuation, a cancel or a pause on a thread without a run that it could be about. */
export function createNothingToDoProblem(detail: string): RequestProblem {
  return new RequestProblem(createProblem("nothing_to_do", { detail }));
}
