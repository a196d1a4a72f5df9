/** Bodies of the native API, as clients write and read them. Times are ISO 8601 in UTC. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export type RunStatus =
  | "queued"
  | "running"
  | "waiting"
  | "paused"
  | "parked"
  | "done"
  | "failed"
  | "cancelled"
  | "crashed";
/** Handling of an input on a thread with an unfinished run. */
export type OnBusy = "reject" | "enqueue" | "cancel" | "rollback";

export interface Page<Item> {
  readonly data: readonly Item[];
  /** Cursor of the next page: its `before`. Absent on the last page. */
  readonly next?: string | undefined;
}

export interface PageQuery {
  /** `next` of the previous page. */
  readonly before?: string | undefined;
  /** 1 to 200. Default 50. */
  readonly limit?: number | undefined;
}

export interface Thread {
  readonly id: string;
  readonly graph?: string | undefined;
  readonly status?: RunStatus | undefined;
  readonly title?: string | undefined;
  readonly metadata: JsonObject;
  readonly branch: string;
  readonly owner?: string | undefined;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface ThreadQuery extends PageQuery {
  readonly graph?: string | undefined;
  readonly status?: readonly RunStatus[] | undefined;
  /** Each key must have this value. */
  readonly metadata?: Readonly<Record<string, string | number | boolean | null>> | undefined;
  /** Beginning of an id, name of a graph, or a value of the metadata. */
  readonly q?: string | undefined;
}

export interface NewThread {
  /** Default: a new id. */
  readonly id?: string | undefined;
  readonly title?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  /** Default `throw`. */
  readonly ifExists?: "throw" | "keep" | undefined;
}

export interface ThreadPatch {
  readonly title?: string | null | undefined;
  /** A key with the value null is removed. */
  readonly metadata?: JsonObject | undefined;
}

export interface Run {
  readonly id: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly status: RunStatus;
  readonly attempt: number;
  readonly metadata: JsonObject;
  readonly owner?: string | undefined;
  readonly createdAt: string;
  readonly endedAt?: string | undefined;
  /** Failure of a failed or parked run. */
  readonly error?: { readonly code: string; readonly title: string } | undefined;
}

export interface RunQuery extends PageQuery {
  readonly status?: readonly RunStatus[] | undefined;
}

export interface Interrupt {
  readonly id: string;
  readonly key: string;
  readonly node: string;
  readonly payload?: Json | undefined;
  /** JSON Schema of the answer. */
  readonly schema?: Json | undefined;
  readonly expiresAt?: string | undefined;
}

export interface AnsweredInterrupt extends Interrupt {
  readonly answer?: Json | undefined;
  readonly answeredAt?: string | undefined;
  readonly answeredBy?: string | undefined;
  readonly expiredAt?: string | undefined;
}

/** Open interrupt of a thread, in the list of all threads. */
export interface WaitingInterrupt extends Interrupt {
  readonly thread: string;
  readonly branch: string;
  readonly run: string;
  readonly graph: string;
  readonly raisedAt: string;
}

export interface State<Values = JsonObject> {
  readonly thread: string;
  readonly graph: string;
  readonly checkpoint: number;
  readonly parent?: number | undefined;
  readonly branch: string;
  readonly step: number;
  readonly source: string;
  /** Nodes that run next; empty at the end. */
  readonly next: readonly string[];
  readonly values: Values;
  readonly interrupts: readonly Interrupt[];
  readonly answered: readonly AnsweredInterrupt[];
  readonly status?: RunStatus | undefined;
  readonly run?: string | undefined;
  readonly at: string;
}

export interface StatePlace {
  /** Checkpoint. Default: the newest of the branch. */
  readonly at?: number | undefined;
  readonly branch?: string | undefined;
  /** Path of an inner graph. */
  readonly nesting?: string | undefined;
  /** Channels to read. Default: all. */
  readonly select?: readonly string[] | undefined;
}

/** Run at rest, with its state. */
export interface Outcome<Values = JsonObject> {
  readonly run: Run;
  readonly state?: State<Values> | undefined;
}

export interface Branch {
  readonly name: string;
  readonly from?: number | undefined;
  readonly head?: number | undefined;
}

export interface WrittenState<Values = JsonObject> {
  readonly checkpoint: number;
  readonly branch: string;
  readonly state: State<Values>;
}

export interface StateWrite {
  readonly changes: JsonObject;
  /** Node in whose place the changes are made. */
  readonly as?: string | undefined;
  readonly branch?: string | undefined;
}

export interface NewFork {
  readonly at: number;
  readonly name?: string | undefined;
  readonly changes?: JsonObject | undefined;
  readonly as?: string | undefined;
  readonly moveHead?: boolean | undefined;
}

export interface GraphSummary {
  readonly name: string;
  readonly version: number;
  readonly description?: string | undefined;
  /** Fingerprint of channels, nodes, edges and tools. */
  readonly shape: string;
}

export type UserBlock =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "image" | "file";
      readonly mimeType: string;
      readonly data?: string | undefined;
      readonly url?: string | undefined;
      readonly uploaded?: Readonly<Record<string, string>> | undefined;
      readonly name?: string | undefined;
    };

