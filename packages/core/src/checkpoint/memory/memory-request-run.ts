/** Adds requests to the memory store. */
import { isDelayed } from "../delayed-run.ts";
import { checkRequestWrite, createUnknownRunError, decideRequest, toRunRequest } from "../request-rules.ts";
import { isUnfinishedRun } from "../rules.ts";
import type { RunRequest, RunRequestOutcome, RunRequestWrite } from "../run-request.ts";
import { dequeueRun } from "./memory-runs.ts";
import { getBranch, getThread, listOpenRequests, type StoredRun, type Thread, type Threads } from "./memory-thread.ts";

/** Adds a request of a run. */
export function requestRun(threads: Threads, write: RunRequestWrite): RunRequestOutcome {
  checkRequestWrite(write);
  const thread = getThread(threads, write.thread);
  const known = write.key === undefined ? undefined : thread.requests.find(({ key }) => key === write.key);
  const { row } = known === undefined ? findTarget(threads, thread, write) : getRun(thread, known.run);
  if (known !== undefined) return { run: row, request: known, isNew: false };
  const decision = decideRequest(
    write,
    row,
    listOpenRequests(thread).filter(({ run }) => run === row.id),
  );
  if (decision.kind === "add") {
    const request = toRunRequest(write, row);
    addRequest(threads, thread, request);
    return { run: row, request, isNew: true };
  }
  if (write.key !== undefined) addRequest(threads, thread, toRunRequest(write, row, true));
  if (decision.kind === "nothing") return { run: row, request: decision.first, isNew: false };
  dequeueRun(thread, row.id, write.at, write.reason ?? "");
  return { run: getRun(thread, row.id).row, isNew: true };
}

function addRequest(threads: Threads, thread: Thread, request: RunRequest): void {
  thread.requests = [...thread.requests, request];
  threads.requestThreads.add(thread.id);
}

function findTarget(threads: Threads, thread: Thread, { branch, run }: RunRequestWrite): StoredRun {
  if (run !== undefined) return getRun(thread, run);
  const { namespace } = getBranch(threads, thread.id, branch);
  const newest = namespace.run === undefined ? undefined : thread.runs.get(namespace.run);
  if (newest !== undefined && isUnfinishedRun(newest.row)) return newest;
  const queued = [...thread.runs.values()].find(
    ({ row }) => row.status === "queued" && !isDelayed(row) && row.branch === namespace.name,
  );
  const found = queued ?? newest;
  if (found === undefined) throw createUnknownRunError(thread.id, undefined);
  return found;
}

function getRun(thread: Thread, id: string): StoredRun {
  const found = thread.runs.get(id);
  if (found === undefined) throw createUnknownRunError(thread.id, id);
  return found;
}
