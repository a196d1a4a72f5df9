/**
 * The status of a run as its row has it. Of what is paused or parked the row tells what a process goes on with by itself, so
 * that it is found by the index of statuses.
 */
import { claimableKind, type RunRow, type RunStatus } from "@statewright/core";

/** What stands in the column. */
export type StoredStatus = RunStatus | "drained" | "unfit";

/** The word for a run in its row. */
export function storedStatus(run: RunRow): StoredStatus {
  const kind = claimableKind(run);
  return kind === "drained" || kind === "unfit" ? kind : run.status;
}

/** The words under which runs of these statuses stand, each once. */
export function storedStatuses(wanted: readonly RunStatus[]): readonly StoredStatus[] {
  const stored = wanted.flatMap((status): readonly StoredStatus[] => {
    if (status === "crashed") return ["running"];
    if (status === "paused") return ["paused", "drained"];
    return status === "parked" ? ["parked", "unfit"] : [status];
  });
  return [...new Set(stored)];
}

/** The status of a row `runs r`, whoever lives. */
export const statusAsWritten =
  "CASE r.status WHEN 'drained' THEN 'paused' WHEN 'unfit' THEN 'parked' ELSE r.status END";
