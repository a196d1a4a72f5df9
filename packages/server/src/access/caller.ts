/** Callers of a server, and the actions that they may have the right to. */

/** Who calls. Only `authenticate` makes callers: nothing of a body or of another header changes one. */
export interface Caller {
  /** Id of the user or program, 1 to 128 of `A-Z a-z 0-9 _ . : @ -`. */
  readonly id: string;
  /** Tenant whose threads the caller reaches, 1 to 40 of `A-Z a-z 0-9 _ -`. */
  readonly tenant: string;
  /** Rights such as `admin`. Default: none. */
  readonly scopes?: readonly string[];
  /** Verified claims for `authorize` and `contextOf`. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

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
