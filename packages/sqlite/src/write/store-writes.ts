/** Writes of the store interface. */

import type { Store } from "@statewright/core";
import { checkId } from "@statewright/core/adapter";
import {
  type Commit,
  claimRules,
  type HintKind,
  type PruneWrite,
  requestRules,
  storeRules,
  type ThreadRow,
  threadRules,
} from "@statewright/core/store";
import { eraseSecurely } from "../file/erase-securely.ts";
import type { StoreParts } from "../store-parts.ts";

/** Writes to threads. */
export type StoreWrites = Pick<
  Store,
  | "createThread"
  | "updateThread"
  | "claim"
  | "claimRuns"
  | "claimTimers"
  | "commit"
  | "branch"
  | "enqueue"
  | "enqueueDue"
  | "dequeue"
  | "post"
  | "request"
  | "delete"
  | "importThread"
  | "prune"
>;

/** Creates the writes of a store, and reports them to the listeners of the store. */
export function createStoreWrites(parts: StoreParts): StoreWrites {
  const writes = createWrites(parts);
  const { watch } = parts;
  const reportAfter = async <Value>(thread: string, kind: HintKind, write: Promise<Value>): Promise<Value> => {
    const value = await write;
    if (watch.isWatched(kind)) watch.report(thread, kind);
    return value;
  };
  return {
    ...writes,
    createThread: (write) => reportAfter(write.thread, "change", writes.createThread(write)),
    updateThread: (thread, patch) => reportAfter(thread, "change", writes.updateThread(thread, patch)),
    commit: (commit, onCommitted) =>
      writes.commit(
        commit,
        watch.isWatched("change") || commit.handledRequests !== undefined
          ? (failure, counts) => {
              onCommitted(failure, counts);
              if (failure !== undefined) return;
              if (isVisible(commit)) watch.report(commit.thread, "change");
              // The next queued run can start, although no owner starts it.
              if (commit.handledRequests !== undefined && counts !== undefined && counts.queued > 0)
                watch.report(commit.thread, "input");
            }
          : onCommitted,
      ),
    branch: (fork) => reportAfter(fork.thread, "change", writes.branch(fork)),
    enqueue: (put) => reportAfter(put.thread, "input", writes.enqueue(put)),
    dequeue: (thread, run, ended) => reportAfter(thread, "input", writes.dequeue(thread, run, ended)),
    post: (message) => reportAfter(message.thread, "input", writes.post(message)),
    request: (write) => reportAfter(write.thread, "input", writes.request(write)),
    delete: (thread) => reportAfter(thread, "change", writes.delete(thread)),
    importThread: (exported) => reportAfter(exported.id, "change", writes.importThread(exported)),
  };
}

/** Returns true for a commit that lists show: journal rows alone are none. */
function isVisible({ checkpoint, run, interrupts }: Commit): boolean {
  return checkpoint !== undefined || run !== undefined || interrupts !== undefined;
}

