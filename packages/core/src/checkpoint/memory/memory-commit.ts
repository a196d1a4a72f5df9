/** Commits to the memory store, and inbox messages: posted, listed and delivered. */
import { checkId } from "../../base/ids.ts";
import { checkWellFormed } from "../../base/well-formed.ts";
import type { RunRow } from "../checkpoint.ts";
import { isDelayed } from "../delayed-run.ts";
import type { InboxMessage, InboxMessageWrite } from "../inbox-message.ts";
import type { EffectRow } from "../journal.ts";
import { checkOutboxWrites } from "../outbox.ts";
import {
  checkFollows,
  createFencedError,
  createGapError,
  createRunExistsError,
  createUnknownBranchError,
  findClosedInterrupts,
  getChangeTime,
  getLatestTime,
  getNewNamespaceParent,
} from "../rules.ts";
import type { InputCounts } from "../run-request.ts";
import type { Commit } from "../store.ts";
import { addOutboxRow } from "./memory-outbox.ts";
import { findRunByKey } from "./memory-runs.ts";
import {
  appendCheckpoint,
  closeInterrupts,
  countInputs,
  createNamespace,
  getBranch,
  getLastCheckpointId,
  handleRequests,
  type Owner,
  putArtifact,
  putInterrupt,
  type StoredNamespace,
  type Thread,
  type Threads,
} from "./memory-thread.ts";
import { changeTimer } from "./memory-timers.ts";

/** Checks a commit completely before any change: a refused commit has no effect. Returns the waiting inputs. */
export function applyCommit(threads: Threads, self: Owner, commit: Commit): InputCounts {
  const thread = threads.get(commit.thread);
  if (thread?.writer === undefined || thread.owner !== self || thread.epoch !== commit.epoch)
    throw createFencedError(commit);
  if (thread.seq < (commit.after ?? 0)) throw createGapError(commit);
  const namespace = thread.namespaces.get(commit.branch) ?? createChildNamespace(thread, commit);
  const head = namespace.checkpoints.at(-1)?.checkpoint;
  if (commit.checkpoint !== undefined)
    checkFollows(commit.checkpoint, getLastCheckpointId(namespace), thread.checkpoint, commit);
  if (commit.run !== undefined) checkRun(thread, namespace, commit.run);
  checkRowNames(commit);
  if (commit.outbox !== undefined) checkOutboxWrites(commit.outbox);
  for (const parentJournal of commit.parentJournals ?? [])
    if (!thread.namespaces.has(parentJournal.namespace))
      throw createUnknownBranchError(thread.id, parentJournal.namespace);

  if (commit.run !== undefined) {
    const known = thread.runs.get(commit.run.id);
    const isStart = known?.row.status === "queued";
    if (isStart) thread.queued -= 1;
    if (known === undefined || isStart) thread.run = namespace.run = commit.run.id;
    thread.runs.set(commit.run.id, { row: commit.run, nth: known?.nth ?? ++threads.runCount, epoch: thread.epoch });
  }
  for (const effect of commit.effects ?? []) putEffect(namespace, effect);
  for (const around of commit.parentJournals ?? []) {
    const journal = thread.namespaces.get(around.namespace);
    if (journal !== undefined) for (const effect of around.effects) putEffect(journal, effect);
  }
  if (commit.checkpoint !== undefined) {
    if (head !== undefined && head.step !== commit.checkpoint.row.step) foldJournal(namespace, head.step);
    thread.writtenBy = thread.writer;
    appendCheckpoint(thread, namespace, commit.checkpoint, thread.writer);
  }
  closeInterrupts(namespace, findClosedInterrupts(commit));
  for (const interrupt of commit.interrupts ?? []) putInterrupt(threads, namespace, interrupt);
  thread.events.push(...(commit.events ?? []));
  for (const artifact of commit.artifacts ?? []) putArtifact(thread.artifacts, artifact);
  for (const change of commit.timers ?? []) changeTimer(thread.id, namespace, change);
  if (namespace.inbox.length > 0) changeInbox(thread, namespace, applyToInbox(namespace.inbox, commit));
  handleRequests(thread, commit);
  if (namespace.inbox.length > 0 && commit.rolledBackRun !== undefined) threads.eventThreads.add(thread.id);
  if (commit.longTerm !== undefined) threads.longTerm.apply(commit.longTerm, getLatestTime(commit));
  if (commit.outbox !== undefined)
    for (const write of commit.outbox)
      addOutboxRow(threads.outbox, { ...write, thread: thread.id, branch: namespace.name });
  thread.seq = Math.max(thread.seq, commit.seq);
  thread.updatedAt = Math.max(thread.updatedAt, getChangeTime(commit));
  if (commit.release === true) thread.owner = undefined;
  return countInputs(thread);
}

