/** Claims of due timers: a single living process works on a timer. */

import { storeRules, type TimerClaimRequest, type TimerKind, type TimerRow, timerKinds } from "@statewright/core/store";
import { computeTimerSum, type TimerColumns, toTimerRow } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Owner } from "../file/owner.ts";

interface TimerParameters {
  readonly kind: TimerKind;
  readonly dueBy: number;
  readonly self: number;
  readonly living: string;
  readonly graphs: string;
  readonly limit: number;
  readonly due: number;
  readonly id: string;
  readonly thread: string;
  readonly branch: string;
}

type FoundTimer = TimerColumns & { readonly key: number; readonly isOwn: number };

/** Reads due timers of a kind in the order of their index, from the cursor on. */
const freeTimers =
  "SELECT t.id AS thread, b.name AS branch, m.id, m.kind, m.generation, m.due, m.about, m.sum, m.branch AS key," +
  " m.owner IS @self AND m.owned_until > @dueBy AS isOwn" +
  " FROM timers m INDEXED BY timers_by_due CROSS JOIN branches b ON b.key = m.branch CROSS JOIN threads t ON t.key = b.thread" +
  " CROSS JOIN graphs g ON g.key = t.graph WHERE m.kind = @kind AND m.due <= @dueBy AND m.due >= @due" +
  " AND (m.due, m.id, t.id, b.name) > (@due, @id, @thread, @branch)" +
  " AND (m.owner IS NULL OR m.owner = @self OR m.owned_until <= @dueBy OR m.owner NOT IN (SELECT value FROM json_each(@living)))" +
  " AND EXISTS (SELECT 1 FROM json_each(@graphs) s WHERE s.value ->> 0 = g.name AND g.version <= s.value ->> 1)" +
  " ORDER BY m.due, m.id, t.id, b.name LIMIT @limit";

function prepareStatements(db: Database) {
  return {
    find: db.prepare<[TimerParameters], FoundTimer>(freeTimers),
    claim: db.prepare<[number, number, number, string]>(
      "UPDATE timers SET owner = ?, owned_until = ? WHERE branch = ? AND id = ?",
    ),
  };
}

/** Due timers that a process may claim. */
export interface FreeTimers {
  readonly rows: readonly TimerRow[];
  /** Timers that the process has not claimed yet. */
  readonly unclaimed: readonly Pick<FoundTimer, "key" | "id">[];
}

/** Finds and claims due timers; call inside a transaction. */
export class TimerClaims {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #owner: Owner;

  constructor(db: Database, owner: Owner) {
    this.#sql = prepareStatements(db);
    this.#owner = owner;
  }

  /** Finds the due timers that no other living owner has claimed. A damaged timer is left out. */
  find({ graphs, kinds = timerKinds, dueBy, limit, after }: TimerClaimRequest): FreeTimers {
    const parameters = {
      dueBy,
      limit,
      self: this.#owner.getId() ?? 0,
      living: JSON.stringify(this.#owner.listLiving()),
      graphs: JSON.stringify(graphs.map(({ name, version }) => [name, version])),
      due: after?.dueAt ?? Number.MIN_SAFE_INTEGER,
      id: after?.id ?? "",
      thread: after?.thread ?? "",
      branch: after?.branch ?? "",
    };
    const intact = kinds
      .flatMap((kind) => this.#sql.find.all({ ...parameters, kind }))
      .map((columns) => ({ ...columns, row: toTimerRow(columns) }))
      .filter(({ row, sum }) => computeTimerSum(row) === sum)
      .sort((one, other) => storeRules.compareTimers(one.row, other.row))
      .slice(0, limit);
    return { rows: intact.map(({ row }) => row), unclaimed: intact.filter(({ isOwn }) => isOwn !== 1) };
  }

  /** Claims the due timers that this owner has not claimed yet; returns all of the page. */
  claim(request: TimerClaimRequest): readonly TimerRow[] {
    const self = this.#owner.getId() ?? this.#owner.register(request.dueBy);
    const { rows, unclaimed } = this.find(request);
    for (const { key, id } of unclaimed) this.#sql.claim.run(self, request.until, key, id);
    return rows;
  }
}
