/** Data of the memory store: threads with their namespaces, runs, interrupts and artifacts. */

import type { MemoryLongTerm } from "../../long-term/memory-long-term.ts";
import {
  type ArtifactRow,
  type ArtifactStore,
  type ArtifactWrite,
  matchesArtifactFilter,
  sliceRange,
} from "../../tool/artifacts/artifact.ts";
import type { RunRow } from "../checkpoint.ts";
import type { EventRow } from "../event.ts";
import type { GraphVersion, PrunedRange } from "../export/thread-export.ts";
import type { InboxMessage } from "../inbox-message.ts";
import type { EffectRow, InterruptRow } from "../journal.ts";
import type { OutboxRow } from "../outbox.ts";
import {
  checkFilter,
  checkRange,
  createUnknownBranchError,
  createUnknownThreadError,
  isChildNamespace,
} from "../rules.ts";
import type { RunRequest } from "../run-request.ts";
import type { ScheduleRow } from "../schedule.ts";
import type { CheckpointWithDeltas, Ownership } from "../store.ts";
import type { ThreadDetails } from "../thread-rules.ts";
import type { TimerRow } from "../timer.ts";
import type { MemoryHints } from "./memory-hints.ts";

export interface Owner {
  alive: boolean;
  /** True when the owner has ended by `crash()`. */
  crashed: boolean;
}

export interface StoredCheckpoint {
  readonly checkpoint: CheckpointWithDeltas;
  readonly writtenBy: GraphVersion;
  readonly namespace: StoredNamespace;
}

export interface StoredNamespace {
  readonly name: string;
  readonly from: number | undefined;
  /** Namespace of the checkpoint `from`. */
  readonly origin: StoredNamespace | undefined;
  readonly checkpoints: StoredCheckpoint[];
  /** Ranges removed by retention. */
  readonly prunedRanges: PrunedRange[];
  /** Journal by step, so that folding reads only its own step. */
  readonly effects: Map<number, Map<string, EffectRow>>;
  readonly interrupts: Map<string, StoredInterrupt>;
  /** Interrupts awaited by the run while its status is `waiting`. */
  readonly awaited: Set<string>;
  readonly timers: Map<string, TimerRow>;
  /** Inbox in posting order, including received messages that a rollback would return. */
  inbox: readonly InboxMessage[];
  run: string | undefined;
}

export interface Thread {
  readonly id: string;
  readonly createdAt: number;
  /** Random part of the idempotency keys. */
  readonly keySalt: string;
  /** Title, metadata, tenant and owner. */
  details: ThreadDetails;
  headBranch: string;
  readonly namespaces: Map<string, StoredNamespace>;
  /** Checkpoints of all namespaces, by id. */
  readonly checkpoints: Map<number, StoredCheckpoint>;
  readonly runs: Map<string, StoredRun>;
  /** Durable events, except checkpoints, by sequence number. */
  readonly events: EventRow[];
  readonly artifacts: ThreadArtifacts;
  /** Number of queued runs. */
  queued: number;
  /** Number of inbox messages that no run has received. */
  messages: number;
  /** Requests in their order, including handled requests with a key. */
  requests: readonly RunRequest[];
  owner: Owner | undefined;
  /** Owners that lost the thread to a forced claim. */
  displaced: readonly Owner[];
  /** Graph version of the owner, recorded with new checkpoints; undefined before the first claim. */
  writer: GraphVersion | undefined;
  writtenBy: GraphVersion | undefined;
  epoch: number;
  seq: number;
  checkpoint: number;
  run: string | undefined;
  updatedAt: number;
}

export interface StoredRun {
  readonly row: RunRow;
  /** Number among all runs of all threads: the order does not depend on the clock. */
  readonly nth: number;
  /** Epoch of the last write: a `running` row of another epoch is no longer active. */
  readonly epoch: number;
}

export interface StoredInterrupt {
  readonly row: InterruptRow;
  /** Number among all interrupts of all threads. */
  readonly position: number;
}

/** Rows of the outbox by position, and the topics of each consumer. */
export interface MemoryOutbox {
  readonly rows: Map<number, { readonly row: OutboxRow; readonly owner: Owner | undefined }>;
  /** Positions by consumer, thread and id. */
  readonly positions: Map<string, number>;
  readonly topics: Map<string, ReadonlySet<string>>;
  lastPosition: number;
}

export function createMemoryOutbox(): MemoryOutbox {
  return { rows: new Map(), positions: new Map(), topics: new Map(), lastPosition: 0 };
}

export type Threads = Map<string, Thread> & {
  runCount: number;
  interruptCount: number;
  /** Number of owners created: with one owner, no other process can write. */
  ownerCount: number;
  /** Threads that may have an undelivered event in an inbox: every other thread has none. */
  readonly eventThreads: Set<string>;
  /** Threads that may have a request: every other thread has none. */
  readonly requestThreads: Set<string>;
  readonly hints: MemoryHints;
  /** Outlines of graph versions, by version. */
  readonly outlines: Map<string, string>;
  readonly longTerm: MemoryLongTerm;
  /** Tenant served last, by priority and rotation. */
  readonly servedTenants: Map<string, string>;
  /** Claims of due timers. Arming a timer again makes another row. */
  readonly timerClaims: WeakMap<TimerRow, { readonly owner: Owner; readonly until: number }>;
  readonly ownership: Ownership;
  /** Schedules by id. */
  readonly schedules: Map<string, ScheduleRow>;
  readonly outbox: MemoryOutbox;
  /** Clock of the store; undefined in a store without a clock. */
  readonly now: (() => number) | undefined;
  /** Open snapshots, each with the threads changed since. */
  readonly snapshots: Set<Map<string, Thread | undefined>>;
};

