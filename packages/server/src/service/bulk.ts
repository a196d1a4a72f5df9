/** Acts on all runs of a tenant that match a filter. */
import type { RunStatus } from "@statewright/core";

/** Filter of runs; all conditions hold. */
export interface BulkFilter {
  readonly graph?: string | undefined;
  readonly thread?: string | undefined;
  readonly status?: RunStatus | readonly RunStatus[] | undefined;
  readonly owner?: string | undefined;
  readonly metadata?: Readonly<Record<string, string | number | boolean | null>> | undefined;
  /** Start or queueing in milliseconds since the epoch: `since` inclusive, `until` exclusive. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** Progress of an act on many runs. */
export interface BulkProgress {
  /** Runs, or threads of a deletion, that matched when the act began. */
  readonly matched: number;
  readonly done: number;
  /** Ended, changed or deleted before the act reached them. */
  readonly skipped: number;
  readonly failed: number;
}

/** Result of an act on many runs. */
export interface BulkReport extends BulkProgress {
  /** False for a dry run, and for an act that its signal stopped. */
  readonly isComplete: boolean;
  /** Failures of single runs, at most 100. */
  readonly errors: readonly {
    readonly thread: string;
    readonly run?: string | undefined;
    readonly code: string;
    readonly title: string;
  }[];
}

/** Act on many runs. */
export interface BulkRequest {
  /** `retry` continues failed and parked runs; `delete` deletes the threads of the runs. */
  readonly action: "cancel" | "resume" | "retry" | "delete";
  readonly filter: BulkFilter;
  /** Counts the runs and changes nothing. Default false. */
  readonly dryRun?: boolean | undefined;
  /** Reason of a cancellation. */
  readonly reason?: string | undefined;
  /** Called when the runs are counted, and after each run. */
  readonly onProgress?: ((progress: BulkProgress) => void) | undefined;
  /** Starts no more rows after it has fired. */
  readonly signal: AbortSignal;
}

/** Acts on many runs of the tenant. */
export interface BulkActs {
  /**
   * Applies an act to all runs of the tenant that match, newest first. Runs that start later are not reached. A
   * repeated call continues an act that was stopped. Needs the scope `admin`, and the right to each single act.
   */
  changeRuns(request: BulkRequest): Promise<BulkReport>;
}
