/** The durable event `run.started`: a new run, or a run that continues. */

import type { InterruptRow } from "../../checkpoint/journal.ts";
import { isOwnerLost } from "../../checkpoint/previous-owner.ts";
import type { TimerChange } from "../../checkpoint/timer.ts";
import { createDurableEvent, type DurableEvent } from "../session/durable-event.ts";
import { awaitCommit } from "../session/parts/persistence.ts";
import type { Session } from "../session/session.ts";

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
