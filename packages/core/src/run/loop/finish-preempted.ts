/**
 * Ending a run for the sake of a new input. What finished is kept, or all that the run did to the state is taken back;
 * its open questions are declined, and every tool call that is open gets an answer, so that the conversation stays whole.
 */
import { isStatewrightError } from "../../base/errors.ts";
import { sameData } from "../../base/json.ts";
import type { CheckpointRow, CheckpointSource, RunRow } from "../../checkpoint/checkpoint.ts";
import { initialState } from "../../checkpoint/codec/saved-state.ts";
import { type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import { START } from "../../define/edge.ts";
import type { Codec } from "../../state/codec.ts";
import type { Delta } from "../../state/delta.ts";
import { inspectStop } from "../events/inspect-run.ts";
import { entriesInJournal } from "../journal/ledger-rows.ts";
import { changesIn } from "../journal/long-term-writes.ts";
import { earlierState } from "../migration/previous-state.ts";
import type { RunResult } from "../session/options.ts";
import type { Stopped } from "../session/preemption.ts";
import type { State, TaskOutcome } from "../session/returns.ts";
import { endOf } from "../session/run-row.ts";
import { type Saved, type Session, taskKey, written } from "../session/session.ts";
import { type Closing, closeCalls } from "../superstep/cancel-pending-calls.ts";
import { commitEnd } from "../superstep/commit.ts";
import { type Finished, foldResults } from "../superstep/superstep.ts";
import { type Ended, endKept } from "./finish-persistent-subgraphs.ts";

/** End a run, `ending`, which stands at a checkpoint, and let its thread go. */
export async function endForInput(
  session: Session,
  saved: Saved,
  ending: RunRow,
  why: Stopped,
): Promise<RunResult<State>> {
  const { message: reason } = why;
  const takenBack = why.how === "rollback";
  if (saved.pending.size > 0) await written(session, saved, {});
  const source: CheckpointSource = takenBack ? "rollback" : "interrupt";
  const began = takenBack ? await beginningOf(session, saved, ending.id) : undefined;
  const endOfInner = (inner: Session, its: Saved): Promise<Ended | undefined> =>
    began === undefined ? innerKept(inner, its, reason) : innerBefore(inner, its, began, reason);
  const before = began === undefined ? undefined : await stateBefore(session, saved, began, reason);
  // Where a migration cannot bring back what was, nothing is changed.
  if (began !== undefined) await endKept(session, source, endOfInner, "looks");
  await endKept(session, source, endOfInner);
  const { state, deltas, longTerm } = before ?? (await kept(session, saved, reason));
  const fact = await commitEnd(
    session,
    { state, deltas },
    {
      source,
      run: { ...ending, status: "cancelled", endedAt: session.world.clock.now(), error: undefined, reason },
      interrupts: declined(session, saved, why),
      longTerm,
      givenBack: takenBack ? ending.id : undefined,
      body: { type: "run.cancelled", reason, ...(ending === session.run ? {} : { run: ending.id }) },
    },
  );
  if (ending === session.run) inspectStop(session);
  fact.tell();
  return { status: "cancelled", reason, ...endOf(session) };
}

/** The record of a question that nobody will answer any more: by which run, and why. */
function declined({ codec, world }: Session, saved: Saved, { by, message: reason }: Stopped): readonly InterruptRow[] {
  const open = [...saved.interrupts.values()].filter(isOpen);
  const answer = codec.encode({ declined: true, by, reason }, "the record of a declined question");
  return open.map((row) => ({ ...row, answer, answeredAt: world.clock.now(), answeredBy: `run ${by}` }));
}

// What is kept: the outcomes of finished tasks and calls, as the journal has them.

async function kept(session: Session, { codec, store }: Saved, reason: string): Promise<Ended> {
  const journal = await store.effects(session.run.thread, session.line, session.step);
  const done = session.control.tasks.flatMap((task): readonly Finished[] => {
    const row = journal.find((each) => each.kind === "task" && each.task === task.id && each.key === taskKey);
    if (row?.state !== "ok" || row.outcome === undefined) return [];
    return [{ task, outcome: codec.decode(row.outcome) as TaskOutcome }];
  });
  const spent = entriesInJournal(session.plan, codec, journal, done);
  if (spent.length > 0) done.push(fromNobody(session, { writes: spent }));
  const folded = foldFinished(session, done);
  const closing = closeCalls(session, codec, journal, folded.state, reason);
  return closing === undefined ? folded : foldFinished(session, [...done, fromNobody(session, closing)]);
}

/** A call that is under way in a graph that is kept is over: the next one begins with what is kept of it. */
async function innerKept(inner: Session, saved: Saved, reason: string): Promise<Ended | undefined> {
  return inner.control.tasks.length === 0 ? undefined : kept(inner, saved, reason);
}

/** Outcomes that cannot be folded together have failed the run that is ended: then only what closes the calls is kept. */
function foldFinished(session: Session, finished: readonly Finished[]): Ended {
  const folded = (kept: readonly Finished[]): Ended => ({
    ...foldResults(session.plan, session.state, kept),
    longTerm: changesIn(kept),
  });
  try {
    return folded(finished);
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    return folded(finished.filter(({ task }) => task.node === START));
  }
}

function fromNobody({ step }: Session, closing: Pick<TaskOutcome, "writes" | "longTerm">): Finished {
  return { task: { id: `${step}:end`, node: START }, outcome: { ...closing, leads: [] } };
}

// What is taken back: every channel that the run has changed goes back to the value it had before.

const pageSize = 100;

/** What the line of the session had before the run. Calls that were open then are over: their answers were the run's. */
async function stateBefore(
  session: Session,
  saved: Saved,
  { id, migrations }: Beginning,
  reason: string,
): Promise<Ended> {
  const { channels } = session.plan.graph.state;
  const { thread } = session.run;
  const [before] = await saved.store.history(thread, { branch: session.line, before: id, limit: 1 });
  const earlier =
    before === undefined ? initialState(channels) : await earlierState(session, saved, before, migrations);
  const state: Record<string, unknown> = { ...session.state };
  const deltas: Record<string, Delta> = {};
  for (const [name, { kind }] of Object.entries(channels)) {
    // What changed is seen by comparing: retention may have removed the checkpoints between that would tell it.
    const value = earlier[name];
    if (kind === "untracked" || isSame(saved.codec, state[name], value)) continue;
    if (value === undefined) delete state[name];
    else state[name] = value;
    deltas[name] = value === undefined ? { kind: "clear" } : { kind: "replace", value };
  }
  const journal = before === undefined ? [] : await saved.store.effects(thread, session.line, before.step);
  const closing = closeCalls(session, saved.codec, journal, state, reason);
  return closing === undefined
    ? { state: Object.freeze(state), deltas }
    : closedIn(session, { state, deltas }, closing);
}

/** What the closing of calls changes goes behind what was taken back. Long-term items that it tells of went with the run's beginning. */
function closedIn(session: Session, { state, deltas }: Ended, { writes }: Closing): Ended {
  const closed = foldResults(session.plan, state, [fromNobody(session, { writes })]);
  const changed = Object.entries(closed.deltas).map(([name, delta]): readonly [string, Delta] => [
    name,
    Object.hasOwn(deltas, name) ? { kind: "replace", value: closed.state[name] } : delta,
  ]);
  return { state: closed.state, deltas: { ...deltas, ...Object.fromEntries(changed) } };
}

/** Two dates, or two values of a class, are the same when they are saved as the same. */
function isSame(codec: Codec, now: unknown, before: unknown): boolean {
  if (sameData(now, before)) return true;
  return now !== undefined && before !== undefined && codec.encode(now, "a value") === codec.encode(before, "a value");
}

/** What a graph that is kept had before the run, where the run has changed it or has left a call under way. */
async function innerBefore(inner: Session, saved: Saved, began: Beginning, reason: string): Promise<Ended | undefined> {
  if ((saved.parent ?? 0) < began.id) return undefined;
  const before = await stateBefore(inner, saved, began, reason);
  return Object.keys(before.deltas).length === 0 && inner.control.tasks.length === 0 ? undefined : before;
}

/** Where a run began. */
interface Beginning {
  /** The first id that a checkpoint of it may have. */
  readonly id: number;
  /** What was written of it when it was migrated. */
  readonly migrations: readonly CheckpointRow[];
}

/**
 * Its first id is the one after the newest checkpoint that is not of it, which retention keeps while the run may be taken
 * back. A run that began with a resume, of a fork or after an update, has no input of its own.
 */
async function beginningOf({ line, run: { thread } }: Session, { store }: Saved, run: string): Promise<Beginning> {
  const migrations: CheckpointRow[] = [];
  for (let before: number | undefined; ; ) {
    const page = await store.history(thread, { branch: line, before, limit: pageSize });
    const other = page.findIndex((row) => row.run !== run);
    const own = other < 0 ? page : page.slice(0, other);
    migrations.push(...own.filter(({ source }) => source === "migration"));
    const found = page[other];
    if (found !== undefined) return { id: found.id + 1, migrations };
    if (page.length < pageSize) return { id: 1, migrations };
    before = page.at(-1)?.id;
  }
}
