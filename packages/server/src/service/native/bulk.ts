/** Acts on all runs of a tenant that match a filter. */
import { isStatewrightError, type RunStatus } from "@statewright/core";
import { listRuns } from "@statewright/core/inspect";
import type { ListedRunRow } from "@statewright/core/store";
import { RequestProblem } from "../../http/problem.ts";
import type { CallerScope } from "../caller-scope.ts";
import type { CallerService } from "../caller-service.ts";
import { findFailureTitle } from "../failure-titles.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { createInvalidRequestProblem } from "../service-problems.ts";

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

/** Acts on single runs that an act on many runs uses. */
export type SingleActs = Pick<CallerService, "cancelRun" | "resumeRun" | "deleteThread">;

type Action = BulkRequest["action"];

const allStatuses: readonly RunStatus[] = [
  ...(["queued", "running", "waiting", "paused", "parked", "done", "failed", "cancelled", "crashed"] as const),
];

/** Statuses of the runs that an action can change; without a status in the filter those of `defaults`. */
const statuses: {
  readonly [Each in Action]: { readonly defaults: readonly RunStatus[]; readonly allowed: readonly RunStatus[] };
} = {
  cancel: {
    defaults: ["queued", "running", "waiting", "paused", "parked", "crashed"],
    allowed: ["queued", "running", "waiting", "paused", "parked", "crashed", "failed"],
  },
  resume: { defaults: ["paused", "crashed"], allowed: ["paused", "crashed"] },
  retry: { defaults: ["failed", "parked"], allowed: ["failed", "parked"] },
  delete: { defaults: allStatuses, allowed: allStatuses },
};

/** Creates the act on many runs. `acts` change a single run, ask for the right, and are audited. */
export function createBulkActs(scope: CallerScope, acts: SingleActs): BulkActs {
  return {
    changeRuns: async (request) => {
      await scope.ask({ action: "admin", graph: request.filter.graph, changes: true });
      return await new BulkAct(scope, acts, request).perform();
    },
  };
}

type Outcome = "done" | "skipped";

/** Rows of a page, and rows in work at the same time. */
const pageSize = 100;
const concurrency = 8;
const maxErrors = 100;

/** Codes of errors that all further rows would meet. */
const haltCodes: ReadonlySet<string> = new Set([
  ...["store_full", "store_locked", "store_unreachable", "store_closed", "engine_stopped"],
]);

class BulkAct {
  readonly #scope: CallerScope;
  readonly #acts: SingleActs;
  readonly #request: BulkRequest;
  readonly #statuses: readonly RunStatus[];
  readonly #counts = { matched: 0, done: 0, skipped: 0, failed: 0 };
  readonly #errors: BulkReport["errors"][number][] = [];
  /** Threads that a deletion has reached. */
  readonly #threads = new Set<string>();

  constructor(scope: CallerScope, acts: SingleActs, request: BulkRequest) {
    this.#scope = scope;
    this.#acts = acts;
    this.#request = request;
    this.#statuses = selectStatuses(request);
  }

