/**
 * Runs to claim, in the order of claims. For queued runs each step is a look-up in the index of startable runs: the
 * cost depends on the number of claims and of the tenants they pass, not on the length of the queue.
 */
import { type ClaimableKind, claimRules, type RunClaimRequest } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { isNotDone } from "../read/list-filters.ts";

/** Run that a process may claim. */
export interface RunCandidate {
  readonly key: number;
  readonly id: string;
  readonly thread: string;
  readonly graph: string;
  readonly version: number;
  /** Place in the rotation of tenants; only of a queued run. */
  readonly turn?: Turn;
}

/** Priority and tenant of a queued run; `""` for no tenant. */
export interface Turn {
  readonly priority: number;
  readonly tenant: string;
}

interface Lane {
  readonly graph: string;
  readonly version: number;
}

/** Higher than every priority. */
const noPriority = Number.MAX_VALUE;

/** Rows of a page of crashed, drained, incompatible or notified runs. */
const pageSize = 100;

const inLane = " FROM runs r INDEXED BY startable_runs WHERE r.turn IS NOT NULL AND r.graph = ?";

const hasNoLivingOwner = " AND (t.owner IS NULL OR t.owner NOT IN (SELECT value FROM json_each(@living)))";

const candidateColumns = "SELECT r.key, r.id, t.id AS thread, r.graph, r.version, r.branch, r.thread AS threadKey";

const isServed =
  " AND EXISTS (SELECT 1 FROM json_each(@graphs) g WHERE g.value ->> 0 = r.graph AND r.version <= g.value ->> 1)";

/** A run without a living owner, of a served graph, and not pre-empted by a queued run. */
const canContinue =
  hasNoLivingOwner +
  isServed +
  " AND (t.queued = 0 OR NOT EXISTS (SELECT 1 FROM runs q INDEXED BY queued_runs WHERE q.thread = r.thread" +
  " AND q.status = 'queued' AND q.branch = r.branch AND q.turn IS NOT NULL))";

interface PageParameters {
  readonly stored: string;
  readonly after: number;
  readonly living: string;
  readonly graphs: string;
  readonly limit: number;
}

type PageRow = RunCandidate & { readonly branch: number; readonly threadKey: number };

function prepareStatements(db: Database) {
  return {
    nextVersion: db
      .prepare<[string, number], number>("SELECT r.version" + inLane + " AND r.version > ? ORDER BY r.version LIMIT 1")
      .pluck(),
    nextPriority: db
      .prepare<[string, number, number], number>(
        "SELECT r.priority" + inLane + " AND r.version = ? AND r.priority < ? ORDER BY r.priority DESC LIMIT 1",
      )
      .pluck(),
    firstTenant: db
      .prepare<[string, number, number], string>(
        "SELECT r.turn" + inLane + " AND r.version = ? AND r.priority = ? ORDER BY r.turn LIMIT 1",
      )
      .pluck(),
    nextTenant: db
      .prepare<[string, number, number, string], string>(
        "SELECT r.turn" + inLane + " AND r.version = ? AND r.priority = ? AND r.turn > ? ORDER BY r.turn LIMIT 1",
      )
      .pluck(),
    nextRun: db.prepare<[Lane & Turn & { readonly after: number; readonly living: string }], RunCandidate>(
      candidateColumns +
        " FROM runs r INDEXED BY startable_runs CROSS JOIN threads t ON t.key = r.thread WHERE r.turn IS NOT NULL" +
        " AND r.graph = @graph AND r.version = @version AND r.priority = @priority AND r.turn = @tenant AND r.key > @after" +
        hasNoLivingOwner +
        " ORDER BY r.key LIMIT 1",
    ),
    ofStatus: db.prepare<[PageParameters], PageRow>(
      candidateColumns +
        " FROM runs r INDEXED BY runs_by_status CROSS JOIN threads t ON t.key = r.thread" +
        " CROSS JOIN branches b ON b.key = r.branch WHERE r.status = @stored" +
        isNotDone +
        " AND r.key > @after AND b.run = r.key" +
        canContinue +
        " ORDER BY r.key LIMIT @limit",
    ),
    notified: db.prepare<[PageParameters], PageRow>(
      candidateColumns +
        " FROM inbox_messages m INDEXED BY undelivered_events CROSS JOIN branches b ON b.key = m.branch" +
        " CROSS JOIN runs r ON r.key = b.run CROSS JOIN threads t ON t.key = b.thread" +
        " WHERE m.kind = 'event' AND m.run = '' AND m.branch > @after AND r.status IN ('waiting', 'paused')" +
        canContinue +
        " GROUP BY m.branch ORDER BY m.branch LIMIT @limit",
    ),
    requested: db.prepare<[PageParameters], PageRow>(
      candidateColumns +
        " FROM threads t INDEXED BY threads_with_requests CROSS JOIN branches b INDEXED BY branches_of_thread" +
        " ON b.thread = t.key AND instr(b.name, '/') = 0 CROSS JOIN requests q ON q.branch = b.key AND q.handled = 0" +
        " CROSS JOIN runs r ON r.key = q.run WHERE t.requests > 0 AND t.key > @after" +
        " AND r.status NOT IN ('queued', 'delayed', 'done', 'cancelled')" +
        isServed +
        hasNoLivingOwner +
        " GROUP BY t.key HAVING min(r.key) > 0 ORDER BY t.key LIMIT @limit",
    ),
    served: db
      .prepare<[string, number], string>("SELECT tenant FROM tenant_rotations WHERE graphs = ? AND priority = ?")
      .pluck(),
    putServed: db.prepare<[string, number, string]>(
      "INSERT OR REPLACE INTO tenant_rotations (graphs, priority, tenant) VALUES (?, ?, ?)",
    ),
    removeServed: db.prepare<[string, number]>("DELETE FROM tenant_rotations WHERE graphs = ? AND priority = ?"),
  };
}

