/** Matches the answers of a resume with the open interrupts of its thread. */
import { checkSyncResult } from "../../base/async-schema.ts";
import { addErrorPlace, describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { isPlainObject } from "../../base/json.ts";
import { describeIssues } from "../../base/schema.ts";
import { type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import { readAnswer } from "../conversation/interrupt-schema.ts";
import { createExpiredError, expireOverdue } from "../session/interrupt-timers.ts";
import { toOpenInterrupt } from "../session/run-row.ts";
import { getErrorPlace, type Persistence, type Session } from "../session/session.ts";
import { release } from "../task/open-session.ts";

/**
 * Checks all answers and records them on their interrupts; on an invalid answer nothing changes and the thread is
 * released.
 */
export async function applyAnswers(
  session: Session,
  answers: Readonly<Record<string, unknown>>,
  by: string | undefined,
): Promise<readonly InterruptRow[]> {
  const { saved } = session;
  if (saved === undefined) return [];
  try {
    const overdue = expireOverdue(session, saved);
    if (!isPlainObject(answers)) throw createMissingKeyError(session, saved);
    const entries = Object.entries(answers);
    const all = entries.length === 0 ? [] : await saved.store.interrupts(session.run.thread, session.run.branch);
    const known = { all, awaited: await loadAwaited(session, saved, answers) };
    const rows = entries.map(([name, value]) => toAnsweredRow(session, saved, known, name, value, by));
    for (const row of rows) saved.interrupts.set(row.id, row);
    return [...overdue, ...rows];
  } catch (error) {
    await release(saved.store, session.run.thread, saved.claim, session.world);
    ignoreRejections(answers);
    throw isStatewrightError(error)
      ? addErrorPlace(error, getErrorPlace(session))
      : createUnreadableAnswersError(session, error);
  }
}

/** Interrupts of a branch. */
interface BranchInterrupts {
  /** Includes answered interrupts, to distinguish `already_answered` from `unknown_interrupt`. */
  readonly all: readonly InterruptRow[];
  /** Ids of the awaited interrupts. Other interrupts of the superstep may be open and may be raised again. */
  readonly awaited: ReadonlySet<string>;
}

/** Loads the ids of the awaited interrupts, only when a key is ambiguous. */
async function loadAwaited(
  session: Session,
  { store, interrupts }: Persistence,
  answers: object,
): Promise<BranchInterrupts["awaited"]> {
  const { thread, branch } = session.run;
  const keys = [...interrupts.values()].flatMap((row) => (isOpen(row) ? [row.key] : []));
  const isUnclear = keys.some((key, nth) => keys.indexOf(key) !== nth && Object.hasOwn(answers, key));
  if (!isUnclear) return new Set();
  const listed = await store.openInterrupts({ thread });
  return new Set(listed.flatMap((row) => (row.branch === branch ? [row.id] : [])));
}

/** Creates the error for answers that throw when read. */
function createUnreadableAnswersError(session: Session, cause: unknown): StatewrightError {
  return new StatewrightError("invalid_answer", {
    what: `the answers cannot be read: ${describeThrown(cause)}`,
    next: "Pass plain data, without getters and proxies that throw; the interrupts stay open",
    place: getErrorPlace(session),
    cause,
  });
}

function createMissingKeyError(session: Session, saved: Persistence): StatewrightError {
  const open = [...saved.interrupts.values()].filter(isOpen);
  return new StatewrightError("ambiguous_answer", {
    what: `an answer has no key, and ${open.length === 1 ? "1 interrupt is" : `${open.length} interrupts are`} open`,
    next: `Use answers by key or id: answers: { ${open[0]?.key ?? "key"}: … }`,
    place: getErrorPlace(session),
    details: open.map((row) => toOpenInterrupt(saved, row)),
  });
}

function toAnsweredRow(
  session: Session,
  saved: Persistence,
  known: BranchInterrupts,
  name: string,
  value: unknown,
  by: string | undefined,
): InterruptRow {
  const row = findInterrupt(session, saved, known, name);
  const parsed = readAnswer(session.plan, row, value);
  if (!parsed.ok) {
    checkSyncResult(parsed, `interrupt "${name}"`, getErrorPlace(session, { node: row.node }));
    throw new StatewrightError("invalid_answer", {
      what: `the answer to interrupt "${name}" does not match its schema: ${describeIssues(parsed.issues)}`,
      next: "Fix the answer to match the interrupt's schema; the interrupt stays open",
      place: getErrorPlace(session, { node: row.node }),
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

function findInterrupt(
  session: Session,
  saved: Persistence,
  { all: asked, awaited }: BranchInterrupts,
  name: string,
): InterruptRow {
  const open = [...saved.interrupts.values()].filter(isOpen);
  const byId = open.find((row) => row.id === name);
  if (byId !== undefined) return byId;
  const withKey = open.filter((row) => row.key === name);
  const awaitedWithKey = withKey.length > 1 ? withKey.filter((row) => awaited.has(row.id)) : withKey;
  const byKey = awaitedWithKey.length === 0 ? withKey : awaitedWithKey;
  const list = open.map((row) => toOpenInterrupt(saved, row));
  const [only] = byKey;
  if (only !== undefined && byKey.length === 1) return only;
  if (byKey.length > 1) {
    throw new StatewrightError("ambiguous_answer", {
      what: `${byKey.length} open interrupts have the key "${name}"`,
      next: `Use an id as key: ${byKey.map((row) => `"${row.id}"`).join(", ")}`,
      place: getErrorPlace(session),
      details: list,
    });
  }
  const closed = asked.map((row) => saved.interrupts.get(row.id) ?? row).filter((row) => !isOpen(row));
  const before = closed.findLast((row) => row.id === name || row.key === name);
  if (before !== undefined && before.answer === undefined) throw createExpiredError(session, before);
  if (before?.answer !== undefined) {
    const { answeredAt, answeredBy, expiredAt } = before;
    throw new StatewrightError("already_answered", {
      what: `interrupt "${name}" ${expiredAt === undefined ? "is already answered" : "has expired with its declared answer"}`,
      next: "Use the first answer, in details: later answers are ignored",
      place: getErrorPlace(session),
      details: {
        answer: saved.codec.decode(before.answer),
        answeredAt,
        ...(answeredBy === undefined ? {} : { answeredBy }),
        ...(expiredAt === undefined ? {} : { expiredAt }),
      },
    });
  }
  throw new StatewrightError("unknown_interrupt", {
    what: `thread "${session.run.thread}" has no open interrupt "${name}"`,
    next:
      open.length === 0
        ? session.control.tasks.length === 0
          ? "Pass the thread a new input with run: the run has finished and accepts no answers"
          : "Resume without answers first, and answer the interrupts raised then: no interrupt is open"
        : `Use an open interrupt: ${open.map((row) => `"${row.key}" (${row.id})`).join(", ")}`,
    place: getErrorPlace(session),
    details: list,
  });
}
