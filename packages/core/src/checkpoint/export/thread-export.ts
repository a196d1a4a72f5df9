/**
 * Thread export: all rows of a thread, written by a store for a copy or an export, and read on import.
 *
 * Ids and sequence numbers are those of the thread; only the thread id may change on import. Deltas retained from
 * removed checkpoints are in the pruned ranges of their namespaces.
 */
import type { JsonObject } from "../../base/json.ts";
import type { ArtifactRow } from "../../tool/artifacts/artifact.ts";
import type { CheckpointRow, DeltaRow, RunRow } from "../checkpoint.ts";
import type { EventRow } from "../event.ts";
import type { InboxMessage } from "../inbox-message.ts";
import type { EffectRow, InterruptRow } from "../journal.ts";
import type { RunRequest } from "../run-request.ts";
import type { TimerRow } from "../timer.ts";

/** Writer of a thread or checkpoint: graph name, version and shape fingerprint. */
export interface GraphVersion {
  readonly graph: string;
  readonly version: number;
  readonly shape: string;
}

/** Outline of a graph version, as JSON text. */
export interface OutlineExport extends GraphVersion {
  readonly outline: string;
}

/** Checkpoint with its deltas and its writer. */
export interface CheckpointExport {
  readonly row: CheckpointRow;
  readonly deltas: readonly DeltaRow[];
  readonly writtenBy: GraphVersion;
}

/**
 * Range of checkpoints removed by retention: the last removed checkpoint, and the deltas that later checkpoints need.
 */
export interface PrunedRange {
  readonly id: number;
  readonly seq: number;
  readonly deltas: readonly PrunedDelta[];
}

/** Delta retained from a pruned range, with its checkpoint. */
export interface PrunedDelta extends DeltaRow {
  readonly checkpoint: number;
}

/** Branch or child namespace; all rows oldest first. */
export interface NamespaceExport {
  readonly name: string;
  /** Checkpoint of another namespace that this namespace continues. */
  readonly from: number | undefined;
  /** Newest run. */
  readonly run: string | undefined;
  readonly checkpoints: readonly CheckpointExport[];
  readonly prunedRanges: readonly PrunedRange[];
  readonly effects: readonly EffectRow[];
  readonly interrupts: readonly InterruptRow[];
  /** Ids of the open interrupts. */
  readonly awaited: readonly string[];
  readonly timers: readonly TimerRow[];
  /** Messages in the inbox. */
  readonly inbox: readonly InboxMessage[];
}

/** Row of an artifact; the first row of each body includes the body. */
export interface ArtifactExport {
  readonly row: ArtifactRow;
  readonly body?: Uint8Array;
}

/** Export of a thread. A namespace follows the namespace that it continues. */
export interface ThreadExport {
  readonly id: string;
  /** Random part of the idempotency keys; kept by imports and copies. */
  readonly keySalt: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly headBranch: string;
  /** Outlines of the graph versions that the thread names, as far as saved. */
  readonly outlines?: readonly OutlineExport[] | undefined;
  /** Absent for a thread without a claim. */
  readonly writtenBy: GraphVersion | undefined;
  readonly title?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly tenant?: string | undefined;
  readonly owner?: string | undefined;
  /** Last assigned sequence number and checkpoint id. */
  readonly seq: number;
  readonly checkpoint: number;
  /** Newest run. */
  readonly run: string | undefined;
  readonly namespaces: readonly NamespaceExport[];
  readonly runs: readonly RunRow[];
  /** Requests of runs, oldest first. */
  readonly requests?: readonly RunRequest[] | undefined;
  /** Durable events, except checkpoints. */
  readonly events: readonly EventRow[];
  /** In the order of writing. */
  readonly artifacts: readonly ArtifactExport[];
}
