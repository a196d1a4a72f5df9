/** Fills a file with a timer on each of very many threads, and with as many schedules, without a store. */
import type { TimerRow } from "@statewright/core/store";
import { computeTimerSum } from "@statewright/store-kit";
import Database from "better-sqlite3";
import { ScheduleTable } from "../../src/schedules/schedule-table.ts";
import { addManyThreads } from "./many-threads.ts";

const kinds = ["after", "expiry", "wake", "start"] as const;

/**
 * Adds the threads `t1`, `t2`, … with one timer each, of all kinds in turn, and the schedules `s1`, `s2`, …; timer and
 * schedule `n` are due at `dueAt + n`.
 */
export function addManyTimers(
  file: string,
  { count, dueAt }: { readonly count: number; readonly dueAt: number },
): void {
  addManyThreads(file, { count, tenants: 20 });
  const db = new Database(file);
  const insert = db.prepare(
    "INSERT INTO timers (branch, id, kind, generation, due, about, sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const schedules = new ScheduleTable(db, undefined);
  db.transaction(() => {
    for (let n = 1; n <= count; n++) {
      const kind: TimerRow["kind"] = kinds[n % kinds.length] ?? "after";
      const timer = { id: `timer-${n}`, kind, generation: 1, dueAt: dueAt + n, about: "" };
      insert.run(n, timer.id, kind, 1, timer.dueAt, "", computeTimerSum(timer));
      schedules.put(
        {
          ...{ id: `s${n}`, graph: "words", version: 1, shape: "s", everyMs: 60_000, anchorAt: dueAt, input: "{}" },
          ...{ missed: "last", createdAt: 0, updatedAt: 0, dueAt: dueAt + n },
        },
        0,
      );
    }
  })();
  db.close();
}