export interface UserMessage {
  readonly role: "user";
  readonly id?: string | undefined;
  readonly content: string | readonly UserBlock[];
}

/** Views of the events of a thread. */
export type EventView = "messages" | "tools" | "steps" | "tasks" | "custom" | "all";

/**
 * Event of a thread. `type` says what the other fields are; the page about streaming lists them. After `snapshot` a
 * reader drops the open messages that it shows, and shows those of the snapshot.
 */
export interface ThreadEvent {
  readonly type: string;
  /** Number of the newest durable event: pass it as `after` to continue. */
  readonly seq: number;
  readonly at: string;
  readonly branch: string;
  readonly [field: string]: unknown;
}

/** Server: its version, protocols, limits and role. */
export interface Info {
  readonly name: string;
  readonly version: string;
  readonly role: "serve" | "readOnly";
  readonly protocols: readonly { readonly name: string; readonly path: string }[];
  readonly limits: Readonly<Record<string, number>>;
}

/** Graph with its machine, diagram and JSON Schemas. */
export interface GraphDetails extends GraphSummary {
  readonly machine: Json;
  readonly mermaid: string;
  readonly schemas: {
    readonly input?: Json | undefined;
    readonly state?: Json | undefined;
    readonly output?: Json | undefined;
    readonly answers: Readonly<Record<string, Json>>;
  };
  readonly inputChannels: readonly string[];
  readonly nodes: readonly string[];
}

/** Difference of two checkpoints: operations by RFC 6902. */
export interface Diff {
  readonly from: number;
  readonly to: number;
  readonly patch: readonly JsonObject[];
}

/** Large output of a tool call. */
export interface Artifact {
  readonly key: string;
  readonly handle: string;
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: number;
  readonly isText: boolean;
  readonly tool: string;
  readonly run: string;
  readonly callId: string;
  readonly at: string;
}

/** Uploaded file: put its `block` into the content of a message of the thread. */
export interface UploadedFile {
  readonly id: string;
  readonly name?: string | undefined;
  readonly mimeType: string;
  readonly bytes: number;
  readonly expiresAt: string;
  readonly block: UserBlock;
}

/** Times of a schedule: a cron pattern, or a distance. */
export interface Calendar {
  readonly cron?: string | undefined;
  readonly timeZone?: string | undefined;
  readonly everyMs?: number | undefined;
  readonly until?: string | undefined;
}

export interface NewSchedule extends Calendar {
  /** Default: a new id. */
  readonly id?: string | undefined;
  readonly graph: string;
  /** Thread of all runs. Default: a new thread for each run. */
  readonly thread?: string | undefined;
  readonly input?: Json | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly onBusy?: OnBusy | undefined;
  readonly missed?: "skip" | "last" | "all" | undefined;
}

export interface Schedule extends Calendar {
  readonly id: string;
  readonly status: "active" | "paused" | "ended";
  readonly graph: string;
  readonly thread?: string | undefined;
  readonly missed: "skip" | "last" | "all";
  readonly onBusy: OnBusy;
  readonly metadata: JsonObject;
  readonly owner?: string | undefined;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly pausedAt?: string | undefined;
  readonly nextAt?: string | undefined;
  /** Newest run, or the reason for none. */
  readonly last?:
    | {
        readonly slot: string;
        readonly at: string;
        readonly thread?: string | undefined;
        readonly run?: string | undefined;
        readonly skipped?: string | undefined;
      }
    | undefined;
}

/** Act on all runs of the tenant that match a filter. */
export interface BulkRequest {
  readonly action: "cancel" | "resume" | "retry" | "delete";
  readonly filter: {
    readonly graph?: string | undefined;
    readonly thread?: string | undefined;
    readonly status?: RunStatus | readonly RunStatus[] | undefined;
    readonly owner?: string | undefined;
    readonly metadata?: Readonly<Record<string, string | number | boolean | null>> | undefined;
    readonly since?: string | undefined;
    readonly until?: string | undefined;
  };
  /** Counts the runs and changes nothing. */
  readonly dryRun?: boolean | undefined;
  readonly reason?: string | undefined;
}

export interface BulkReport {
  readonly matched: number;
  readonly done: number;
  readonly skipped: number;
  readonly failed: number;
  readonly isComplete: boolean;
  readonly errors: readonly {
    readonly thread: string;
    readonly run?: string | undefined;
    readonly code: string;
    readonly title: string;
  }[];
}

/** Change of the open interrupts: all that are open after each connect, then each that opens or closes. */
export type InterruptChange =
  | { readonly type: "snapshot"; readonly interrupts: Page<WaitingInterrupt> }
  | { readonly type: "opened"; readonly interrupt: WaitingInterrupt }
  | { readonly type: "closed"; readonly id: string; readonly thread: string };
