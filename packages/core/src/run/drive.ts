/** The drive of a run: superstep after superstep until it has finished, waits, failed or was cancelled. */
import { type ErrorRecord, isStatewrightError, located, StatewrightError, toErrorRecord } from "../base/errors.ts";
import { deepFreeze } from "../base/json.ts";
import type { CheckpointRow, CheckpointSource, Control, RunRow, RunStatus, Task } from "../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import { END } from "../define/edge.ts";
import { whenAborted } from "./abort.ts";
import { breakpointAt } from "./breakpoints.ts";
import { mapBounded } from "./concurrency.ts";
import type { OpenInterrupt } from "./events.ts";
import { startsTold } from "./journal.ts";
import { release } from "./open.ts";
import type { RunResult } from "./options.ts";
import type { State, TaskOutcome } from "./returns.ts";
import { emit, journalKey, placeOf, record, type Saved, type Session, taskKey, write, written } from "./session.ts";
import { type Finished, foldResults, type StepResult, superstep } from "./superstep.ts";
import { runTask, type TaskResult } from "./task.ts";

/**
 * Run until there is nothing left to do now; `goingOn` is given for a run that goes on from a checkpoint. Rejects with the
 * run's error, after it is saved.
 */
export async function drive(session: Session, goingOn?: GoingOn): Promise<RunResult<State>> {
  try {
    if (goingOn !== undefined) await beginAgain(session, goingOn.answered);
    let ran: readonly string[] | undefined = goingOn === undefined ? [] : undefined;
    while (session.control.tasks.length > 0) {
      refuseUnsaved(session);
      if (session.abort.signal.aborted && !answersCalls(session, session.control.tasks))
        return await cancelled(session);
      const breakpoint = breakpointAt(session, ran);
      if (breakpoint !== undefined) return await pauses(session, breakpoint);
      checkStepLimit(session);
      const began = session.world.clock.monotonic();
      const results = await runTasks(session);
      refuseUnsaved(session);
      const finished = results.flatMap((result) => (result.kind === "done" ? [result] : []));
      if (session.abort.signal.aborted && finished.length < results.length)
        return await cancelled(session, { finished, began });
      settleMachine(session, results);
      const failure = failureOf(session, results);
      if (failure !== undefined) throw failure;
      const waiting = results.flatMap((result) => (result.kind === "interrupted" ? result.interrupts : []));
      if (waiting.length > 0) return await waits(session, waiting);
      await commitStep(session, finished, began);
      ran = finished.map(({ task }) => task.node);
    }
    emit(session, { type: "run.completed", steps: session.stepsOfRun });
    return { status: "done", ...endOf(session) };
  } catch (error) {
    return stopOnError(session, error);
  }
}

/** Write the checkpoint that begins a run or a branch's new direction; the run's row goes with it. */
export function commitInput(session: Session, result: StepResult, source: CheckpointSource): Promise<void> {
  return commit(session, result, { nodes: [], source, began: session.world.clock.monotonic(), first: true });
}

/** How a run goes on: with the answers that people gave. */
export interface GoingOn {
  readonly answered: readonly InterruptRow[];
}

/** Say in the store, then on the stream, that a run goes on. */
async function beginAgain(session: Session, answered: readonly InterruptRow[]): Promise<void> {
  const { saved } = session;
  if (saved !== undefined) await written(session, saved, { run: session.run, interrupts: answered });
  emit(session, { type: "run.started", ...startOf(session) });
  const waiting = [
    ...new Set(
      session.control.tasks.filter((task) => answered.some((row) => row.task === task.id)).map((task) => task.node),
    ),
  ];
  if (waiting.length === 0) return;
  for (const node of waiting) transition(session, { type: "task.interrupted", node }, false);
  transition(session, { type: "run.resumed" }, true);
}

/** A write beside the supersteps failed: nothing that comes after it may be told as done. */
function refuseUnsaved({ saved }: Session): void {
  if (saved?.failure !== undefined) throw saved.failure;
}

