/** `resume`: go on with a thread after a crash, a failure, or with the answers of people. */
import { checkAnswered } from "../base/async-schema.ts";
import { describeThrown, isStatewrightError, located, StatewrightError } from "../base/errors.ts";
import { checkId, freshId } from "../base/ids.ts";
import { disregardPromises } from "../base/ignore-rejections.ts";
import { isPlainObject } from "../base/json.ts";
import { issuesText } from "../base/schema.ts";
import { type InterruptRow, isOpen } from "../checkpoint/journal.ts";
import type { Graph } from "../compile/define-graph.ts";
import type { GraphTypes } from "../define/graph.ts";
import { readAnswer } from "../run/conversation/interrupt-schema.ts";
import { launch } from "../run/launch.ts";
import { stopOnError } from "../run/loop/finish.ts";
import { drive } from "../run/loop/loop.ts";
import { driveDrawn, readBrought } from "../run/machine/machine-loop.ts";
import { aboutToTake, type Caller, holding } from "../run/queue.ts";
import { heedQueue } from "../run/session/check-preemption.ts";
import { checkRunOptions } from "../run/session/check-run-options.ts";
import { endingOf } from "../run/session/durable-event.ts";
import { closeOverdue, expired } from "../run/session/interrupt-timers.ts";
import type { ResumeOptions, RunHandle, RunResult } from "../run/session/options.ts";
import type { State } from "../run/session/returns.ts";
import { openInterrupt, runRow } from "../run/session/run-row.ts";
import { emit, placeOf, type Saved, type Session, written } from "../run/session/session.ts";
import { openSession, release, unfinished, worldOf } from "../run/task/open-session.ts";

/**
 * Resume a thread: only what has no recorded result is executed. Answers are matched by interrupt id or key. A thread
 * that has finished is left as it is. A question whose time is over is closed before any answer is looked at. Throws `missing_store` without a store, `invalid_id` for a thread that cannot be one.
 * `result` rejects with `unknown_thread`, `thread_busy`, `unknown_interrupt`, `ambiguous_answer`, `already_answered`,
 * `interrupt_expired`, `invalid_answer`, or the error that fails the run.
 */
export function resume<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: ResumeOptions<Types>,
): RunHandle<Types["result"], Types["output"]> {
  checkRunOptions("resume", graph, options);
  return resumeRun({ graph: graph as Graph, options }) as RunHandle<Types["result"], Types["output"]>;
}

/** {@link resume} for whoever has checked its options. */
export function resumeRun(caller: Caller & { readonly options: ResumeOptions<GraphTypes> }): RunHandle<unknown> {
  const { graph, options } = caller;
  const world = worldOf(options);
  const thread = checkId("thread", options.thread);
  const runId = freshId("run_", world.random);
  const { store } = options;
  if (store === undefined) throw withoutStore(thread);
  return launch<unknown, unknown>(options, thread, runId, async (events, stops) => {
    const opening = { graph, options, thread, runId, events, ...stops, mustExist: true, unfit: "parks" } as const;
    const taken = aboutToTake(caller, store, thread);
    let result: Promise<RunResult<State>>;
    try {
      const session = await openSession(opening);
      const { saved } = session;
      // An input that is to end this run may have been left in the queue by a process that died.
      if (saved !== undefined && saved.claim.queued > 0) await heedQueue(session, saved);
      result = holding(session, caller, () => goOn(session, options));
    } finally {
      taken();
    }
    return await result;
  });
}

async function goOn(session: Session, options: ResumeOptions<GraphTypes>): Promise<RunResult<State>> {
  const { saved, world } = session;
  if (saved !== undefined && saved.claim.head === undefined) throw await neverBegan(session, saved);
  const { drawing } = session.plan;
  if (drawing !== undefined) {
    const brought = await readBrought(session, drawing, options.answers ?? {}, options.by);
    return driveDrawn(session, drawing, brought);
  }
  const answered = await answer(session, options.answers ?? {}, options.by);
  if (session.control.tasks.length > 0) return drive(session, { answered });
  if (saved?.claim.run !== undefined && unfinished(saved.claim.run)) return completeFailed(session, saved);
  if (saved !== undefined) await release(options.store, options.thread, saved.claim, world);
  // What was told when the run had finished, again for whoever listens now.
  emit(session, { type: "run.completed", steps: 0 });
  return drive(session);
}

/** Its last superstep is saved, and was not to pass for a success: whoever resumes it lets it count. */
async function completeFailed(session: Session, saved: Saved): Promise<RunResult<State>> {
  const fact = endingOf(session, { type: "run.completed", steps: 0 });
  try {
    await written(session, saved, { run: runRow(session, "done"), events: fact.rows, release: true });
  } catch (error) {
    return stopOnError(session, error);
  }
  fact.tell();
  return drive(session);
}

function withoutStore(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: `the thread "${thread}" was to be resumed without a store`,
    next: "Give resume the store that holds the thread",
    place: { thread },
  });
}

/** The process died before the input was saved, or START led nowhere: there is nothing to go on with. */
async function neverBegan(session: Session, saved: Saved): Promise<StatewrightError> {
  await release(saved.store, session.run.thread, saved.claim, session.world);
  return new StatewrightError("unknown_checkpoint", {
    what: `the thread "${session.run.thread}" holds no checkpoint: no run on it came so far that its input was saved`,
    next: "Run it again with its input",
    place: placeOf(session),
  });
}

