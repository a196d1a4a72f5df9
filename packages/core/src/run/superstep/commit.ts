/** Committing: the machine moves, the superstep is made durable, and then it is told. */
import type { ErrorRecord } from "../../base/errors.ts";
import type { CheckpointRow, CheckpointSource, Control, RunRow, Task } from "../../checkpoint/checkpoint.ts";
import type { EventRow } from "../../checkpoint/event.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { END, START } from "../../define/edge.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import { encodeAround } from "../../state/codec.ts";
import { turnsOf } from "../conversation/turns.ts";
import { type EventPlace, nothingSaved, reached, type Transition } from "../events/events.ts";
import { inspectTransition } from "../events/inspect-run.ts";
import { entriesWithout } from "../journal/ledger.ts";
import { changesIn } from "../journal/long-term-writes.ts";
import type { Snapshot, Step } from "../kernel/kernel.ts";
import { type Fact, type FactBody, factOf } from "../session/durable-event.ts";
import { leaveState } from "../session/final-state-cache.ts";
import type { Letter } from "../session/inbox.ts";
import { disarmed } from "../session/interrupt-timers.ts";
import { readOutput } from "../session/output.ts";
import type { State, Write } from "../session/returns.ts";
import { runRow, startOf } from "../session/run-row.ts";
import { emit, pathOf, type Saved, type Session, stepsTaken, written } from "../session/session.ts";
import { timerChanges } from "../session/timer-rows.ts";
import { admitStep } from "../session/validate-writes.ts";
import { takeLetters } from "./drain-inbox.ts";
import { type Finished, foldResults, type StepResult, superstep } from "./superstep.ts";

/** Write the checkpoint that begins a run or a call of an inner graph; the run's row goes with it. */
export function commitInput(
  session: Session,
  result: StepResult,
  source: CheckpointSource,
  letters: readonly Letter[] = [],
  longTerm?: readonly LongTermChange[],
): Promise<void> {
  const began = session.world.clock.monotonic();
  return commit(session, result, { nodes: [], source, began, first: true, letters, longTerm });
}

interface MachineEvent {
  readonly type: string;
  readonly node?: string;
  readonly to?: readonly string[];
}

/** Move the machine of the graph by an event, told unless it only repeats what was told before. */
export function transition(session: Session, event: MachineEvent, shown: boolean): void {
  const from = session.snapshot;
  const step = session.kernel.step(from, event);
  [session.snapshot] = step;
  inspectTransition(session, from, event, step);
  if (shown) tell(session, event, from, step, nothingSaved);
}

function tell(
  session: Session,
  event: MachineEvent,
  from: Snapshot,
  step: Step,
  saved: Pick<Transition, "changes" | "bytes" | "durationMs">,
): void {
  if (!session.events.listening()) return;
  emit(session, {
    type: "transition.taken",
    path: pathOf(session),
    event: event.type,
    from: from.value,
    ...reached(step),
    ...saved,
  });
}

/** Pending tasks that waited for people go on: the machine takes their nodes up again. */
export function takeUp(session: Session, answered: ReadonlySet<string>): void {
  const waiting = new Set(session.control.tasks.flatMap(({ id, node }) => (answered.has(id) ? [node] : [])));
  if (waiting.size === 0) return;
  for (const node of waiting) transition(session, { type: "task.interrupted", node }, false);
  transition(session, { type: "run.resumed" }, true);
}

/** Fold what finished, make it durable, and tell of it. With a failure the run fails in the same write, and is resumed from there. */
export async function commitStep(
  session: Session,
  finished: readonly Finished[],
  began: number,
  failure?: ErrorRecord,
): Promise<void> {
  const before = { state: session.state, ...session.control };
  const fold = (outside: readonly Write[]): StepResult =>
    superstep(session.plan, session.step + 1, before, finished, outside);
  const plain = fold([]);
  const { result, letters } = session.inbox.mayHold()
    ? await takeLetters(session, plain, fold)
    : { result: plain, letters: [] };
  admitStep(session, finished, result);
  const nodes = nodesWith(finished.map(({ task }) => task));
  const last = failure === undefined ? {} : { last: failedBy(session, failure) };
  const longTerm = changesIn(finished);
  await commit(session, result, { nodes, source: "step", began, first: false, letters, longTerm, ...last });
  if (session.within === undefined) session.inbox.passed(letters);
}