/** Selects runs to claim; call inside a transaction. */
export class StartableRuns {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Selects the runs of a kind, one by one: the caller may claim a run before the next one is read. */
  select(kind: ClaimableKind, request: RunClaimRequest, living: readonly number[]): Generator<RunCandidate, void> {
    const owners = JSON.stringify(living);
    return kind === "queued" ? this.#selectQueued(request, owners) : this.#selectStarted(kind, request, owners);
  }

  /**
   * Saves the tenants served last, by priority: the next request of these graphs continues after them. A rotation that
   * has no run left is removed.
   */
  saveRotation(
    { graphs }: RunClaimRequest,
    served: ReadonlyMap<number, string>,
    { isComplete }: { readonly isComplete: boolean },
  ): void {
    const name = claimRules.toRotationName(graphs);
    const lowest = Math.min(...served.keys());
    for (const [priority, tenant] of served) {
      if (isComplete || priority !== lowest) this.#sql.removeServed.run(name, priority);
      else this.#sql.putServed.run(name, priority, tenant);
    }
  }

  *#selectQueued({ graphs }: RunClaimRequest, living: string): Generator<RunCandidate, void> {
    const lanes = graphs.flatMap(({ name, version }) => this.#listLanes(name, version));
    const rotation = claimRules.toRotationName(graphs);
    for (let below = noPriority; ; ) {
      const priorities = lanes.flatMap(({ graph, version }) => this.#sql.nextPriority.get(graph, version, below) ?? []);
      if (priorities.length === 0) return;
      below = Math.max(...priorities);
      yield* this.#selectOfPriority(lanes, below, { rotation, living });
    }
  }

  /** Lists the versions of a graph with startable runs, up to the version of the process. */
  #listLanes(graph: string, newest: number): readonly Lane[] {
    const lanes: Lane[] = [];
    for (let version = Number.MIN_SAFE_INTEGER; ; ) {
      const next = this.#sql.nextVersion.get(graph, version);
      if (next === undefined || next > newest) return lanes;
      lanes.push({ graph, version: next });
      version = next;
    }
  }

  /** Selects the runs of a priority round robin over the tenants, beginning after the tenant served last. */
  *#selectOfPriority(
    lanes: readonly Lane[],
    priority: number,
    { rotation, living }: { readonly rotation: string; readonly living: string },
  ): Generator<RunCandidate, void> {
    const after = new Map<string, number>();
    const takeNext = (tenant: string): RunCandidate | undefined => {
      const turn = { priority, tenant };
      const found = lanes.flatMap(
        (lane) => this.#sql.nextRun.get({ ...lane, ...turn, after: after.get(tenant) ?? 0, living }) ?? [],
      );
      const first = found.reduce<RunCandidate | undefined>(
        (oldest, each) => (oldest === undefined || each.key < oldest.key ? each : oldest),
        undefined,
      );
      if (first !== undefined) after.set(tenant, first.key);
      return first === undefined ? undefined : { ...first, turn };
    };
    let tenants: string[] = [];
    const start = this.#sql.served.get(rotation, priority);
    for (const tenant of this.#rotateTenants(lanes, priority, start)) {
      const run = takeNext(tenant);
      if (run === undefined) continue;
      tenants.push(tenant);
      yield run;
    }
    // Later rounds pass only tenants that had a run in the round before.
    while (tenants.length > 0) {
      const remaining: string[] = [];
      for (const tenant of tenants) {
        const run = takeNext(tenant);
        if (run === undefined) continue;
        remaining.push(tenant);
        yield run;
      }
      tenants = remaining;
    }
  }

  /** Lists each tenant once, in order, beginning after `start`. */
  *#rotateTenants(lanes: readonly Lane[], priority: number, start: string | undefined): Generator<string, void> {
    const findNext = (tenant: string | undefined): string | undefined =>
      lanes
        .flatMap(
          ({ graph, version }) =>
            (tenant === undefined
              ? this.#sql.firstTenant.get(graph, version, priority)
              : this.#sql.nextTenant.get(graph, version, priority, tenant)) ?? [],
        )
        .reduce<string | undefined>(
          (first, each) => (first === undefined || isBefore(each, first) ? each : first),
          undefined,
        );
    for (let tenant = findNext(start); tenant !== undefined; tenant = findNext(tenant)) yield tenant;
    if (start === undefined) return;
    for (let tenant = findNext(undefined); tenant !== undefined && !isBefore(start, tenant); tenant = findNext(tenant))
      yield tenant;
  }

  /** Selects crashed, drained and incompatible runs by their start, notified and requested ones by their threads. */
  *#selectStarted(
    kind: Exclude<ClaimableKind, "queued">,
    { graphs }: RunClaimRequest,
    living: string,
  ): Generator<RunCandidate, void> {
    const served = JSON.stringify(graphs.map(({ name, version }) => [name, version]));
    const query = kind === "notified" || kind === "requested" ? this.#sql[kind] : this.#sql.ofStatus;
    const stored = kind === "crashed" ? "running" : kind;
    for (let after = 0; ; ) {
      const page = query.all({ stored, after, living, graphs: served, limit: pageSize });
      for (const row of page) yield row;
      const last = page.at(-1);
      if (last === undefined || page.length < pageSize) return;
      after = kind === "notified" ? last.branch : kind === "requested" ? last.threadKey : last.key;
    }
  }
}

/** Compares names as SQLite compares text: by their UTF-8 bytes. */
function isBefore(one: string, other: string): boolean {
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;
}
