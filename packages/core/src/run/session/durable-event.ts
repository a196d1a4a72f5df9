/**
 * Durable events of a run (rule E58). A checkpoint is the durable event of a superstep; every other durable event is
 * an event row, committed with the change that it reports and emitted after the commit. The start of a run and the
 * continuation after answers have events of their own.
 */

import type { EventRow } from "../../checkpoint/event.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { isOwnerLost } from "../../checkpoint/previous-owner.ts";
import type { TimerChange } from "../../checkpoint/timer.ts";
import { encodeWrapper } from "../../state/codec.ts";
import { type EventEmitter, emit } from "../events/events.ts";
import type { RunEventBody } from "../events/run-event.ts";
import type { Journal } from "./parts/journal.ts";
import { awaitCommit, type Persistence } from "./parts/persistence.ts";
import type { Session } from "./session.ts";

/** Body of a durable event without a checkpoint. */
export type DurableEventBody = Extract<
  RunEventBody,
  {
    readonly type:
      | "run.started"
      | "run.waiting"
      | "run.paused"
      | "run.failed"
      | "run.cancelled"
      | "run.completed"
      | "event.received"
      | "event.refused";
  }
>;

/**
 * A durable event before its commit: the row for the write, and the function that emits the event after the commit.
 */
export interface DurableEvent {
  readonly rows: readonly EventRow[];
  readonly emit: () => void;
  /** Emits the event after a failed save, under the sequence number of the latest durable event. */
  readonly emitUnsaved: () => void;
}

/** Creates the next durable event of the thread. */
export function createDurableEvent(events: EventEmitter, journal: Journal, body: DurableEventBody): DurableEvent {
  const { sequence, world } = events;
  const { saved } = journal;
  const seq = sequence.nextSeq;
  const at = world.clock.now();
  sequence.nextSeq += 1;
  return {
    rows: saved === undefined ? [] : [createEventRow(saved, body, { seq, at })],
    emit: () => emit(events, body, { seq, at }),
    emitUnsaved: () => emit(events, body),
  };
}

function createEventRow(
  { codec, thread: { run } }: Persistence,
  body: DurableEventBody,
  place: Pick<EventRow, "seq" | "at">,
): EventRow {
  const text = encodeWrapper(codec, body, `the event ${body.type}`);
  return { ...place, branch: run.branch, text };
}

/** Creates the event that finishes a run for now. Reuses sequence numbers reserved for writes that failed. */
export function createFinalEvent(events: EventEmitter, journal: Journal, body: DurableEventBody): DurableEvent {
  events.sequence.nextSeq = events.sequence.durableSeq + 1;
  return createDurableEvent(events, journal, body);
}

type StartSession = Pick<Session, "position" | "events" | "journal">;

/** Creates the event `run.started`. */
export function createStartEvent({ position: { run, plan }, events, journal }: StartSession): DurableEvent {
  const claim = journal.saved?.claim;
  const before = claim?.writtenBy;
  const isOtherVersion = before !== undefined && (before.version !== plan.graph.version || before.shape !== plan.shape);
  return createDurableEvent(events, journal, {
    type: "run.started",
    run: run.id,
    thread: run.thread,
    branch: run.branch,
    graph: run.graph,
    attempt: run.attempt,
    recovered: (claim !== undefined && isOwnerLost(claim.previousOwner)) || claim?.run?.status === "running",
    ...(isOtherVersion ? { writtenBy: { version: before.version, shape: before.shape } } : {}),
  });
}

/** Records in the store, then emits, that a run continues with these answered interrupts. */
export async function recordContinuation(
  session: StartSession,
  {
    interrupts,
    timers,
  }: { readonly interrupts: readonly InterruptRow[]; readonly timers: readonly TimerChange[] | undefined },
): Promise<void> {
  const { saved } = session.journal;
  const event = createStartEvent(session);
  if (saved !== undefined)
    await awaitCommit(saved, { run: session.position.run, interrupts, timers, events: event.rows });
  event.emit();
}
