/**
 * Stored status of a run. For paused and parked runs, the stored status distinguishes runs that an engine resumes
 * automatically, so that the status index finds them; for queued runs those that are not in a queue yet.
 */

import type { RunStatus } from "@statewright/core";
import { delayedRunRules, getClaimableKind, type RunRow } from "@statewright/core/store";

/** Value of the status column. */
export type StoredStatus = RunStatus | "delayed" | "drained" | "incompatible";

/** Returns the stored status of a run. */
export function toStoredStatus(run: RunRow): StoredStatus {
  if (delayedRunRules.isDelayed(run)) return "delayed";
  const kind = getClaimableKind(run);
  return kind === "drained" || kind === "incompatible" ? kind : run.status;
}

/** Returns the stored statuses of runs with any of these statuses, without duplicates. */
export function toStoredStatuses(statuses: readonly RunStatus[]): readonly StoredStatus[] {
  const stored = statuses.flatMap((status): readonly StoredStatus[] => {
    if (status === "crashed") return ["running"];
    if (status === "paused") return ["paused", "drained"];
    if (status === "queued") return ["queued", "delayed"];
    return status === "parked" ? ["parked", "incompatible"] : [status];
  });
  return [...new Set(stored)];
}

/** Returns the status of a stored status, regardless of dead owners. */
export function fromStoredStatus(stored: StoredStatus): RunStatus {
  if (stored === "drained") return "paused";
  if (stored === "delayed") return "queued";
  return stored === "incompatible" ? "parked" : stored;
}

/** SQL of the status of a row `runs r`, regardless of dead owners. */
export const statusFromRow =
  "CASE r.status WHEN 'drained' THEN 'paused' WHEN 'delayed' THEN 'queued' WHEN 'incompatible' THEN 'parked' ELSE r.status END";
