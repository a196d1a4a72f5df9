/**
 * Data of the memory store: threads with their namespaces, checkpoints, runs, interrupts, requests and artifacts, the
 * outbox and the hints, with the reads and writes of single rows.
 */
import type { MemoryLongTerm } from "../../long-term/memory-long-term.ts";
import {
  type ArtifactRow,
  type ArtifactStore,
  type ArtifactWrite,
  matchesArtifactFilter,
  sliceRange,
} from "../../tool/artifacts/artifact.ts";
import type { ChannelRows } from "../channel-rows.ts";
import type { CheckpointRow, DeltaRow, RunRow } from "../checkpoint.ts";
import type { ClaimedRows } from "../claimed-rows.ts";
import type { EventRow } from "../event.ts";
import type { GraphVersion, PrunedRange } from "../export/thread-export.ts";
import type { InboxMessage } from "../inbox-message.ts";
import { type EffectRow, type InterruptRow, isOpen } from "../journal.ts";
import type { OutboxRow } from "../outbox.ts";
import { isHandledBy } from "../request-rules.ts";
import {
  type ClosedInterrupts,
  checkFilter,
  checkRange,
  createUnknownBranchError,
  createUnknownCheckpointError,
  createUnknownThreadError,
  isBase,
  isChildNamespace,
} from "../rules.ts";
import type { HintKind, HintListener, InputCounts, RunRequest, WatchOptions } from "../run-request.ts";
import type { ScheduleRow } from "../schedule.ts";
import type { CheckpointWithDeltas, CheckpointWrite, Commit, Ownership, Store, StoredEvent } from "../store.ts";
import { type ThreadDetails, toVersionKey } from "../thread-rules.ts";
import type { TimerRow } from "../timer.ts";

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
  /** Number of owners created: with a single owner, no other process can write. */
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

/** Artifacts of a thread. */
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

export function appendCheckpoint(
  thread: Thread,
  namespace: StoredNamespace,
  { row, deltas }: CheckpointWrite,
  writtenBy: GraphVersion,
): void {
  const bases = deltas.map((delta) => ({ ...delta, base: isBase(delta) }));
  const saved = { checkpoint: { ...row, branch: namespace.name, deltas: bases }, writtenBy, namespace };
  namespace.checkpoints.push(saved);
  thread.checkpoints.set(row.id, saved);
  thread.namespaces.set(namespace.name, namespace);
  thread.checkpoint = row.id;
}

/** Lists the checkpoints of a branch and its ancestors, newest first. */
export function listHistory(
  thread: Thread | undefined,
  page: Parameters<Store["history"]>[1],
): readonly CheckpointWithDeltas[] {
  checkFilter("history", page, ["branch", "before"]);
  const { before = Number.POSITIVE_INFINITY } = page;
  return listCheckpoints(findNamespace(thread, page.branch))
    .filter((checkpoint) => checkpoint.id < before)
    .slice(0, page.limit);
}

/** Returns the channels at a checkpoint. Throws `unknown_checkpoint`. */
export function loadChannels(thread: Thread | undefined, id: string, checkpoint: number): readonly ChannelRows[] {
  const found = thread?.checkpoints.get(checkpoint);
  if (found === undefined) throw createUnknownCheckpointError(id, checkpoint);
  return toChannelRows(listChanges(found.namespace, checkpoint));
}

/** Lists the checkpoints of all namespaces and the durable events, by sequence number. */
export function listEvents(thread: Thread | undefined, page: Parameters<Store["events"]>[1]): readonly StoredEvent[] {
  checkFilter("events", page, ["after", "from"]);
  const checkpoints = [...(thread?.checkpoints.values() ?? [])].map(({ checkpoint }) => ({ checkpoint }));
  const durableEvents = (thread?.events ?? []).map((durableEvent) => ({ durableEvent }));
  const getSeq = (event: StoredEvent): number =>
    "durableEvent" in event ? event.durableEvent.seq : event.checkpoint.seq;
  return [...checkpoints, ...durableEvents]
    .filter((event) => getSeq(event) > page.after)
    .sort((one, other) => getSeq(one) - getSeq(other))
    .slice(0, page.limit);
}