async function runTasks(session: Session): Promise<readonly TaskResult[]> {
  const { tasks } = session.control;
  const only = tasks[0];
  const results =
    tasks.length === 1 && only !== undefined
      ? [await runTask(session, only)]
      : session.onTaskFailure === "abort" && !session.abort.signal.aborted
        ? await runUntilFailure(session, tasks)
        : await mapBounded(tasks, session.limits.maxConcurrency, (task) => runJournaled(session, task));
  await startsTold(session);
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
async function runJournaled(session: Session, task: Task): Promise<TaskResult> {
  const { saved } = session;
  const known = saved?.journal.get(journalKey(session.step, task.id, taskKey));
  if (saved !== undefined && known?.kind === "task" && known.state === "ok" && known.outcome !== undefined) {
    emit(session, { type: "task.completed", node: task.node, task: task.id, durationMs: 0, reused: true });
    return { kind: "done", task, outcome: deepFreeze(saved.codec.decode(known.outcome)) as TaskOutcome };
  }
  const startedAt = session.world.clock.now();
  const result = await runTask(session, task);
  if (saved !== undefined && result.kind === "done") journalTask(session, saved, task, result.outcome, startedAt);
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
    encode: () => saved.codec.encode(savable(session, outcome), `the result of the node "${task.node}"`),
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
  const ends = new Map<string, "done" | "failed" | "interrupted">();
  for (const { task, kind } of results) {
    if (kind === "stopped") continue;
    const before = ends.get(task.node);
    if (before === undefined || kind === "failed" || (kind === "interrupted" && before === "done"))
      ends.set(task.node, kind);
  }
  for (const [node, kind] of ends) {
    if (kind === "done") transition(session, { type: `xstate.done.actor.${node}` }, true);
    else transition(session, { type: kind === "failed" ? "task.failed" : "task.interrupted", node }, true);
  }
}

interface MachineEvent {
  readonly type: string;
  readonly node?: string;
  readonly to?: readonly string[];
}

function transition(session: Session, event: MachineEvent, shown: boolean): void {
  const from = session.snapshot;
  const [next, effects] = session.kernel.step(from, event);
  session.snapshot = next;
  if (!shown || !session.events.listening()) return;
  emit(session, {
    type: "transition.taken",
    path: [session.plan.graph.name],
    event: event.type,
    from: from.value,
    to: next.value,
    effects: effects.flatMap((effect) => (effect.kind === "start" ? [effect.id] : [])),
  });
}

async function commitStep(session: Session, finished: readonly Finished[], began: number): Promise<void> {
  const result = superstep(session.plan, session.step + 1, { state: session.state, ...session.control }, finished);
  const nodes = [...new Set(finished.map(({ task }) => task.node))];
  await commit(session, result, { nodes, source: "step", began, first: false });
}

interface CommitFacts {
  readonly nodes: readonly string[];
  readonly source: CheckpointSource;
  readonly began: number;
  /** The run's row is new: it is written whole. */
  readonly first: boolean;
}

/** Make a superstep durable, then tell of it. Nothing of the next step starts before. */
async function commit(session: Session, result: StepResult, facts: CommitFacts): Promise<void> {
  const next = [...new Set(result.tasks.map((task) => task.node))];
  const from = session.snapshot;
  const [snapshot, effects] = session.kernel.step(from, { type: "step.commit", to: next });
  const control: Control = {
    machine: snapshot.value,
    tasks: result.tasks,
    inputs: result.inputs,
    joins: result.joins,
    ...(result.held === undefined ? {} : { held: result.held }),
    steps: stepsTaken(session) + (facts.source === "step" ? 1 : 0),
  };
  const done = result.tasks.length === 0;
  const durationMs = session.world.clock.monotonic() - facts.began;
  const run = done ? runRow(session, "done") : facts.first ? session.run : undefined;
  const row =
    session.saved === undefined
      ? undefined
      : await save(session, session.saved, result, control, { ...facts, durationMs, run, release: done });
  advance(session, result.state, control, snapshot);
  if (facts.source === "step") session.stepsOfRun += 1;
  if (!session.events.listening()) return;
  if (facts.first) emit(session, { type: "run.started", ...startOf(session) });
  emit(session, {
    type: "step.committed",
    step: session.step,
    checkpoint: row?.id,
    nodes: facts.nodes,
    next: done ? [END] : next,
    changes: result.deltas,
    bytes: row?.bytes ?? 0,
    durationMs,
  });
  emit(session, {
    type: "transition.taken",
    path: [session.plan.graph.name],
    event: "step.commit",
    from: from.value,
    to: snapshot.value,
    effects: effects.flatMap((effect) => (effect.kind === "start" ? [effect.id] : [])),
  });
}

/** Stand where a durable superstep leads. */
function advance(session: Session, state: State, control: Control, snapshot: Session["snapshot"]): void {
  session.outcomes.clear();
  session.state = state;
  session.control = control;
  session.snapshot = snapshot;
  session.step += 1;
}

interface SaveFacts extends Pick<CommitFacts, "nodes" | "source"> {
  readonly durationMs: number;
  readonly run: RunRow | undefined;
  readonly release: boolean;
}

/** Write a checkpoint as the next step of the branch; the journal of the step before goes with it. */
export async function save(
  session: Session,
  saved: Saved,
  result: Pick<StepResult, "deltas" | "state">,
  control: Control,
  facts: SaveFacts,
): Promise<CheckpointRow> {
  const deltas = saved.writer.rows(result.deltas, result.state);
  const row: CheckpointRow = {
    id: saved.nextCheckpoint,
    branch: session.run.branch,
    step: session.step + 1,
    parent: saved.parent,
    source: facts.source,
    nodes: facts.nodes,
    control: saved.codec.encode(control, "the control state"),
    run: session.run.id,
    at: session.world.clock.now(),
    durationMs: Math.round(facts.durationMs),
    seq: saved.nextSeq,
    bytes: deltas.reduce((sum, delta) => sum + delta.text.length, 0),
  };
  saved.nextCheckpoint += 1;
  saved.nextSeq += 1;
  const durable = written(session, saved, { checkpoint: { row, deltas }, run: facts.run, release: facts.release });
  // At once: what is recorded from here on belongs to the next step.
  saved.journal.clear();
  await durable;
  saved.parent = row.id;
  saved.interrupts.clear();
  session.bytesOfRun += row.bytes;
  return row;
}

/** End the run for now: it waits for these questions. */
export async function waits(session: Session, waiting: readonly InterruptRow[]): Promise<RunResult<State>> {
  const { saved } = session;
  if (saved === undefined)
    throw new StatewrightError("missing_store", {
      what: "a run without a store waits for a person",
      next: "Give the run a store",
      place: placeOf(session),
    });
  for (const row of waiting) saved.interrupts.set(row.id, row);
  await written(session, saved, { run: runRow(session, "waiting"), interrupts: waiting, release: true });
  const interrupts = waiting.map((row) => openInterrupt(saved, row));
  for (const task of new Set(waiting.map((row) => row.task))) {
    const mine = waiting.filter((row) => row.task === task);
    emit(session, { type: "task.interrupted", node: mine[0]?.node ?? "", task, keys: mine.map((row) => row.key) });
  }
  emit(session, { type: "run.waiting", interrupts });
  return { status: "waiting", interrupts, ...endOf(session) };
}

/** Stand at a breakpoint: everything is saved, and a resume goes on. */
async function pauses(session: Session, breakpoint: StatewrightError): Promise<RunResult<State>> {
  const cause = toErrorRecord(breakpoint);
  if (session.saved !== undefined)
    await written(session, session.saved, { run: runRow(session, "paused"), release: true });
  emit(session, { type: "run.paused", cause });
  return { status: "paused", cause, ...endOf(session) };
}

/** A question as the caller sees it. */
export function openInterrupt(saved: Pick<Saved, "codec">, row: InterruptRow): OpenInterrupt {
  return { id: row.id, key: row.key, node: row.node, payload: saved.codec.decode(row.payload), schema: row.schema };
}

/**
 * What finished is kept: in the journal, for a resume; but the answers to a saved message's calls go into the state at once,
 * so that new input may follow them.
 */
export async function cancelled(
  session: Session,
  step?: { readonly finished: readonly Finished[]; readonly began: number },
): Promise<RunResult<State>> {
  const { reason } = session.abort.signal;
  const text = reason instanceof Error ? reason.message : String(reason);
  const tasks = step?.finished.map(({ task }) => task) ?? [];
  if (step !== undefined && answersCalls(session, tasks)) await commitCancelled(session, step.finished, step.began);
  else await endRun(session, "cancelled");
  emit(session, { type: "run.cancelled", reason: text });
  return { status: "cancelled", reason: text, ...endOf(session) };
}

/** A cancelled run goes on for one thing only: to answer the calls of a message that is saved already. */
function answersCalls(session: Session, tasks: readonly Task[]): boolean {
  return tasks.some((task) => session.plan.nodes.get(task.node)?.kind === "tools");
}

async function commitCancelled(session: Session, finished: readonly Finished[], began: number): Promise<void> {
  const { state, deltas } = foldResults(session.plan, session.state, finished);
  const [snapshot] = session.kernel.initial();
  const control: Control = { machine: null, tasks: [], inputs: [], joins: {}, steps: stepsTaken(session) + 1 };
  const nodes = [...new Set(finished.map(({ task }) => task.node))];
  const durationMs = session.world.clock.monotonic() - began;
  const result: StepResult = { state, deltas, tasks: [], inputs: [], joins: {} };
  if (session.saved !== undefined) {
    const ending = { run: runRow(session, "cancelled"), release: true };
    await save(session, session.saved, result, control, { nodes, source: "step", durationMs, ...ending });
  }
  advance(session, state, control, snapshot);
}

async function endRun(session: Session, status: RunStatus): Promise<void> {
  if (session.saved !== undefined)
    await written(session, session.saved, { run: runRow(session, status), release: true });
}

/** A store without room pauses the run: nothing is lost, and it can be resumed. Any other error fails it, after the failure is saved. */
export async function stopOnError(session: Session, thrown: unknown): Promise<RunResult<State>> {
  const error = isStatewrightError(thrown) ? located(thrown, placeOf(session)) : thrown;
  const record = toErrorRecord(error);
  if (isStatewrightError(error, "store_full") || isStatewrightError(error, "store_locked")) {
    await letGo(session, runRow(session, "paused"));
    emit(session, { type: "run.paused", cause: record });
    return { status: "paused", cause: record, ...endOf(session) };
  }
  if (isStatewrightError(error) && error.kind === "store" && error.code !== "unencodable_value")
    await letGo(session, undefined);
  else {
    const unsaved = await saveFailure(session, record);
    // A failure that is not saved is not told: a resume meets it again. What stops the run now is the store.
    if (unsaved !== undefined) return stopOnError(session, unsaved);
  }
  emit(session, { type: "run.failed", error: record });
  throw error;
}

/** Save that the run failed and let the thread go; gives why the store could not. */
function saveFailure(session: Session, error: ErrorRecord): Promise<StatewrightError | undefined> {
  const { saved } = session;
  if (saved === undefined) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    write(session, saved, { run: { ...runRow(session, "failed"), error }, release: true }, (failure) => {
      if (failure !== undefined) session.world.log("error", "the failure of a run could not be saved", { error });
      resolve(failure);
    });
  });
}

