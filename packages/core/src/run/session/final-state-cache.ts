/**
 * The states that runs of this process have ended with, so that the next turn of a conversation does not read all of it
 * again. A state is taken up only where the thread has not moved since: the claim after that of the run finds the very
 * checkpoint that the run wrote. It is held weakly, so that it costs no memory that anybody else asks for.
 *
 * Only what JSON says as it is counts: anything else is a copy when it is read, and may be changed in place before.
 */
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import type { StateWriter } from "../../checkpoint/codec/saved-state.ts";
import type { Claim, Store } from "../../checkpoint/store.ts";
import type { Plan } from "../../compile/plan.ts";
import { type Codec, plainCodec } from "../../state/codec.ts";
import type { State } from "./returns.ts";
import type { Saved, Session } from "./session.ts";

/** What a run has ended with. */
export interface LeftState {
  readonly plan: Plan;
  readonly branch: string;
  readonly epoch: number;
  readonly head: CheckpointRow;
  readonly state: State;
  readonly writer: StateWriter;
}

/** So many threads of a store are remembered, those that ended last. */
const mostLeft = 64;

const left: WeakMap<Store, Map<string, WeakRef<LeftState>>> = new WeakMap();

/** Remember what a run has ended with, when its last checkpoint is durable. */
export function leaveState({ plan, run, within, state }: Session, saved: Saved, head: CheckpointRow): void {
  const { store, codec, claim, writer } = saved;
  if (within !== undefined || codec !== plainCodec || !writer.isPlain() || !isSaved(plan)) return;
  const threads = left.get(store) ?? new Map<string, WeakRef<LeftState>>();
  left.set(store, threads);
  threads.delete(run.thread);
  for (const oldest of threads.keys()) {
    if (threads.size < mostLeft) break;
    threads.delete(oldest);
  }
  threads.set(run.thread, new WeakRef({ plan, branch: run.branch, epoch: claim.epoch, head, state, writer }));
}

/** What a run of this process has left, where a claim finds it as it was left; it is taken up once. */
export function takeLeft(store: Store, plan: Plan, codec: Codec, thread: string, claim: Claim): LeftState | undefined {
  const threads = left.get(store);
  const found = threads?.get(thread)?.deref();
  threads?.delete(thread);
  if (found === undefined || codec !== plainCodec) return undefined;
  const isSame = found.plan === plan && found.branch === claim.branch && found.epoch + 1 === claim.epoch;
  return isSame && isHead(found.head, claim.head) ? found : undefined;
}

function isHead({ id, run, at, seq, control }: CheckpointRow, found: CheckpointRow | undefined): boolean {
  return found?.id === id && found.run === run && found.at === at && found.seq === seq && found.control === control;
}

/** A channel that lives in the process only begins anew with each run. */
function isSaved({ graph }: Plan): boolean {
  return Object.values(graph.state.channels).every(({ kind }) => kind !== "untracked");
}
