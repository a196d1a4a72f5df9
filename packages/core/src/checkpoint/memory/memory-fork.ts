/** Forks of threads in the memory store. */
import { checkId } from "../../base/ids.ts";
import type { CheckpointRow } from "../checkpoint.ts";
import type { InterruptRow } from "../journal.ts";
import { createBusyError, type ForkedNamespace, resolveForkedNamespaces } from "../rules.ts";
import type { BranchWrite } from "../store.ts";
import {
  appendCheckpoint,
  createNamespace,
  getThread,
  putInterrupt,
  type StoredCheckpoint,
  type Thread,
  type Threads,
} from "./memory-thread.ts";

export function forkBranch(threads: Threads, write: BranchWrite): CheckpointRow {
  checkId("thread", write.thread);
  checkId("branch", write.branch);
  const thread = getThread(threads, write.thread);
  if (thread.owner?.alive === true) throw createBusyError(write.thread);
  const [outer, ...inner] = resolveForkedNamespaces(write, {
    origin: (from) => thread.checkpoints.get(from),
    has: (namespace) => thread.namespaces.has(namespace),
  });

  const row = startNamespace(threads, thread, outer, write.interrupts);
  for (const namespace of inner) startNamespace(threads, thread, namespace, []);
  if (write.head === true) thread.headBranch = write.branch;
  return row;
}

function startNamespace(
  threads: Threads,
  thread: Thread,
  { namespace: name, from, origin, checkpoint }: ForkedNamespace<StoredCheckpoint>,
  interrupts: readonly InterruptRow[],
): CheckpointRow {
  const namespace = createNamespace(name, from, origin.namespace);
  const row = { ...checkpoint.row, id: thread.checkpoint + 1, branch: name, parent: from, seq: thread.seq + 1 };
  appendCheckpoint(thread, namespace, { row, deltas: checkpoint.deltas }, origin.writtenBy);
  for (const interrupt of interrupts) putInterrupt(threads, namespace, interrupt);
  thread.seq = row.seq;
  thread.updatedAt = Math.max(thread.updatedAt, row.at);
  return row;
}
