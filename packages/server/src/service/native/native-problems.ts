/** Failures of the acts of the native API that no error code of Statewright names. */
import { RequestProblem } from "../../http/problem.ts";

/** Failure for an artifact that the thread does not have. */
export function createUnknownArtifactProblem(key: string): RequestProblem {
  return new RequestProblem({
    ...{ status: 404, code: "unknown_artifact", title: "The thread has no such artifact." },
    detail: `There is no artifact ${JSON.stringify(key)}.`,
  });
}

/** Failure for a file that a message names and the thread does not have, or has no more. */
export function createUnknownFileProblem(id: string): RequestProblem {
  return new RequestProblem({
    ...{ status: 422, code: "unknown_file", title: "The thread has no such file." },
    detail: `There is no file ${JSON.stringify(id)}. Upload it to this thread; a file waits 24 hours for its message.`,
  });
}

/** Failure of an upload to a thread with too many waiting files. */
export function createTooManyFilesProblem(limit: number): RequestProblem {
  return new RequestProblem({
    ...{ status: 422, code: "too_many_files", title: "The thread has too many waiting files." },
    detail: `A thread has at most ${limit} files that no message has named.`,
  });
}

/** Failure of a request above a limit of size. */
export function createTooLargeProblem(detail: string): RequestProblem {
  return new RequestProblem({ status: 413, code: "body_too_large", title: "The body is too large.", detail });
}

/** Failure of a new schedule whose id is in use. */
export function createKnownScheduleProblem(id: string): RequestProblem {
  return new RequestProblem({
    ...{ status: 409, code: "schedule_exists", title: "The id of the schedule is in use." },
    detail: `There is a schedule ${JSON.stringify(id)}. Use PUT to replace its content.`,
  });
}

/** Failure of a schedule above the maximum number of a tenant. */
export function createTooManySchedulesProblem(limit: number): RequestProblem {
  return new RequestProblem({
    ...{ status: 422, code: "too_many_schedules", title: "The tenant has too many schedules." },
    detail: `A tenant has at most ${limit} schedules.`,
  });
}

/** Failure of a schedule whose runs are closer to each other than the minimum. */
export function createIntervalProblem({ minMs, ms }: { readonly minMs: number; readonly ms: number }): RequestProblem {
  return new RequestProblem({
    ...{ status: 422, code: "interval_too_short", title: "The runs of the schedule are too close to each other." },
    detail: `Expected at least ${minMs} ms between two runs, got ${ms} ms.`,
  });
}
