/** Session: the run of a process on a single branch of a thread, in parts. A function takes the parts that it uses. */
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EventEmitter } from "../events/events.ts";
import type { EventInbox } from "./inbox/event-inbox.ts";
import type { Inbox, InboxBuffer } from "./inbox/inbox.ts";
import type { Journal } from "./parts/journal.ts";
import type { Position } from "./parts/position.ts";
import type { Progress } from "./parts/progress.ts";
import type { RunEnvironment } from "./parts/run-environment.ts";
import type { Signals } from "./parts/signals.ts";

/** Session of an active run or inner graph. */
export interface Session {
  readonly env: RunEnvironment;
  readonly position: Position;
  readonly progress: Progress;
  readonly events: EventEmitter;
  readonly journal: Journal;
  readonly signals: Signals;
  readonly lineage: Lineage;
  readonly inboxes: Inboxes;
}

/** Lineage of a session: the session of the parent graph, and the sessions of inner graphs. */
export interface Lineage {
  /** Session of the parent graph, and the parent task of this inner graph. */
  readonly parent: { readonly session: Session; readonly task: Task } | undefined;
  /**
   * Sessions of inner graphs in this process, by namespace: the next attempt continues where the last attempt
   * stopped.
   */
  readonly innerSessions: Map<string, Session>;
}

/** Parts of a new session; the emitter and the journal share the environment and the nesting. */
interface SessionParts extends Omit<Session, "events" | "journal"> {
  readonly events: Pick<EventEmitter, "stream" | "sequence">;
  readonly journal: Pick<Journal, "saved" | "longTerm" | "outcomes" | "ledger">;
}

/** Creates a session from its parts. */
export function createSession({ events, journal, ...parts }: SessionParts): Session {
  const { world, codec, redactor } = parts.env;
  const { stream, sequence } = events;
  const { saved, longTerm, outcomes, ledger } = journal;
  return {
    ...parts,
    events: { stream, sequence, world, branch: parts.position.run.branch, nesting: parts.position.nesting },
    journal: { saved, longTerm, outcomes, ledger, world, codec, redactor },
  };
}

/** Inboxes of a session: the inbox of the thread, and the mailbox of the run handle. */
interface Inboxes {
  /** Inbox of the run; shared with inner graphs. */
  readonly inbox: Inbox;
  /** Events for a durable machine. */
  readonly events: EventInbox;
  /** Mailbox of the handle that started the run. */
  readonly mailbox: InboxBuffer | undefined;
}
