/**
 * Memory store: reference implementation of the store contract, and the store of programs without a file.
 *
 * Writes are queued and applied together in the next microtask, so that `onCommitted` never runs inside `commit`.
 */
import type { StatewrightError } from "../../base/errors.ts";
import { checkChoice } from "../../base/options.ts";
import { createMemoryLongTerm } from "../../long-term/memory-long-term.ts";
import { checkVectors } from "../../long-term/rules.ts";
import type { LongTermVectors } from "../../long-term/vectors.ts";
import { checkKeys, createBusyError, createClosedError, createThreadExistsError } from "../rules.ts";
import type { HintKind, InputCounts } from "../run-request.ts";
import type { ScheduleRow } from "../schedule.ts";
import type { Commit, Ownership, Schedules, Store, StoreReads } from "../store.ts";
import { toVersionKey } from "../thread-rules.ts";
import type { TimerRow } from "../timer.ts";
import { createCrashedError } from "./crashed-error.ts";
import { claimRuns, claimThread, claimTimers } from "./memory-claims.ts";
import { applyCommit, findMessage, listWaiting, postMessage } from "./memory-commit.ts";
import { enqueueDueRuns, replaceDebounced } from "./memory-delayed.ts";
import { insertThread, toThreadExport } from "./memory-export.ts";
import { forkBranch } from "./memory-fork.ts";
import { listOpenInterrupts } from "./memory-interrupts.ts";
import { createOutboxAccess, deleteThreadOutbox } from "./memory-outbox.ts";
import { requestRun } from "./memory-request-run.ts";
import { pruneMemoryThread } from "./memory-retention.ts";
import { countRuns, dequeueRun, enqueueRun, findRun, listClaimable, listRuns, matches } from "./memory-runs.ts";
import { listSchedules, putSchedule } from "./memory-schedules.ts";
import { readSnapshot, type SavedThreads, saveForSnapshots, type ThreadSource } from "./memory-snapshot.ts";
import { listNamespaces, listTimeline } from "./memory-supersteps.ts";
import {
  countInputs,
  createArtifactAccess,
  createMemoryHints,
  createMemoryOutbox,
  findNamespace,
  getThread,
  listEvents,
  listHistory,
  listOpenRequests,
  loadChannels,
  type Owner,
  requireThread,
  type Thread,
  type Threads,
  toCheckpointRow,
} from "./memory-thread.ts";
import { countThreads, listBranches, listThreads, patchThread, putThread, toThreadRow } from "./memory-thread-list.ts";
import { listTimers } from "./memory-timers.ts";

/** Store in memory, with test helpers: further owners of the same threads, and simulated crashes. */
export interface MemoryStore extends Store {
  /** Creates another owner of the same threads, like a second process. */
  peer(): MemoryStore;
  /**
   * Ends this owner like a SIGKILL: queued writes are lost, no thread is released, and peers continue. The results of
   * its runs stay pending or reject with `store_closed`; that rejection is never unhandled.
   */
  crash(): void;
}

/** Options of the memory store. */
export interface MemoryStoreOptions {
  /** Embedding of the long-term side, for search with `near`. */
  readonly longTerm?: LongTermVectors;
  /**
   * Clock of the store, shared by its owners, in milliseconds since the epoch: for tests of processes whose clocks
   * differ. Default: none, so that due times follow the world of each run.
   */
  readonly now?: () => number;
  /** Owner of the work on the threads, for all owners of the store. Default: `store`. */
  readonly ownership?: Ownership;
}

