/** Schedules of the store interface. */

import { checkId } from "@statewright/core/adapter";
import { type Schedules, setFiredRun, storeRules } from "@statewright/core/store";
import { eraseSecurely } from "../file/erase-securely.ts";
import type { StoreParts } from "../store-parts.ts";

export function createScheduleStore({
  db,
  transactions,
  schedules,
  writer,
  claims,
}: Pick<StoreParts, "db" | "transactions" | "schedules" | "writer" | "claims">): Schedules {
  return {
    ...createScheduleReads({ transactions, schedules }),
    put: async ({ row, revision, run }) => {
      checkId("schedule", row.id);
      const write = (): Awaited<ReturnType<Schedules["put"]>> => {
        if (schedules.getRevision(row.id) !== revision) return undefined;
        const queued = run === undefined ? undefined : writer.queue.enqueue(run, claims.getReleasedEpoch(run.thread));
        const written = schedules.put(setFiredRun(row, queued?.id), revision);
        return { row: written, ...(queued === undefined ? {} : { run: queued }) };
      };
      if (run === undefined) return await transactions.write(undefined, write);
      checkId("thread", run.thread);
      return await claims.writeWithDeferredClaim(run.thread, write);
    },
    delete: (id) => transactions.write(undefined, () => eraseSecurely(db, () => schedules.delete(id))),
  };
}

/** Creates the reads, for a store that writes and for one that only reads. */
export function createScheduleReads({
  transactions,
  schedules,
}: {
  readonly transactions: { read<Value>(operation: () => Value): Promise<Value> };
  readonly schedules: StoreParts["schedules"];
}): Pick<Schedules, "get" | "list"> {
  return {
    get: (id) => transactions.read(() => schedules.get(id)),
    list: (filter = {}) =>
      transactions.read(() => {
        storeRules.checkScheduleFilter(filter);
        return schedules.list(filter);
      }),
  };
}
