/** Status of a run in the words of each protocol. */
import type { RunStatus } from "@statewright/core";

/** Words of the protocols for a status. */
export interface StatusWords {
  readonly langgraphRun: "pending" | "running" | "interrupted" | "error" | "success";
  readonly langgraphThread: "idle" | "busy" | "interrupted" | "error";
  /** End of the AI SDK message stream; undefined while the stream waits or goes on. */
  readonly aiSdk: "tool-calls" | "other" | "error" | "abort" | "stop" | undefined;
  /** True for a status in which the run neither works nor waits for its turn: a stream of the run ends. */
  readonly isResting: boolean;
}

/** Words for every status of a run. */
export const statusTable: Readonly<Record<RunStatus, StatusWords>> = {
  queued: { langgraphRun: "pending", langgraphThread: "busy", aiSdk: undefined, isResting: false },
  running: { langgraphRun: "running", langgraphThread: "busy", aiSdk: undefined, isResting: false },
  crashed: { langgraphRun: "running", langgraphThread: "busy", aiSdk: undefined, isResting: false },
  waiting: { langgraphRun: "interrupted", langgraphThread: "interrupted", aiSdk: "tool-calls", isResting: true },
  paused: { langgraphRun: "interrupted", langgraphThread: "idle", aiSdk: "other", isResting: true },
  failed: { langgraphRun: "error", langgraphThread: "error", aiSdk: "error", isResting: true },
  parked: { langgraphRun: "error", langgraphThread: "error", aiSdk: "error", isResting: true },
  cancelled: { langgraphRun: "interrupted", langgraphThread: "idle", aiSdk: "abort", isResting: true },
  done: { langgraphRun: "success", langgraphThread: "idle", aiSdk: "stop", isResting: true },
};