/** Creates a store that exists as long as this process. Throws `invalid_option`. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkKeys("memoryStore", options, ["longTerm", "now", "ownership"]);
  checkVectors("memoryStore", options.longTerm);
  const { ownership = "store" } = options;
  checkChoice("memoryStore", { ownership }, ["store", "orchestrator"]);
  const threads = Object.assign(new Map<string, Thread>(), {
    runCount: 0,
    ownerCount: 0,
    interruptCount: 0,
    eventThreads: new Set<string>(),
    requestThreads: new Set<string>(),
    hints: createMemoryHints(),
    outlines: new Map<string, string>(),
    longTerm: createMemoryLongTerm(),
    servedTenants: new Map<string, string>(),
    timerClaims: new WeakMap<TimerRow, { readonly owner: Owner; readonly until: number }>(),
    schedules: new Map<string, ScheduleRow>(),
    outbox: createMemoryOutbox(),
    snapshots: new Set<SavedThreads>(),
    ownership,
    now: options.now,
  });
  return createOwner(threads, options.longTerm);
}

function createOwner(threads: Threads, vectors: LongTermVectors | undefined): MemoryStore {
  const self: Owner = { alive: true, crashed: false };
  threads.ownerCount += 1;
  const queue = createWriteQueue(self, threads.hints.report);
  return {
    name: "memory",
    ownership: threads.ownership,
    get local() {
      return threads.ownerCount === 1;
    },
    ...(threads.now === undefined ? {} : { now: createClockRead(threads.now, self) }),
    ...createReads({ find: (id) => threads.get(id), all: () => threads }, self),
    ...createSnapshots(threads, self),
    watch: threads.hints.watch,
    ...createWrites(threads, self, queue),
    longTerm: createLongTermStore(threads, { self, queue, vectors }),
    schedules: createSchedules(threads, self, queue),
    outbox: createOutboxAccess(threads, self, { read: (work) => read(self, work), write: queue.write }),
    artifacts: createArtifactAccess((thread) => {
      checkAlive(self);
      return threads.get(thread)?.artifacts;
    }),
    close: async () => {
      queue.flush();
      for (const thread of threads.values()) {
        if (thread.owner !== self) continue;
        saveForSnapshots(threads, thread.id);
        thread.owner = undefined;
      }
      self.alive = false;
    },
    peer: () => createOwner(threads, vectors),
    crash: () => {
      queue.clear();
      self.alive = false;
      self.crashed = true;
    },
  };
}

type OnCommitted = (failure?: StatewrightError) => void;

/** Writes of an owner, applied together in the next microtask. */
interface WriteQueue {
  /** Queues a write; `onCommitted` runs after all writes of the group. */
  add(work: () => void, onCommitted: OnCommitted): void;
  /** Queues a write and resolves with its result. */
  write<Value>(work: () => Value): Promise<Value>;
  /** Applies the queued writes now. */
  flush(): void;
  /** Drops the queued writes. */
  clear(): void;
}

/** Creates the queue of an owner; `onFlushed` is called after each group of writes and its callbacks. */
function createWriteQueue(self: Owner, onFlushed: () => void): WriteQueue {
  let jobs: { work(): void; onCommitted: OnCommitted }[] = [];
  const queue: WriteQueue = {
    add: (work, onCommitted) => {
      jobs.push({ work, onCommitted });
      if (jobs.length === 1) queueMicrotask(queue.flush);
    },
    write: <Value>(work: () => Value) =>
      new Promise<Value>((resolve, reject) => {
        let value: Value;
        queue.add(
          () => {
            value = work();
          },
          (failure) => (failure === undefined ? resolve(value) : reject(failure)),
        );
      }),
    flush: () => {
      const group = jobs;
      jobs = [];
      const outcomes = group.map(({ work }) => catchFailure(self, work));
      group.forEach(({ onCommitted }, index) => {
        onCommitted(outcomes[index]);
      });
      onFlushed();
    },
    clear: () => {
      jobs = [];
    },
  };
  return queue;
}

function checkAlive({ alive, crashed }: Owner): void {
  if (!alive) throw crashed ? createCrashedError() : createClosedError("memory");
}

function catchFailure(self: Owner, work: () => void): StatewrightError | undefined {
  try {
    checkAlive(self);
    work();
    return undefined;
  } catch (thrown) {
    return thrown as StatewrightError;
  }
}

