/** Scope of a task: signal, interrupts and recorded changes shared by its body, tool calls and hooks. */

import type { StatewrightError } from "../../base/errors.ts";
import type { RunIdentity } from "../../base/injection.ts";
import type { Json } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { NodeRecord } from "../../define/graph.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import type { Expiry } from "../../tool/policy/interrupt.ts";
import { subscribeToAbort } from "./abort.ts";
import type { Position } from "./parts/position.ts";
import type { Signals } from "./parts/signals.ts";
import type { Write } from "./returns.ts";
import type { Session } from "./session.ts";
import type { Stop } from "./stop.ts";

/** The superstep loop as tasks use it. Created once; the scope of every task holds it, so no function passes it on. */
export interface Loop {
  /** Runs the supersteps of an inner graph until no task can run. `isFresh`: the call starts, it does not resume. */
  readonly runSupersteps: (session: Session, start: { readonly isFresh: boolean }) => Promise<Stop>;
}

/** Writes of the hooks of a task. */
export interface HookWrites {
  /** Applied before the return value of the body; a single list per model call, in start order. */
  readonly before: Write[][];
  /** Applied after the return value of the body. */
  readonly after: Write[];
}

/** Scope of an attempt of a task. */
export interface TaskScope {
  readonly session: Session;
  readonly loop: Loop;
  readonly task: Task;
  readonly node: NodeRecord;
  readonly attempt: number;
  /** Returns the attempt's signal, created on first use. */
  readonly getSignal: () => AbortSignal;
  /** Returns true if the attempt has ended: its body may still be running, but its result is ignored. */
  readonly isEnded: () => boolean;
  /** Signals that the attempt is alive. */
  readonly sendHeartbeat: () => void;
  /**
   * Looks up an interrupt: returns its answer, or the row of the open interrupt, created if new. Throws
   * `interrupt_expired` for an expired interrupt without a default answer.
   */
  readonly consult: (
    request: InterruptRequest,
  ) => { readonly answer: unknown; readonly expired: boolean } | { readonly open: InterruptRow };
  /** Suspends the task until these interrupts are answered. The promise never resolves. */
  readonly suspend: (open: readonly InterruptRow[]) => Promise<never>;
  /** Fails the task for an invalid interrupt, even if its body would catch the error. The promise never resolves. */
  readonly fail: (error: unknown) => Promise<never>;
  /** Pauses the task at the boundary where its inner graph stopped. The promise never resolves. */
  readonly pauseAtBoundary: (cause: StatewrightError) => Promise<never>;
  /** Changes to the long-term store; undefined before the first use. */
  longTerm: LongTermChange[] | undefined;
  /** Channel writes of the hooks around its model calls; undefined when there are none. */
  hookWrites: HookWrites | undefined;
  /** Number of running recorded steps. */
  activeSteps: number;
  /** Owner of each recorded key: the body, or hooks with auxiliary model calls. Undefined when no key is recorded. */
  recordedKeys: Map<string, "body" | "hooks"> | undefined;
}

/** Request for an interrupt; `id` is unique in its branch. */
export interface InterruptRequest {
  readonly id: string;
  /** Id in the branch, for an interrupt shared by several tasks, which all wait for the same answer. */
  readonly sharedId?: string | undefined;
  readonly key: string;
  readonly payload: unknown;
  readonly schema: Json | undefined;
  /**
   * Short identifier of the subject: an answer counts only for the same subject; for another subject the interrupt is
   * raised again.
   */
  readonly about?: string | undefined;
  /** Tool whose arguments an answer may change. */
  readonly tool?: string | undefined;
  /** Expiry; undefined waits forever. */
  readonly expiry?: Expiry | undefined;
}

/** Returns the run identity for bodies, tools and middleware. */
export function getRunIdentity(position: Position, task: Task): RunIdentity {
  const { run } = position;
  return {
    run: run.id,
    thread: run.thread,
    branch: run.branch,
    graph: run.graph,
    node: task.node,
    task: task.id,
    step: position.step,
  };
}

/** Waits on the world's schedule; a signal, by default that of the cancelled run, ends the wait at once. */
export function sleep(
  signals: Signals,
  world: World,
  delayMs: number,
  signal: AbortSignal = signals.abort.signal,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      cancel();
      stopListening();
      resolve();
    };
    const cancel = world.schedule.after(delayMs, end);
    const stopListening = subscribeToAbort(signal, end);
  });
}