export function createThread(
  {
    id,
    headBranch,
    createdAt: at,
    keySalt,
    details,
  }: Pick<Thread, "id" | "headBranch" | "createdAt" | "keySalt" | "details">,
  writer: GraphVersion | undefined,
): Thread {
  return {
    id,
    createdAt: at,
    keySalt,
    details,
    headBranch,
    namespaces: new Map(),
    checkpoints: new Map(),
    runs: new Map(),
    events: [],
    artifacts: createThreadArtifacts(),
    queued: 0,
    messages: 0,
    requests: [],
    owner: undefined,
    displaced: [],
    writer,
    writtenBy: writer,
    epoch: 0,
    seq: 0,
    checkpoint: 0,
    run: undefined,
    updatedAt: at,
  };
}

export function createNamespace(
  name: string,
  from: number | undefined,
  origin: StoredNamespace | undefined,
): StoredNamespace {
  return {
    name,
    from,
    origin,
    checkpoints: [],
    prunedRanges: [],
    effects: new Map(),
    interrupts: new Map(),
    awaited: new Set(),
    timers: new Map(),
    inbox: [],
    run: undefined,
  };
}

/** Returns the parent id for the next checkpoint of a namespace. */
export function getLastCheckpointId(namespace: StoredNamespace): number | undefined {
  return namespace.checkpoints.at(-1)?.checkpoint.id ?? namespace.from;
}

/** Returns the thread with this id, or all threads. */
export function selectThreads(threads: Threads, id: string | undefined): readonly Thread[] {
  if (id === undefined) return [...threads.values()];
  const thread = threads.get(id);
  return thread === undefined ? [] : [thread];
}

export function getThread(threads: Threads, id: string): Thread {
  return requireThread(threads.get(id), id);
}

export function requireThread(thread: Thread | undefined, id: string): Thread {
  if (thread === undefined) throw createUnknownThreadError(id);
  return thread;
}

export function findNamespace(thread: Thread | undefined, name: string | undefined): StoredNamespace | undefined {
  return thread?.namespaces.get(name ?? thread.headBranch);
}

/** Returns a branch of a thread, by default the head branch. Throws `unknown_thread`, `unknown_branch`. */
export function getBranch(
  threads: Threads,
  id: string,
  branch: string | undefined,
): { readonly thread: Thread; readonly namespace: StoredNamespace } {
  const thread = getThread(threads, id);
  const namespace = findNamespace(thread, branch);
  if (namespace === undefined || isChildNamespace(namespace.name))
    throw createUnknownBranchError(id, branch ?? thread.headBranch);
  return { thread, namespace };
}

/** Artifacts of one thread. */
export interface ThreadArtifacts {
  rows: ArtifactRow[];
  readonly bodies: Map<string, Uint8Array>;
}

/** Creates an artifact store in memory, for a run without a store or with a store of another kind. */
export function memoryArtifacts(): ArtifactStore {
  const threads = new Map<string, ThreadArtifacts>();
  return {
    put: async (thread, artifact) => {
      const artifacts = threads.get(thread) ?? createThreadArtifacts();
      threads.set(thread, artifacts);
      putArtifact(artifacts, artifact);
    },
    ...createArtifactAccess((thread) => threads.get(thread)),
  };
}

/** Creates the read and delete operations for the artifacts returned by `find`. */
export function createArtifactAccess(
  find: (thread: string) => ThreadArtifacts | undefined,
): Pick<ArtifactStore, "list" | "read" | "delete"> {
  return {
    list: async (thread, filter = {}) => {
      checkFilter("artifacts", filter, ["run", "key"]);
      return (find(thread)?.rows ?? []).filter((row) => matchesArtifactFilter(row, filter)).slice(0, filter.limit);
    },
    read: async (thread, key, range) => {
      if (range !== undefined) checkRange(range);
      const body = find(thread)?.bodies.get(key);
      return body === undefined ? undefined : sliceRange(body, range ?? { offset: 0, limit: body.length });
    },
    delete: async (thread, key) => {
      const artifacts = find(thread);
      if (artifacts?.bodies.delete(key) !== true) return false;
      artifacts.rows = artifacts.rows.filter((row) => row.key !== key);
      return true;
    },
  };
}

/** Stores an artifact; identical bodies are stored once. */
export function putArtifact(artifacts: ThreadArtifacts, { row, body }: ArtifactWrite): void {
  artifacts.rows.push(row);
  if (!artifacts.bodies.has(row.key)) artifacts.bodies.set(row.key, body);
}

function createThreadArtifacts(): ThreadArtifacts {
  return { rows: [], bodies: new Map() };
}
