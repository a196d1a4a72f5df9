/** Statuses of runs and threads as LangGraph clients know them. */
import type { RunStatus } from "@statewright/core";

export type WireRunStatus = "pending" | "running" | "error" | "success" | "interrupted";
export type WireThreadStatus = "idle" | "busy" | "interrupted" | "error";

const statuses: Readonly<Record<RunStatus, readonly [run: WireRunStatus, thread: WireThreadStatus]>> = {
  queued: ["pending", "busy"],
  running: ["running", "busy"],
  crashed: ["running", "busy"],
  waiting: ["interrupted", "interrupted"],
  paused: ["interrupted", "idle"],
  failed: ["error", "error"],
  parked: ["error", "error"],
  cancelled: ["interrupted", "idle"],
  done: ["success", "idle"],
};

/** Returns the status of a run on the wire. */
export function toWireRunStatus(status: RunStatus): WireRunStatus {
  return statuses[status][0];
}

/** Returns the status of a thread whose newest run has this status. */
export function toWireThreadStatus(status: RunStatus | undefined): WireThreadStatus {
  return status === undefined ? "idle" : statuses[status][1];
}

/** Lists the statuses of runs that a wire status of a run stands for; empty for an unknown one. */
export function listRunStatuses(wire: string): readonly RunStatus[] {
  return listStatuses(0, wire);
}

/** Lists the statuses of newest runs that a wire status of a thread stands for; empty for an unknown one. */
export function listThreadStatuses(wire: string): readonly RunStatus[] {
  return listStatuses(1, wire);
}

function listStatuses(index: 0 | 1, wire: string): readonly RunStatus[] {
  return allStatuses.filter((status) => statuses[status][index] === wire);
}

const allStatuses: readonly RunStatus[] = [
  "queued",
  "running",
  "crashed",
  "waiting",
  "paused",
  "failed",
  "parked",
  "cancelled",
  "done",
];
