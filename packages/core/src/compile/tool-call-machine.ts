/**
 * The life of one tool call as a machine: received → resolved → validated → admitted → started → before →
 * executing ⇄ retryWait, or waitingHuman → after → formatted → persisted → answered. A call that is refused, skipped or
 * cancelled passes the after hooks too, so that redaction and audit cannot be avoided, and ends answered like every other.
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

const ends = { "call.skipped": "skipped", "call.cancelled": "cancelled" };

/** The machine that every call runs through. */
export const toolCallMachine: AnyStateMachine = createMachine({
  id: "tool-call",
  initial: "received",
  states: {
    received: { on: { "call.resolved": "resolved", "call.rejected": "rejected", ...ends } },
    resolved: { on: { "call.validated": "validated", "call.rejected": "rejected", ...ends } },
    validated: { on: { "call.admitted": "admitted", "call.rejected": "rejected", ...ends } },
    admitted: { on: { "call.started": "started", ...ends } },
    started: { on: { "call.checking": "before", ...ends } },
    before: { on: { "call.allowed": "executing", "call.asked": "waitingHuman", "call.settled": "after", ...ends } },
    waitingHuman: { on: { "call.decided": "executing", "call.settled": "after", ...ends } },
    executing: { on: { "call.failed_attempt": "retryWait", "call.settled": "after", ...ends } },
    retryWait: { on: { "call.retried": "executing", ...ends } },
    rejected: { on: { "call.settled": "after" } },
    skipped: { on: { "call.settled": "after" } },
    cancelled: { on: { "call.settled": "after" } },
    after: { on: { "call.reviewed": "formatted" } },
    formatted: { on: { "call.persisted": "persisted" } },
    persisted: { on: { "call.answered": "answered" } },
    answered: { type: "final" },
  },
});
