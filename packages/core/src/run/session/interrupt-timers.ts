/**
 * The time of questions. A question that says how long it waits has a row among the timers while it is open. Whoever
 * resumes its thread after that time closes it, before any answer is looked at: with the answer that it declared for
 * that, or with none, and its node gets an error then.
 */
import { StatewrightError } from "../../base/errors.ts";
import { type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import type { TimerChange } from "../../checkpoint/timer.ts";
import type { Codec } from "../../state/codec.ts";
import type { Expiry } from "../../tool/policy/interrupt.ts";
import { nodesOf, placeOf, type Saved, type Session } from "./session.ts";

/** What a new question keeps of its time. */
export function timeOf(
  codec: Codec,
  expiry: Expiry | undefined,
  key: string,
  raisedAt: number,
): Pick<InterruptRow, "expiresAt" | "onExpire"> {
  if (expiry === undefined) return forEver;
  const { ms, answer } = expiry;
  const expiresAt = Math.ceil(raisedAt + ms);
  if (answer === undefined) return { expiresAt };
  return { expiresAt, onExpire: codec.encode(answer.value, `the onExpire of the interrupt "${key}"`) };
}

const forEver: Pick<InterruptRow, "expiresAt" | "onExpire"> = {};

/** An open question whose time has not begun. */
export function timeless({ expiresAt: _, onExpire: __, ...row }: InterruptRow): InterruptRow {
  return row;
}

/** Close the questions whose time is over; gives those rows. */
export function closeOverdue({ world }: Session, { interrupts }: Saved): readonly InterruptRow[] {
  const now = world.clock.now();
  const closed: InterruptRow[] = [];
  for (const row of interrupts.values()) {
    const { expiresAt, onExpire } = row;
    if (expiresAt === undefined || expiresAt > now || !isOpen(row)) continue;
    closed.push({ ...row, expiredAt: now, ...(onExpire === undefined ? {} : { answer: onExpire, answeredAt: now }) });
  }
  for (const row of closed) interrupts.set(row.id, row);
  return closed;
}

/** The timers of questions that wait from now on. */
export function armed(questions: readonly InterruptRow[]): readonly TimerChange[] {
  return questions.flatMap(({ id, key, step, expiresAt }) =>
    expiresAt === undefined ? [] : [{ arm: { id, kind: "expiry", generation: step, dueAt: expiresAt, about: key } }],
  );
}

/** The timers of questions that wait no more: they were closed just now, or what asked them is over. */
export function disarmed(questions: Iterable<InterruptRow>): readonly TimerChange[] {
  const changes: TimerChange[] = [];
  for (const { id, step, expiresAt } of questions)
    if (expiresAt !== undefined) changes.push({ drop: { id, generation: step } });
  return changes;
}

/** What the asking node gets, and who answers too late, when a question was closed without an answer. */
export function expired(session: Session, row: InterruptRow): StatewrightError {
  const { within } = session;
  const { id, key, node, raisedAt, expiresAt, expiredAt } = row;
  return new StatewrightError("interrupt_expired", {
    what: `the question "${key}" of the node "${node}" has expired: nobody answered in time`,
    next: "Declare what is then taken with onExpire, catch this in the node, or fork from before the question to ask again",
    place: placeOf(session, { node: within === undefined ? node : node.slice(nodesOf(within).length + 1) }),
    details: { id, key, raisedAt, expiresAt, expiredAt },
  });
}