/** Async by contract: errors of reads are rejections. */
async function read<Value>(self: Owner, work: () => Value): Promise<Value> {
  checkAlive(self);
  return work();
}

function createClockRead(now: () => number, self: Owner): () => Promise<number> {
  return () => read(self, now);
}

type MemoryReads = Required<StoreReads> & Pick<Store, "claimable" | "countInputs" | "exportThread" | "vacuum">;

function createReads({ find, all }: ThreadSource, self: Owner): Omit<MemoryReads, "name"> {
  return {
    thread: (id) =>
      read(self, () => {
        const thread = find(id);
        return thread === undefined ? undefined : toThreadRow(thread);
      }),
    threads: (filter = {}) => read(self, () => listThreads(all(), filter)),
    countThreads: (filter = {}) => read(self, () => countThreads(all(), filter)),
    branches: (id) => read(self, () => listBranches(find(id))),
    run: (id, of) => read(self, () => findRun(all(), id, of)),
    runs: (filter = {}) => read(self, () => listRuns(all(), filter)),
    countRuns: (filter = {}) => read(self, () => countRuns(all(), filter)),
    claimable: (page) => read(self, () => listClaimable(all(), page)),
    countInputs: (ids) => read(self, () => ids.map((id) => countInputs(find(id)))),
    checkpoint: (id, checkpoint) =>
      read(self, () => toCheckpointRow(find(id)?.checkpoints.get(checkpoint)?.checkpoint)),
    writtenBy: (id, checkpoint) => read(self, () => find(id)?.checkpoints.get(checkpoint)?.writtenBy),
    outline: (version) => read(self, () => all().outlines.get(toVersionKey(version))),
    head: (id, name) =>
      read(self, () => toCheckpointRow(findNamespace(find(id), name)?.checkpoints.at(-1)?.checkpoint)),
    history: (id, page) => read(self, () => listHistory(find(id), page)),
    state: (id, checkpoint) => read(self, () => loadChannels(find(id), id, checkpoint)),
    effects: (id, name, step) =>
      read(self, () =>
        [...(find(id)?.namespaces.get(name)?.effects ?? [])]
          .filter(([each]) => matches(step, each))
          .sort(([one], [other]) => one - other)
          .flatMap(([, effects]) => [...effects.values()]),
      ),
    interrupts: (id, name) =>
      read(self, () => [...(find(id)?.namespaces.get(name)?.interrupts.values() ?? [])].map(({ row }) => row)),
    openInterrupts: (filter = {}) => read(self, () => listOpenInterrupts(all(), filter)),
    inbox: (id, name) => read(self, () => listWaiting(find(id)?.namespaces.get(name)?.inbox ?? [])),
    inboxMessage: (id, name, message) =>
      read(self, () => findMessage(find(id)?.namespaces.get(name)?.inbox ?? [], message)),
    requests: (id) => read(self, () => listOpenRequests(find(id) ?? { requests: [] })),
    events: (id, page) => read(self, () => listEvents(find(id), page)),
    namespaces: (id, kind) => read(self, () => listNamespaces(find(id), kind)),
    supersteps: (id, page) => read(self, () => listTimeline(find(id), page)),
    timers: (filter = {}) => read(self, () => listTimers(all(), filter)),
    exportThread: (id, options) =>
      read(self, () => toThreadExport(all(), requireThread(find(id), id), options?.bodies)),
    vacuum: () => read(self, () => undefined),
  };
}

function createSnapshots(threads: Threads, self: Owner): Required<Pick<Store, "snapshot">> {
  return {
    snapshot: async (work) => {
      checkAlive(self);
      return await readSnapshot(threads, (source) => work({ name: "memory", ...createReads(source, self) }));
    },
  };
}

type StoreWrites = Pick<
  Store,
  | "createThread"
  | "updateThread"
  | "claim"
  | "claimRuns"
  | "claimTimers"
  | "commit"
  | "enqueue"
  | "enqueueDue"
  | "dequeue"
  | "post"
  | "request"
  | "branch"
  | "delete"
  | "importThread"
  | "prune"
