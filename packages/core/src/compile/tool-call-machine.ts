/**
 * The life of one tool call as a machine: received → resolved → validated → admitted → started → before →
 * executing ⇄ retryWait, or waitingHuman → after → formatted → persisted → answered. A call that is refused, skipped or
 * cancelled passes the after hooks too, so that redaction and audit cannot be avoided, and ends answered like every other.
 * A call whose artifacts nobody keeps goes from formatted to answered.
 */
import { type AnyStateMachine, createMachine } from "xstate";

/** The states of a call, in the order of their first possible visit. */
export type ToolCallState =
  | "received"
  | "resolved"
  | "validated"
  | "admitted"
  | "started"
  | "before"
  | "waitingHuman"
  | "executing"
  | "retryWait"
  | "rejected"
  | "skipped"
  | "cancelled"
  | "after"
  | "formatted"
  | "persisted"
  | "answered";

/** What moves a call on. */
export type ToolCallEvent =
  | "call.resolved"
  | "call.validated"
  | "call.admitted"
  | "call.started"
  | "call.checking"
  | "call.allowed"
  | "call.asked"
  | "call.decided"
  | "call.failed_attempt"
  | "call.retried"
  | "call.settled"
  | "call.rejected"
  | "call.skipped"
  | "call.cancelled"
  | "call.reviewed"
  | "call.persisted"
  | "call.answered";

/** A run may be cancelled wherever a call waits for something: its turn, a hook, a person, its tool. */
const cancelled = { "call.cancelled": "cancelled" };

/** The machine that every call runs through. */
export const toolCallMachine: AnyStateMachine = createMachine({
  id: "tool-call",
  initial: "received",
  states: {
    received: {
      on: { "call.resolved": "resolved", "call.rejected": "rejected", "call.skipped": "skipped", ...cancelled },
    },
    resolved: { on: { "call.validated": "validated", "call.rejected": "rejected" } },
    validated: { on: { "call.admitted": "admitted", "call.rejected": "rejected" } },
    admitted: { on: { "call.started": "started" } },
    started: { on: { "call.checking": "before" } },
    before: {
      on: { "call.allowed": "executing", "call.asked": "waitingHuman", "call.settled": "after", ...cancelled },
    },
    waitingHuman: { on: { "call.decided": "executing", "call.settled": "after", ...cancelled } },
    executing: { on: { "call.failed_attempt": "retryWait", "call.settled": "after", ...cancelled } },
    retryWait: { on: { "call.retried": "executing", ...cancelled } },
    rejected: { on: { "call.settled": "after" } },
    skipped: { on: { "call.settled": "after" } },
    cancelled: { on: { "call.settled": "after" } },
    after: { on: { "call.reviewed": "formatted" } },
    formatted: { on: { "call.persisted": "persisted", "call.answered": "answered" } },
    persisted: { on: { "call.answered": "answered" } },
    answered: { type: "final" },
  },
});
