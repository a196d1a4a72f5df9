/**
 * Registry of the active and waiting runs of this process, per thread of a store. A new input finds the run before
 * it, and a finished run finds the next waiting run.
 */
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import type { InboxMessage } from "../../checkpoint/inbox-message.ts";
import type { RunRequest } from "../../checkpoint/run-request.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import type { RunHandle } from "./options/options.ts";
import type { Preemption } from "./preemption.ts";

/** Active run of this process. */
export interface ActiveRun {
  readonly run: string;
  /** Name of the graph of the run. */
  readonly graph: string;
  readonly branch: string;
  readonly key: string | undefined;
  readonly bodyHash: string | undefined;
  readonly tenant: string | undefined;
  readonly handle: RunHandle<unknown> | undefined;
  readonly stop: (reason: Preemption) => void;
  /** Stops the run for a request. */
  readonly stopForRequest: (request: RunRequest) => void;
  /** Notifies the run of a new message in its inbox. */
  readonly notifyArrival: (message: Pick<InboxMessage, "id" | "kind">) => void;
}

/** Queued run whose caller waits in this process. */
export interface WaitingRun {
  readonly row: RunRow;
  /** Starts the run: it is first in the queue. */
  readonly start: () => void;
  /** Stops waiting, because another process may start the run, or much later: the caller gets the status queued. */
  readonly detach: () => void;
}

interface ThreadRegistry {
  readonly active: Map<string, ActiveRun>;
  /** Queued runs whose caller waits in this process, by run key. */
  readonly waiting: Map<string, WaitingRun>;
  /** Number of runs of this process that are about to claim a thread, by thread. */
  readonly opening: Map<string, number>;
  /** Queued runs that are about to start in this process, by run key. */
  readonly starting: Map<string, StartingRun>;
  /** Handles of runs started in this process with a key, by `toKeyedName`. */
  readonly keyed: Map<string, KeyedHandle>;
}

/**
 * Queued run that is about to start. `needsRecheck` is set when the run became first in the queue again after its
 * last check.
 */
export interface StartingRun {
  needsRecheck: boolean;
}

/** Returns the key of a run in its store: a copy of a thread has runs of the same ids. */
export function toRunKey({ thread, id }: Pick<RunRow, "thread" | "id">): string {
  return `${thread} ${id}`;
}

const registries: WeakMap<Store, ThreadRegistry> = new WeakMap();

/** Handle of a run with a key, and the hash of what it was started with. */
export interface KeyedHandle {
  readonly handle: RunHandle<unknown>;
  readonly bodyHash: string | undefined;
}

/** Returns the registry of a store, created on first use. */
export function getThreadRegistry(store: Store): ThreadRegistry {
  let registry = registries.get(store);
  if (registry === undefined) {
    registry = { active: new Map(), waiting: new Map(), opening: new Map(), starting: new Map(), keyed: new Map() };
    registries.set(store, registry);
  }
  return registry;
}

/**
 * True when a run of this process has claimed the thread or is about to. The next waiting run is looked up when that
 * run ends.
 */
export function isThreadActive(store: Store, thread: string): boolean {
  const { active, opening } = getThreadRegistry(store);
  return active.has(thread) || opening.has(thread);
}

/** Idempotency key of a run on its thread, with the tenant that the call names. */
export interface KeyedRun {
  readonly thread: string;
  readonly key: string;
  readonly tenant: string | undefined;
}

/** Returns the key of a run in {@link ThreadRegistry.keyed}: a call for another tenant never finds the run. */
export function toKeyedName({ thread, key, tenant = "" }: KeyedRun): string {
  return `${thread} ${key} ${tenant}`;
}

/** Finds the run that is active in this process under a key. */
export function findActiveRun(store: Store, keyedRun: KeyedRun): KeyedHandle | undefined {
  const { keyed, active } = getThreadRegistry(store);
  const { thread, key, tenant } = keyedRun;
  const activeRun = active.get(thread);
  const isSame = activeRun?.key === key && (tenant === undefined || tenant === activeRun.tenant);
  const known = keyed.get(toKeyedName(keyedRun));
  if (known !== undefined || !isSame || activeRun?.handle === undefined) return known;
  return { handle: activeRun.handle, bodyHash: activeRun.bodyHash };
}

const activeByGraph: WeakMap<GraphDefinition, Set<RunHandle<unknown>>> = new WeakMap();

/** Registers an active run under its graphs, in every store; the returned function removes the run. */
export function registerActiveRun(graphs: readonly GraphDefinition[], handle: RunHandle<unknown>): () => void {
  for (const graph of graphs) activeByGraph.set(graph, (activeByGraph.get(graph) ?? new Set()).add(handle));
  return () => {
    for (const graph of graphs) activeByGraph.get(graph)?.delete(handle);
  };
}

/** Selection of active runs. */
export interface ActiveRunFilter {
  /** Default: all threads. */
  readonly thread?: string | undefined;
  /** Also selects runs of other versions of the graph on the thread of this store. */
  readonly store?: Store | undefined;
}

/**
 * Lists the handles of the runs of a graph that are active in this process, also runs that an engine started. Runs
 * without a store, waiting runs and queued runs are not listed. Never throws.
 *
 * @example for (const run of listActiveRuns(graph, { thread: "t" })) run.cancel();
 */
export function listActiveRuns(
  graph: GraphDefinition,
  { thread, store }: ActiveRunFilter = {},
): readonly RunHandle<unknown>[] {
  const handles = [...(activeByGraph.get(graph) ?? [])].filter((run) => thread === undefined || run.thread === thread);
  const stored = store === undefined || thread === undefined ? undefined : getThreadRegistry(store).active.get(thread);
  if (stored?.handle === undefined || stored.graph !== graph.name || handles.includes(stored.handle)) return handles;
  return [...handles, stored.handle];
}

/** Lists the waiting runs of a thread in this process. */
export function listWaitingRuns(store: Store, thread: string): readonly WaitingRun[] {
  const { waiting } = getThreadRegistry(store);
  return waiting.size === 0 ? [] : [...waiting.values()].filter(({ row }) => row.thread === thread);
}
