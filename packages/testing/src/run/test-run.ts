/** Run controlled by a test: status, stop conditions, and the functions that advance the run. */
import type {
  Answers,
  Graph,
  GraphMachine,
  GraphTypes,
  InboxInput,
  Json,
  OpenInterrupt,
  World,
} from "@statewright/core";
import type { StateName } from "../node/state-names.ts";
import type { Trace, TracedEffect } from "../trace/trace.ts";

/** Status of a test run: `held` between two events, at rest, or crashed. */
export type TestStatus =
  | "ready"
  | "held"
  | "done"
  | "waiting"
  | "paused"
  | "failed"
  | "cancelled"
  | "crashed"
  | "queued"
  | "delivered";

/** Stop condition of a run: a state, a tag of states, or a predicate. */
export type Target<Types extends GraphTypes> =
  | StateName<Types["nodes"]>
  | { readonly tag: string }
  | ((t: TestRun<Types>) => boolean);

/** Delivery of a message to a run: at the next superstep boundary, or where the run would end. */
export interface SendOptions {
  /** Delivery of the message: `steer` at the next superstep boundary (default), `followUp` where the run would end. */
  readonly kind?: "steer" | "followUp";
}

/** Event for a durable machine: its type and payload as the machine declares them. A graph takes no events. */
export type SentEvent<Types extends GraphTypes = GraphTypes> = NonNullable<Types["events"]>;

/**
 * Argument of `send`: a text or messages for a graph of nodes, an event for a durable machine. The compiler shows the
 * sentence for an event that is sent to a graph.
 */
export type SentMessage<Types extends GraphTypes = GraphTypes> = [SentEvent<Types>] extends [never]
  ? InboxInput | { readonly type: "a graph takes no events: send a text or messages" }
  : object extends SentEvent<Types>
    ? InboxInput | SentEvent<Types>
    : SentEvent<Types>;

/** Test run type of a graph, for helper functions: `TestRunOf<typeof shop>`. */
export type TestRunOf<OfGraph> = OfGraph extends Graph<infer Types> ? TestRun<Types> : never;

/** Run controlled by a test. The run advances only inside the functions below, and is held between the calls. */
export interface TestRun<Types extends GraphTypes = GraphTypes> {
  readonly status: TestStatus;
  /** State after the last saved superstep. */
  readonly state: Types["state"];
  /** State value of the machine. */
  readonly value: Json;
  /** XState snapshot of the current state: `matches`, `hasTag`, `can`. */
  readonly snapshot: ReturnType<GraphMachine["resolveState"]>;
  /** Tags of the active states. */
  readonly tags: readonly string[];
  /** Accepted answers and events: keys of open interrupts; for a durable machine, event types. */
  readonly accepts: readonly string[];
  /** Event types accepted by the machine in the current state. */
  readonly events: readonly string[];
  readonly interrupts: readonly OpenInterrupt[];
  /** Error of a failed run. */
  readonly error: unknown;
  readonly trace: Trace<Types>;
  /** Steps and tool calls whose bodies were entered, in all processes of the run. */
  readonly effects: readonly TracedEffect[];
  readonly thread: string;
  /** Clock, log and random source of the run; a test can advance a virtual clock. */
  readonly world: World;
  /**
   * Advances the run to a state and holds the run there: no new work starts, and active work is not saved yet. In
   * `interrupted`, `failed` and `done` the run rests and is saved. Throws when the run comes to rest in another
   * state.
   */
  until(target: Target<Types>): Promise<void>;
  /** Advances until the next superstep is saved, or the run rests. */
  step(): Promise<void>;
  /**
   * Advances until the run rests; rejects with the error of a failed run. Use `until("failed")` to expect a failure.
   */
  finish(): Promise<void>;
  /**
   * Crashes the process as with SIGKILL and reopens the store: unsaved work is lost. Continue with {@link
   * TestRun.resume}.
   */
  crash(): Promise<void>;
  /** Resumes in a new process, with answers to interrupts, until the run rests or reaches `until`. */
  resume(
    answers?: Answers<Types["interrupts"] & Types["innerInterrupts"]>,
    options?: { readonly until?: Target<Types> },
  ): Promise<void>;
  /**
   * Sends a message to the run, delivered when the run advances. For a durable machine, sends an event and advances
   * until the run rests.
   */
  send(message: SentMessage<Types>, options?: SendOptions): Promise<void>;
  /** Cancels the run and advances until the run rests. */
  cancel(reason?: string): Promise<void>;
  /**
   * Returns a second, crashed process over an in-memory copy of the thread as saved now, ready for `resume`. This run
   * stays unchanged. The model of the copy replays the replies of this run. Items of the long-term store are not
   * copied.
   */
  twin(): Promise<TestRun<Types>>;
}