/** Check every answer and put it on its question; a refused answer changes nothing and lets the thread go. */
async function answer(
  session: Session,
  answers: Readonly<Record<string, unknown>>,
  by: string | undefined,
): Promise<readonly InterruptRow[]> {
  const { saved } = session;
  if (saved === undefined) return [];
  try {
    const overdue = closeOverdue(session, saved);
    if (!isPlainObject(answers)) throw unkeyed(session, saved);
    const given = Object.entries(answers);
    const before = given.length === 0 ? [] : await saved.store.interrupts(session.run.thread, session.run.branch);
    const asked = { before, listed: await listedOf(session, saved, answers) };
    const rows = given.map(([name, value]) => answeredRow(session, saved, asked, name, value, by));
    for (const row of rows) saved.interrupts.set(row.id, row);
    return [...overdue, ...rows];
  } catch (error) {
    await release(saved.store, session.run.thread, saved.claim, session.world);
    disregardPromises(answers);
    throw isStatewrightError(error) ? located(error, placeOf(session)) : unreadable(session, error);
  }
}

/** Questions of a branch. */
interface Asked {
  /** All of them: one that has its answer is told from one that never was. */
  readonly before: readonly InterruptRow[];
  /** The ids of those that the run waits for. Others of its superstep may be open, which it may come to ask again. */
  readonly listed: ReadonlySet<string>;
}

/** What the run waits for, looked up where a key alone does not say which question is meant. */
async function listedOf(session: Session, { store, interrupts }: Saved, answers: object): Promise<Asked["listed"]> {
  const { thread, branch } = session.run;
  const keys = [...interrupts.values()].flatMap((row) => (isOpen(row) ? [row.key] : []));
  const isUnclear = keys.some((key, nth) => keys.indexOf(key) !== nth && Object.hasOwn(answers, key));
  if (!isUnclear) return new Set();
  const listed = await store.questions({ thread });
  return new Set(listed.flatMap((row) => (row.branch === branch ? [row.id] : [])));
}

/** Answers that throw when they are looked at. */
function unreadable(session: Session, cause: unknown): StatewrightError {
  return new StatewrightError("invalid_answer", {
    what: `the answers cannot be read: ${describeThrown(cause)}`,
    next: "Give plain data, without getters and proxies that throw; the questions stay open",
    place: placeOf(session),
    cause,
  });
}

function unkeyed(session: Session, saved: Saved): StatewrightError {
  const open = [...saved.interrupts.values()].filter(isOpen);
  return new StatewrightError("ambiguous_answer", {
    what: `an answer without a key was given, and ${open.length === 1 ? "1 question is" : `${open.length} questions are`} open`,
    next: `Answer by key or id: answers: { ${open[0]?.key ?? "key"}: … }`,
    place: placeOf(session),
    details: open.map((row) => openInterrupt(saved, row)),
  });
}

function answeredRow(
  session: Session,
  saved: Saved,
  asked: Asked,
  name: string,
  value: unknown,
  by: string | undefined,
): InterruptRow {
  const row = findQuestion(session, saved, asked, name);
  const parsed = readAnswer(session.plan, row, value);
  if (!parsed.ok) {
    checkAnswered(parsed, `the question "${name}"`, placeOf(session, { node: row.node }));
    throw new StatewrightError("invalid_answer", {
      what: `the answer to "${name}" does not fit: ${issuesText(parsed.issues)}`,
      next: "Answer as the interrupt's schema says; the question stays open",
      place: placeOf(session, { node: row.node }),
      details: { issues: parsed.issues, schema: row.schema },
      cause: parsed.cause,
    });
  }
  return {
    ...row,
    answer: saved.codec.encode(parsed.value, `the answer to "${name}"`),
    answeredAt: session.world.clock.now(),
    ...(by === undefined ? {} : { answeredBy: by }),
  };
}

function findQuestion(session: Session, saved: Saved, { before: asked, listed }: Asked, name: string): InterruptRow {
  const open = [...saved.interrupts.values()].filter(isOpen);
  const byId = open.find((row) => row.id === name);
  if (byId !== undefined) return byId;
  const ofKey = open.filter((row) => row.key === name);
  const waitedFor = ofKey.length > 1 ? ofKey.filter((row) => listed.has(row.id)) : ofKey;
  const byKey = waitedFor.length === 0 ? ofKey : waitedFor;
  const list = open.map((row) => openInterrupt(saved, row));
  const [only] = byKey;
  if (only !== undefined && byKey.length === 1) return only;
  if (byKey.length > 1) {
    throw new StatewrightError("ambiguous_answer", {
      what: `${byKey.length} open questions have the key "${name}"`,
      next: `Answer by id: ${byKey.map((row) => `"${row.id}"`).join(", ")}`,
      place: placeOf(session),
      details: list,
    });
  }
  const closed = asked.map((row) => saved.interrupts.get(row.id) ?? row).filter((row) => !isOpen(row));
  const before = closed.findLast((row) => row.id === name || row.key === name);
  if (before !== undefined && before.answer === undefined) throw expired(session, before);
  if (before?.answer !== undefined) {
    const { answeredAt, answeredBy, expiredAt } = before;
    throw new StatewrightError("already_answered", {
      what: `the question "${name}" ${expiredAt === undefined ? "has its answer already" : "has expired, and what was declared for that is its answer"}`,
      next: "The first answer counts; it is in the details",
      place: placeOf(session),
      details: {
        answer: saved.codec.decode(before.answer),
        answeredAt,
        ...(answeredBy === undefined ? {} : { answeredBy }),
        ...(expiredAt === undefined ? {} : { expiredAt }),
      },
    });
  }
  throw new StatewrightError("unknown_interrupt", {
    what: `the thread "${session.run.thread}" has no open question "${name}"`,
    next:
      open.length === 0
        ? session.control.tasks.length === 0
          ? "The run has finished and accepts none; give the thread a new input with run"
          : "No question is open: resume without answers first, and answer what is asked then"
        : `Open questions are ${open.map((row) => `"${row.key}" (${row.id})`).join(", ")}`,
    place: placeOf(session),
    details: list,
  });
}
