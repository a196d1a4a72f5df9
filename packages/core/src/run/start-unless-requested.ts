/** Start of a run that a request may end first: its process died, or the run rested, before the request was handled. */
import { toErrorRecord } from "../base/errors.ts";
import type { RunRequest } from "../checkpoint/run-request.ts";
import { finishCancelled, finishPaused } from "./loop/finish.ts";
import { createDrainedError } from "./loop/run-supersteps.ts";
import { applyRequest, describeRequest } from "./session/check-requests.ts";
import type { RunResult } from "./session/options/options.ts";
import type { Persistence } from "./session/parts/persistence.ts";
import type { State } from "./session/returns.ts";
import type { Session } from "./session/session.ts";

/**
 * Calls `work` unless the run has a request. A run that continues is cancelled or paused without running a node; a run
 * that starts stops before its first node.
 */
export async function startUnlessRequested(
  session: Session,
  saved: Persistence,
  work: () => Promise<RunResult<State>>,
): Promise<RunResult<State>> {
  if (saved.claim.requests === 0) return await work();
  const requests = await listOwnRequests(saved);
  for (const request of requests) applyRequest(saved.thread, request);
  const [first] = requests;
  if (first === undefined || saved.claim.run?.id !== saved.thread.run.id) return await work();
  return session.signals.abort.signal.aborted
    ? await finishCancelled(session)
    : await finishPaused(session, createDrainedError(session.position, describeRequest(first)));
}

/** Lists the requests of the run. A store that fails here fails the first commit of the run too. */
async function listOwnRequests({ store, thread: { run, world } }: Persistence): Promise<readonly RunRequest[]> {
  try {
    return (await store.requests(run.thread)).filter((request) => request.run === run.id);
  } catch (error) {
    world.log("warn", "the requests of a thread could not be read", {
      thread: run.thread,
      error: toErrorRecord(error),
    });
    return [];
  }
}
