/** Verification of threads and long-term items: each checkpoint chain from its anchor on, and each checksum. */

import { type Fault, storeRules, type VerifyReport } from "@statewright/core/store";
import { type DetailColumns, isUnreadable, type Read, readDetails, type StoreVerifier } from "@statewright/store-kit";
import type { OutsideBody } from "../bodies/outside-bodies.ts";
import type { Database } from "../driver/database.ts";
import type { Reencryption } from "../encryption/reencrypt.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import type { NamespaceRow } from "../read/namespace-reader.ts";
import type { Reader } from "../read/reader.ts";
import { toStartCondition } from "../rows/run-rows.ts";
import { detailColumns } from "../rows/thread-details.ts";
import { statusWithoutRun } from "../rows/thread-rows.ts";
import type { ScheduleTable } from "../schedules/schedule-table.ts";
import type { Artifacts } from "../write/artifacts.ts";
import type { LongTermTable } from "../write/long-term.ts";
import type { PrunedRanges } from "../write/pruned-ranges.ts";

/** Rows per turn of the event loop. */
const rowsPerRead = 200;

function prepareStatements(db: Database) {
  return {
    page: db.prepare<[number, number, number], { key: number; id: string }>(
      "SELECT key, id FROM threads WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
    ),
    newestThreadKey: db.prepare<[], number | null>("SELECT max(key) FROM threads").pluck(),
    ids: db
      .prepare<[number, number, number], number>(
        "SELECT key & 0xffffff FROM checkpoints WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
      )
      .pluck(),
    newest: db.prepare<[string], { ahead: number; owned: number }>(
      "SELECT t.owner IS NOT NULL AS owned, t.checkpoint - coalesce((SELECT max((SELECT max(c.key) & 0xffffff FROM checkpoints c" +
        " WHERE c.key >= b.key << 24 AND c.key < (b.key + 1) << 24)) FROM branches b WHERE b.thread = t.key), 0) AS ahead" +
        " FROM threads t WHERE t.id = ?",
    ),
    // A single statement: the owner of the thread may write concurrently.
    hasStrayDeltas: db
      .prepare<{ namespace: number }, number>(
        "SELECT EXISTS (SELECT 1 FROM channels c JOIN deltas d ON d.key > (c.key << 24) + max(" +
          "coalesce((SELECT max(key) & 0xffffff FROM checkpoints WHERE key >= @namespace << 24 AND key < (@namespace + 1) << 24), 0)," +
          " coalesce((SELECT max(key) & 0xffffff FROM anchors WHERE key >= @namespace << 24 AND key < (@namespace + 1) << 24), 0))" +
          " AND d.key < (c.key + 1) << 24 WHERE c.branch = @namespace)",
      )
      .pluck(),
    hasInvalidHead: db
      .prepare<[string], number>(
        "SELECT NOT EXISTS (SELECT 1 FROM branches b WHERE b.thread = t.key AND b.name = t.head) OR t.seq < coalesce((SELECT max(e.seq) FROM events e WHERE e.thread = t.key), 0)" +
          " FROM threads t WHERE t.id = ?",
      )
      .pluck(),
    runsWithMetadata: db.prepare<[number, string, number], { key: number; id: string; metadata: string }>(
      "SELECT r.key, r.id, r.metadata FROM runs r WHERE r.key > ? AND json_valid(r.metadata)" +
        " AND r.thread = (SELECT key FROM threads WHERE id = ?) ORDER BY r.key LIMIT ?",
    ),
    details: db.prepare<[string], DetailColumns & { key: number }>(
      "SELECT t.key, t.id, " +
        detailColumns +
        " FROM threads t LEFT JOIN thread_details d ON d.thread = t.key WHERE t.id = ?",
    ),
    pairsOfThread: db.prepare<[number], { name: string; value: string; tenant: string }>(
      "SELECT name, value, tenant FROM thread_metadata WHERE thread = ?",
    ),
    hasOtherStatus: db
      .prepare<[string], number>(
        "SELECT t.status IS NOT coalesce(r.status, '" +
          statusWithoutRun +
          "') FROM threads t LEFT JOIN runs r ON r.key = t.run WHERE t.id = ?",
      )
      .pluck(),
    hasForeignTenant: db
      .prepare<[string], number>(
        "SELECT EXISTS (SELECT 1 FROM runs r INDEXED BY runs_of_thread WHERE r.thread = t.key AND r.tenant IS NOT t.tenant)" +
          " FROM threads t WHERE t.id = ?",
      )
      .pluck(),
    hasOtherCounts: db
      .prepare<[string], number>(
        "SELECT t.queued <> (SELECT count(*) FROM runs r INDEXED BY queued_runs WHERE r.thread = t.key AND r.status = 'queued')" +
          " OR t.messages <> (SELECT count(*) FROM branches b JOIN inbox_messages m ON m.branch = b.key WHERE b.thread = t.key AND m.run = '')" +
          " OR t.requests <> (SELECT count(*) FROM branches b JOIN requests q ON q.branch = b.key WHERE b.thread = t.key AND q.handled = 0)" +
          " FROM threads t WHERE t.id = ?",
      )
      .pluck(),
    hasOtherTurn: db
      .prepare<[string], number>(
        "SELECT EXISTS (SELECT 1 FROM runs r INDEXED BY runs_of_thread WHERE r.thread = t.key AND r.turn IS NOT NULL" +
          " AND (r.status <> 'queued' OR r.turn <> ifnull(r.tenant, '')))" +
          " OR EXISTS (SELECT 1 FROM runs r INDEXED BY queued_runs WHERE r.thread = t.key AND r.status = 'queued' AND r.turn IS NULL" +
          " AND NOT EXISTS (SELECT 1 FROM runs q INDEXED BY queued_runs WHERE q.thread = t.key AND q.status = 'queued'" +
          " AND q.branch = r.branch AND q.key < r.key) AND " +
          toStartCondition("r") +
          ") FROM threads t WHERE t.id = ?",
      )
      .pluck(),
    pairs: db.prepare<[number], { name: string; value: string }>("SELECT name, value FROM run_metadata WHERE run = ?"),
  };
}

