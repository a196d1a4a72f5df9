/** The scope of a task: what its body, its tool calls and its hooks are bound to. */
import type { StatewrightError } from "../../base/errors.ts";
import type { RunIdentity } from "../../base/injection.ts";
import type { Json } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { NodeRecord } from "../../define/graph.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import type { Channel } from "../../state/channel.ts";
import type { Expiry } from "../../tool/policy/interrupt.ts";
import type { OpenLedger } from "../../tool/policy/ledger.ts";
import type { Middleware, MiddlewareRuntime } from "../../tool/policy/middleware.ts";
import { openLedger } from "../journal/ledger.ts";
import { tellCustom } from "../task/custom-event.ts";
import { whenAborted } from "./abort.ts";
import type { HookWrites } from "./hook-writes.ts";
import type { Session } from "./session.ts";

/** What a body's life is bound to: its signal, and the questions it has asked. */
export interface TaskScope {
  readonly task: Task;
  readonly node: NodeRecord;
  readonly attempt: number;
  /** Made when it is first asked for. */
  readonly signal: () => AbortSignal;
  /** Whether the attempt is over: its body may still be at work, and counts no more. */
  readonly ended: () => boolean;
  /** The attempt shows a sign of life. */
  readonly beat: () => void;
  /**
   * Look a question up: its answer, or the row of the open question, which is made when it is new. Throws
   * `interrupt_expired` for one whose time is over and that has no answer for it.
   */
  readonly consult: (
    question: Question,
  ) => { readonly answer: unknown; readonly expired: boolean } | { readonly open: InterruptRow };
  /** Give the task up until these questions are answered. The promise never settles. */
  readonly suspend: (open: readonly InterruptRow[]) => Promise<never>;
  /** Fail the task with a question that cannot be asked, whatever its body would do with the error. The promise never settles. */
  readonly refuse: (error: unknown) => Promise<never>;
  /** Leave the task where its inner graph stopped at a boundary. The promise never settles. */
  readonly rest: (cause: StatewrightError) => Promise<never>;
  /** What it has put into the long-term store; absent while it has not used it. */
  longTerm: LongTermChange[] | undefined;
  /** What the hooks around its model calls have written; absent while they have written nothing. */
  written: HookWrites | undefined;
  /** Recorded steps whose work has begun and not ended. */
  stepsAtWork: number;
  /** Who has recorded something under a key: its body, or hooks that ask models beside its own. Absent while nobody has. */
  keys: Map<string, "body" | "hooks"> | undefined;
}

/** A question about to be asked; `id` is unique in its branch. */
export interface Question {
  readonly id: string;
  /** Its id in the branch, where it is not a question of this task alone: who asks it beside it waits for the same answer. */
  readonly place?: string | undefined;
  readonly key: string;
  readonly payload: unknown;
  readonly schema: Json | undefined;
  /** What it is about, in a few characters: an answer to it counts for that, and is asked for again when it is something else. */
  readonly about?: string | undefined;
  /** The tool whose arguments an answer may change. */
  readonly tool?: string | undefined;
  /** How long it waits; for ever when absent. */
  readonly expiry?: Expiry | undefined;
}

/** Who runs, for bodies, tools and middleware. */
export function identityOf(session: Session, task: Task): RunIdentity {
  const { run } = session;
  return {
    run: run.id,
    thread: run.thread,
    branch: run.branch,
    graph: run.graph,
    node: task.node,
    task: task.id,
    step: session.step,
  };
}

/** Wait on the world's schedule; a signal, by default that of the cancelled run, ends the wait at once. */
export function pause(session: Session, delayMs: number, signal: AbortSignal = session.abort.signal): Promise<void> {
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
    const cancel = session.world.schedule.after(delayMs, end);
    const stopListening = whenAborted(signal, end);
  });
}

/** What the hooks of a middleware know beside their subject. `held` takes what gives back the reservations that are not settled. */
export function hookRuntime(
  session: Session,
  scope: TaskScope,
  effect: string,
  middleware: Middleware,
  held?: Set<() => void>,
): MiddlewareRuntime {
  const { context, state, world } = session;
  return {
    context,
    state,
    run: identityOf(session, scope.task),
    clock: world.clock,
    signal: scope.signal(),
    wait: (ms) => pause(session, ms, scope.signal()),
    ledger: ((channel: Channel) => openLedger(session, scope, effect, middleware, channel, held)) as OpenLedger,
    emit: (name, payload) => tellCustom(session, scope.task, name, payload),
  };
}
