/** Failures of the acts of the native API that no error code of core names. */
import { RequestProblem } from "../../http/problem.ts";
import { createProblem } from "../../http/problem-table.ts";

/** Failure for an artifact that the thread does not have. */
export function createUnknownArtifactProblem(key: string): RequestProblem {
  return new RequestProblem(
    createProblem("unknown_artifact", { detail: `There is no artifact ${JSON.stringify(key)}.` }),
  );
}

/** Failure for a file that a message names and the thread does not have, or has no more. */
export function createUnknownFileProblem(id: string): RequestProblem {
  const detail = `There is no file ${JSON.stringify(id)}. Upload it to this thread; a file waits 24 hours for its message.`;
  return new RequestProblem(createProblem("unknown_file", { detail }));
}

/** Failure of an upload to a thread with too many waiting files. */
export function createTooManyFilesProblem(limit: number): RequestProblem {
  const detail = `A thread has at most ${limit} files that wait for their message.`;
  return new RequestProblem(createProblem("too_many_files", { detail }));
}

/** Failure of a request above a limit of size. */
export function createTooLargeProblem(detail: string): RequestProblem {
  return new RequestProblem(createProblem("body_too_large", { detail }));
}

/** Failure of a new schedule whose id is in use. */
export function createKnownScheduleProblem(id: string): RequestProblem {
  const detail = `There is a schedule ${JSON.stringify(id)}. Use PUT to replace its content.`;
  return new RequestProblem(createProblem("schedule_exists", { detail }));
}

/** Failure of a schedule above the maximum number of a tenant. */
export function createTooManySchedulesProblem(limit: number): RequestProblem {
  return new RequestProblem(
    createProblem("too_many_schedules", { detail: `A tenant has at most ${limit} schedules.` }),
  );
}

/** Failure of a schedule whose runs are closer to each other than the minimum. */
export function createIntervalProblem({ minMs, ms }: { readonly minMs: number; readonly ms: number }): RequestProblem {
  const detail = `Expected at least ${minMs} ms between two runs, got ${ms} ms.`;
  return new RequestProblem(createProblem("interval_too_short", { detail }));
}