/** The nodes of tasks, each once. */
function nodesWith(tasks: readonly Task[]): readonly string[] {
  const nodes = tasks.map(({ node }) => node);
  return nodes.length < 2 ? nodes : [...new Set(nodes)];
}

function failedBy(session: Session, error: ErrorRecord): NonNullable<CommitFacts["last"]> {
  return { run: { ...runRow(session, "failed"), error }, body: { type: "run.failed", error } };
}

interface CommitFacts {
  readonly nodes: readonly string[];
  readonly source: CheckpointSource;
  readonly began: number;
  /** The run's row is new: it is written whole. */
  readonly first: boolean;
  /** What it takes in from the inbox. */
  readonly letters?: readonly Letter[];
  /** What its tasks have put into the long-term store. */
  readonly longTerm?: readonly LongTermChange[] | undefined;
  /** Tasks of the step are still to run, with what is recorded of them: the checkpoint has its number, not the next. */
  readonly goesOn?: boolean;
  /** Questions that it closes. */
  readonly interrupts?: readonly InterruptRow[];
  /** The thread is let go with it, and this becomes of the run: nothing of the next step starts here. */
  readonly last?: { readonly run: RunRow | undefined; readonly body?: FactBody };
}

/** Make a superstep durable, then tell of it. Nothing of the next step starts before. */
export async function commit(session: Session, result: StepResult, facts: CommitFacts): Promise<void> {
  const { within } = session;
  const next = nodesWith(result.tasks);
  const from = session.snapshot;
  const event = { type: "step.commit", to: next };
  const step = session.kernel.step(from, event);
  const [snapshot] = step;
  const { begun = session.control.begun ?? [] } = session;
  // Whoever speaks wants an answer: their words begin the count of turns anew.
  const turns = facts.source === "input" || (facts.letters ?? []).length > 0 ? undefined : turnsOf(session);
  const control: Control = {
    machine: snapshot.value,
    tasks: result.tasks,
    ...(result.free === undefined ? {} : { free: result.free }),
    inputs: result.inputs,
    joins: result.joins,
    ...(result.held === undefined ? {} : { held: result.held }),
    steps: stepsTaken(session) + (facts.source === "step" ? 1 : 0),
    ...(facts.source === "input" || begun.length === 0 ? {} : { begun }),
    ...(turns === undefined ? {} : { turns }),
    ...(within === undefined ? {} : { caller: within.caller }),
  };
  const done = result.tasks.length === 0;
  if (done) readOutput(session.plan, result.state);
  const durationMs = session.world.clock.monotonic() - facts.began;
  const run =
    facts.last !== undefined ? facts.last.run : done ? runRow(session, "done") : facts.first ? session.run : undefined;
  const release = done || facts.last !== undefined;
  const steps = session.stepsOfRun + (facts.source === "step" ? 1 : 0);
  const number = (): Numbers => ({
    started:
      facts.first && within === undefined ? factOf(session, { type: "run.started", ...startOf(session) }) : undefined,
    place: nextPlace(session),
    ended: within === undefined ? endFact(session, done, steps, facts) : undefined,
  });
  const saving = within === undefined ? { ...facts, durationMs, run, release } : { ...facts, durationMs };
  const { row, started, place, ended } =
    session.saved === undefined
      ? { row: undefined, ...number() }
      : await save(session, session.saved, result, control, { ...saving, number });
  if (session.saved === undefined && facts.longTerm !== undefined) session.longTerm?.held?.push(...facts.longTerm);
  advance(session, result.state, control, snapshot, facts.goesOn);
  if (done && session.saved !== undefined && row !== undefined) leaveState(session, session.saved, row);
  if (facts.source === "step") session.stepsOfRun += 1;
  inspectTransition(session, from, event, step);
  if (!session.events.listening()) {
    session.sequence.toldSeq = place.seq + (ended === undefined ? 0 : 1);
    return;
  }
  started?.tell();
  tellTaken(session, facts.letters ?? []);
  // What a model gave as arguments is saved as it is, since it is acted upon, and shown without secrets.
  const saved = {
    changes: session.mask.hideUncommon(result.deltas),
    bytes: row?.bytes ?? 0,
    // As it is read back later.
    durationMs: row?.durationMs ?? durationMs,
  };
  emit(
    session,
    {
      type: "step.committed",
      step: session.step,
      checkpoint: row?.id,
      nodes: facts.nodes,
      next: done ? [END] : next,
      ...saved,
    },
    place,
  );
  tell(session, event, from, step, saved);
  ended?.tell();
}

