/**
 * The drive of a hand-drawn machine: event after event, each turn a checkpoint, until the machine is final or waits for an
 * event from outside. What a turn wants done is done when it is durable.
 */
import { type AnyActorRef, type AnyEventObject, createActor, createMachine } from "xstate";
import { isStatewrightError, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { isPlainObject, type Json } from "../../base/json.ts";
import { plainObject } from "../../base/plain-object-schema.ts";
import { issuesText, parseWith, type Schema } from "../../base/schema.ts";
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import { type Drawing, leafNames, type MachineState } from "../../compile/durable-machine.ts";
import { END } from "../../define/edge.ts";
import { jsonSchemaOf } from "../../tool/definition/model-tool.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import { nothingSaved, reached } from "../events/events.ts";
import { inspectStand, inspectTurn, type Settled } from "../events/inspect-run.ts";
import { aboutStart, startsTold } from "../journal/journal.ts";
import type { Elsewhere } from "../journal/prior-effects.ts";
import { cancelled, pauses, stopOnError, waits } from "../loop/finish.ts";
import { unlessStopped } from "../loop/resolve-preemption.ts";
import { checkStepLimit, drainOf } from "../loop/run-supersteps.ts";
import { whenAborted } from "../session/abort.ts";
import { factOf } from "../session/durable-event.ts";
import type { RunResult } from "../session/options.ts";
import { isForResume } from "../session/preemption.ts";
import type { State } from "../session/returns.ts";
import { endOf, runRow, startOf } from "../session/run-row.ts";
import { emit, placeOf, type Session, stepsTaken, written } from "../session/session.ts";
import { hasTimerRows, timerChanges } from "../session/timer-rows.ts";
import { type Numbers, nextPlace, save } from "../superstep/commit.ts";
import { release } from "../task/open-session.ts";
import {
  acceptedTypes,
  checkAccepted,
  controlAfter,
  doneEvent,
  dropTimer,
  dueTimer,
  enter,
  errorEvent,
  idsOf,
  type Moment,
  type Motion,
  restore,
  rootOf,
  stateAfter,
  type Timer,
  type Turn,
  take,
  tell,
  type Work,
} from "./actor-tree.ts";
import { actorFailed, carryRows, type Ended, inDoubt, performWork, rowOf } from "./machine-effect.ts";
import { endThere, findElsewhere } from "./prior-promises.ts";

/** Enter the machine and write the first checkpoint of the run. */
export async function enterDrawn(session: Session, drawing: Drawing, input: unknown): Promise<void> {
  const began = session.world.clock.monotonic();
  const { motion, turn } = enter(drawing, input, momentOf(session));
  failLoud(session, motion);
  await commitTurn(session, motion, turn, { source: "input", nodes: [], began, ended: new Map() });
}

/** What a resume brings: an event, and what people found out about promises in doubt. */
export interface Brought {
  readonly event: AnyEventObject | undefined;
  readonly rows: readonly InterruptRow[];
}

/** What a person found out about a promise that had started when its process died. */
interface ActorInDoubt {
  readonly happened: boolean;
  readonly output?: unknown;
}

const actorInDoubt: Schema<ActorInDoubt> = plainObject({ happened: "boolean" }, { output: "anything" });

/**
 * Read the answers of a resume: `in_doubt` or the id of a question is about a promise, every other key is the type of an
 * event and its value what the event carries. Throws `event_refused` with the list of accepted events, `ambiguous_answer`,
 * `invalid_answer`; then nothing has changed, and the thread is let go.
 */
export async function readBrought(
  session: Session,
  drawing: Drawing,
  answers: unknown,
  by: string | undefined,
): Promise<Brought> {
  const { saved } = session;
  try {
    if (!isPlainObject(answers)) throw invalidAnswer(session, "answers", "it is not an object of events by their type");
    const rows: InterruptRow[] = [];
    const events: AnyEventObject[] = [];
    for (const [name, value] of Object.entries(answers)) {
      const asked = questionAbout(session, name);
      if (asked !== undefined) rows.push(answeredRow(session, asked, value, by));
      else if (value === null || value === true || isPlainObject(value))
        events.push({ ...(isPlainObject(value) ? value : {}), type: name });
      else throw invalidAnswer(session, name, "an event carries an object, or true");
    }
    const [event] = events;
    if (events.length > 1)
      throw new StatewrightError("ambiguous_answer", {
        what: `${events.length} events were given at once`,
        next: "Give one: what the machine accepts next depends on what it does with it",
        place: placeOf(session),
        details: events.map(({ type }) => type),
      });
    if (event !== undefined) checkEvent(session, drawing, event);
    for (const row of rows) saved?.interrupts.set(row.id, row);
    return { event, rows };
  } catch (error) {
    if (saved !== undefined) await release(saved.store, session.run.thread, saved.claim, session.world);
    throw error;
  }
}

/** Run until the machine is final, or waits. Rejects with the run's error, after it is saved. */
export async function driveDrawn(session: Session, drawing: Drawing, brought?: Brought): Promise<RunResult<State>> {
  session.mailbox?.open(session.inbox);
  if (session.control.tasks.length === 0) return completed(session);
  const desk: Desk = {
    session,
    drawing,
    answers: new Map(session.saved?.interrupts),
    running: new Map(),
    ended: new Map(),
    timers: new Map(),
    elsewhere: new Map(),
    failure: undefined,
    refusal: undefined,
    wake: undefined,
  };
  const signals = [session.abort.signal, session.drain].filter((signal) => !signal.aborted);
  const stops = signals.map((signal) => whenAborted(signal, () => desk.wake?.()));
  try {
    if (brought !== undefined) await goOn(session, brought.rows);
    const motion = restore(drawing, session.state as MachineState, session.control);
    inspectStand(session, motion);
    const result = await turns(desk, motion, brought?.event);
    // A refused event is the caller's mistake, not the run's: the run has come to rest without it.
    if (desk.refusal !== undefined) throw desk.refusal;
    return result;
  } catch (error) {
    if (error === desk.refusal) throw error;
    close(desk);
    await startsTold(session);
    return await stopOnError(session, error);
  } finally {
    for (const stop of stops) stop();
    close(desk);
  }
}

/** What is at work for a machine in this process. */
interface Desk {
  readonly session: Session;
  readonly drawing: Drawing;
  /** Questions with their answers, as the run went on with them. */
  readonly answers: ReadonlyMap<string, InterruptRow>;
  readonly running: Map<Work, AbortController | "in doubt">;
  /** How promises ended that the machine was not told of yet, in the order of their ends. */
  readonly ended: Map<Work, Ended>;
  readonly timers: Map<Timer, () => void>;
  /** What other branches have of promises that may happen once. */
  readonly elsewhere: Map<Work, Elsewhere | undefined>;
  failure: unknown;
  /** Why the event that was brought was not taken. */
  refusal: StatewrightError | undefined;
  wake: (() => void) | undefined;
}

async function goOn(session: Session, rows: readonly InterruptRow[]): Promise<void> {
  const { saved, run, control } = session;
  const fact = factOf(session, { type: "run.started", ...startOf(session) });
  if (saved !== undefined) {
    const timers = hasTimerRows(saved.claim.run) ? undefined : timerChanges(undefined, control);
    await written(session, saved, { run, interrupts: rows, timers, events: fact.rows });
  }
  fact.tell();
}

async function turns(desk: Desk, motion: Motion, brought: AnyEventObject | undefined): Promise<RunResult<State>> {
  const { session, drawing } = desk;
  let event = brought;
  for (;;) {
    if (session.saved?.thread.failure !== undefined) throw session.saved.thread.failure;
    if (desk.failure !== undefined) throw desk.failure;
    if (session.control.tasks.length === 0) {
      if (event !== undefined) desk.refusal = finished(session, event);
      return completed(session);
    }
    // An event that was brought is taken, or refused: it stands nowhere else.
    const { aborted, reason } = session.abort.signal;
    if (aborted && (event === undefined || !isForResume(reason))) {
      close(desk);
      await startsTold(session);
      return await unlessStopped(session, reason, () => cancelled(session));
    }
    if (session.drain.aborted && event === undefined) {
      if (!atWork(desk)) return await drained(desk);
      await woken(desk);
      continue;
    }
    checkStepLimit(session);
    const began = session.world.clock.monotonic();
    const moment = momentOf(session);
    const due = dueTimer(motion, moment.now);
    if (due !== undefined && dropTimer(motion, due)) {
      await turn(desk, motion, began, () => tell(motion, due.to, due.event, moment, due.owner));
      continue;
    }
    if (event !== undefined) {
      const given = event;
      event = undefined;
      // Too late, after the timers that were due: what they did is kept, and what they began goes on.
      desk.refusal = refusalOf(drawing, motion, given);
      if (desk.refusal !== undefined) continue;
      await turn(desk, motion, began, () => take(motion, "", given, moment));
      continue;
    }
    const looking = findElsewhere(session, motion, desk.elsewhere, (work) => isDenied(desk, work));
    if (looking !== undefined) {
      await looking;
      continue;
    }
    settle(desk, motion);
    const [first] = desk.ended;
    if (first !== undefined) {
      const [work, end] = first;
      desk.ended.delete(work);
      desk.running.delete(work);
      if (motion.works.get(work.address) !== work) continue;
      motion.works.delete(work.address);
      const told = "error" in end ? errorEvent(work.id, end.error) : doneEvent(work.id, end.output);
      const tellIt = (): Turn => tell(motion, work.owner, told, moment, work.address);
      await turn(desk, motion, began, tellIt, { path: idsOf(work.address), end });
      continue;
    }
    if (rootOf(motion).status === "done") {
      // A state that was made final after it was saved.
      await turn(desk, motion, began, () => ({ moves: [], acts: [] }));
      continue;
    }
    if (!atWork(desk)) {
      const questions = [...doubts(desk), ...openEvents(session, drawing, motion)];
      if (questions.length > 0) return await waits(session, questions);
      if (motion.timers.size === 0) throw deadEnd(session, motion);
    }
    await woken(desk);
  }
}

/** Whether a promise is under way whose end is not known yet. */
function atWork({ running, ended }: Desk): boolean {
  return [...running].some(([work, state]) => state !== "in doubt" && !ended.has(work));
}

/** Wait until something has ended, failed, or was stopped. */
async function woken(desk: Desk): Promise<void> {
  const { session } = desk;
  const before = desk.ended.size;
  await new Promise<void>((resolve) => {
    desk.wake = resolve;
    const stopped = session.abort.signal.aborted || desk.failure !== undefined;
    if (stopped || desk.ended.size > (session.drain.aborted ? before : 0)) resolve();
  });
  desk.wake = undefined;
}

/** Promises that were under way have ended, and their ends are in the journal: a resume tells the machine of them. */
async function drained(desk: Desk): Promise<RunResult<State>> {
  const { session } = desk;
  close(desk);
  await startsTold(session);
  return pauses(session, drainOf(session) as StatewrightError);
}

async function turn(desk: Desk, motion: Motion, began: number, move: () => Turn, settled?: Settled): Promise<void> {
  const { session, drawing } = desk;
  const before = leafNames(drawing.machine.id, rootOf(motion).value);
  const moved = move();
  failLoud(session, motion);
  const after = leafNames(drawing.machine.id, rootOf(motion).value);
  const left = before.filter((name) => !after.includes(name));
  const nodes = left.length > 0 ? left : before;
  await commitTurn(session, motion, moved, { source: "step", nodes, began, ended: desk.ended, settled });
}

interface TurnFacts {
  readonly source: "input" | "step";
  readonly nodes: readonly string[];
  readonly began: number;
  readonly ended: ReadonlyMap<Work, Ended>;
  /** The promise whose end the turn begins with. */
  readonly settled?: Settled | undefined;
}

/** Make a turn durable, tell of it, then run its actions. */
async function commitTurn(session: Session, motion: Motion, turn: Turn, facts: TurnFacts): Promise<void> {
  const { source, nodes } = facts;
  const { name } = session.plan.graph;
  const first = source === "input";
  const { state, deltas } = stateAfter(motion, session.state as MachineState, first);
  const steps = stepsTaken(session) + (first ? 0 : 1);
  const control = controlAfter(motion, name, session.step + 1, steps);
  const done = control.tasks.length === 0;
  const durationMs = session.world.clock.monotonic() - facts.began;
  const saving = { state, deltas };
  const stepsOfRun = session.stepsOfRun + (first ? 0 : 1);
  const number = (): Numbers => ({
    started: first ? factOf(session, { type: "run.started", ...startOf(session) }) : undefined,
    place: nextPlace(session),
    ended: done ? factOf(session, { type: "run.completed", steps: stepsOfRun }) : undefined,
  });
  let told: Numbers & { readonly row?: CheckpointRow };
  if (session.saved === undefined) {
    told = number();
    session.step += 1;
  } else {
    const run = done ? runRow(session, "done") : first ? session.run : undefined;
    const carried = carryRows(session, motion.works.values(), facts.ended);
    const saveFacts = { nodes, source, durationMs, run, release: done, number };
    const durable = save(session, session.saved, saving, control, saveFacts);
    // What ends from here on is recorded in the step that is being made: the store keeps the order of writes.
    session.step += 1;
    carried();
    try {
      told = await durable;
    } catch (error) {
      session.step -= 1;
      throw error;
    }
  }
  const { row, started, place, ended } = told;
  session.state = saving.state;
  session.control = control;
  session.snapshot = rootOf(motion);
  session.stepsOfRun = stepsOfRun;
  if (session.events.listening()) {
    const changes = session.mask.hideUncommon(deltas);
    // As it is read back later.
    const measured = { bytes: row?.bytes ?? 0, durationMs: row?.durationMs ?? durationMs };
    started?.tell();
    emit(
      session,
      {
        type: "step.committed",
        step: session.step,
        checkpoint: row?.id,
        nodes,
        next: done ? [END] : control.tasks.map(({ node }) => node),
        changes,
        ...measured,
      },
      place,
    );
    turn.moves.forEach(({ path, event, from, step }, index) => {
      // What the turn has saved stands at its first transition, which all others come from.
      const saved = index === 0 ? { changes, ...measured } : nothingSaved;
      emit(session, {
        type: "transition.taken",
        path: [name, ...path],
        event: event.type,
        from,
        ...reached(step),
        ...saved,
      });
    });
    ended?.tell();
  }
  inspectTurn(session, turn.moves, facts.settled);
  runActions(session, turn);
}

function runActions(session: Session, { acts }: Turn): void {
  for (const { name, params, run } of acts) {
    const given = isPlainObject(params) ? params : {};
    if (name === "xstate.log") {
      session.world.log("info", String(given["label"] ?? "log"), { value: given["value"] });
    } else if (name === "xstate.emit") {
      const event = given["event"] as { readonly type: string };
      emit(session, {
        type: "custom",
        node: session.plan.graph.name,
        task: `${session.step}:0`,
        name: event.type,
        payload: event as Json,
      });
    } else if (!name.startsWith("xstate.")) perform(session, name, run);
  }
}

function perform(session: Session, name: string, run: (() => void) | undefined): void {
  try {
    run?.();
  } catch (cause) {
    throw new StatewrightError("machine_failed", {
      what: `the action "${name}" of the machine "${session.plan.graph.name}" threw`,
      next: "Mend the action that its cause names; the transition that wanted it is saved, and it is not run again",
      place: placeOf(session),
      cause,
    });
  }
}

/** Let what is at work be what the machine has under way: start, stop, set, cancel. */
function settle(desk: Desk, motion: Motion): void {
  for (const [work, running] of desk.running) {
    if (motion.works.get(work.address) === work) continue;
    desk.running.delete(work);
    if (desk.ended.delete(work)) continue;
    if (running !== "in doubt") running.abort(new Error(`the machine left the state that started "${work.id}"`));
  }
  const timers = new Set(motion.timers.values());
  for (const [timer, cancel] of desk.timers) {
    if (timers.has(timer)) continue;
    desk.timers.delete(timer);
    cancel();
  }
  const { schedule } = desk.session.world;
  for (const timer of timers) {
    if (desk.timers.has(timer)) continue;
    const fire = (): void => {
      // A clock may say that it is not time yet: the timer is set again then.
      desk.timers.delete(timer);
      desk.wake?.();
    };
    desk.timers.set(timer, schedule.at(timer.dueAt, fire));
  }
  for (const work of motion.works.values()) if (!desk.running.has(work)) start(desk, work);
}

function start(desk: Desk, work: Work): void {
  const { session } = desk;
  const { task } = work;
  const there = endElsewhere(desk, work);
  if (there !== undefined && session.onceElsewhere === "reuse") {
    end(desk, work, there);
    return;
  }
  if (inDoubt(session, work) || desk.elsewhere.get(work) !== undefined) {
    const answer = answerAbout(desk, work);
    if (answer === undefined) {
      desk.running.set(work, "in doubt");
      return;
    }
    if (answer.happened) {
      end(desk, work, answer.output === undefined && there !== undefined ? there : { output: answer.output });
      return;
    }
  }
  const controller = new AbortController();
  desk.running.set(work, controller);
  if (session.events.listening()) {
    const input = session.mask.hideUncommon(work.input);
    emit(session, { type: "task.started", node: task.node, task: task.id, attempt: 1, input });
  }
  const abandoned = (): boolean => desk.running.get(work) !== controller || session.abort.signal.aborted;
  const create = async (key: string): Promise<unknown> =>
    work.actor.create(creatorArgs(session, work, key, controller.signal));
  const began = session.world.clock.monotonic();
  performWork(session, work, create, abandoned).then(
    (end) => {
      if (end === undefined || abandoned()) {
        session.world.log("warn", `a late result of "${task.node}" was dropped`, { task: task.id });
        return;
      }
      const durationMs = session.world.clock.monotonic() - began;
      if ("error" in end)
        emit(session, { type: "task.failed", node: task.node, task: task.id, error: toErrorRecord(end.error) });
      else emit(session, { type: "task.completed", node: task.node, task: task.id, durationMs, reused: false });
      desk.ended.set(work, end);
      desk.wake?.();
    },
    (error: unknown) => {
      desk.failure ??= error;
      desk.wake?.();
    },
  );
}

function end({ running, ended }: Desk, work: Work, how: Ended): void {
  running.set(work, new AbortController());
  ended.set(work, how);
}

function endElsewhere({ session: { saved }, elsewhere }: Desk, work: Work): Ended | undefined {
  const found = elsewhere.get(work);
  return saved === undefined || found === undefined ? undefined : endThere(saved, found);
}

/** What XState gives the function of `fromPromise`; `self.sessionId` is the idempotency key. */
function creatorArgs(session: Session, work: Work, key: string, signal: AbortSignal): object {
  const self: AnyActorRef = Object.assign(createActor(createMachine({}), { id: work.id }), { sessionId: key });
  return {
    input: work.input,
    self,
    system: self.system,
    signal,
    emit: (event: { readonly type: string }) => {
      emit(session, {
        type: "custom",
        node: work.task.node,
        task: work.task.id,
        name: event.type,
        payload: event as Json,
      });
    },
  };
}

function close(desk: Desk): void {
  const { running, timers } = desk;
  for (const cancel of timers.values()) cancel();
  timers.clear();
  const left = [...running.values()];
  running.clear();
  for (const controller of left) if (controller !== "in doubt") controller.abort(new Error("the run has stopped"));
}

function completed(session: Session): RunResult<State> {
  return { status: "done", output: session.state["output"], ...endOf(session) };
}

function momentOf(session: Session): Moment {
  return { step: session.step + 1, now: session.world.clock.now() };
}

/** A root that came to an error has failed the run, and the turn is not saved. */
function failLoud(session: Session, motion: Motion): void {
  const { status, error, value } = rootOf(motion);
  if (status === "error") throw actorFailed(session, JSON.stringify(value), error);
}

function refusalOf(drawing: Drawing, motion: Motion, event: AnyEventObject): StatewrightError | undefined {
  try {
    checkAccepted(drawing, motion, event);
    return undefined;
  } catch (error) {
    if (isStatewrightError(error, "event_refused")) return error;
    throw error;
  }
}

/** Unless a timer is due, which comes first, the event must be one that the machine accepts now. */
function checkEvent(session: Session, drawing: Drawing, event: AnyEventObject): void {
  if (event.type.startsWith("xstate."))
    throw invalidAnswer(session, event.type, "events of that name are the machine's own");
  if (session.control.tasks.length === 0) throw finished(session, event);
  const motion = restore(drawing, session.state as MachineState, session.control);
  if (dueTimer(motion, session.world.clock.now()) === undefined) checkAccepted(drawing, motion, event);
}

function finished(session: Session, event: AnyEventObject): StatewrightError {
  return new StatewrightError("event_refused", {
    what: `the machine "${session.plan.graph.name}" has finished and does not accept "${event.type}"`,
    next: "A finished run accepts none",
    place: placeOf(session),
    details: { event: event.type, accepts: [] },
  });
}

// Questions: which events may come, and what became of promises in doubt.

function doubts(desk: Desk): readonly InterruptRow[] {
  const { session, running, elsewhere } = desk;
  return [...running].flatMap(([work, state]) => {
    const found = elsewhere.get(work);
    const row = state === "in doubt" ? (found?.row ?? rowOf(session, work)) : undefined;
    if (row === undefined) return [];
    const { idempotencyKey, startedAt } = row;
    const about = { actor: work.task.node, input: work.input, idempotencyKey, startedAt };
    const payload = found === undefined ? about : { ...about, alreadyOn: found.branch, ...shownEnd(desk, work) };
    const asked = questionRow(session, doubtId(found, work), inDoubtKey, work.task.node, payload);
    return [{ ...asked, about: aboutStart(row) }];
  });
}

function shownEnd(desk: Desk, work: Work): object {
  const there = endElsewhere(desk, work);
  if (there === undefined) return {};
  return "error" in there ? { error: toErrorRecord(there.error) } : { outcome: there.output };
}

/** That another branch did it says nothing of a start on this one: each has a question of its own. */
function doubtId(found: Elsewhere | undefined, { task }: Work): string {
  return found === undefined ? `${task.id}:${inDoubtKey}` : `${task.id}:elsewhere:${inDoubtKey}`;
}

function openEvents(session: Session, drawing: Drawing, motion: Motion): readonly InterruptRow[] {
  const state = session.control.tasks.map(({ node }) => node).join(" ");
  return acceptedTypes(drawing, motion).map((type) =>
    questionRow(session, `${session.step}:${type}`, type, state, null),
  );
}

function questionRow(session: Session, id: string, key: string, node: string, payload: unknown): InterruptRow {
  const { saved, step, run, world } = session;
  return {
    id,
    branch: run.branch,
    step,
    task: session.control.tasks[0]?.id ?? `${step}:0`,
    node,
    key,
    payload: saved === undefined ? "null" : saved.codec.encode(payload, `the question "${key}"`),
    schema: key === inDoubtKey ? jsonSchemaOf(actorInDoubt) : undefined,
    raisedAt: world.clock.now(),
  };
}

function questionAbout(session: Session, name: string): InterruptRow | undefined {
  const open = [...(session.saved?.interrupts.values() ?? [])].filter((row) => row.key === inDoubtKey);
  const byId = open.find((row) => row.id === name);
  if (byId !== undefined || name !== inDoubtKey) return byId;
  const unanswered = open.filter((row) => row.answer === undefined);
  if (unanswered.length > 1) {
    throw new StatewrightError("ambiguous_answer", {
      what: `${unanswered.length} promises are in doubt`,
      next: `Answer by id: ${unanswered.map(({ id }) => `"${id}"`).join(", ")}`,
      place: placeOf(session),
      details: unanswered.map(({ id }) => id),
    });
  }
  return unanswered[0];
}

function answeredRow(session: Session, row: InterruptRow, value: unknown, by: string | undefined): InterruptRow {
  const parsed = parseWith(actorInDoubt, value);
  if (!parsed.ok) throw invalidAnswer(session, row.key, issuesText(parsed.issues));
  const answer = session.saved?.codec.encode(parsed.value, `the answer to "${row.key}"`);
  const answeredAt = session.world.clock.now();
  return { ...row, answer, answeredAt, ...(by === undefined ? {} : { answeredBy: by }) };
}

function answerAbout({ session, answers, elsewhere }: Desk, work: Work): ActorInDoubt | undefined {
  const found = elsewhere.get(work);
  return answerFor(session, found?.row ?? rowOf(session, work), answers.get(doubtId(found, work)));
}

/** Whether a person has said that a start on this branch came to nothing. */
function isDenied({ session, answers }: Desk, work: Work): boolean {
  return answerFor(session, rowOf(session, work), answers.get(doubtId(undefined, work)))?.happened === false;
}

/** The answer to a question, where it is about this very start. */
function answerFor(
  { saved }: Session,
  row: EffectRow | undefined,
  asked: InterruptRow | undefined,
): ActorInDoubt | undefined {
  const text = row !== undefined && asked?.about === aboutStart(row) ? asked.answer : undefined;
  return text === undefined ? undefined : (saved?.codec.decode(text) as ActorInDoubt);
}

function invalidAnswer(session: Session, name: string, why: string): StatewrightError {
  return new StatewrightError("invalid_answer", {
    what: `the answer "${name}" does not fit: ${why}`,
    next: "Give an event as { TYPE: { …what it carries } }, or what became of a promise in doubt as { happened, output }",
    place: placeOf(session),
  });
}

function deadEnd(session: Session, motion: Motion): StatewrightError {
  return new StatewrightError("machine_failed", {
    what: `the machine "${session.plan.graph.name}" stands in ${JSON.stringify(rootOf(motion).value)}, which accepts no event, and nothing is under way`,
    next: 'Mark the state as final ({ type: "final" }) or give it a transition, then resume the thread',
    place: placeOf(session),
  });
}
