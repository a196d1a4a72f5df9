/**
 * Durable starts of `once` effects. The start is committed before the effect begins, so that a crash leaves evidence of
 * every effect that may have happened.
 */

import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { type EffectRow, isInFlight } from "../../checkpoint/journal.ts";
import type { Journal } from "../session/parts/journal.ts";
import {
  type ActiveThread,
  commitEffect,
  type Persistence,
  type PlannedStart,
  recordEffect,
  toJournalKey,
  toRowKey,
  trackOnceEffect,
} from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import { isSuspension } from "../session/preemption.ts";

/** Start of a `once` effect. */
interface OnceStart<Value> {
  readonly row: EffectRow;
  /** Begins the effect, in the turn of the event loop in which its start becomes durable. */
  readonly begin: () => Value | Promise<Value>;
  /** Returns true when the caller has abandoned the effect. */
  readonly isAbandoned?: (() => boolean) | undefined;
  /** Returns the value of an abandoned effect. Without `onAbandoned`, the promise of an abandoned effect stays pending. */
  readonly onAbandoned?: (() => Value) | undefined;
}

/**
 * Makes the start of a `once` effect durable, then begins the effect. An effect abandoned before its start is durable
 * does not begin, and its row records the cancelled start. Rejects when the start cannot be saved.
 */
export function commitStart<Value>(
  world: World,
  saved: Persistence,
  { row, begin, isAbandoned, onAbandoned }: OnceStart<Value>,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const start = new Promise<void>((resolveStart) => {
      commitEffect(saved, {
        row,
        onCommitted: (failure) => {
          resolveStart();
          saved.starts.delete(start);
          if (failure !== undefined) return reject(failure);
          const stop = findStop(saved.thread);
          if (stop !== undefined || isAbandoned?.() === true) recordCancelledStart(world, saved, row);
          if (stop !== undefined) return reject(stop);
          if (isAbandoned?.() !== true) resolve(trackBegin(saved, begin));
          else if (onAbandoned !== undefined) resolve(onAbandoned());
        },
      });
    });
    saved.starts.add(start);
  });
}

/**
 * Begins an effect whose start is durable already. An effect of a run that stops now does not begin, and its row records
 * the cancelled start.
 */
export async function beginPlanned<Value>(
  world: World,
  saved: Persistence,
  { row, begin }: Pick<OnceStart<Value>, "row" | "begin">,
): Promise<Value> {
  saved.rows.set(toRowKey(row), row);
  const stop = findStop(saved.thread);
  if (stop === undefined) return trackBegin(saved, begin);
  recordCancelledStart(world, saved, row);
  throw stop;
}

/**
 * Takes the planned start of an effect, which is then not in the journal of this process: the effect begins, or
 * `cancelUnusedStart` marks the start as not performed. Undefined for an effect without a planned start.
 */
export function takePlannedStart({ saved }: Journal, place: string): PlannedStart | undefined {
  const planned = saved?.plannedStarts.get(place);
  if (saved === undefined || planned === undefined) return undefined;
  saved.plannedStarts.delete(place);
  saved.rows.delete(place);
  return planned;
}

/** Marks a taken start as not performed, unless the journal has a row of its effect by now. */
export function cancelUnusedStart({ saved, world }: Journal, { row }: PlannedStart): void {
  if (saved !== undefined && !saved.rows.has(toRowKey(row))) recordCancelledStart(world, saved, row);
}

/** Marks the planned starts that no call has taken as not performed. */
export function cancelPlannedStarts({ saved, world }: Journal): void {
  if (saved === undefined || saved.plannedStarts.size === 0) return;
  for (const { row } of saved.plannedStarts.values()) recordCancelledStart(world, saved, row);
  saved.plannedStarts.clear();
}

function trackBegin<Value>({ thread }: Persistence, begin: () => Value | Promise<Value>): Value | Promise<Value> {
  const begun = begin();
  return begun instanceof Promise ? trackOnceEffect(thread.onceEffects, begun) : begun;
}

/** Returns the reason why no effect may begin: a refused write, or an abort that leaves pending work to a resume. */
function findStop({ failure, abort: { signal } }: ActiveThread): unknown {
  return failure ?? (isSuspension(signal.reason) ? signal.reason : undefined);
}

/** Marks an effect as not performed: the caller abandoned the effect while its start became durable. */
function recordCancelledStart(world: World, saved: Persistence, row: EffectRow): void {
  recordEffect(saved, {
    row: { ...row, endedAt: world.clock.now() },
  });
}

/** Marks a possibly recorded start as not performed. The effect waits for an interrupt and starts after the answer. */
export function cancelStart(position: Position, journal: Journal, task: Task, key: string): void {
  const { saved } = journal;
  const row = saved?.rows.get(toJournalKey(position.step, task.id, key));
  if (saved !== undefined && row !== undefined && isInFlight(row)) recordCancelledStart(journal.world, saved, row);
}

/** Waits until every start write has finished, so that cancelled starts are written before the thread is released. */
export async function waitForStarts({ saved }: Journal): Promise<void> {
  if (saved !== undefined && saved.starts.size > 0) await Promise.all(saved.starts);
}
