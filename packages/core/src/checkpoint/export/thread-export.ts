/**
 * A thread whole, as rows: what a store hands out when a thread is copied or exported, and takes in again.
 *
 * Ids and sequence numbers are those of the thread; only its own id may be another where it is taken in. What retention
 * left of checkpoints that are gone stands in the cuts of their lines.
 */
import type { ArtifactRow } from "../../tool/artifacts/artifact.ts";
import type { CheckpointRow, DeltaRow, RunRow } from "../checkpoint.ts";
import type { EventRow } from "../event.ts";
import type { LetterRow } from "../inbox-message.ts";
import type { EffectRow, InterruptRow } from "../journal.ts";
import type { TimerRow } from "../timer.ts";

/** The graph that wrote something: its name, its version and the fingerprint of its shape. */
export interface WrittenBy {
  readonly graph: string;
  readonly version: number;
  readonly shape: string;
}

/** A checkpoint with what it changed and what wrote it. */
export interface CheckpointImage {
  readonly row: CheckpointRow;
  readonly deltas: readonly DeltaRow[];
  readonly writtenBy: WrittenBy;
}

/** Where retention took checkpoints of a line away: the last that is gone, and the changes that later ones still need. */
export interface CutImage {
  readonly id: number;
  readonly seq: number;
  readonly deltas: readonly CutDelta[];
}

/** A change that retention kept, with the checkpoint at which it stands. */
export interface CutDelta extends DeltaRow {
  readonly checkpoint: number;
}

/** A branch or a child line; everything oldest first. */
export interface LineImage {
  readonly name: string;
  /** The checkpoint of another line that it goes on from. */
  readonly from: number | undefined;
  /** Its newest run. */
  readonly run: string | undefined;
  readonly checkpoints: readonly CheckpointImage[];
  readonly cuts: readonly CutImage[];
  readonly effects: readonly EffectRow[];
  readonly interrupts: readonly InterruptRow[];
  /** The questions that its run waits for, if it waits. */
  readonly awaited: readonly string[];
  readonly timers: readonly TimerRow[];
  /** What waits in its inbox. */
  readonly letters: readonly LetterRow[];
}

/** A row of an artifact; the first of each body has the body. */
export interface ArtifactImage {
  readonly row: ArtifactRow;
  readonly body?: Uint8Array;
}

/** A thread. A line stands after the line that it goes on from. */
export interface ThreadImage {
  readonly id: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly headBranch: string;
  readonly writtenBy: WrittenBy;
  /** The last sequence number and the last checkpoint id that were given out. */
  readonly seq: number;
  readonly checkpoint: number;
  /** Its newest run. */
  readonly run: string | undefined;
  readonly lines: readonly LineImage[];
  readonly runs: readonly RunRow[];
  /** Durable events that no checkpoint tells. */
  readonly events: readonly EventRow[];
  /** In the order in which they were written. */
  readonly artifacts: readonly ArtifactImage[];
}