export function toCheckpointRow(checkpoint: CheckpointWithDeltas | undefined): CheckpointRow | undefined {
  if (checkpoint === undefined) return undefined;
  const { deltas: _, ...row } = checkpoint;
  return row;
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

/** Loads the rows of the newest checkpoint of a claimed branch. */
export function loadClaimedRows(
  thread: Thread,
  { effects, interrupts }: StoredNamespace,
  { id, step }: CheckpointRow,
): ClaimedRows {
  return {
    state: loadChannels(thread, thread.id, id),
    effects: [...(effects.get(step)?.values() ?? [])],
    interrupts: [...interrupts.values()].map(({ row }) => row),
    isOnlyBranch: [...thread.namespaces.keys()].filter((name) => !isChildNamespace(name)).length === 1,
  };
}

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

/** Listeners of a store, and the changes since the last report. */
export interface MemoryHints {
  /** Calls the listener for each change of these kinds, until the returned function is called. */
  watch(listener: HintListener, options?: WatchOptions): () => void;
  /** Records a change; reported by `report`. */
  record(thread: string, kind: HintKind): void;
  /** Reports the recorded changes, each thread and kind once. */
  report(): void;
}

const hintKinds: readonly HintKind[] = ["input", "change"];

/** Creates hints without listeners. */
export function createMemoryHints(): MemoryHints {
  const listeners = new Map<HintListener, readonly HintKind[] | undefined>();
  const watched: Record<HintKind, boolean> = { input: false, change: false };
  const changed: Record<HintKind, Set<string>> = { input: new Set(), change: new Set() };

  /** Every commit asks for the kinds that listeners wait for. */
  function updateWatched(): void {
    const all = [...listeners.values()];
    for (const kind of hintKinds) watched[kind] = all.some((kinds) => kinds?.includes(kind) !== false);
  }

  function reportKind(kind: HintKind): void {
    const threads = [...changed[kind]];
    changed[kind].clear();
    for (const thread of threads)
      for (const [listener, kinds] of [...listeners]) if (kinds?.includes(kind) !== false) listener(thread, kind);
  }

  return {
    watch: (listener, { kinds } = {}) => {
      // The same function may listen twice.
      const own: HintListener = (thread, kind) => listener(thread, kind);
      listeners.set(own, kinds);
      updateWatched();
      return () => {
        listeners.delete(own);
        updateWatched();
      };
    },
    record: (thread, kind) => {
      if (watched[kind]) changed[kind].add(thread);
    },
    report: () => {
      if (changed.input.size > 0) reportKind("input");
      if (changed.change.size > 0) reportKind("change");
    },
  };
}

export function putInterrupt(threads: Threads, namespace: StoredNamespace, row: InterruptRow): void {
  const position = namespace.interrupts.get(row.id)?.position ?? ++threads.interruptCount;
  namespace.interrupts.set(row.id, { row: { ...row, branch: namespace.name }, position });
  if (isOpen(row)) namespace.awaited.add(row.id);
  else namespace.awaited.delete(row.id);
}

/** Removes interrupts of a branch from the list of open interrupts. */
export function closeInterrupts({ awaited, interrupts }: StoredNamespace, closed: ClosedInterrupts | undefined): void {
  if (closed === undefined || awaited.size === 0) return;
  for (const id of awaited) if (interrupts.get(id)?.row.step !== closed.exceptStep) awaited.delete(id);
}

/** Saves the outline of a graph version; keeps an outline that is saved already. */
export function saveOutline({ outlines }: Threads, version: GraphVersion, outline: string | undefined): void {
  const key = toVersionKey(version);
  if (outline !== undefined && !outlines.has(key)) outlines.set(key, outline);
}
