/** Options of the acts of callers. */
import type { Engine, Json, RunEvent } from "@statewright/core";
import type { AccessRequest, Action, Caller } from "../access/caller.ts";
import type { WaitingLimits } from "../tape/waiting-events.ts";
import type { ScheduleSettings } from "./native/schedule-limits.ts";
import type { ThreadScope } from "./thread-ids.ts";

/** Decides whether a caller has the right to an action. */
export type Authorize = (caller: Caller, request: AccessRequest) => boolean | Promise<boolean>;

/**
 * Creates the context of a run from the caller who starts or continues it and from what the client asks for: the only
 * way of a request into the context. `asked` comes from the client and is checked by nothing.
 */
export type ContextOf = (
  caller: Caller,
  asked: Json | undefined,
  place: { readonly graph: string; readonly thread: string },
) => unknown;

/** Graph that a caller asks for through a protocol. */
export interface ExposureRequest {
  readonly graph: string;
  /** Name of the protocol, such as `langgraph`. */
  readonly protocol: string;
  readonly caller: Caller;
}

/**
 * Narrows the graphs: protocols by the name of a graph, where other graphs are exposed to all; or a function. A graph
 * that is not exposed does not exist, nor do its threads.
 */
export type Expose = Readonly<Record<string, readonly string[]>> | ((request: ExposureRequest) => boolean);

/** Record of a change, without any content. */
export interface AuditEntry {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly caller: string;
  readonly tenant: string;
  readonly protocol: string;
  readonly action: Action;
  /** Name of the act, such as `startRun`. */
  readonly act: string;
  readonly thread?: string | undefined;
  readonly run?: string | undefined;
  /** `done`, or the code of the failure. */
  readonly result: string;
}

/** Options of `createServices`. */
export interface ServiceOptions {
  /** Engine whose threads and graphs are served. Its functions are not called after it has stopped. */
  readonly engine: Engine;
  /** Decides about each action. Default: every action but `admin`, which always needs the scope `admin`. */
  readonly authorize?: Authorize | undefined;
  /** Creates the context of a run. Default: the function `context` of the engine, with a row of this caller. */
  readonly contextOf?: ContextOf | undefined;
  /** Narrows the graphs of a protocol or of a caller. Default: all graphs of the engine. */
  readonly expose?: Expose | undefined;
  /** Threads that a caller reaches: of its `tenant` (default), or only of the `caller` itself. */
  readonly scope?: ThreadScope | undefined;
  /** `serve` (default), or `readOnly`: every change is refused with `read_only`. */
  readonly role?: "serve" | "readOnly" | undefined;
  /**
   * Cuts an event for a caller; undefined leaves the event out. An event for which the function throws is left out and
   * logged. Default: no cut beside private channels and errors.
   */
  readonly redact?: ((event: RunEvent, caller: Caller) => RunEvent | undefined) | undefined;
  /** Shows messages, causes and places of failures. Default false: code and title only. */
  readonly exposeErrors?: boolean | undefined;
  /** Limits of the schedules that callers make, and the rights of their makers. Default: see `ScheduleSettings`. */
  readonly schedules?: ScheduleSettings | undefined;
  /**
   * Secret of at least 16 characters that seals the cursors of pages. Default: a random key, kept in the store for all
   * its processes.
   */
  readonly cursorKey?: string | undefined;
  /** Limits of the events that wait for a slow reader. Default: 5,000 events and 1 MiB. */
  readonly waiting?: WaitingLimits | undefined;
  /** Receives each change after it was done or refused. */
  readonly onAudit?: ((entry: AuditEntry) => void) | undefined;
}
