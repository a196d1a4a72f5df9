/**
 * Checksums of rows whose columns are updated separately: SQL functions compute the checksum of such a row in the
 * statement. The functions exist on this connection only; no table or index of the file uses them.
 */
import { computeColumnSum, computeFoldedSum } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

const runSum =
  "sum_of_run(r.thread, r.branch, r.id, r.graph, r.version, r.status, r.attempt, r.started, r.epoch, r.ended, r.error, r.name, r.metadata, r.input, r.more, r.tenant, r.user, r.priority)";

/** SQL for the checksum of an updated run, computed in the update from its named parameters. */
export const changedRunSum: string =
  "sum_of_run(thread, branch, id, graph, @version, @status, @attempt, started, @epoch, @ended, @error, name, metadata, @input, @more, tenant, user, priority)";

/** SQL column that is 1 if a row of `runs r` matches its checksum. */
export const runIsIntact: string = "r.sum IS " + runSum + " AS intact";

/** SQL that stores the checksum of a run by its key. */
export const putRunSum: string = "UPDATE runs AS r SET sum = " + runSum + " WHERE r.key = ?";

/** SQL for the checksum of an effect whose outcome was removed by a fold. */
export const foldedEffectSum: string =
  "sum_of_folded(step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, processes, attempt_log, usage)";

/** Registers the checksum functions on this connection. */
export function registerRowSums(db: Database): void {
  const options = { varargs: true, deterministic: true, directOnly: true } as const;
  db.function("sum_of_run", options, (...columns: unknown[]) => computeColumnSum(columns));
  db.function("sum_of_folded", options, (...columns: unknown[]) => computeFoldedSum(columns));
}
