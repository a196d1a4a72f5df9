/** Actions of a server, and what a caller asks the right for. */
export type { Caller } from "@statewright/host/access";

/** All actions of a server. */
export const actions = [
  "graph.read",
  "thread.read",
  "thread.write",
  "thread.delete",
  "run.start",
  "run.answer",
  "run.cancel",
  "schedule.read",
  "schedule.write",
  "admin",
] as const;

/** Action of a request, for `authorize`. */
export type Action = (typeof actions)[number];

/** What a caller wants to do, and with what. */
export interface AccessRequest {
  readonly action: Action;
  /** Name of the graph, if known. */
  readonly graph?: string | undefined;
  /** Id of the thread as the caller knows it. */
  readonly thread?: string | undefined;
  readonly run?: string | undefined;
}
