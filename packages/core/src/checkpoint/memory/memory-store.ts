/**
 * Memory store: reference implementation of the store contract, and the store of programs without a file.
 *
 * Writes are queued and applied together in the next microtask, so that `onCommitted` never runs inside `commit`.
 */
import type { StatewrightError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import { createMemoryLongTerm } from "../../long-term/memory-long-term.ts";
import { checkVectors } from "../../long-term/rules.ts";
import type { LongTermVectors } from "../../long-term/vectors.ts";
import type { CheckpointRow, DeltaRow, RunRow, RunStatus } from "../checkpoint.ts";
import { type ClaimablePage, getClaimableKind } from "../claimable.ts";
import type { GraphVersion } from "../export/thread-export.ts";
import type { InboxMessage, InboxMessageWrite } from "../inbox-message.ts";
import { type EffectRow, type InterruptRow, isOpen, type OpenInterruptRow } from "../journal.ts";
import {
  checkClaimablePage,
  checkFilter,
  checkFollows,
  checkKeys,
  checkRunFilter,
  checkThreadFilter,
  compareTimers,
  createBusyError,
  createClosedError,
  createFencedError,
  createGapError,
  createRunExistsError,
  createThreadExistsError,
  createUnknownBranchError,
  createUnknownCheckpointError,
  createUnknownThreadError,
  type ForkedNamespace,
  getChangeTime,
  getLatestTime,
  getNewNamespaceParent,
  hasMetadata,
  isBase,
  isChildNamespace,
  openInterruptFilterKeys,
  resolveForkedNamespaces,
} from "../rules.ts";
import type {
  BranchWrite,
  ChannelRows,
  CheckpointWithDeltas,
  CheckpointWrite,
  Claim,
  ClaimRequest,
  Commit,
  QueueWrite,
  Store,
  StoredEvent,
  ThreadRow,
} from "../store.ts";
import type { TimerChange } from "../timer.ts";
import { createArtifactAccess, putArtifact } from "./memory-artifacts.ts";
import { insertThread, toThreadExport } from "./memory-export.ts";
import { applyToInbox, listWaiting } from "./memory-inbox.ts";
import { pruneMemoryThread } from "./memory-retention.ts";
import {
  createNamespace,
  createThread,
  getLastCheckpointId,
  type Owner,
  type StoredCheckpoint,
  type StoredNamespace,
  type StoredRun,
  type Thread,
  type Threads,
} from "./memory-thread.ts";

/** Store in memory, with test helpers: further owners of the same threads, and simulated crashes. */
export interface MemoryStore extends Store {
  /** Creates another owner of the same threads, like a second process. */
  peer(): MemoryStore;
  /** Ends this owner like a SIGKILL: queued writes are lost, no thread is released, and peers continue. */
  crash(): void;
}

/** Options of the memory store. */
export interface MemoryStoreOptions {
  /** Embedding of the long-term side, for search with `near`. */
  readonly longTerm?: LongTermVectors;
}

/** Creates a store that exists as long as this process. Throws `invalid_option`. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkKeys("memoryStore", options, ["longTerm"]);
  checkVectors("memoryStore", options.longTerm);
  const threads = Object.assign(new Map<string, Thread>(), { runs: 0, questions: 0, longTerm: createMemoryLongTerm() });
  return createOwner(threads, options.longTerm);
}

function createOwner(threads: Threads, vectors: LongTermVectors | undefined): MemoryStore {
  const self: Owner = { alive: true };
  let queue: { work(): void; onCommitted(failure?: StatewrightError): void }[] = [];
  const artifacts = createArtifactAccess((thread) => {
    checkOpen();
    return threads.get(thread)?.artifacts;
  });

  function schedule(work: () => void, onCommitted: (failure?: StatewrightError) => void): void {
    queue.push({ work, onCommitted });
    if (queue.length === 1) queueMicrotask(flush);
  }

  function flush(): void {
    const group = queue;
    queue = [];
    const outcomes = group.map(({ work }) => catchFailure(work));
    group.forEach(({ onCommitted }, index) => {
      onCommitted(outcomes[index]);
    });
  }

  function write<Value>(work: () => Value): Promise<Value> {
    return new Promise((resolve, reject) => {
      let value: Value;
      schedule(
        () => {
          checkOpen();
          value = work();
        },
        (failure) => (failure === undefined ? resolve(value) : reject(failure)),
      );
    });
  }

  function checkOpen(): void {
    if (!self.alive) throw createClosedError("memory");
  }

  /** Async by contract: errors of reads are rejections. */
  async function read<Value>(work: () => Value): Promise<Value> {
    checkOpen();
    return work();
  }

  return {
    name: "memory",
    local: true,
    longTerm: {
      ...(vectors === undefined ? {} : { vectors }),
      get: (place, at) => read(() => threads.longTerm.get(place, at)),
      page: (query) => read(() => threads.longTerm.page(query)),
      write: (changes, at) => write(() => threads.longTerm.apply(changes, at)),
      refresh: (touches) => write(() => threads.longTerm.refresh(touches)),
      sweep: (at, limit) => write(() => threads.longTerm.sweep(at, limit)),
    },
    claim: (request) => write(() => claimThread(threads, self, request)),
    commit: (commit, told) => {
      let queued: number | undefined;
      schedule(
        () => {
          checkOpen();
          queued = applyCommit(threads, self, commit);
        },
        (failure) => told(failure, queued),
      );
    },
    enqueue: (put) => write(() => enqueueRun(threads, put)),
    dequeue: (id, run, { at, reason }) => write(() => dequeueRun(threads.get(id), run, at, reason)),
    post: (letter) => write(() => postMessage(threads, letter)),
    branch: (fork) => write(() => forkBranch(threads, fork)),
    thread: (id) => read(() => toThreadRow(threads.get(id))),
    threads: (filter = {}) =>
      read(() => {
        const wanted = checkThreadFilter(filter);
        const { graph, metadata, since = 0, until = Number.POSITIVE_INFINITY, before } = filter;
        const listed = [...threads.values()].reverse().sort((one, other) => other.updatedAt - one.updatedAt);
        const end = listed.findIndex(({ id }) => id === before?.id);
        return listed
          .filter(({ updatedAt }, place) => before === undefined || updatedAt < before.updatedAt || place > end)
          .filter(({ updatedAt }) => before === undefined || updatedAt <= before.updatedAt)
          .filter(({ updatedAt }) => updatedAt >= since && updatedAt < until)
          .filter(({ run, runs }) => metadata === undefined || hasMetadata(runs.get(run ?? "")?.row, metadata))
          .flatMap((thread) => toThreadRow(thread) ?? [])
          .filter((row) => matches(graph, row.graph) && hasStatus(wanted, row.status))
          .slice(0, filter.limit);
      }),
    branches: (id) =>
      read(() =>
        [...(threads.get(id)?.namespaces.values() ?? [])]
          .filter(({ name }) => !isChildNamespace(name))
          .map((line) => ({ name: line.name, from: line.from, head: getLastCheckpointId(line) })),
      ),
    runs: (filter = {}) =>
      read(() => {
        const wanted = checkRunFilter(filter);
        const { graph, key, metadata, since = 0, until = Number.POSITIVE_INFINITY, before } = filter;
        const end = before === undefined ? undefined : threads.get(before.thread)?.runs.get(before.id)?.nth;
        return selectThreads(threads, filter.thread)
          .flatMap((thread) =>
            [...thread.runs.values()].map((run) => ({ nth: run.nth, row: toEffectiveRun(thread, run) })),
          )
          .filter(({ nth, row }) => hasStatus(wanted, row.status) && nth < (end ?? Number.POSITIVE_INFINITY))
          .filter(({ row }) => matches(graph, row.graph) && matches(key, row.key))
          .filter(({ row }) => row.startedAt >= since && row.startedAt < until)
          .filter(({ row }) => metadata === undefined || hasMetadata(row, metadata))
          .sort((one, other) => other.nth - one.nth)
          .slice(0, filter.limit)
          .map(({ row }) => row);
      }),
    checkpoint: (id, checkpoint) =>
      read(() => toCheckpointRow(threads.get(id)?.checkpoints.get(checkpoint)?.checkpoint)),
    writtenBy: (id, checkpoint) => read(() => threads.get(id)?.checkpoints.get(checkpoint)?.writtenBy),
    head: (id, name) =>
      read(() => toCheckpointRow(findNamespace(threads.get(id), name)?.checkpoints.at(-1)?.checkpoint)),
    history: (id, page) =>
      read(() => {
        checkFilter("history", page, ["branch", "before"]);
        const before = page.before ?? Number.POSITIVE_INFINITY;
        return listCheckpoints(findNamespace(threads.get(id), page.branch))
          .filter((checkpoint) => checkpoint.id < before)
          .slice(0, page.limit);
      }),
    state: (id, checkpoint) =>
      read(() => {
        const found = threads.get(id)?.checkpoints.get(checkpoint);
        if (found === undefined) throw createUnknownCheckpointError(id, checkpoint);
        return toChannelRows(listChanges(found.namespace, checkpoint));
      }),
    effects: (id, name, step) =>
      read(() =>
        [...(threads.get(id)?.namespaces.get(name)?.effects ?? [])]
          .filter(([each]) => matches(step, each))
          .sort(([one], [other]) => one - other)
          .flatMap(([, effects]) => [...effects.values()]),
      ),
    interrupts: (id, name) =>
      read(() => [...(threads.get(id)?.namespaces.get(name)?.interrupts.values() ?? [])].map(({ row }) => row)),
    openInterrupts: (filter = {}) =>
      read(() => {
        checkFilter("openInterrupts", filter, openInterruptFilterKeys);
        const { thread, graph, key, at = Number.NEGATIVE_INFINITY, before } = filter;
        return selectThreads(threads, thread)
          .flatMap(listOpenInterrupts)
          .filter((row) => matches(graph, row.graph) && matches(key, row.key))
          .filter(({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > at)
          .filter(({ position }) => before === undefined || position < before.position)
          .sort((one, other) => other.position - one.position)
          .slice(0, filter.limit);
      }),
    claimable: (page) =>
      read(() => {
        checkClaimablePage(page);
        return listClaimable(threads, page);
      }),
    inbox: (id, name) => read(() => listWaiting(threads.get(id)?.namespaces.get(name)?.inbox ?? [])),
    events: (id, page) =>
      read(() => {
        checkFilter("events", page, ["after", "from"]);
        return listEvents(threads.get(id), page.after).slice(0, page.limit);
      }),
    timers: (filter = {}) =>
      read(() => {
        checkFilter("timers", filter, ["thread", "dueBy"]);
        const lines = selectThreads(threads, filter.thread).flatMap((thread) => [...thread.namespaces.values()]);
        const rows = lines.flatMap(({ timers }) => [...timers.values()]);
        const { dueBy = Number.POSITIVE_INFINITY } = filter;
        return rows
          .filter(({ dueAt }) => dueAt <= dueBy)
          .sort(compareTimers)
          .slice(0, filter.limit);
      }),
    artifacts,
    delete: (id) =>
      write(() => {
        if (getThread(threads, id).owner?.alive === true) throw createBusyError(id);
        threads.delete(id);
      }),
    exportThread: (id) => read(() => toThreadExport(getThread(threads, id))),
    importThread: (image) =>
      write(() => {
        if (threads.has(image.id)) throw createThreadExistsError(image.id);
        insertThread(threads, image);
      }),
    prune: (prune) => write(() => pruneMemoryThread(getThread(threads, prune.thread), prune)),
    vacuum: () => read(() => undefined),
    close: () => {
      flush();
      for (const thread of threads.values()) if (thread.owner === self) thread.owner = undefined;
      self.alive = false;
    },
    peer: () => createOwner(threads, vectors),
    crash: () => {
      queue = [];
      self.alive = false;
    },
  };
}

/** Returns the thread with this id, or all threads. */
function selectThreads(threads: Threads, id: string | undefined): readonly Thread[] {
  if (id === undefined) return [...threads.values()];
  const thread = threads.get(id);
  return thread === undefined ? [] : [thread];
}

function getThread(threads: Threads, id: string): Thread {
  const thread = threads.get(id);
  if (thread === undefined) throw createUnknownThreadError(id);
  return thread;
}

function claimThread(threads: Threads, self: Owner, request: ClaimRequest): Claim {
  const { graph, version, shape, at } = request;
  checkId("thread", request.thread);
  if (request.branch !== undefined) checkId("branch", request.branch);
  const known = threads.get(request.thread);
  if (known === undefined && request.mustExist === true) throw createUnknownThreadError(request.thread);
  if (known?.owner?.alive === true) throw createBusyError(request.thread);
  const writer = { graph, version, shape };
  const thread = known ?? createThread(request.thread, request.branch ?? "main", writer, at);
  const name = request.branch ?? thread.headBranch;
  let namespace = thread.namespaces.get(name);
  if (namespace === undefined) {
    if (known !== undefined && request.mustExist === true) throw createUnknownBranchError(request.thread, name);
    namespace = createNamespace(name, undefined, undefined);
    thread.namespaces.set(name, namespace);
  }
  threads.set(thread.id, thread);
  const recovered = thread.owner !== undefined;
  thread.owner = self;
  thread.writer = writer;
  thread.epoch += 1;
  const head = namespace.checkpoints.at(-1);
  return {
    epoch: thread.epoch,
    branch: name,
    nextSeq: thread.seq + 1,
    nextCheckpoint: thread.checkpoint + 1,
    writtenBy: head?.writtenBy ?? writer,
    head: toCheckpointRow(head?.checkpoint),
    run: namespace.run === undefined ? undefined : thread.runs.get(namespace.run)?.row,
    recovered,
    queued: thread.queued,
  };
}

function enqueueRun(threads: Threads, { thread: id, branch, run, stops }: QueueWrite): RunRow {
  checkId("run", run.id);
  const thread = threads.get(id);
  if (thread === undefined) throw createUnknownThreadError(id);
  const namespace = thread.namespaces.get(branch ?? thread.headBranch);
  if (namespace === undefined || isChildNamespace(namespace.name))
    throw createUnknownBranchError(id, branch ?? thread.headBranch);
  const known = run.key === undefined ? undefined : findRunByKey(thread, run.key);
  if (known !== undefined) return known.row;
  const row: RunRow = {
    ...run,
    thread: id,
    branch: namespace.name,
    ...(stops === undefined || namespace.run === undefined ? {} : { stops: { run: namespace.run, how: stops } }),
  };
  if (thread.runs.has(row.id)) throw createRunExistsError(row);
  thread.runs.set(row.id, { row, nth: ++threads.runs, epoch: 0 });
  thread.queued += 1;
  return row;
}

function dequeueRun(thread: Thread | undefined, id: string, endedAt: number, reason: string): boolean {
  const run = thread?.runs.get(id);
  if (thread === undefined || run?.row.status !== "queued") return false;
  const { input: _, ...row } = run.row;
  thread.runs.set(id, { ...run, row: { ...row, status: "cancelled", endedAt, reason } });
  thread.queued -= 1;
  return true;
}

function postMessage(threads: Threads, { thread: id, branch, ...message }: InboxMessageWrite): InboxMessage {
  checkId("inbox message", message.id);
  const thread = threads.get(id);
  if (thread === undefined) throw createUnknownThreadError(id);
  const namespace = thread.namespaces.get(branch ?? thread.headBranch);
  if (namespace === undefined || isChildNamespace(namespace.name))
    throw createUnknownBranchError(id, branch ?? thread.headBranch);
  const known = listWaiting(namespace.inbox).find((waiting) => waiting.id === message.id);
  if (known !== undefined) return known;
  const row = { ...message, branch: namespace.name };
  namespace.inbox = [...namespace.inbox, row];
  return row;
}

function findRunByKey({ runs }: Thread, key: string): StoredRun | undefined {
  for (const run of runs.values()) if (run.row.key === key) return run;
  return undefined;
}

/** Sorted by the start or queue time of the runs. */
function listClaimable(threads: Threads, { kind, after, limit }: ClaimablePage): readonly RunRow[] {
  const start = after === undefined ? 0 : (threads.get(after.thread)?.runs.get(after.id)?.nth ?? 0);
  return [...threads.values()]
    .flatMap((thread) => {
      const found = [...thread.runs.values()]
        .map((run) => ({ nth: run.nth, row: toEffectiveRun(thread, run) }))
        .filter(({ row }) => getClaimableKind(row) === kind);
      return kind !== "queued" ? found : thread.owner?.alive === true ? [] : found.slice(0, 1);
    })
    .filter(({ nth }) => nth > start)
    .sort((one, other) => one.nth - other.nth)
    .slice(0, limit)
    .map(({ row }) => row);
}

/**
 * Returns the run row with its effective status: `running` reads as `crashed` when the owner is dead or released the
 * thread.
 */
function toEffectiveRun({ owner, epoch }: Thread, run: StoredRun): RunRow {
  const { row } = run;
  if (row.status !== "running" || (owner?.alive === true && run.epoch === epoch)) return row;
  return { ...row, status: "crashed" };
}

/** Checks a commit completely before any change: a refused commit has no effect. Returns the number of queued runs. */
function applyCommit(threads: Threads, self: Owner, commit: Commit): number {
  const thread = threads.get(commit.thread);
  if (thread === undefined || thread.owner !== self || thread.epoch !== commit.epoch) throw createFencedError(commit);
  if (thread.seq < (commit.after ?? 0)) throw createGapError(commit);
  const namespace = thread.namespaces.get(commit.branch) ?? createChildNamespace(thread, commit);
  const head = namespace.checkpoints.at(-1)?.checkpoint;
  if (commit.checkpoint !== undefined)
    checkFollows(commit.checkpoint, getLastCheckpointId(namespace), thread.checkpoint, commit);
  if (commit.run !== undefined) checkRun(thread, namespace, commit.run);
  for (const parentJournal of commit.parentJournals ?? [])
    if (!thread.namespaces.has(parentJournal.namespace))
      throw createUnknownBranchError(thread.id, parentJournal.namespace);

  if (commit.run !== undefined) {
    const known = thread.runs.get(commit.run.id);
    const isStart = known?.row.status === "queued";
    if (isStart) thread.queued -= 1;
    if (known === undefined || isStart) thread.run = namespace.run = commit.run.id;
    if (commit.run.status !== "waiting") namespace.awaited.clear();
    thread.runs.set(commit.run.id, { row: commit.run, nth: known?.nth ?? ++threads.runs, epoch: thread.epoch });
  }
  for (const effect of commit.effects ?? []) putEffect(namespace, effect);
  for (const around of commit.parentJournals ?? []) {
    const journal = thread.namespaces.get(around.namespace);
    if (journal !== undefined) for (const effect of around.effects) putEffect(journal, effect);
  }
  if (commit.checkpoint !== undefined) {
    if (head !== undefined && head.step !== commit.checkpoint.row.step) foldJournal(namespace, head.step);
    thread.writtenBy = thread.writer;
    appendCheckpoint(thread, namespace, commit.checkpoint);
  }
  for (const interrupt of commit.interrupts ?? []) putInterrupt(threads, namespace, interrupt);
  thread.events.push(...(commit.events ?? []));
  for (const artifact of commit.artifacts ?? []) putArtifact(thread.artifacts, artifact);
  for (const change of commit.timers ?? []) changeTimer(thread.id, namespace, change);
  if (namespace.inbox.length > 0) namespace.inbox = applyToInbox(namespace.inbox, commit);
  if (commit.longTerm !== undefined) threads.longTerm.apply(commit.longTerm, getLatestTime(commit));
  thread.seq = Math.max(thread.seq, commit.seq);
  thread.updatedAt = Math.max(thread.updatedAt, getChangeTime(commit));
  if (commit.release === true) thread.owner = undefined;
  return thread.queued;
}

/** Checks that a new run has a unique key, and that a run cancelled in the queue does not start. */
function checkRun(thread: Thread, namespace: StoredNamespace, run: RunRow): void {
  checkId("run", run.id);
  const known = thread.runs.get(run.id);
  const isKeyTaken = known === undefined && run.key !== undefined && findRunByKey(thread, run.key) !== undefined;
  const { queuedAt, status } = known?.row ?? {};
  const isDequeued = queuedAt !== undefined && status !== "queued" && namespace.run !== run.id;
  if (isKeyTaken || isDequeued) throw createRunExistsError(run);
}

/** Creates the child namespace of a first checkpoint; not yet added to the thread. */
function createChildNamespace(thread: Thread, commit: Commit): StoredNamespace {
  const parent = getNewNamespaceParent(commit);
  if (!thread.namespaces.has(parent)) throw createUnknownBranchError(thread.id, parent);
  const from = commit.checkpoint?.row.parent;
  const origin = from === undefined ? undefined : thread.checkpoints.get(from)?.namespace;
  return createNamespace(commit.branch, origin === undefined ? undefined : from, origin);
}

function forkBranch(threads: Threads, write: BranchWrite): CheckpointRow {
  checkId("thread", write.thread);
  checkId("branch", write.branch);
  const thread = threads.get(write.thread);
  if (thread === undefined) throw createUnknownThreadError(write.thread);
  if (thread.owner?.alive === true) throw createBusyError(write.thread);
  const [outer, ...inner] = resolveForkedNamespaces(write, {
    origin: (from) => thread.checkpoints.get(from),
    has: (line) => thread.namespaces.has(line),
  });

  const row = startNamespace(threads, thread, outer, write.interrupts);
  for (const line of inner) startNamespace(threads, thread, line, []);
  if (write.head === true) thread.headBranch = write.branch;
  return row;
}

function startNamespace(
  threads: Threads,
  thread: Thread,
  { namespace: name, from, origin, checkpoint }: ForkedNamespace<StoredCheckpoint>,
  interrupts: readonly InterruptRow[],
): CheckpointRow {
  const line = createNamespace(name, from, origin.namespace);
  const row = { ...checkpoint.row, id: thread.checkpoint + 1, branch: name, parent: from, seq: thread.seq + 1 };
  appendCheckpoint(thread, line, { row, deltas: checkpoint.deltas }, origin.writtenBy);
  for (const interrupt of interrupts) putInterrupt(threads, line, interrupt);
  thread.seq = row.seq;
  thread.updatedAt = Math.max(thread.updatedAt, row.at);
  return row;
}

function appendCheckpoint(
  thread: Thread,
  namespace: StoredNamespace,
  { row, deltas }: CheckpointWrite,
  writtenBy: GraphVersion = thread.writer,
): void {
  const bases = deltas.map((delta) => ({ ...delta, base: isBase(delta) }));
  const saved = { checkpoint: { ...row, branch: namespace.name, deltas: bases }, writtenBy, namespace };
  namespace.checkpoints.push(saved);
  thread.checkpoints.set(row.id, saved);
  thread.namespaces.set(namespace.name, namespace);
  thread.checkpoint = row.id;
}

function putEffect(namespace: StoredNamespace, effect: EffectRow): void {
  const effects = namespace.effects.get(effect.step) ?? new Map<string, EffectRow>();
  namespace.effects.set(effect.step, effects.set(JSON.stringify([effect.task, effect.key]), effect));
}

function putInterrupt(threads: Threads, namespace: StoredNamespace, row: InterruptRow): void {
  const position = namespace.interrupts.get(row.id)?.position ?? ++threads.questions;
  namespace.interrupts.set(row.id, { row: { ...row, branch: namespace.name }, position });
  if (isOpen(row)) namespace.awaited.add(row.id);
  else namespace.awaited.delete(row.id);
}

/** Lists the awaited interrupts on the branches of a thread. */
function listOpenInterrupts({ id, namespaces, runs }: Thread): readonly OpenInterruptRow[] {
  return [...namespaces.values()].flatMap((namespace): readonly OpenInterruptRow[] => {
    const run = runs.get(namespace.run ?? "")?.row;
    if (run?.status !== "waiting") return [];
    return [...namespace.awaited].flatMap((awaitedId) => {
      const interrupt = namespace.interrupts.get(awaitedId);
      if (interrupt === undefined) return [];
      return [{ ...interrupt.row, thread: id, run: run.id, graph: run.graph, position: interrupt.position }];
    });
  });
}

function changeTimer(thread: string, namespace: StoredNamespace, change: TimerChange): void {
  const { id, generation } = "arm" in change ? change.arm : change.drop;
  if ((namespace.timers.get(id)?.generation ?? 0) > generation) return;
  if ("arm" in change) namespace.timers.set(id, { ...change.arm, thread, branch: namespace.name });
  else namespace.timers.delete(id);
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

/** Lists the checkpoints of all namespaces and the durable events, by sequence number. */
function listEvents(thread: Thread | undefined, after: number): readonly StoredEvent[] {
  const checkpoints = [...(thread?.checkpoints.values() ?? [])].map(({ checkpoint }) => ({ checkpoint }));
  const facts = (thread?.events ?? []).map((fact) => ({ fact }));
  const getSeq = (event: StoredEvent): number => ("fact" in event ? event.fact.seq : event.checkpoint.seq);
  return [...checkpoints, ...facts]
    .filter((event) => getSeq(event) > after)
    .sort((one, other) => getSeq(one) - getSeq(other));
}

/** Lists all checkpoints from the head of a namespace back through its ancestors, newest first. */
function listCheckpoints(namespace: StoredNamespace | undefined): readonly CheckpointWithDeltas[] {
  const found: CheckpointWithDeltas[] = [];
  let until = Number.POSITIVE_INFINITY;
  for (let each = namespace; each !== undefined; until = each.from ?? 0, each = each.origin) {
    for (const { checkpoint } of each.checkpoints.toReversed()) if (checkpoint.id <= until) found.push(checkpoint);
  }
  return found;
}

/** Lists the changes up to a checkpoint, newest first, including deltas retained from pruned ranges. */
function listChanges(
  namespace: StoredNamespace,
  checkpoint: number,
): readonly { readonly deltas: readonly DeltaRow[] }[] {
  const found: { readonly id: number; readonly deltas: readonly DeltaRow[] }[] = [...listCheckpoints(namespace)];
  let until = checkpoint;
  for (
    let each: StoredNamespace | undefined = namespace;
    each !== undefined;
    until = Math.min(until, each.from ?? 0), each = each.origin
  ) {
    const retained = each.prunedRanges.flatMap(({ deltas }) => deltas).filter((delta) => delta.checkpoint <= until);
    for (const { checkpoint: id, ...delta } of retained) found.push({ id, deltas: [delta] });
  }
  return found.filter(({ id }) => id <= checkpoint).sort((one, other) => other.id - one.id);
}

function toChannelRows(newestFirst: readonly { readonly deltas: readonly DeltaRow[] }[]): readonly ChannelRows[] {
  const rows = new Map<string, DeltaRow[]>();
  for (const { deltas } of newestFirst) {
    for (const delta of deltas) {
      const known = rows.get(delta.channel) ?? [];
      if (known[0]?.base !== true) rows.set(delta.channel, [delta, ...known]);
    }
  }
  return [...rows].map(([channel, deltas]) => ({ channel, deltas: deltas.map(({ kind, text }) => ({ kind, text })) }));
}

function findNamespace(thread: Thread | undefined, name: string | undefined): StoredNamespace | undefined {
  return thread?.namespaces.get(name ?? thread.headBranch);
}

function toThreadRow(thread: Thread | undefined): ThreadRow | undefined {
  if (thread === undefined) return undefined;
  const { id, createdAt, updatedAt, headBranch, writtenBy } = thread;
  const run = thread.runs.get(thread.run ?? "");
  const status = run === undefined ? undefined : toEffectiveRun(thread, run).status;
  return { id, graph: writtenBy.graph, version: writtenBy.version, createdAt, updatedAt, headBranch, status };
}

function toCheckpointRow(checkpoint: CheckpointWithDeltas | undefined): CheckpointRow | undefined {
  if (checkpoint === undefined) return undefined;
  const { deltas: _, ...row } = checkpoint;
  return row;
}

function hasStatus(wanted: readonly RunStatus[] | undefined, status: RunStatus | undefined): boolean {
  return wanted === undefined || (status !== undefined && wanted.includes(status));
}

function matches<Value>(wanted: Value | undefined, value: Value | undefined): boolean {
  return wanted === undefined || wanted === value;
}

function catchFailure(work: () => void): StatewrightError | undefined {
  try {
    work();
    return undefined;
  } catch (thrown) {
    return thrown as StatewrightError;
  }
}
