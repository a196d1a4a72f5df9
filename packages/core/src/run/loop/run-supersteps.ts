/** Superstep after superstep, until there is nothing left to do now. What the end means to a run is for its drive to say. */
import { fromErrorRecord, StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { encodeAround } from "../../state/codec.ts";
import { startsTold } from "../journal/journal.ts";
import { whenAborted } from "../session/abort.ts";
import { breakpointAt } from "../session/breakpoints.ts";
import { mapBounded } from "../session/concurrency.ts";
import { timeless } from "../session/interrupt-timers.ts";
import { readOutput } from "../session/output.ts";
import { Stopped } from "../session/preemption.ts";
import { recordOf } from "../session/redact-error.ts";
import type { TaskOutcome } from "../session/returns.ts";
import {
  emit,
  journalKey,
  placeOf,
  record,
  type Saved,
  type Session,
  stepsTaken,
  taskKey,
} from "../session/session.ts";
import { answersCalls, commitStep, transition } from "../superstep/commit.ts";
import type { Finished } from "../superstep/superstep.ts";
import type { TaskResult } from "../task/attempt.ts";
import { runTask } from "./run-task.ts";

/** Why there is nothing left to do now. A failure is thrown. */
export type Stop =
  | { readonly kind: "done"; readonly output: unknown }
  | { readonly kind: "waiting"; readonly interrupts: readonly InterruptRow[] }
  | { readonly kind: "paused"; readonly cause: StatewrightError }
  /** Tool calls have failed it, and are answered: all that is saved. */
  | { readonly kind: "failed"; readonly error: Error }
  /** `step` is what finished of a superstep that the cancel has cut short. */
  | { readonly kind: "cancelled"; readonly step?: CutShort };

/** What finished of a superstep, and when it began. */
export interface CutShort {
  readonly finished: readonly Finished[];
  readonly began: number;
}

/** Run supersteps. `began` is false for a run that goes on from a checkpoint: a breakpoint there was passed already. */
export async function supersteps(session: Session, began: boolean): Promise<Stop> {
  let ran: readonly string[] | undefined = began ? [] : undefined;
  while (session.control.tasks.length > 0) {
    refuseUnsaved(session);
    if (session.abort.signal.aborted && !mustAnswer(session)) return { kind: "cancelled" };
    const pause = (ran === undefined ? undefined : drainOf(session)) ?? breakpointAt(session, ran);
    if (pause !== undefined) return { kind: "paused", cause: pause };
    checkStepLimit(session);
    const stop = await superstepOf(session);
    if (stop.kind !== "committed") return stop;
    ran = stop.nodes;
  }
  return { kind: "done", output: readOutput(session.plan, session.state) };
}

type StepEnd =
  | Exclude<Stop, { readonly kind: "done" }>
  | { readonly kind: "committed"; readonly nodes: readonly string[] };

async function superstepOf(session: Session): Promise<StepEnd> {
  const began = session.world.clock.monotonic();
  const results = await runTasks(session);
  refuseUnsaved(session);
  const finished = results.flatMap((result) => (result.kind === "done" ? [result] : []));
  if (session.abort.signal.aborted && finished.length < results.length)
    return { kind: "cancelled", step: { finished, began } };
  settleMachine(session, results);
  const failure = failureOf(session, results);
  const interrupts = eachOnce(results.flatMap((result) => (result.kind === "interrupted" ? result.interrupts : [])));
  if (failure !== undefined) {
    keepQuestions(session, interrupts);
    throw failure;
  }
  if (interrupts.length > 0) return { kind: "waiting", interrupts };
  const paused = results.find((result) => result.kind === "paused");
  if (paused !== undefined) return { kind: "paused", cause: paused.cause };
  const fatal = finished.find(({ outcome }) => outcome.failure !== undefined)?.outcome.failure;
  await commitStep(session, finished, began, fatal);
  if (fatal !== undefined) return { kind: "failed", error: fromErrorRecord(fatal) };
  return { kind: "committed", nodes: finished.map(({ task }) => task.node) };
}

/** What was asked beside a failure stands open with it. Its time has not begun: nobody was told of it. */
function keepQuestions({ saved }: Session, asked: readonly InterruptRow[]): void {
  for (const row of asked) if (saved?.interrupts.has(row.id) === false) saved.interrupts.set(row.id, timeless(row));
}

/** Several tasks may wait for one answer. */
function eachOnce(interrupts: readonly InterruptRow[]): readonly InterruptRow[] {
  if (interrupts.length < 2) return interrupts;
  const ids = new Set<string>();
  return interrupts.filter(({ id }) => !ids.has(id) && ids.add(id));
}

/** A write beside the supersteps failed: nothing that comes after it may be told as done. */
function refuseUnsaved({ saved }: Session): void {
  if (saved?.thread.failure !== undefined) throw saved.thread.failure;
}

/** The cause of a pause that was asked for, at the boundary where the run stands. */
export function drainOf(session: Session): StatewrightError | undefined {
  if (!session.drain.aborted) return undefined;
  const { reason } = session.drain;
  return drained(session, reason instanceof Error ? reason.message : String(reason));
}

/** The cause of a pause for the sake of the process; its reason stands in the details. */
export function drained(session: Session, reason: string): StatewrightError {
  return new StatewrightError("drained", {
    what: `the run stopped where it could be saved, as asked: ${reason}`,
    next: "Resume the thread to go on",
    place: placeOf(session),
    details: { reason },
  });
}

/** Calls of a saved message get their answers also after a cancel, but not where a resume is to give them. */
function mustAnswer(session: Session): boolean {
  const { reason } = session.abort.signal;
  return !(reason instanceof Stopped) && answersCalls(session, session.control.tasks);
}

async function runTasks(session: Session): Promise<readonly TaskResult[]> {
  const { tasks } = session.control;
  const only = tasks[0];
  // The result of a `once` node is kept: another branch may ask for it.
  const results =
    tasks.length === 1 && only !== undefined && session.plan.nodes.get(only.node)?.policy.effect !== "once"
      ? [await runTask(session, only, supersteps)]
      : session.onTaskFailure === "abort" && !session.abort.signal.aborted
        ? await runUntilFailure(session, tasks)
        : await mapBounded(tasks, session.limits.maxConcurrency, (task) => runJournaled(session, task));
  if (session.saved !== undefined) await startsTold(session);
  return results;
}

/** Run tasks until one fails: the signals of the others fire then, and what they would still give is dropped. */
async function runUntilFailure(session: Session, tasks: readonly Task[]): Promise<readonly TaskResult[]> {
  const { signal: cancel } = session.abort;
  const halting = new AbortController();
  const stopListening = whenAborted(cancel, () => halting.abort(cancel.reason));
  session.halt = halting.signal;
  try {
    return await mapBounded(tasks, session.limits.maxConcurrency, async (task): Promise<TaskResult> => {
      const stopped = halting.signal.aborted && !cancel.aborted;
      if (stopped && session.plan.nodes.get(task.node)?.kind !== "tools") return { kind: "stopped", task };
      const result = await runJournaled(session, task);
      if (result.kind !== "failed") return result;
      if (halting.signal.aborted && !cancel.aborted && result.error.cause === halting.signal.reason)
        return { kind: "stopped", task };
      halting.abort(new Error(`the node "${task.node}" failed beside it`));
      return result;
    });
  } finally {
    stopListening();
    session.halt = cancel;
  }
}

/** A task with siblings: its outcome is journaled as it finishes, and handed back when the step runs again. */
function runJournaled(session: Session, task: Task): Promise<TaskResult> {
  const { saved } = session;
  return saved === undefined ? runTask(session, task, supersteps) : runSaved(session, saved, task);
}

async function runSaved(session: Session, saved: Saved, task: Task): Promise<TaskResult> {
  const known = saved.journal.get(journalKey(session.step, task.id, taskKey));
  if (known?.kind === "task" && known.state === "ok" && known.outcome !== undefined) {
    emit(session, { type: "task.completed", node: task.node, task: task.id, durationMs: 0, reused: true });
    return { kind: "done", task, outcome: deepFreeze(saved.codec.decode(known.outcome)) as TaskOutcome };
  }
  const startedAt = session.world.clock.now();
  const result = await runTask(session, task, supersteps);
  if (result.kind === "done") journalTask(session, saved, task, result.outcome, startedAt);
  return result;
}

function journalTask(session: Session, saved: Saved, task: Task, outcome: TaskOutcome, startedAt: number): void {
  record(session, saved, {
    row: {
      step: session.step,
      task: task.id,
      key: taskKey,
      kind: "task",
      name: task.node,
      effect: session.plan.nodes.get(task.node)?.policy.effect ?? "idempotent",
      state: "ok",
      attempts: 1,
      idempotencyKey: "",
      startedAt,
      endedAt: session.world.clock.now(),
    },
    encode: () => encodeAround(saved.codec, savable(session, outcome), `the result of the node "${task.node}"`),
    told: undefined,
  });
}

/** An outcome without its writes to channels that live in the process only. */
function savable(session: Session, outcome: TaskOutcome): TaskOutcome {
  const { channels } = session.plan.graph.state;
  const writes = outcome.writes.filter((write) => channels[write.channel]?.kind !== "untracked");
  return writes.length === outcome.writes.length ? outcome : { ...outcome, writes };
}

/** Move the machine by what became of each node: done when all its tasks are, else interrupted or failed. */
function settleMachine(session: Session, results: readonly TaskResult[]): void {
  const [only] = results;
  if (results.length === 1 && only?.kind === "done") {
    settleNode(session, only.task.node, "done");
    return;
  }
  const ends = new Map<string, "done" | "failed" | "interrupted">();
  for (const { task, kind } of results) {
    if (kind === "stopped" || kind === "paused") continue;
    const before = ends.get(task.node);
    if (before === undefined || kind === "failed" || (kind === "interrupted" && before === "done"))
      ends.set(task.node, kind);
  }
  for (const [node, kind] of ends) settleNode(session, node, kind);
}

function settleNode(session: Session, node: string, kind: "done" | "failed" | "interrupted"): void {
  if (kind === "done") transition(session, { type: `xstate.done.actor.${node}` }, true);
  else transition(session, { type: kind === "failed" ? "task.failed" : "task.interrupted", node }, true);
}

/** One failure fails the run by itself; several are told together, each with its cause. */
function failureOf(session: Session, results: readonly TaskResult[]): StatewrightError | undefined {
  const errors = results.flatMap((result) => (result.kind === "failed" ? [result.error] : []));
  const [only] = errors;
  if (errors.length <= 1) return only;
  const kept = results.filter((result) => result.kind === "done").length;
  return new StatewrightError("node_failed", {
    what: `${errors.length} tasks of a superstep failed: ${errors.map((error) => error.message).join(" | ")}`,
    next: `Mend what the causes say, then resume the thread: ${kept} finished ${kept === 1 ? "task is" : "tasks are"} kept`,
    place: placeOf(session),
    details: errors.map((error) => recordOf(session, error)),
    cause: new AggregateError(errors, "tasks failed"),
  });
}

/** Throws `step_limit` when the run has taken all the supersteps that it may. */
export function checkStepLimit(session: Session): void {
  const { maxSteps } = session.limits;
  if (stepsTaken(session) < maxSteps) return;
  const what = `the run took ${maxSteps} supersteps without coming to an end`;
  const asked = timesAsked(session);
  throw new StatewrightError("step_limit", {
    what: asked === 0 ? what : `${what}: its model was asked ${times(asked)} since a user spoke last`,
    next:
      asked === 0
        ? "Look for a cycle without a way out, or resume with a higher maxSteps: the state is kept"
        : "Give the agent a lower maxTurns, or stopWhen, so that it ends by itself, or resume with a higher maxSteps: the state is kept",
    place: placeOf(session),
  });
}

/** How often a model has answered since a user's message, in a graph that answers calls of tools; 0 in any other. */
function timesAsked({ plan, state }: Session): number {
  const messages: unknown = state["messages"];
  if (plan.toolNodes.length === 0 || !Array.isArray(messages)) return 0;
  const said = messages as readonly { readonly role?: unknown }[];
  return said.slice(said.findLastIndex(({ role }) => role === "user") + 1).filter(({ role }) => role === "assistant")
    .length;
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}
