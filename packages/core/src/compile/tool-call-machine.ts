/**
 * Lifecycle of a tool call as a machine: received → resolved → validated → admitted → started → before → executing ⇄
 * retryWait, or waitingHuman → after → formatted → persisted → answered. Rejected, skipped and cancelled calls also
 * pass the after hooks, so that redaction and audit cannot be bypassed, and end in `answered`. A call without an
 * artifact store goes from formatted to answered.
 */
import { type AnyStateMachine, createMachine } from "xstate";

/** States of a call, in order of the first possible visit. */
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

/** Events of a tool call. */
export type ToolCallEvent =
  | "call.resolved"
  | "call.validated"
  | "call.admitted"
  | "call.started"
  | "call.checking"
  | "call.allowed"
  | "call.interrupted"
  | "call.decided"
  | "call.failed_attempt"
  | "call.retried"
  | "call.finished"
  | "call.rejected"
  | "call.skipped"
  | "call.cancelled"
  | "call.reviewed"
  | "call.persisted"
  | "call.answered";

/** A run may be cancelled in every state where a call waits: for a slot, a hook, a person or the tool. */
const cancelTransition = { "call.cancelled": "cancelled" };

let machine: AnyStateMachine | undefined;

/** Returns the machine of every tool call. Created at the first call: a process without tools does not need it. */
export function getToolCallMachine(): AnyStateMachine {
  machine ??= createMachine(definition);
  return machine;
}

const definition = {
  id: "tool-call",
  initial: "received",
  states: {
    received: {
      on: { "call.resolved": "resolved", "call.rejected": "rejected", "call.skipped": "skipped", ...cancelTransition },
    },
    resolved: { on: { "call.validated": "validated", "call.rejected": "rejected" } },
    validated: { on: { "call.admitted": "admitted", "call.rejected": "rejected" } },
    admitted: { on: { "call.started": "started" } },
    started: { on: { "call.checking": "before" } },
    before: {
      on: {
        "call.allowed": "executing",
        "call.interrupted": "waitingHuman",
        "call.finished": "after",
        ...cancelTransition,
      },
    },
    waitingHuman: { on: { "call.decided": "executing", "call.finished": "after", ...cancelTransition } },
    executing: { on: { "call.failed_attempt": "retryWait", "call.finished": "after", ...cancelTransition } },
    retryWait: { on: { "call.retried": "executing", ...cancelTransition } },
    rejected: { on: { "call.finished": "after" } },
    skipped: { on: { "call.finished": "after" } },
    cancelled: { on: { "call.finished": "after" } },
    after: { on: { "call.reviewed": "formatted" } },
    formatted: { on: { "call.persisted": "persisted", "call.answered": "answered" } },
    persisted: { on: { "call.answered": "answered" } },
    answered: { type: "final" },
  },
} as const;
