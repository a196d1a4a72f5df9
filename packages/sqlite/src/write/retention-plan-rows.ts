/** Rows for the plan of retention, page by page. */

import { retentionRules, storeRules } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { toRowKey } from "../file/schema.ts";
import { threadHeadCheckpoint } from "../read/thread-head.ts";

/**
 * A step of the work. `run` is called inside a read transaction, inside a write transaction, or outside of any, by
 * `kind`.
 */
export interface PruneStep {
  readonly kind: "reads" | "writes" | "plans";
  readonly run: () => void;
}

/** Maximum number of rows per read step. */
const rowsPerStep = 2_000;

interface NamespaceColumns {
  readonly key: number;
  readonly name: string;
  readonly origin: number | null;
  readonly run: number | null;
  readonly once: number;
  readonly status: Parameters<typeof retentionRules.isUnfinished>[0] | null;
}

interface CheckpointHead extends Omit<retentionRules.RetainedCheckpoint, "run"> {
  readonly run: number | string;
}

/** Namespace loaded for planning. */
export interface LoadedNamespace extends retentionRules.RetainedNamespace {
  readonly key: number;
  readonly checkpoints: retentionRules.RetainedCheckpoint[];
}

function prepareStatements(db: Database) {
  return {
    keyOfThread: db.prepare<[string], number>("SELECT key FROM threads WHERE id = ?").pluck(),
    newestOfThread: db
      .prepare<[number], number>("SELECT " + threadHeadCheckpoint + " FROM threads t WHERE t.key = ?")
      .pluck(),
    namespacesOfThread: db.prepare<[number, string, number], NamespaceColumns>(
      "SELECT b.key, b.name, b.origin, b.run, r.status, EXISTS (SELECT 1 FROM effects e INDEXED BY once_effects" +
        " WHERE e.branch = b.key AND e.effect = 'once') AS once" +
        " FROM branches b LEFT JOIN runs r ON r.key = b.run WHERE b.thread = ? AND b.name > ? ORDER BY b.name LIMIT ?",
    ),
    checkpointsOfNamespace: db.prepare<[number, number, number], CheckpointHead>(
      "SELECT key & 0xffffff AS id, at, step, seq, run, source FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?",
    ),
  };
}

/** Loads the namespaces and checkpoints of a thread for planning, in steps of bounded work. */
export class RetentionPlanRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /**
   * Loads the namespaces of a thread and their checkpoints page by page, up to the newest checkpoint at the first
   * page: a run started in between is unknown, but its possible origin is the newest checkpoint of that time.
   */
  *load(
    thread: string,
  ): Generator<PruneStep, { readonly key: number; readonly namespaces: readonly LoadedNamespace[] }> {
    const namespaces: LoadedNamespace[] = [];
    let [key, newest] = [0, 0];
    for (let [after, isLast] = ["", false]; !isLast; ) {
      yield {
        kind: "reads",
        run: () => {
          const found = this.#sql.keyOfThread.get(thread);
          if (found === undefined) throw storeRules.createUnknownThreadError(thread);
          if (key === 0) newest = this.#sql.newestOfThread.get(found) ?? 0;
          key = found;
          const page = this.#sql.namespacesOfThread.all(key, after, rowsPerStep);
          isLast = page.length < rowsPerStep;
          after = page.at(-1)?.name ?? after;
          for (const namespace of page) namespaces.push(toLoadedNamespace(namespace));
        },
      };
    }
    for (let [next, after] = [0, 0]; next < namespaces.length; ) {
      yield {
        kind: "reads",
        run: () => {
          for (let room = rowsPerStep; room > 0 && next < namespaces.length; ) {
            const namespace = namespaces[next] as LoadedNamespace;
            const page = this.#sql.checkpointsOfNamespace.all(
              toRowKey(namespace.key, after + 1),
              toRowKey(namespace.key, newest),
              room,
            );
            for (const row of page) namespace.checkpoints.push({ ...row, run: String(row.run) });
            const isRead = page.length < room;
            // A namespace without checkpoints counts too: there may be very many.
            room -= page.length + 1;
            after = isRead ? 0 : (page.at(-1)?.id ?? 0);
            if (isRead) next += 1;
          }
        },
      };
    }
    return { key, namespaces };
  }
}

function toLoadedNamespace({ key, name, origin, run, status, once }: NamespaceColumns): LoadedNamespace {
  return {
    key,
    name,
    from: origin ?? undefined,
    unfinishedRun: retentionRules.isUnfinished(status ?? undefined) ? String(run) : undefined,
    hasOnceEffects: once === 1,
    checkpoints: [],
  };
}