/** Sources of the verified rows. */
export interface VerifiedSources {
  readonly reader: Reader;
  readonly prunedRanges: PrunedRanges;
  readonly reencryption: Reencryption;
  readonly artifacts: Artifacts;
  readonly readOutside: (body: OutsideBody) => Promise<Uint8Array>;
  readonly longTerm: Pick<LongTermTable, "verify">;
  readonly schedules: Pick<ScheduleTable, "verify">;
}

/** Verifies the rows of the file. */
export class Verifier implements StoreVerifier {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #db: Database;
  readonly #sources: VerifiedSources;

  constructor(db: Database, sources: VerifiedSources) {
    this.#sql = prepareStatements(db);
    this.#db = db;
    this.#sources = sources;
  }

  /**
   * Returns SQLite's findings about the structure of the file: pages, keys, indexes. Blocks the event loop meanwhile.
   */
  checkStructure(): readonly string[] {
    return (this.#db.pragma("integrity_check(20)") as readonly { readonly integrity_check: string }[])
      .map(({ integrity_check: found }) => found)
      .filter((found) => found !== "ok");
  }

  /** Returns the key of the newest thread. Later threads need no verification, and could be created endlessly. */
  getNewestThreadKey(): number {
    return this.#sql.newestThreadKey.get() ?? 0;
  }

  /** Lists some threads after a key, up to a key, in key order. */
  listThreads(after: number, until: number): readonly { readonly key: number; readonly id: string }[] {
    return this.#sql.page.all(after, until, rowsPerRead);
  }

  /** Verifies the items of the long-term store, and the schedules. */
  async verifyItems(read: Read, onFault: (fault: Fault) => void): Promise<void> {
    const { longTerm, schedules } = this.#sources;
    for (const table of [longTerm, schedules])
      for (let after: number | undefined = 0; after !== undefined; ) {
        const from: number = after;
        after = await read<number | undefined>(() =>
          table.verify(from, rowsPerRead, (thrown) => {
            if (!isUnreadable(thrown)) throw thrown;
            onFault({ what: thrown.message });
          }),
        );
      }
  }

  /** Verifies the outlines of all graph versions. */
  async verifyOutlines(read: Read, onFault: (fault: Fault) => void): Promise<void> {
    const { outlines } = this.#sources.reader;
    for (const version of await read(() => outlines.listVersions()))
      await read(() => {
        try {
          outlines.get(version);
        } catch (thrown) {
          if (!isUnreadable(thrown)) throw thrown;
          onFault({ what: thrown.message });
        }
      });
  }

  /** Verifies a single thread; returns its number of checkpoints and artifact bodies. Throws `unknown_thread`. */
  async verifyThread(
    id: string,
    read: Read,
    fault: (fault: Fault) => void,
  ): Promise<Pick<VerifyReport, "checkpoints" | "artifacts">> {
    const runCheck = createCheck(id, fault);
    const { namespaces, sources } = await read(() => ({
      namespaces: this.#sources.reader.namespaces.list(id),
      sources: this.#sources.reencryption.listRowSources(id),
    }));
    if (namespaces.length === 0) throw storeRules.createUnknownThreadError(id);
    for (const source of sources) {
      for (let after: number | undefined = -1; after !== undefined; ) {
        const from = after;
        after = await read(() => {
          const { rows, last } = source.readPage(from, rowsPerRead);
          for (const row of rows) runCheck(() => row.read(this.#sources.reader.ciphers.get(id)));
          return last;
        });
      }
    }
    let checkpoints = 0;
    for (const namespace of namespaces) {
      checkpoints += await this.#verifyChain(id, namespace, read, runCheck);
      if ((await read(() => this.#sql.hasStrayDeltas.get({ namespace: namespace.key }))) === 1)
        fault({
          thread: id,
          what: `the newest checkpoint of the branch "${namespace.name}" is missing, but its changes exist`,
        });
      await read(() =>
        runCheck(() =>
          this.#sources.prunedRanges.list({ thread: id, namespace, cipher: this.#sources.reader.ciphers.get(id) }),
        ),
      );
    }
    await read(() => runCheck(() => this.#sources.reader.timers.list({ thread: id })));
    const artifacts = await this.#verifyArtifacts(id, read, runCheck);
    await read(() => runCheck(() => this.#verifyDetails(id, fault)));
    await this.#verifyMetadata(id, read, fault);
    // The row of a claimed thread lags behind its checkpoints.
    const { ahead = 0, owned = 0 } = (await read(() => this.#sql.newest.get(id))) ?? {};
    if (ahead > 0 || (ahead < 0 && owned === 0)) fault({ thread: id, what: "the newest checkpoint is missing" });
    if ((await read(() => this.#sql.hasInvalidHead.get(id))) === 1)
      fault({ thread: id, what: "the head branch or the newest event is missing" });
    return { checkpoints, artifacts };
  }

  /** Verifies the artifacts of a thread; returns the number of bodies. */
  async #verifyArtifacts(id: string, read: Read, runCheck: (check: () => void) => void): Promise<number> {
    let bodies = 0;
    const getNextArtifact = this.#sources.artifacts.createCursor(id);
    for (let after: number | undefined = 0; after !== undefined; ) {
      const from: number = after;
      let outside: OutsideBody | undefined;
      after = await read(() => {
        outside = undefined;
        const next = getNextArtifact(from);
        if (next === undefined) return undefined;
        runCheck(() => {
          outside = this.#sources.artifacts.verify(id, next);
        });
        if (next.body === next.key) bodies += 1;
        return next.key;
      });
      if (outside !== undefined) await this.#verifyOutside(outside, runCheck);
    }
    return bodies;
  }

  async #verifyOutside(outside: OutsideBody, runCheck: (check: () => void) => void): Promise<void> {
    const [result] = await Promise.allSettled([this.#sources.readOutside(outside)]);
    runCheck(() => {
      if (result.status === "rejected") throw result.reason;
    });
  }

  /** Verifies the title, metadata, tenant and owner of a thread, the status that counts read, and its waiting inputs. */
  #verifyDetails(id: string, onFault: (fault: Fault) => void): void {
    const found = this.#sql.details.get(id);
    if (found === undefined) return;
    const { metadata, tenant = "" } = readDetails(this.#sources.reader.ciphers.get(id), found);
    const pairs = this.#sql.pairsOfThread.all(found.key);
    if (!isIndexedBy(pairs, metadata) || pairs.some((pair) => pair.tenant !== tenant))
      onFault({ thread: id, what: "the thread is not indexed by its metadata" });
    if (this.#sql.hasOtherStatus.get(id) === 1)
      onFault({ thread: id, what: "the status of the thread is not that of its newest run" });
    if (this.#sql.hasForeignTenant.get(id) === 1)
      onFault({ thread: id, what: "a run has another tenant than its thread" });
    if (this.#sql.hasOtherCounts.get(id) === 1)
      onFault({ thread: id, what: "the numbers of waiting inputs are not those of the rows of the thread" });
    if (this.#sql.hasOtherTurn.get(id) === 1)
      onFault({ thread: id, what: "a queued run is not in the index of the runs that can start, or another run is" });
  }

  /** Reports runs whose metadata rows differ from their metadata. */
  async #verifyMetadata(id: string, read: Read, onFault: (fault: Fault) => void): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const from: number = after;
      after = await read(() => {
        const runs = this.#sql.runsWithMetadata.all(from, id, rowsPerRead);
        for (const run of runs) {
          if (!isIndexedBy(this.#sql.pairs.all(run.key), JSON.parse(run.metadata)))
            onFault({ thread: id, what: `run ${run.id} is not indexed by its metadata` });
        }
        return runs.length < rowsPerRead ? undefined : runs.at(-1)?.key;
      });
    }
  }

  async #verifyChain(
    id: string,
    namespace: NamespaceRow,
    read: Read,
    runCheck: (work: () => void) => void,
  ): Promise<number> {
    let count = 0;
    for (let after = 0; ; ) {
      const from = after;
      const found = await read(() => {
        const checkpointIds = this.#sql.ids.all(
          toRowKey(namespace.key, from),
          toRowKey(namespace.key, maxCheckpointId),
          rowsPerRead,
        );
        for (const checkpoint of checkpointIds)
          runCheck(() => this.#sources.reader.checkpoints.list(id, namespace, checkpoint - 1, 1));
        return checkpointIds;
      });
      count += found.length;
      after = found.at(-1) ?? after;
      if (found.length < rowsPerRead) return count;
    }
  }
}

/** Returns true if the rows of an index by metadata are those of the metadata. */
function isIndexedBy(
  pairs: readonly { readonly name: string; readonly value: string }[],
  metadata: Readonly<Record<string, unknown>> = {},
): boolean {
  const listed = new Map(pairs.map(({ name, value }) => [name, value]));
  const expected = Object.entries(metadata);
  return (
    expected.length === listed.size && expected.every(([name, value]) => listed.get(name) === JSON.stringify(value))
  );
}

/** Creates a function that runs a check and reports a damaged row as a fault. */
function createCheck(thread: string, onFault: (fault: Fault) => void): (check: () => void) => void {
  return (check) => {
    try {
      check();
    } catch (thrown) {
      if (!isUnreadable(thrown)) throw thrown;
      onFault({ thread, what: thrown.message });
    }
  };
}