function createWrites(parts: StoreParts): StoreWrites {
  const { transactions, claims, writer, outside } = parts;
  return {
    createThread: async (write) => {
      threadRules.checkThreadWrite(write);
      await claims.writeWithDeferredClaim(write.thread, () => writer.newThreads.create(write));
      return await getThreadRow(parts, write.thread);
    },
    updateThread: async (thread, patch) => {
      threadRules.checkThreadPatch(thread, patch);
      await claims.writeWithDeferredClaim(thread, () => writer.newThreads.change(thread, patch));
      return await getThreadRow(parts, thread);
    },
    claim: async (request) => {
      checkId("thread", request.thread);
      if (request.branch !== undefined) checkId("branch", request.branch);
      return await claims.claim(request);
    },
    claimRuns: async (request) => {
      claimRules.checkRunClaimRequest(request);
      return await claims.claimRuns(request);
    },
    claimTimers: async (request) => {
      claimRules.checkTimerClaimRequest(request);
      return await claims.claimTimers(request);
    },
    commit: (commit, onCommitted) => {
      const write = (): void => claims.commit(commit, onCommitted);
      if (outside === undefined) write();
      else outside.putBefore(commit.thread, commit.artifacts ?? [], { write, fail: onCommitted });
    },
    branch: async (fork) => {
      checkId("thread", fork.thread);
      checkId("branch", fork.branch);
      return await transactions.write(fork.thread, () => {
        claims.refuseDeferred(fork.thread);
        return writer.forks.create(fork, claims.getReleasedEpoch(fork.thread));
      });
    },
    enqueue: async (put) => {
      checkId("thread", put.thread);
      return await claims.writeWithDeferredClaim(put.thread, () =>
        writer.queue.enqueue(put, claims.getReleasedEpoch(put.thread)),
      );
    },
    enqueueDue: async (page) => {
      storeRules.checkDuePage(page);
      return await transactions.write(undefined, () =>
        writer.queue.enqueueDue(page, (thread) => claims.getReleasedEpoch(thread)),
      );
    },
    dequeue: (thread, run, ended) => transactions.write(thread, () => writer.queue.dequeue(thread, run, ended)),
    post: async (message) => {
      checkId("thread", message.thread);
      return await claims.writeWithDeferredClaim(message.thread, () => writer.inbox.post(message));
    },
    request: async (write) => {
      requestRules.checkRequestWrite(write);
      return await claims.writeWithDeferredClaim(write.thread, () => writer.requests.add(write));
    },
    delete: (id) => deleteThread(parts, id),
    importThread: async (threadExport) => {
      await outside?.putImported(threadExport);
      await transactions.write(threadExport.id, () => {
        if (claims.isDeferred(threadExport.id)) throw storeRules.createThreadExistsError(threadExport.id);
        writer.threadImport.insert(threadExport);
      });
    },
    prune: (write) => pruneThread(parts, write),
  };
}

/** Throws `unknown_thread` for a thread that was deleted in between. */
async function getThreadRow({ transactions }: StoreParts, thread: string): Promise<ThreadRow> {
  const row = await transactions.readStatus((from, dead) => from.threads.get(thread, dead), thread);
  if (row === undefined) throw storeRules.createUnknownThreadError(thread);
  return row;
}

async function pruneThread({ db, world, transactions, writer }: StoreParts, write: PruneWrite): Promise<number> {
  const pieces = writer.retention.prune(write);
  for (let piece = pieces.next(); ; piece = pieces.next()) {
    if (piece.done === true) return piece.value;
    const { kind, run } = piece.value;
    if (kind === "writes") await transactions.write(write.thread, () => eraseSecurely(db, run));
    else if (kind === "reads") await transactions.read(run, write.thread);
    // Yields to other work; a write step has already waited for its turn.
    if (kind !== "writes") await new Promise<void>((resolve) => void world.schedule.soon(resolve));
  }
}

/** Deletes a thread; resolves when its rows are gone. Other writes run between the pieces. */
async function deleteThread(parts: StoreParts, id: string): Promise<void> {
  const { db, world, transactions, claims, writer } = parts;
  const begin = (): boolean => {
    claims.refuseDeferred(id);
    return writer.deletion.begin(id, claims.getReleasedEpoch(id), world.clock.now());
  };
  const hasRemains = await transactions.write(id, () => eraseSecurely(db, begin), { onDone: () => claims.forget(id) });
  if (hasRemains) await removeRemains(parts);
}

/** Deletes the remaining rows of deleted threads, piece by piece. */
export async function removeRemains({ db, world, transactions, writer }: StoreParts): Promise<void> {
  const remove = (): boolean => eraseSecurely(db, () => writer.deletion.removePiece());
  while (await transactions.write(undefined, remove))
    await new Promise<void>((resolve) => void world.schedule.soon(resolve));
}
