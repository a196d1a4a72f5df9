/**
 * Expiry of interrupts. An open interrupt with an expiry has a timer row. A resume after the expiry closes the
 * interrupt before any answer is read: with the declared `onExpire` answer, or without an answer, and then its node
 * gets an error.
 */

import { StatewrightError } from "../../../base/errors.ts";
import { latestTime } from "../../../base/options.ts";
import type { World } from "../../../base/world.ts";
import { type InterruptRow, isOpen } from "../../../checkpoint/journal.ts";
import type { TimerChange } from "../../../checkpoint/timer.ts";
import type { Codec } from "../../../state/codec.ts";
import type { Expiry } from "../../../tool/policy/interrupt.ts";
import { formatNestingPath } from "../parts/nesting.ts";
import type { Persistence } from "../parts/persistence.ts";
import type { Position } from "../parts/position.ts";
import { getErrorPlace } from "../parts/position.ts";

/** Returns the expiry fields of a new interrupt row. */
export function getExpiryFields(
  codec: Codec,
  expiry: Expiry | undefined,
  key: string,
  raisedAt: number,
): Pick<InterruptRow, "expiresAt" | "onExpire"> {
  if (expiry === undefined) return noExpiry;
  const { ms, answer } = expiry;
  const expiresAt = Math.min(Math.ceil(raisedAt + ms), latestTime);
  if (answer === undefined) return { expiresAt };
  return { expiresAt, onExpire: codec.encode(answer.value, `the onExpire of the interrupt "${key}"`) };
}

const noExpiry: Pick<InterruptRow, "expiresAt" | "onExpire"> = {};

/** Removes the expiry of an open interrupt whose timer has not started. */
export function removeExpiry({ expiresAt: _, onExpire: __, ...row }: InterruptRow): InterruptRow {
  return row;
}

/** Closes the interrupts whose expiry has passed. Returns the closed rows. */
export function expireOverdue(world: World, { interrupts }: Persistence): readonly InterruptRow[] {
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

/** Creates the timers of newly waiting interrupts. */
export function armTimers(interrupts: readonly InterruptRow[]): readonly TimerChange[] {
  return interrupts.flatMap(({ id, key, step, expiresAt }) =>
    expiresAt === undefined ? [] : [{ arm: { id, kind: "expiry", generation: step, dueAt: expiresAt, about: key } }],
  );
}

/** Drops the timers of interrupts that no longer wait: closed just now, or raised by a finished task. */
export function disarmTimers(interrupts: Iterable<InterruptRow>): readonly TimerChange[] {
  const changes: TimerChange[] = [];
  for (const { id, step, expiresAt } of interrupts)
    if (expiresAt !== undefined) changes.push({ drop: { id, generation: step } });
  return changes;
}

/**
 * Creates the error of an interrupt that expired without an answer, for the node that raised the interrupt and for a
 * late answer.
 */
export function createExpiredError(position: Position, row: InterruptRow): StatewrightError {
  const { nesting } = position;
  const { id, key, node, raisedAt, expiresAt, expiredAt } = row;
  return new StatewrightError("interrupt_expired", {
    what: `the interrupt "${key}" of node "${node}" expired without an answer`,
    next: "Add an onExpire answer, catch this error in the node, or fork from before the interrupt to raise it again",
    place: getErrorPlace(position, {
      node: nesting === undefined ? node : node.slice(formatNestingPath(nesting).length + 1),
    }),
    details: { id, key, raisedAt, expiresAt, expiredAt },
  });
}
