/** Writes of the store interface. */

import type { Store } from "@statewright/core";
import { checkId } from "@statewright/core/adapter";
import {
  claimRules,
  type PruneWrite,
  requestRules,
  storeRules,
  type ThreadRow,
  threadRules,
} from "@statewright/core/store";
import { eraseSecurely } from "../file/erase-securely.ts";
import type { StoreParts } from "../store-parts.ts";
import type { LargeDeletion } from "./thread-deletion.ts";

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

export function createStoreWrites(parts: StoreParts): StoreWrites {
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

/** Deletes a thread; a large one in steps, between which other writes run. */
async function deleteThread({ db, world, transactions, claims, writer }: StoreParts, id: string): Promise<void> {
  const write = <Value>(run: () => Value): Promise<Value> => transactions.write(id, () => eraseSecurely(db, run));
  const begin = (): LargeDeletion | undefined => {
    claims.refuseDeferred(id);
    return writer.deletion.begin(id, claims.getReleasedEpoch(id), world.clock.now());
  };
  const large = await transactions.write(id, () => eraseSecurely(db, begin), { onDone: () => claims.forget(id) });
  if (large === undefined) return;
  try {
    for (const step of large.steps) {
      await write(step);
      await new Promise<void>((resolve) => void world.schedule.soon(resolve));
    }
  } catch (error) {
    await transactions.write(id, large.release).catch((failure: unknown) => {
      world.log("warn", "a thread whose deletion failed could not be released", { thread: id, error: String(failure) });
    });
    throw error;
  }
}