/** Whoever sent a message learns that it is in the state. */
function tellTaken(session: Session, letters: readonly Letter[]): void {
  for (const { id, kind, messages } of letters) emit(session, { type: "inbox.taken", letter: id, kind, messages });
}

function endFact(session: Session, done: boolean, steps: number, { last }: CommitFacts): Fact | undefined {
  if (last !== undefined) return last.body === undefined ? undefined : factOf(session, last.body);
  return done ? factOf(session, { type: "run.completed", steps }) : undefined;
}

/** The place of the next checkpoint among the durable events; an inner graph that is not saved takes no number of its own. */
export function nextPlace({ sequence, world, within }: Session): Pick<EventPlace, "seq" | "at"> {
  const at = world.clock.now();
  if (within?.unsaved === true) return { seq: sequence.toldSeq, at };
  sequence.nextSeq += 1;
  return { seq: sequence.nextSeq - 1, at };
}

/** Stand where a durable superstep leads. */
function advance(
  session: Session,
  state: State,
  control: Control,
  snapshot: Session["snapshot"],
  goesOn: boolean = false,
): void {
  session.outcomes.clear();
  session.ledger = undefined;
  session.begun = undefined;
  session.turns = undefined;
  forgetCalls(session);
  session.state = state;
  session.control = control;
  session.snapshot = snapshot;
  if (!goesOn) session.step += 1;
}

/** Calls of the superstep that ended are over; those that are kept go on from the same state. */
function forgetCalls({ inner, plan, line }: Session): void {
  if (inner.size === 0) return;
  for (const called of inner.keys()) if (!plan.nodes.has(called.slice(line.length + 1))) inner.delete(called);
}

interface SaveFacts extends Pick<CommitFacts, "nodes" | "source" | "letters" | "longTerm" | "goesOn" | "interrupts"> {
  readonly givenBack?: string | undefined;
  readonly durationMs: number;
  /** Absent where an inner graph is saved: the run is that of the outermost. */
  readonly run?: RunRow | undefined;
  readonly release?: boolean;
  /** Gives it its place among the durable events, called when nothing can fail any more but the write. */
  readonly number: () => Numbers;
}

/** The place of a checkpoint among the durable events, and the facts that become true with it. */
export interface Numbers {
  readonly started?: Fact | undefined;
  readonly place: Pick<EventPlace, "seq" | "at">;
  readonly ended?: Fact | undefined;
}