  async perform(): Promise<BulkReport> {
    const { dryRun = false, signal } = this.#request;
    this.#counts.matched = await this.#count();
    this.#report();
    if (!dryRun) for await (const rows of this.#listPages()) await this.#applyPage(rows);
    return { ...this.#counts, isComplete: !dryRun && !signal.aborted, errors: this.#errors };
  }

  #report(): void {
    this.#request.onProgress?.({ ...this.#counts });
  }

  async #count(): Promise<number> {
    let total = 0;
    const threads = new Set<string>();
    for await (const rows of this.#listPages()) {
      total += rows.length;
      if (this.#request.action === "delete") for (const { thread } of rows) threads.add(thread);
    }
    return this.#request.action === "delete" ? threads.size : total;
  }

  /** Yields the runs of the caller that match, newest first. A run that starts later comes before the first page. */
  async *#listPages(): AsyncGenerator<readonly ListedRunRow[], undefined, undefined> {
    const { filter, signal } = this.#request;
    const scope = this.#scope;
    const { graph, thread, owner, metadata, since, until } = filter;
    const stored = thread === undefined ? undefined : scope.toStoredId(thread);
    const query = { ...omitUndefined({ graph, owner, metadata, since, until, thread: stored }), ...scope.columns };
    for (let before: string | undefined; !signal.aborted; ) {
      const page = { status: this.#statuses, limit: pageSize, ...omitUndefined({ before }) };
      const rows = await listRuns(scope.store, { ...query, ...page });
      const own = rows.filter((row) => scope.isVisible({ ...row, id: row.thread }));
      if (own.length > 0) yield own;
      before = rows.at(-1)?.cursor;
      if (rows.length < pageSize) return undefined;
    }
    return undefined;
  }

  async #applyPage(rows: readonly ListedRunRow[]): Promise<void> {
    const groups = groupByThread(rows);
    let failure: { readonly error: unknown } | undefined;
    const work = async (): Promise<void> => {
      for (let group = groups.shift(); group !== undefined; group = groups.shift())
        for (const row of group) {
          if (failure !== undefined || this.#request.signal.aborted) return;
          await this.#applyTo(row).catch((error: unknown) => {
            failure ??= { error };
          });
        }
    };
    await Promise.all(Array.from({ length: concurrency }, work));
    if (failure !== undefined) throw failure.error;
  }

  async #applyTo(row: ListedRunRow): Promise<void> {
    const { action } = this.#request;
    if (action === "delete" && this.#threads.has(row.thread)) return;
    this.#threads.add(row.thread);
    try {
      this.#counts[await this.#change(row)] += 1;
    } catch (error) {
      const code = getErrorCode(error);
      if (code === undefined || haltCodes.has(code)) throw error;
      if (goneCodes.has(code)) this.#counts.skipped += 1;
      else this.#addError(row, code, error);
    }
    this.#report();
  }

  #addError({ thread, id }: ListedRunRow, code: string, error: unknown): void {
    this.#counts.failed += 1;
    if (this.#errors.length >= maxErrors) return;
    const title = error instanceof RequestProblem ? error.problem.title : (findFailureTitle(code) ?? "The act failed.");
    const run = this.#request.action === "delete" ? {} : { run: id };
    this.#errors.push({ thread: this.#scope.toWireId(thread), ...run, code, title });
  }

  async #change({ thread: stored, id: run, branch }: ListedRunRow): Promise<Outcome> {
    const { action, reason } = this.#request;
    const thread = this.#scope.toWireId(stored);
    if (action === "delete") {
      await this.#acts.deleteThread(thread);
      return "done";
    }
    if (!(await this.#stillMatches({ stored, run, branch }))) return "skipped";
    if (action === "cancel") {
      const { status } = await this.#acts.cancelRun(thread, { run, branch, ...omitUndefined({ reason }) });
      return status === "done" || status === "failed" ? "skipped" : "done";
    }
    await this.#acts.resumeRun(thread, { branch });
    return "done";
  }

  /** True for a run whose status still matches, and, for a continuation, that is the newest of its branch. */
  async #stillMatches(row: {
    readonly stored: string;
    readonly run: string;
    readonly branch: string;
  }): Promise<boolean> {
    const { store } = this.#scope;
    const { stored: thread, run, branch } = row;
    const started = allStatuses.filter((status) => status !== "queued");
    const status = this.#request.action === "cancel" ? this.#statuses : started;
    for (let before: ListedRunRow | undefined; ; ) {
      const rows: readonly ListedRunRow[] = await store.runs({
        thread,
        branch,
        status,
        limit: 10,
        ...omitUndefined({ before }),
      });
      const found = rows.find(({ id }) => id === run);
      if (found !== undefined && this.#request.action === "cancel") return true;
      if (this.#request.action !== "cancel") return rows[0]?.id === run && this.#statuses.includes(rows[0].status);
      before = rows.at(-1);
      if (before === undefined) return false;
    }
  }
}

function groupByThread(rows: readonly ListedRunRow[]): (readonly ListedRunRow[])[] {
  const groups = new Map<string, ListedRunRow[]>();
  for (const row of rows) groups.set(row.thread, [...(groups.get(row.thread) ?? []), row]);
  return [...groups.values()];
}

/** Codes of errors about a row that another call ended or deleted. */
const goneCodes: ReadonlySet<string> = new Set(["unknown_thread", "unknown_run"]);

function getErrorCode(error: unknown): string | undefined {
  if (error instanceof RequestProblem) return error.problem.code;
  return isStatewrightError(error) ? error.code : undefined;
}

/** Returns the statuses of the filter. Throws the problem `invalid_request` for one that the action cannot change. */
function selectStatuses({ action, filter }: BulkRequest): readonly RunStatus[] {
  const { defaults, allowed } = statuses[action];
  const asked = filter.status === undefined ? defaults : [filter.status].flat();
  const other = asked.find((status) => !allowed.includes(status));
  if (other === undefined) return asked;
  throw createInvalidRequestProblem(
    `filter.status: expected ${allowed.join(", ")} for the action ${action}, got ${other}.`,
  );
}
