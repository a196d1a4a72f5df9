/** Threads owned by a store, with cached state of the file. */
import type { Commit, InputCounts } from "@statewright/core/store";
import type { GraphVersion, ThreadCipher } from "@statewright/store-kit";

/** Thread owned by this store, with cached state of the file. */
export interface ClaimedThread {
  readonly id: string;
  readonly key: number;
  readonly epoch: number;
  readonly writer: GraphVersion & { readonly key: number };
  /** State of the written namespaces, by name; a missing entry is read again. */
  readonly namespaces: Map<string, NamespaceState>;
  /** Head of the thread over all namespaces; undefined when it must be read again. */
  head: ThreadHead | undefined;
  /** True when the row of the thread contains the graph of this writer. */
  hasGraph: boolean;
  /** Last written run. */
  run: RunKey | undefined;
  /** Row key of the first run of a thread that the commit of this run creates; undefined once the run is written. */
  firstRun: number | undefined;
  /** Commit that claimed the thread: the claim has written its head already. */
  claimedBy: Commit | undefined;
  /** Last known number of queued runs, waiting inbox messages and open requests of the thread. */
  queued: number;
  messages: number;
  requests: number;
  /** The numbers as of the last commit: most commits return the same object. */
  inputs: InputCounts;
  /** Number of the last input that the numbers include; -1 when they must be read again. */
  input: number;
  /** True after a release that could not be written. */
  isReleased: boolean;
  /** True when inbox messages may have been delivered to the run. */
  mayHaveTakenMessages: boolean;
  /** True when interrupts may be awaiting an answer. */
  mayAwaitAnswers: boolean;
  /** Cipher of the values of the thread. */
  cipher: ThreadCipher | undefined;
}

/** Last event number, last checkpoint id and last change of a thread. */
export interface ThreadHead {
  readonly seq: number;
  readonly checkpoint: number;
  readonly updated: number;
}

export interface RunKey {
  readonly id: string;
  readonly key: number;
}

export interface NamespaceState {
  readonly name: string;
  readonly key: number;
  /** Parent of the next checkpoint in the namespace. */
  readonly head: { readonly id: number; readonly hash: string } | undefined;
  /** Step whose journal the next checkpoint folds; undefined before the first checkpoint of the namespace. */
  readonly step: number | undefined;
  /** Last step of the namespace with journal rows in the file; -1 for none. */
  readonly journal: number;
  /** True when the fold of that step may change rows: not all of them are effects that run once, which it keeps. */
  readonly hasFoldableRows: boolean;
  /** Cache of the channel keys of the namespace. */
  readonly channels: Map<string, number>;
  /** True when the cache has all channels: the namespace was created by this claim. */
  readonly hasAllChannels: boolean;
}

/** Maximum number of cached namespaces per thread; the oldest entries are evicted. */
const maxCachedNamespaces = 4_096;

/** Returns the inputs that wait for the owner of a thread, as an object that never changes. */
export function getInputs(claimed: ClaimedThread): InputCounts {
  const { queued, messages, requests, inputs } = claimed;
  if (inputs.queued !== queued || inputs.messages !== messages || inputs.requests !== requests)
    claimed.inputs = { queued, messages, requests };
  return claimed.inputs;
}

/** Discards the cached state of a namespace after a rollback. */
export function forgetNamespace(thread: ClaimedThread, namespace: string): void {
  thread.namespaces.delete(namespace);
  thread.head = undefined;
  thread.hasGraph = false;
  thread.run = undefined;
  thread.mayAwaitAnswers = true;
  thread.input = -1;
}

/** Caches the state of a namespace; evicts the oldest entry of a full cache. */
export function cacheNamespace({ namespaces }: ClaimedThread, state: NamespaceState): void {
  if (namespaces.size === maxCachedNamespaces && !namespaces.has(state.name))
    for (const oldest of namespaces.keys()) if (namespaces.delete(oldest)) break;
  namespaces.set(state.name, state);
}