/** Give up what waits to be written and let the thread go; the run's row goes with it, where the run may go on. */
function letGo({ saved, world, run: { thread } }: Session, run: RunRow | undefined): Promise<void> {
  if (saved === undefined) return Promise.resolve();
  saved.pending.clear();
  return release(saved.store, thread, saved.claim, world, run);
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
    details: errors.map((error) => toErrorRecord(error)),
    cause: new AggregateError(errors, "tasks failed"),
  });
}

/** Throws `step_limit` when the run has taken all the supersteps that it may. */
export function checkStepLimit(session: Session): void {
  const { maxSteps } = session.limits;
  if (stepsTaken(session) < maxSteps) return;
  throw new StatewrightError("step_limit", {
    what: `the run took ${maxSteps} supersteps without coming to an end`,
    next: "Look for a cycle without a way out, or resume with a higher maxSteps: the state is kept",
    place: placeOf(session),
  });
}

/** Supersteps of the run, over all its resumes. */
export function stepsTaken({ stepsBefore, stepsOfRun }: Session): number {
  return stepsBefore + stepsOfRun;
}

/** The row of the run as it ends. */
export function runRow(session: Session, status: RunStatus): RunRow {
  const { run } = session;
  const goesOn = status === "waiting" || status === "paused";
  return goesOn ? { ...run, status } : { ...run, status, endedAt: session.world.clock.now() };
}

/** What `run.started` says. */
export function startOf(session: Session): {
  readonly run: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly attempt: number;
  readonly recovered: boolean;
} {
  const { run, saved } = session;
  return {
    run: run.id,
    thread: run.thread,
    branch: run.branch,
    graph: run.graph,
    attempt: run.attempt,
    recovered: saved?.claim.recovered ?? false,
  };
}

/** What every result of a run says. */
export function endOf(session: Session): {
  readonly run: string;
  readonly thread: string;
  readonly branch: string;
  readonly state: State;
  readonly steps: number;
  readonly bytes: number;
} {
  return {
    run: session.run.id,
    thread: session.run.thread,
    branch: session.run.branch,
    state: session.state,
    steps: session.stepsOfRun,
    bytes: session.bytesOfRun,
  };
}
