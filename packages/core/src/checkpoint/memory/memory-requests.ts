/** Requests of the memory store: listed, counted, and handled by commits. */
import { isHandledBy } from "../request-rules.ts";
import type { InputCounts, RunRequest } from "../run-request.ts";
import type { Commit } from "../store.ts";
import type { Thread } from "./memory-thread.ts";

/** Lists the requests that are not handled. */
export function listOpenRequests({ requests }: Pick<Thread, "requests">): readonly RunRequest[] {
  return requests.filter(({ handled }) => handled !== true);
}

/** Handles the requests that a commit handles: a request with a key stays, marked as handled. */
export function handleRequests(thread: Thread, commit: Commit): void {
  if (thread.requests.length > 0) endRequests(thread, (request) => isHandledBy(commit, request));
}

/** Removes the open requests that `isHandled` selects: a request with a key stays, marked as handled. */
export function endRequests(thread: Thread, isHandled: (request: RunRequest) => boolean): void {
  thread.requests = thread.requests.flatMap((request): readonly RunRequest[] => {
    if (request.handled === true || !isHandled(request)) return [request];
    return request.key === undefined ? [] : [{ ...request, handled: true }];
  });
}

/** Returns the inputs that wait for the owner of a thread. */
export function countInputs(thread: Thread | undefined): InputCounts {
  if (thread === undefined) return { queued: 0, messages: 0, requests: 0 };
  const { queued, messages, requests } = thread;
  return { queued, messages, requests: requests.length === 0 ? 0 : listOpenRequests({ requests }).length };
}