>;

function createWrites(threads: Threads, self: Owner, { add, write: enqueue }: WriteQueue): StoreWrites {
  const write = <Value>(thread: string, work: () => Value, kind: HintKind = "change"): Promise<Value> =>
    enqueue(() => {
      saveForSnapshots(threads, thread);
      const value = work();
      threads.hints.record(thread, kind);
      return value;
    });
  return {
    createThread: (put) => write(put.thread, () => putThread(threads, put)),
    updateThread: (id, patch) => write(id, () => patchThread(threads, id, patch)),
    claim: (request) =>
      enqueue(() => {
        saveForSnapshots(threads, request.thread);
        return claimThread(threads, self, request);
      }),
    claimRuns: (request) => enqueue(() => claimRuns(threads, self, request)),
    claimTimers: (request) => enqueue(() => claimTimers(threads, self, request)),
    commit: (commit, onCommitted) => {
      let counts: InputCounts | undefined;
      add(
        () => {
          saveForSnapshots(threads, commit.thread);
          counts = applyCommit(threads, self, commit);
          if (isVisible(commit)) threads.hints.record(commit.thread, "change");
          // The next queued run can start, although no owner starts it.
          if (commit.handledRequests !== undefined && counts.queued > 0) threads.hints.record(commit.thread, "input");
        },
        (failure) => onCommitted(failure, counts),
      );
    },
    enqueue: (put) => write(put.thread, () => replaceDebounced(threads, put) ?? enqueueRun(threads, put), "input"),
    enqueueDue: (page) =>
      enqueue(() => {
        const moved = enqueueDueRuns(threads, page);
        for (const { thread } of moved) threads.hints.record(thread, "input");
        return moved;
      }),
    dequeue: (id, run, { at, reason }) => write(id, () => dequeueRun(threads.get(id), run, at, reason), "input"),
    post: (message) => write(message.thread, () => postMessage(threads, message), "input"),
    request: (request) => write(request.thread, () => requestRun(threads, request), "input"),
    branch: (fork) => write(fork.thread, () => forkBranch(threads, fork)),
    delete: (id) =>
      write(id, () => {
        if (getThread(threads, id).owner?.alive === true) throw createBusyError(id);
        threads.delete(id);
        deleteThreadOutbox(threads.outbox, id);
      }),
    importThread: (exported) =>
      write(exported.id, () => {
        if (threads.has(exported.id)) throw createThreadExistsError(exported.id);
        insertThread(threads, exported);
      }),
    prune: (prune) => write(prune.thread, () => pruneMemoryThread(getThread(threads, prune.thread), prune)),
  };
}

/** Returns true for a commit that lists show: journal rows alone are none. */
function isVisible({ checkpoint, run, interrupts }: Commit): boolean {
  return checkpoint !== undefined || run !== undefined || interrupts !== undefined;
}

function createLongTermStore(
  { longTerm }: Threads,
  {
    self,
    queue: { write },
    vectors,
  }: { readonly self: Owner; readonly queue: WriteQueue; readonly vectors: LongTermVectors | undefined },
): Store["longTerm"] {
  return {
    ...(vectors === undefined ? {} : { vectors }),
    get: (location, at) => read(self, () => longTerm.get(location, at)),
    page: (query) => read(self, () => longTerm.page(query)),
    write: (changes, at) => write(() => longTerm.apply(changes, at)),
    refresh: (touches) => write(() => longTerm.refresh(touches)),
    sweep: (at, limit) => write(() => longTerm.sweep(at, limit)),
  };
}

function createSchedules(threads: Threads, self: Owner, { write }: WriteQueue): Schedules {
  return {
    get: (id) => read(self, () => threads.schedules.get(id)),
    list: (filter = {}) => read(self, () => listSchedules(threads, filter)),
    put: (put) => write(() => putSchedule(threads, put)),
    delete: (id) => write(() => threads.schedules.delete(id)),
  };
}
