/**
 * Cache of the final states of runs in this process, so that the next turn of a conversation does not load the whole
 * state again. A state is reused only when the thread has not changed since: the next claim finds the exact
 * checkpoint written by the run. Entries are weak references and do not prevent garbage collection.
 *
 * Only JSON states are cached: other values are copied on each read and may have been mutated in place.
 */

import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import type { StateWriter } from "../../checkpoint/codec/saved-state.ts";
import type { Claim, Store } from "../../checkpoint/store.ts";
import type { Plan } from "../../compile/plan.ts";
import { type Codec, plainCodec } from "../../state/codec.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import type { State } from "../session/returns.ts";

/** Final state of a run. */
export interface FinalState {
  readonly plan: Plan;
  readonly branch: string;
  readonly epoch: number;
  readonly head: CheckpointRow;
  readonly state: State;
  readonly writer: StateWriter;
}

/** Maximum number of cached threads per store; the oldest entry is evicted. */
const maxCachedThreads = 64;

const finalStates: WeakMap<Store, Map<string, WeakRef<FinalState>>> = new WeakMap();

/** Caches the final state of a run after its last checkpoint is durable. */
export function cacheFinalState(
  { plan, run, nesting }: Position,
  { state }: Progress,
  saved: Persistence,
  head: CheckpointRow,
): void {
  const { store, codec, claim, writer } = saved;
  if (nesting !== undefined || codec !== plainCodec || !writer.isPlain() || !isFullySaved(plan)) return;
  const threads = finalStates.get(store) ?? new Map<string, WeakRef<FinalState>>();
  finalStates.set(store, threads);
  threads.delete(run.thread);
  for (const oldest of threads.keys()) {
    if (threads.size < maxCachedThreads) break;
    threads.delete(oldest);
  }
  threads.set(run.thread, new WeakRef({ plan, branch: run.branch, epoch: claim.epoch, head, state, writer }));
}

/** Returns true if the final state of a thread is cached. A claim may still find the thread changed. */
export function hasFinalState(store: Store, thread: string): boolean {
  return finalStates.get(store)?.get(thread)?.deref() !== undefined;
}

/** Removes and returns the cached final state when the claim finds the thread unchanged. */
export function popFinalState(
  store: Store,
  plan: Plan,
  codec: Codec,
  { thread, claim }: { readonly thread: string; readonly claim: Claim },
): FinalState | undefined {
  const threads = finalStates.get(store);
  const found = threads?.get(thread)?.deref();
  threads?.delete(thread);
  if (found === undefined || codec !== plainCodec) return undefined;
  const isSame = found.plan === plan && found.branch === claim.branch && found.epoch + 1 === claim.epoch;
  return isSame && isSameHead(found.head, claim.head) ? found : undefined;
}

function isSameHead({ id, run, at, seq, control }: CheckpointRow, found: CheckpointRow | undefined): boolean {
  return found?.id === id && found.run === run && found.at === at && found.seq === seq && found.control === control;
}

/** Returns false for a graph with untracked channels, which start empty in each run. */
function isFullySaved({ graph }: Plan): boolean {
  return Object.values(graph.state.channels).every(({ kind }) => kind !== "untracked");
}
