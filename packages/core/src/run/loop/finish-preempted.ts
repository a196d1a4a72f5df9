/**
 * Ends a run in favour of a new input. The run keeps its finished work, or a rollback restores the state from before
 * the run. Open interrupts are declined, and every pending tool call gets an answer, so that the conversation stays
 * valid.
 */

import { isStatewrightError } from "../../base/errors.ts";
import { isSameData } from "../../base/json.ts";
import type { CheckpointRow, CheckpointSource, RunRow } from "../../checkpoint/checkpoint.ts";
import { createInitialState } from "../../checkpoint/codec/saved-state.ts";
import { type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import { START } from "../../define/edge.ts";
import type { Codec } from "../../state/codec.ts";
import type { Delta } from "../../state/delta.ts";
import { listUnfinishedEntries } from "../journal/ledger.ts";
import { collectChanges } from "../journal/long-term-writes.ts";
import { loadPreviousState } from "../migration/previous-state.ts";
import type { RunResult } from "../session/options/options.ts";
import { awaitCommit, type Persistence, taskKey } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import type { RunEnvironment } from "../session/parts/run-environment.ts";
import type { Preemption } from "../session/preemption.ts";
import type { State, TaskOutcome } from "../session/returns.ts";
import { toResultBase } from "../session/run-row.ts";
import type { Session } from "../session/session.ts";
import type { FinishedTask } from "../session/step-result.ts";
import { type CancelledCalls, cancelPendingCalls } from "../superstep/cancel-pending-calls.ts";
import { commitPreempted } from "../superstep/commit.ts";
import { inspectStop } from "../superstep/inspect-run.ts";
import { reduceResults } from "../superstep/superstep.ts";
import { type EndState, finishPersistentSubgraphs } from "./finish-persistent-subgraphs.ts";

/** Cancels a run that rests at a checkpoint, `endingRun`, and releases its thread. */
export async function finishPreempted(
  session: Session,
  saved: Persistence,
  endingRun: RunRow,
  preemption: Preemption,
): Promise<RunResult<State>> {
  const { message: reason } = preemption;
  const isRollback = preemption.kind === "rollback";
  // The journal is read below: rows of tasks that finished just before the signals fired may not be durable yet.
  await awaitCommit(saved, {});
  const source: CheckpointSource = isRollback ? "rollback" : "cancel";
  const runStart = isRollback ? await findRunStart(session.position, saved, endingRun.id) : undefined;
  const computeInnerEnd = (inner: Session, innerSaved: Persistence): Promise<EndState | undefined> =>
    runStart === undefined
      ? computeInnerCancelledEnd(inner.position, inner.progress, innerSaved, reason)
      : computeInnerRollbackEnd(inner, innerSaved, runStart, reason);
  const previous = runStart === undefined ? undefined : await computeRollbackEnd(session, saved, runStart, reason);
  // Dry run first: a failing migration must leave every namespace unchanged.
  if (runStart !== undefined) await finishPersistentSubgraphs(session, source, computeInnerEnd, "dry-run");
  await finishPersistentSubgraphs(session, source, computeInnerEnd);
  const { state, deltas, longTerm } =
    previous ?? (await computeCancelledEnd(session.position, session.progress, saved, reason));
  const event = await commitPreempted(
    session,
    { state, deltas },
    {
      source,
      run: { ...endingRun, status: "cancelled", endedAt: session.env.world.clock.now(), error: undefined, reason },
      interrupts: createDeclinedRows(session.env, saved, preemption),
      longTerm,
      rolledBackRun: isRollback ? endingRun.id : undefined,
      body: { type: "run.cancelled", reason, ...(endingRun === session.position.run ? {} : { run: endingRun.id }) },
    },
  );
  if (endingRun === session.position.run) inspectStop(session.position, session.events);
  event.emit();
  return { status: "cancelled", reason, ...toResultBase(session) };
}

/** Creates the closed rows of open interrupts, with the preempting run and the reason. */
function createDeclinedRows(
  { codec, world }: RunEnvironment,
  saved: Persistence,
  { runId, message: reason }: Preemption,
): readonly InterruptRow[] {
  const open = [...saved.interrupts.values()].filter(isOpen);
  const answer = codec.encode({ declined: true, by: runId, reason }, "the record of a declined interrupt");
  return open.map((row) => ({ ...row, answer, answeredAt: world.clock.now(), answeredBy: `run ${runId}` }));
}

// Cancel: outcomes of finished tasks and calls stay, as recorded in the journal.

async function computeCancelledEnd(
  position: Position,
  progress: Progress,
  { codec, store }: Persistence,
  reason: string,
): Promise<EndState> {
  const journal = await store.effects(position.run.thread, position.namespace, position.step);
  const finished = progress.control.tasks.flatMap((task): readonly FinishedTask[] => {
    const row = journal.find((each) => each.kind === "task" && each.task === task.id && each.key === taskKey);
    if (row?.state !== "ok" || row.outcome === undefined) return [];
    return [{ task, outcome: codec.decode(row.outcome) as TaskOutcome }];
  });
  const ledgerWrites = listUnfinishedEntries(position.plan, codec, journal, finished);
  if (ledgerWrites.length > 0) finished.push(toSyntheticResult(position, { writes: ledgerWrites }));
  const folded = reduceFinished(position, progress, finished);
  const closing = cancelPendingCalls(position, codec, journal, { state: folded.state, reason });
  return closing === undefined
    ? folded
    : reduceFinished(position, progress, [...finished, toSyntheticResult(position, closing)]);
}

/** Computes the end state of a persistent subgraph with an unfinished call. The next call starts from this state. */
async function computeInnerCancelledEnd(
  position: Position,
  progress: Progress,
  saved: Persistence,
  reason: string,
): Promise<EndState | undefined> {
  return progress.control.tasks.length === 0 ? undefined : computeCancelledEnd(position, progress, saved, reason);
}

/** Falls back to the closing writes alone: conflicting outcomes may be the reason why the run failed. */
function reduceFinished(position: Position, progress: Progress, finished: readonly FinishedTask[]): EndState {
  const reduceAll = (results: readonly FinishedTask[]): EndState => ({
    ...reduceResults(position.plan, progress.state, results),
    longTerm: collectChanges(results),
  });
  try {
    return reduceAll(finished);
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    return reduceAll(finished.filter(({ task }) => task.node === START));
  }
}

function toSyntheticResult({ step }: Position, closing: Pick<TaskOutcome, "writes" | "longTerm">): FinishedTask {
  return { task: { id: `${step}:end`, node: START }, outcome: { ...closing, routes: [] } };
}

// Rollback: every channel that the run changed gets its previous value.

const pageSize = 100;

/**
 * Computes the state of the session's namespace before the run. Tool calls pending at that time are closed: their
 * answers belonged to the run.
 */
async function computeRollbackEnd(
  session: Pick<Session, "env" | "position" | "progress">,
  saved: Persistence,
  { id, migrations }: RunStart,
  reason: string,
): Promise<EndState> {
  const { channels } = session.position.plan.graph.state;
  const { thread } = session.position.run;
  const [previousCheckpoint] = await saved.store.history(thread, {
    branch: session.position.namespace,
    before: id,
    limit: 1,
  });
  const previousState =
    previousCheckpoint === undefined
      ? createInitialState(channels)
      : await loadPreviousState(session.env, session.position, saved, {
          row: previousCheckpoint,
          laterMigrations: migrations,
        });
  const state: Record<string, unknown> = { ...session.progress.state };
  const deltas: Record<string, Delta> = {};
  for (const [name, { kind }] of Object.entries(channels)) {
    // Changes are found by comparison: retention may have deleted the checkpoints that contain the deltas.
    const value = previousState[name];
    if (kind === "untracked" || isSameValue(saved.codec, state[name], value)) continue;
    if (value === undefined) delete state[name];
    else state[name] = value;
    deltas[name] = value === undefined ? { kind: "clear" } : { kind: "replace", value };
  }
  const journal =
    previousCheckpoint === undefined
      ? []
      : await saved.store.effects(thread, session.position.namespace, previousCheckpoint.step);
  const closing = cancelPendingCalls(session.position, saved.codec, journal, { state, reason });
  return closing === undefined
    ? { state: Object.freeze(state), deltas }
    : applyClosing(session.position, { state, deltas }, closing);
}

/**
 * Applies the closing of tool calls after the rollback. Long-term changes of that closing were already committed at
 * the start of the run.
 */
function applyClosing(position: Position, { state, deltas }: EndState, { writes }: CancelledCalls): EndState {
  const closed = reduceResults(position.plan, state, [toSyntheticResult(position, { writes })]);
  const changed = Object.entries(closed.deltas).map(([name, delta]): readonly [string, Delta] => [
    name,
    Object.hasOwn(deltas, name) ? { kind: "replace", value: closed.state[name] } : delta,
  ]);
  return { state: closed.state, deltas: { ...deltas, ...Object.fromEntries(changed) } };
}

/** Compares encoded values too: two dates or two class instances are equal when their encodings are equal. */
function isSameValue(codec: Codec, current: unknown, previous: unknown): boolean {
  if (isSameData(current, previous)) return true;
  return (
    current !== undefined &&
    previous !== undefined &&
    codec.encode(current, "a value") === codec.encode(previous, "a value")
  );
}

/**
 * Computes the rollback of a persistent subgraph; undefined when the run neither changed its state nor left a call
 * pending.
 */
async function computeInnerRollbackEnd(
  inner: Pick<Session, "env" | "position" | "progress">,
  saved: Persistence,
  runStart: RunStart,
  reason: string,
): Promise<EndState | undefined> {
  if ((saved.parent ?? 0) < runStart.id) return undefined;
  const previous = await computeRollbackEnd(inner, saved, runStart, reason);
  return Object.keys(previous.deltas).length === 0 && inner.progress.control.tasks.length === 0 ? undefined : previous;
}

/** Start position of a run. */
interface RunStart {
  /** Smallest possible checkpoint id of the run. */
  readonly id: number;
  /** Migration checkpoints of the run. */
  readonly migrations: readonly CheckpointRow[];
}

/**
 * Finds the start of a run: the id after the newest checkpoint of another run. Retention keeps that checkpoint while
 * a rollback is possible. A run started by a resume of a fork, or by a resume after an update, has no input
 * checkpoint.
 */
async function findRunStart(
  { namespace, run: { thread } }: Position,
  { store }: Persistence,
  run: string,
): Promise<RunStart> {
  const migrations: CheckpointRow[] = [];
  for (let before: number | undefined; ; ) {
    const page = await store.history(thread, { branch: namespace, before, limit: pageSize });
    const otherIndex = page.findIndex((row) => row.run !== run);
    const ownRows = otherIndex < 0 ? page : page.slice(0, otherIndex);
    migrations.push(...ownRows.filter(({ source }) => source === "migration"));
    const found = page[otherIndex];
    if (found !== undefined) return { id: found.id + 1, migrations };
    if (page.length < pageSize) return { id: 1, migrations };
    before = page.at(-1)?.id;
  }
}