/** Checks the names of rows: a database maps different lone surrogates to the same bytes. */
function checkRowNames({ effects = [], parentJournals = [], interrupts = [], timers = [], checkpoint }: Commit): void {
  for (const { task, key } of [...effects, ...parentJournals.flatMap((journal) => journal.effects)]) {
    checkWellFormed(task);
    checkWellFormed(key);
  }
  for (const { id } of interrupts) checkWellFormed(id);
  for (const change of timers)
    if ("arm" in change) {
      checkWellFormed(change.arm.id);
      checkWellFormed(change.arm.about);
    }
  for (const { channel } of checkpoint?.deltas ?? []) checkWellFormed(channel);
}

/** Checks that a new run has a unique key, and that a run cancelled in the queue does not start. */
function checkRun(thread: Thread, namespace: StoredNamespace, run: RunRow): void {
  checkId("run", run.id);
  const known = thread.runs.get(run.id);
  const isKeyTaken = known === undefined && run.key !== undefined && findRunByKey(thread, run.key) !== undefined;
  const { queuedAt, status } = known?.row ?? {};
  const isDequeued = queuedAt !== undefined && status !== "queued" && namespace.run !== run.id;
  const waits = known !== undefined && isDelayed(known.row);
  if (isKeyTaken || isDequeued || waits) throw createRunExistsError(run);
}

/** Creates the child namespace of a first checkpoint; not yet added to the thread. */
function createChildNamespace(thread: Thread, commit: Commit): StoredNamespace {
  const parent = getNewNamespaceParent(commit);
  if (!thread.namespaces.has(parent)) throw createUnknownBranchError(thread.id, parent);
  const from = commit.checkpoint?.row.parent;
  const origin = from === undefined ? undefined : thread.checkpoints.get(from)?.namespace;
  return createNamespace(commit.branch, origin === undefined ? undefined : from, origin);
}

function putEffect(namespace: StoredNamespace, effect: EffectRow): void {
  const effects = namespace.effects.get(effect.step) ?? new Map<string, EffectRow>();
  namespace.effects.set(effect.step, effects.set(JSON.stringify([effect.task, effect.key]), effect));
}

function foldJournal(namespace: StoredNamespace, step: number): void {
  const effects = namespace.effects.get(step) ?? new Map<string, EffectRow>();
  for (const [id, effect] of effects) {
    const { outcome: _, ...folded } = effect;
    if (effect.effect === "once") continue;
    if (effect.kind === "task") effects.delete(id);
    else effects.set(id, folded);
  }
}

/** Replaces the inbox of a branch, and counts its waiting messages. */
function changeInbox(thread: Thread, namespace: StoredNamespace, inbox: readonly InboxMessage[]): void {
  if (inbox === namespace.inbox) return;
  thread.messages += listWaiting(inbox).length - listWaiting(namespace.inbox).length;
  namespace.inbox = inbox;
}

/** Adds a message to the inbox of a branch, once per id of a waiting or received message. */
export function postMessage(threads: Threads, { thread: id, branch, ...message }: InboxMessageWrite): InboxMessage {
  checkId("inbox message", message.id);
  const { thread, namespace } = getBranch(threads, id, branch);
  const known = findMessage(namespace.inbox, message.id);
  if (known !== undefined) return known;
  const row = { ...message, branch: namespace.name };
  changeInbox(thread, namespace, [...namespace.inbox, row]);
  if (row.kind === "event") threads.eventThreads.add(id);
  return row;
}

/** Finds a waiting message, or one that an unfinished run has received. */
export function findMessage(inbox: readonly InboxMessage[], id: string): InboxMessage | undefined {
  return inbox.find((message) => message.id === id);
}

/** Lists the messages not yet received by a run. */
export function listWaiting(inbox: readonly InboxMessage[]): readonly InboxMessage[] {
  return inbox.filter(({ deliveredTo }) => deliveredTo === undefined);
}

/**
 * Returns the inbox after a commit: its run receives messages, returns received messages, or ends and drops its
 * received messages.
 */
function applyToInbox(inbox: readonly InboxMessage[], commit: Commit): readonly InboxMessage[] {
  const { deliveredMessages = [], rolledBackRun, checkpoint, run } = commit;
  const receiver = checkpoint?.row.run ?? run?.id;
  const ended = run?.status === "done" || run?.status === "cancelled" ? run.id : undefined;
  let remaining = inbox;
  // Same id sent and received again: a single message.
  if (deliveredMessages.length > 0 && receiver !== undefined)
    remaining = remaining
      .filter((message) => message.deliveredTo !== receiver || !deliveredMessages.includes(message.id))
      .map((message) =>
        message.deliveredTo === undefined && deliveredMessages.includes(message.id)
          ? { ...message, deliveredTo: receiver }
          : message,
      );
  if (rolledBackRun !== undefined) remaining = requeueMessages(remaining, rolledBackRun);
  return ended === undefined ? remaining : remaining.filter((message) => message.deliveredTo !== ended);
}

function requeueMessages(inbox: readonly InboxMessage[], run: string): readonly InboxMessage[] {
  const waiting = new Set(listWaiting(inbox).map(({ id }) => id));
  return inbox.flatMap((message): readonly InboxMessage[] => {
    if (message.deliveredTo !== run) return [message];
    const { deliveredTo: _, ...requeued } = message;
    return waiting.has(message.id) ? [] : [requeued];
  });
}