/** Write a checkpoint as the next step of the branch; the journal of the step before goes with it. */
export async function save(
  session: Session,
  saved: Saved,
  result: Pick<StepResult, "deltas" | "state">,
  control: Control,
  facts: SaveFacts,
): Promise<Numbers & { readonly row: CheckpointRow }> {
  const { thread } = saved;
  const deltas = saved.writer.rows(result.deltas, result.state);
  const text = encodeAround(saved.codec, control, "the control state");
  const numbers = facts.number();
  const row: CheckpointRow = {
    id: thread.nextCheckpoint,
    branch: session.line,
    step: facts.goesOn === true ? session.step : session.step + 1,
    parent: saved.parent,
    source: facts.source,
    nodes: facts.nodes,
    control: text,
    run: session.run.id,
    at: numbers.place.at,
    durationMs: Math.round(facts.durationMs),
    seq: numbers.place.seq,
    bytes: deltas.reduce((sum, delta) => sum + delta.text.length, 0),
  };
  thread.nextCheckpoint += 1;
  const { run, release = false, interrupts, longTerm, givenBack } = facts;
  const asked = interrupts === undefined ? {} : { interrupts };
  const events = rowsOf(numbers);
  const moved = timerChanges(session.control, control);
  // Questions stand on the line of the outermost graph, and are over with its superstep, those too that nobody closes.
  const asking = facts.goesOn === true ? (interrupts ?? []) : saved.interrupts.values();
  const over = session.within === undefined && saved.interrupts.size > 0 ? disarmed(asking) : [];
  const timers = over.length === 0 ? moved : [...(moved ?? []), ...over];
  const taken =
    facts.letters === undefined || facts.letters.length === 0 ? undefined : facts.letters.map(({ id }) => id);
  const parts = { checkpoint: { row, deltas }, timers, run, events, taken, givenBack, longTerm, release, ...asked };
  const durable = written(session, saved, parts);
  // At once: what is recorded from here on belongs to the next step.
  saved.journal.clear();
  await durable;
  saved.parent = row.id;
  if (session.within === undefined) saved.interrupts.clear();
  thread.bytes += row.bytes;
  return { ...numbers, row };
}

function rowsOf({ started, ended }: Numbers): readonly EventRow[] | undefined {
  return started === undefined && ended === undefined ? undefined : [...(started?.rows ?? []), ...(ended?.rows ?? [])];
}

/** A cancelled run goes on for one thing only: to answer the calls of a message that is saved already. */
export function answersCalls(session: Session, tasks: readonly Task[]): boolean {
  return tasks.some((task) => session.plan.nodes.get(task.node)?.kind === "tools");
}

/** The last checkpoint of a cancelled run: what finished of the superstep that was cut short. */
export async function commitCancelled(
  session: Session,
  finished: readonly Finished[],
  began: number,
  body: FactBody,
): Promise<Fact> {
  const spent = entriesWithout(session, finished);
  const left = spent.length === 0 ? [] : [{ task: { id: START, node: START }, outcome: { writes: spent, leads: [] } }];
  const result = foldResults(session.plan, session.state, [...finished, ...left]);
  const nodes = nodesWith(finished.map(({ task }) => task));
  const durationMs = session.world.clock.monotonic() - began;
  const reason = body.type === "run.cancelled" ? { reason: body.reason } : {};
  const run = { ...runRow(session, "cancelled"), ...reason };
  const facts = { nodes, source: "step", durationMs, run, longTerm: changesIn(finished) } as const;
  return commitLast(session, result, stepsTaken(session) + 1, body, facts);
}

/** What the last checkpoint of a run says that ends for the sake of a new input. */
export interface EndFacts {
  readonly source: CheckpointSource;
  readonly run: RunRow;
  readonly interrupts: readonly InterruptRow[];
  readonly longTerm: readonly LongTermChange[] | undefined;
  /** The run that is taken back: what it took in from the inbox waits again. */
  readonly givenBack: string | undefined;
  readonly body: FactBody;
}

/** Write the last checkpoint of a run that ends where it stands; nothing runs next, and the thread is let go. */
export function commitEnd(
  session: Session,
  result: Pick<StepResult, "state" | "deltas">,
  { body, ...end }: EndFacts,
): Promise<Fact> {
  const facts = { nodes: [], durationMs: 0, ...end };
  return commitLast(session, result, stepsTaken(session), body, facts);
}

/** Write a checkpoint after which nothing runs, with the fact that ends the run, and let the thread go. */
async function commitLast(
  session: Session,
  result: Pick<StepResult, "state" | "deltas">,
  steps: number,
  body: FactBody,
  facts: Omit<SaveFacts, "number" | "release">,
): Promise<Fact> {
  const [snapshot] = session.kernel.initial();
  const control: Control = { machine: null, tasks: [], inputs: [], joins: {}, steps };
  session.sequence.nextSeq = session.sequence.durableSeq + 1;
  const number = () => ({ place: nextPlace(session), ended: factOf(session, body) });
  const { ended } =
    session.saved === undefined
      ? number()
      : await save(session, session.saved, result, control, { ...facts, number, release: true });
  advance(session, result.state, control, snapshot);
  return ended as Fact;
}
