/**
 * Durable events (rule E58): a superstep is told by its checkpoint; what else becomes of a run is a row, written with what
 * makes it true and told when that is durable.
 */
import type { EventRow } from "../../checkpoint/event.ts";
import { encodeAround } from "../../state/codec.ts";
import type { RunEventBody } from "../events/events.ts";
import { emit, type Session } from "./session.ts";

/** An event that is kept without a checkpoint. */
export type FactBody = Extract<
  RunEventBody,
  { readonly type: "run.started" | "run.waiting" | "run.paused" | "run.failed" | "run.cancelled" | "run.completed" }
>;

/** A fact about to be saved: its row, for the write that makes it true, and what tells it then. */
export interface Fact {
  readonly rows: readonly EventRow[];
  readonly tell: () => void;
  /** Tell it though it could not be saved: under the number of the newest durable event, since its own is not taken. */
  readonly tellUnsaved: () => void;
}

/** The next durable event of the thread. */
export function factOf(session: Session, body: FactBody): Fact {
  const { sequence, saved, world, run } = session;
  const seq = sequence.nextSeq;
  const at = world.clock.now();
  sequence.nextSeq += 1;
  const text = saved && encodeAround(saved.codec, body, `the event ${body.type}`);
  return {
    rows: text === undefined ? [] : [{ seq, branch: run.branch, at, text }],
    tell: () => emit(session, body, { seq, at }),
    tellUnsaved: () => emit(session, body),
  };
}

/** The fact that ends a run for now. Numbers that were meant for what could not be saved are free again. */
export function endingOf(session: Session, body: FactBody): Fact {
  session.sequence.nextSeq = session.sequence.durableSeq + 1;
  return factOf(session, body);
}
