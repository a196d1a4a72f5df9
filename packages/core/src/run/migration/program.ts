/**
 * Programs: what a thread executes. A graph of nodes and a user-written machine are the two implementations of one
 * interface; no other code depends on the kind of a plan.
 */
import type { World } from "../../base/world.ts";
import type { Control, RunRow } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Plan } from "../../compile/plan.ts";
import type { ProgramDefinition } from "../../compile/programs/program-definition.ts";
import type { Codec } from "../../state/codec.ts";
import type { Kernel, Snapshot } from "../kernel/kernel.ts";
import type { DeliveredEvent, RunResult } from "../session/options/options.ts";
import type { State, Write } from "../session/returns.ts";
import type { Session } from "../session/session.ts";
import type { Incompatibility } from "./compatibility.ts";
import type { SnapshotMigrator } from "./migrate.ts";
import type { PositionSource, SnapshotReader, ThreadSnapshot } from "./thread-snapshot.ts";

/** Position of a saved thread. */
export interface SavedPosition {
  readonly thread: string;
  readonly control: Control;
  readonly state: State;
  /** True when another graph version wrote the control state. */
  readonly changed: boolean;
}

/** Answers of a resume, not yet parsed. */
export interface GivenAnswers {
  readonly answers: Readonly<Record<string, unknown>>;
  readonly by: string | undefined;
  /** Idempotency key of the answers. */
  readonly key?: string | undefined;
  /** Events of the caller that are already in the inbox: the run that was at work ended before it took them. */
  readonly posted?: readonly DeliveredEvent[] | undefined;
  /** Records answers on the open interrupts. Passed by `resume`, so that a bundle with `run` alone excludes the code for answers. */
  readonly apply: (
    session: Session,
    given: Pick<GivenAnswers, "answers" | "by" | "key">,
  ) => Promise<readonly InterruptRow[]>;
}

/** Thread to deliver to, and the answers of the caller. */
export interface Delivery {
  readonly plan: Plan;
  readonly store: Store;
  readonly codec: Codec;
  readonly world: World;
  readonly thread: string;
  /** Default: the head branch of the thread. */
  readonly branch: string | undefined;
  readonly answers: Readonly<Record<string, unknown>>;
  readonly by: string | undefined;
  /** Idempotency key: the id of the inbox message. Allows a single event or answer. */
  readonly key: string | undefined;
}

/** Delivery of answers to a run that is at work in this process or another. */
export interface AnswerDelivery {
  /** Posts the answers to the inbox of the run; resolves when they are durable. An error changes nothing. */
  readonly post: (delivery: Delivery, run: RunRow) => Promise<readonly DeliveredEvent[]>;
  /** Returns the result for the sender. */
  readonly createResult: (
    delivery: Delivery,
    run: RunRow,
    delivered: readonly DeliveredEvent[],
  ) => Promise<RunResult<State>>;
}

/** A kind of program. Stateless: each method takes a plan, a session or a snapshot. */
export interface Program extends SnapshotReader, SnapshotMigrator {
  // Open and read.

  /** Parses an input before any store access; undefined when the input is parsed at the start. */
  readonly parseInput: (plan: Plan, codec: Codec, input: unknown) => readonly Write[] | undefined;
  /** Snapshot of a thread without checkpoints. */
  readonly enter: (kernel: Kernel) => Snapshot;
  readonly restore: (at: PositionSource, position: SavedPosition) => Snapshot;
  /** True when the position follows from the pending tasks, so that another version's position is derived anew. */
  readonly derivesPosition: boolean;
  /** Returns the output of a finished run from its last state. */
  readonly readOutput: (plan: Plan, state: State) => unknown;

  // Start, continue, loop.

  /** Commits the first checkpoint. `writes`: the parsed input, if it was parsed before. */
  readonly begin: (session: Session, input: unknown, writes: readonly Write[] | undefined) => Promise<void>;
  /** Runs a session to its end; its first checkpoint is committed. */
  readonly run: (session: Session) => Promise<RunResult<State>>;
  /** Continues a run whose process has died. */
  readonly recover: (session: Session) => Promise<RunResult<State>>;
  /** Continues a run with the answers of a caller. */
  readonly resume: (session: Session, answers: GivenAnswers) => Promise<RunResult<State>>;
  /** Undefined when only a run at rest takes answers. */
  readonly delivery: AnswerDelivery | undefined;
  /** False when a new input cannot interrupt or roll back a run. */
  readonly isPreemptible: boolean;
  /** False when its runs mostly wait, and do not count as concurrent work of an engine. */
  readonly isBounded: boolean;

  // Migrate.

  readonly findIncompatibilities: (snapshot: ThreadSnapshot, codec: Codec) => readonly Incompatibility[];
}

/** The programs of the engine. Created once, and passed to `openSession`. */
export type Programs = { readonly [Name in ProgramDefinition["name"]]: Program };
